#pragma once
// From a run to its answer: recordings → facts → rules → document, for a finished run at once and for a live one
// piece by piece, with the same result. Confined to one thread.
#include <memory>
#include <vector>

#include "base/result.h"
#include "rules/engine.h"
#include "store/run_folder.h"
#include "store/run_reader.h"
#include "view/analysis_document.h"

namespace hotlap {

// Below so many typical steps a run is too short to judge.
inline constexpr std::int64_t kStepsToJudge = 30;
// The same for a profiler's trace, which has few steps and shows what is inside each.
inline constexpr std::int64_t kTraceStepsToJudge = 3;

// What is known of a run besides its facts.
struct RunExtent {
  std::int64_t nodes = 1;
  std::optional<double> duration_s;
  bool is_live = false;
  std::optional<Price> price;  // of one machine
};

// Follows one run. Keeps its place in every recording: a refresh costs what was recorded since.
class LiveAnalysis {
 public:
  // `has_sql_rules`: the user's own rules run, too (view/sql_rules.h).
  static Result<LiveAnalysis> open(RunFolder folder, RuleSettings settings = {}, bool has_sql_rules = true);
  // Several folders that together are one run (nodes that recorded apart); the first one names it. Not empty.
  static Result<LiveAnalysis> open(std::vector<RunFolder> folders, RuleSettings settings = {},
                                   bool has_sql_rules = true);
  LiveAnalysis(LiveAnalysis&&) noexcept;
  LiveAnalysis& operator=(LiveAnalysis&&) noexcept;
  ~LiveAnalysis();

  // Reads on. An error leaves what was read before in place: the document stays as good as it was.
  Result<void> refresh();
  // The run is over: what was held back counts too. After the last refresh().
  void finish();
  // The answer as it is now, with the comparison to the previous run of the same script.
  AnalysisDocument document() const;
  const RunInfo& info() const;
  // What the answer is made of, as it is now. Made once between two refreshes; valid until the next.
  const FactTable& facts() const;
  // Typical steps seen so far, of the main process: when a first verdict is due.
  std::int64_t steps_seen() const;

 private:
  struct State;
  RunExtent extent() const;
  explicit LiveAnalysis(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

Result<AnalysisDocument> analyze_run(const RunFolder& folder, const RuleSettings& settings = {},
                                     bool has_sql_rules = true);

// verdict.txt and verdict.json of the run's folder.
Result<void> write_verdict(const RunFolder& folder, const AnalysisDocument& document);

// What makes two answers of one run different enough to say it again: the kind, the cause, the change advised.
std::string verdict_identity(const AnalysisDocument& document);

// The document of facts and what rules made of them; for tests and for callers with facts of their own.
AnalysisDocument make_document(const RunInfo& run, const FactTable& facts, const RulesOutcome& outcome,
                               const RunExtent& extent = {});

}  // namespace hotlap
