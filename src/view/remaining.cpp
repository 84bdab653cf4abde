#include "view/remaining.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "cost/price.h"
#include "record/run_plan.h"
#include "rules/words.h"
#include "view/change.h"
#include "view/run_settings.h"

namespace hotlap {
namespace {

constexpr double kMsPerS = 1e3;
constexpr double kStepsMin = 30;  // before, nothing is told
constexpr double kStepsTotalMax = 1e12;
constexpr double kSecondsPerMinute = 60;
constexpr double kSecondsPerHour = 3600;

// How training scripts call them, by the argument parsers of the usual frameworks. Compared without leading dashes and
// with '-' as '_'; a dotted name counts by its end.
constexpr std::array<std::string_view, 6> kStepNames{"max_steps",   "total_steps",     "num_steps",
                                                     "train_steps", "max_train_steps", "num_train_steps"};
constexpr std::array<std::string_view, 6> kEpochNames{"epochs",    "num_epochs",   "max_epochs",
                                                      "num_epoch", "total_epochs", "num_train_epochs"};

std::string plain_name(std::string_view name) {
  std::string out(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::replace(out.begin(), out.end(), '-', '_');
  return out.substr(out.rfind('.') + 1);
}

std::optional<double> positive(std::string_view text) {
  const auto number = parse_f64(text);
  if (!number || !(*number > 0) || *number > kStepsTotalMax) return std::nullopt;
  return number;
}

// Seconds of a step with what lies between and beside typical steps: pauses, loader starts; without the warm-up.
std::optional<double> step_s_overall(const FactTable& facts, const Fact& steps) {
  const Fact* throughput = facts.find("throughput.summary");
  const auto count = steps.number("count");
  const auto warmup = steps.number("warmup_count");
  const auto warmup_s = steps.number("warmup_s");
  if (throughput == nullptr || !count || !warmup || !warmup_s || *count <= *warmup) return std::nullopt;
  const auto per_s = throughput->number("overall_steps_per_s");
  if (!per_s || *per_s <= 0) return std::nullopt;
  const double span_s = *count / *per_s;
  return std::max((span_s - *warmup_s) / (*count - *warmup), 0.0);
}

// From the start of the job to its first typical step.
double start_up_of(const FactTable& facts, const Fact& steps) {
  double seconds = steps.number("warmup_s").value_or(0);
  if (const Fact* phases = facts.find("phases.summary")) {
    for (const std::string_view phase : {"starting_s", "downloading_s", "initialisation_s"}) {
      seconds += phases->number(phase).value_or(0);
    }
  }
  return seconds;
}

void set_restart(const FactTable& facts, const Fact& steps, const SecondsRange& fixed_step_s, Remaining& out) {
  out.start_up_s = start_up_of(facts, steps);
  out.redone_steps = out.steps_done;
  for (const Fact* pause : facts.all("pauses.part")) {
    if (pause->text("what") != "checkpoint") continue;
    const auto count = pause->number("count");
    const auto every = pause->number("every_steps");
    if (!count || *count < 1) continue;
    out.has_checkpoint = true;
    // When the next one is due is known within a period: half of one is lost on average, a whole one at worst.
    out.redone_steps = every ? std::min(*every, out.steps_done) : out.steps_done;
  }
  const double redone_low = out.has_checkpoint ? 0 : out.redone_steps;
  out.restart_s = SecondsRange{out.start_up_s + (redone_low + out.steps_left) * fixed_step_s.low,
                               out.start_up_s + (out.redone_steps + out.steps_left) * fixed_step_s.high};
  out.better = "no difference";
  if (out.restart_s->high < out.as_is_s.low) out.better = "restart";
  if (out.restart_s->low > out.as_is_s.high) out.better = "finish";
}

std::string range(double low, double high) {
  const std::string from = figure(low);
  const std::string to = figure(high);
  return from == to ? from : from + "-" + to;
}

std::string duration_words(const SecondsRange& seconds) {
  const auto [unit, scale] = seconds.high >= 3 * kSecondsPerHour     ? std::pair{"h", kSecondsPerHour}
                             : seconds.high >= 3 * kSecondsPerMinute ? std::pair{"min", kSecondsPerMinute}
                                                                     : std::pair{"s", 1.0};
  return format("{} {}", range(seconds.low / scale, seconds.high / scale), unit);
}

std::string cost_words(const SecondsRange& seconds, const std::optional<Price>& price) {
  if (!price) return {};
  const std::string low = format_money(money_for(seconds.low, *price).amount, price->currency);
  const std::string high = format_money(money_for(seconds.high, *price).amount, price->currency);
  return low == high ? format(" ({})", low) : format(" ({}-{})", low, high);
}

}  // namespace

std::optional<StepsTotal> steps_total_of(const RunInfo& run, std::optional<double> epoch_steps) {
  if (const auto given = run.environment.find(std::string(kStepsVariable)); given != run.environment.end()) {
    if (const auto steps = positive(given->second)) return StepsTotal{*steps, "--steps"};
  }
  const std::map<std::string, std::string> arguments = named_arguments(run.command);
  for (const auto& [name, text] : arguments) {
    const auto number = positive(text);
    if (!number || std::find(kStepNames.begin(), kStepNames.end(), plain_name(name)) == kStepNames.end()) continue;
    return StepsTotal{*number, format("{} {}", name, text)};
  }
  if (!epoch_steps || *epoch_steps < 1) return std::nullopt;
  for (const auto& [name, text] : arguments) {
    const auto number = positive(text);
    if (!number || std::find(kEpochNames.begin(), kEpochNames.end(), plain_name(name)) == kEpochNames.end()) continue;
    return StepsTotal{*number * *epoch_steps, format("{} {} x {} steps", name, text, count_figure(*epoch_steps))};
  }
  return std::nullopt;
}

std::optional<double> epoch_steps_of(const FactTable& facts) {
  if (const Fact* phases = facts.find("phases.summary")) {
    if (const auto steps = phases->number("epoch_steps")) return steps;
  }
  const Fact* loader = facts.find("loader.summary");
  const Fact* steps = facts.find("steps.summary");
  if (loader == nullptr || steps == nullptr) return std::nullopt;
  const auto batches = loader->number("epoch_batches");
  if (!batches || *batches < 1) return std::nullopt;
  return *batches / std::max(steps->number("batches_per_step").value_or(1), 1.0);
}

std::optional<Remaining> remaining_of(const RunInfo& run, const FactTable& facts,
                                      const std::vector<Finding>& findings) {
  const Fact* steps = facts.find("steps.summary");
  if (steps == nullptr) return std::nullopt;
  const auto mean_ms = steps->number("mean_ms");
  const auto per_step_s = step_s_overall(facts, *steps);
  if (!mean_ms || !per_step_s || steps->number("steady_count").value_or(0) < kStepsMin) return std::nullopt;
  const auto total = steps_total_of(run, epoch_steps_of(facts));
  if (!total) return std::nullopt;
  Remaining out;
  out.steps_total = total->steps;
  out.steps_from = total->from;
  out.steps_done = steps->number("count").value_or(0);
  // A job that does more steps than it was said to has no known end.
  if (out.steps_done > out.steps_total) return std::nullopt;
  out.steps_left = out.steps_total - out.steps_done;
  const double error = std::max(steps->number("half_width_ms").value_or(0) / *mean_ms, kFloorPct / 100);
  out.as_is_s = {out.steps_left * *per_step_s * (1 - error), out.steps_left * *per_step_s * (1 + error)};
  const double beside_s = std::max(*per_step_s - *mean_ms / kMsPerS, 0.0);  // pauses stay as they are
  for (const Finding& finding : findings) {
    if (!finding.explained_by.empty() || finding.advice.empty()) continue;
    const Advice& advice = finding.advice.front();
    if (!advice.step_ms_low || !advice.step_ms_high) break;
    const SecondsRange step_s{*advice.step_ms_low / kMsPerS + beside_s, *advice.step_ms_high / kMsPerS + beside_s};
    out.change = advice.change;
    out.with_fix_s = SecondsRange{out.steps_left * step_s.low, out.steps_left * step_s.high};
    set_restart(facts, *steps, step_s, out);
    break;
  }
  return out;
}

std::vector<std::string> remaining_lines(const Remaining& r, const std::optional<Price>& job_price) {
  std::vector<std::string> lines;
  lines.push_back(format("{} of {} steps left ({}): {}{} as it is",
                         shown_count(static_cast<std::uint64_t>(r.steps_left)),
                         shown_count(static_cast<std::uint64_t>(r.steps_total)), r.steps_from,
                         duration_words(r.as_is_s), cost_words(r.as_is_s, job_price)));
  if (!r.restart_s) return lines;
  const std::string from = r.has_checkpoint
                               ? format("up to {} steps again", shown_count(static_cast<std::uint64_t>(r.redone_steps)))
                               : "from the beginning: no checkpoint was seen";
  const std::string_view verdict = r.better == "restart"  ? "a restart pays"
                                   : r.better == "finish" ? "finishing as it is costs less"
                                                          : "no difference that could be told";
  lines.push_back(format("restart with {}: {}{} ({}); finishing as it is: {}{}; {}", r.change,
                         duration_words(*r.restart_s), cost_words(*r.restart_s, job_price), from,
                         duration_words(r.as_is_s), cost_words(r.as_is_s, job_price), verdict));
  return lines;
}

}  // namespace hotlap
