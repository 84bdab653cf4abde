#pragma once
// Two runs of the same script beside each other: step times with their intervals, and whether a prediction came true.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/run_folder.h"
#include "view/analysis_document.h"

namespace hotlap {

// The parts of an answer that a comparison needs, also from a stored verdict.json.
struct StepsOfRun {
  std::string id;
  std::string name;
  std::int64_t count = 0;
  double mean_ms = 0;
  double half_width_ms = 0;
  std::optional<double> samples_per_step;
  std::optional<double> workers;
  // What the first finding advised.
  std::string advised_change;
  std::optional<double> advised_workers;
  std::optional<double> advised_ms_low;
  std::optional<double> advised_ms_high;
};
StepsOfRun steps_of(const AnalysisDocument& document);
// kCorrupt, kUnsupported (a later schema), kNotFound (it has no steps).
Result<StepsOfRun> steps_from_json(std::string_view verdict_json_untrusted);

// kInvalidInput says why the two cannot be compared (too few steps, other batch size).
Result<PreviousRun> compare_runs(const StepsOfRun& before, const StepsOfRun& after);

// The earlier runs of the same script in the same home, newest first. They are looked for once, and only as far as one
// is needed: a look at a live run reads none again. Confined to one thread. Bounded: a few hundred runs are looked at.
class PreviousRuns {
 public:
  explicit PreviousRuns(const RunFolder& folder);
  // With the newest one that can be compared with.
  std::optional<PreviousRun> compare(const AnalysisDocument& document);

 private:
  bool find_another();

  std::filesystem::path home_;
  std::string script_;
  std::vector<std::string> ids_;  // not looked at yet, the newest last
  std::vector<StepsOfRun> found_;
};

}  // namespace hotlap
