#pragma once
// The answer about a run, as plain data: what `hotlap analyze --json` prints, and what verdict, report, API and tests
// share. One versioned schema: docs/reference/analyze-schema.json.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/fact.h"
#include "model/finding.h"
#include "model/losses.h"
#include "model/run.h"
#include "view/remaining.h"

namespace hotlap {

inline constexpr int kAnalysisSchema = 1;

enum class VerdictKind : std::uint8_t { kFinding, kHealthy, kCannotTell, kTooShort };
std::string_view to_string(VerdictKind kind);

// Shares of steady step time, in percent. Absent: not measured. Those present, with `other`, add up to 100.
struct Breakdown {
  std::optional<double> data_wait;
  std::optional<double> forward;
  std::optional<double> backward;
  std::optional<double> optimizer;
  std::optional<double> communication;
  std::optional<double> checkpoint;
  std::optional<double> gc;
  std::optional<double> evaluation;
  std::optional<double> compile;
  std::optional<double> hook;
  std::optional<double> other;
  std::vector<std::pair<std::string, double>> named;  // of other, by the program's own names; the largest first
};

struct StepsDocument {
  std::int64_t count = 0;  // steady steps: warm-up and ragged ends left out
  std::int64_t count_all = 0;
  std::optional<double> mean_ms;        // what predictions and comparisons speak of: bursts do not move it
  std::optional<double> half_width_ms;  // half of the mean's 95 % interval
  std::optional<double> median_ms;
  std::optional<double> p90_ms;
  std::optional<double> p99_ms;
  std::optional<double> samples_per_step;
  std::optional<double> epoch_steps;  // steps of an epoch, once one has ended
  std::optional<double> samples_per_s;
  std::optional<double> tokens_per_s;
  std::optional<double> loader_workers;
  bool is_inferred = false;
  Breakdown breakdown;
};

// What the previous run of the same script was, and what was predicted then.
struct PreviousRun {
  std::string id;
  std::string name;
  double step_ms = 0;         // its mean
  double change_pct = 0;      // of the step time; negative: faster
  double change_pct_low = 0;  // interval of the change
  double change_pct_high = 0;
  std::string word;  // "faster", "slower", "no difference"
  std::optional<double> predicted_ms_low;
  std::optional<double> predicted_ms_high;
  std::string predicted_change;  // the advice that was followed: "DataLoader(num_workers=2)"
};

struct RuleNotRun {
  std::string rule;
  std::vector<std::string> missing;  // facts it needs
};

// In how many Python processes of the job the hook was at work.
struct HookCoverage {
  std::int64_t hooked = 0;
  std::int64_t python_processes = 0;
  std::string because;  // why not everywhere
};

// What hotlap itself cost the job, in percent of step time or of the machine.
struct SelfCost {
  std::optional<double> overhead_pct_low;
  std::optional<double> overhead_pct_high;
  std::optional<double> hook_us_per_step;
};

// How closely the samples of a long run were looked at, in seconds of all recordings.
struct SampleResolution {
  double full_s = 0;     // each sample
  double minutes_s = 0;  // of nearly all series: means, extremes and sums of minutes
};

struct AnalysisDocument {
  // run
  std::string run_id;
  std::string run_name;
  std::int64_t nodes = 1;
  std::int64_t attempts = 1;
  std::optional<double> duration_s;
  RunStatus status = RunStatus::kUnknown;
  std::string grade;                // "A": the hook saw the steps; "B": host series only
  bool is_trace = false;            // steps of a profiler's trace: few, and measured under its load
  std::optional<double> idle_pct;   // of a trace: share of the steps in which the GPU ran nothing
  bool has_gpu = false;             // who waits: "GPU" or "training"
  std::optional<double> cpu_hours;  // usable cores × time
  std::optional<double> gpu_hours;  // GPUs that the job used × time; absent: not known, or there is none
  std::int64_t oom_kills = 0;  // of a run that is over: processes killed for want of memory, in the job's control group
  std::optional<Price> price;  // of one machine; money is that of all nodes (cost/machine_price.h)
  // answer
  VerdictKind verdict = VerdictKind::kCannotTell;
  std::string verdict_text;               // the five lines
  std::vector<std::string> cannot_tell;   // "because …", one per reason
  std::vector<std::string> seen;          // grade B and too short: what was seen all the same
  std::optional<double> left_to_win_pct;  // healthy: all waits and checkpoints together
  std::optional<Money> left_to_win;       // the same, of the whole job, where its end and a price are known
  StepsDocument steps;
  std::vector<Fact> facts;        // on the model, its devices and its communication; kinds: docs/reference/rules.md
  std::vector<Finding> findings;  // primary ones first, by loss
  std::set<std::string> small;    // ids of those that are not worth a change (view/small_findings.h)
  std::int64_t rules_run = 0;
  std::vector<RuleNotRun> rules_not_run;
  std::vector<Fact> inside;                    // facts inside the step, from traces: "operators.table" …
  std::optional<SampleResolution> resolution;  // absent: every sample was read
  std::vector<Loss> losses;
  std::vector<std::string> problems;  // recordings that could not be read, rules that failed
  HookCoverage hook;
  SelfCost self;
  std::optional<PreviousRun> previous;
  std::optional<Remaining> remaining;  // of a run that goes on, where its number of steps is known
};

std::string to_json(const AnalysisDocument& document);

}  // namespace hotlap
