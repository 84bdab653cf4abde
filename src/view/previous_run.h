#pragma once
// Two runs of the same script beside each other: step times with their intervals, and whether a prediction came true.
#include <optional>
#include <string>
#include <string_view>

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

// The newest earlier run of the same script in the same home that can be compared with.
std::optional<PreviousRun> compare_with_previous(const RunFolder& folder, const AnalysisDocument& document);

}  // namespace hotlap
