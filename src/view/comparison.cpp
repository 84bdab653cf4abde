#include "view/comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "rules/words.h"
#include "view/analyze.h"
#include "view/change.h"
#include "view/previous_run.h"

namespace hotlap {
namespace {

constexpr double kSameWork = 0.02;

std::vector<ComparedRun> described(const std::vector<RunFigures>& side) {
  std::vector<ComparedRun> out;
  for (const RunFigures& run : side) {
    // "running" of a run that nobody records any more says nothing.
    const bool is_lost = run.info.status == RunStatus::kRunning && !run.is_live;
    out.push_back({.id = run.info.id,
                   .name = run.info.name,
                   .status = std::string(to_string(is_lost ? RunStatus::kUnknown : run.info.status)),
                   .is_live = run.is_live,
                   .steps = run.steps});
  }
  return out;
}

// Why a run is no side of a comparison; empty: it is.
std::string unfit(const RunFigures& run) {
  if (run.steps >= kStepsToJudge && run.document.steps.mean_ms) return {};
  if (run.steps_all == 0) {
    return run.is_live ? format("run {} is still starting: no step yet; compare again once it trains", run.info.id)
                       : format("run {} has no training steps: there is nothing to compare", run.info.id);
  }
  return format("run {} has {} typical steps, {} are needed to compare{}", run.info.id, run.steps, kStepsToJudge,
                run.is_live ? "; it goes on" : "");
}

// The side's samples per step; nothing when not known. Two runs of one side that differ make it not known.
struct Work {
  std::optional<double> samples;
  bool is_mixed = false;
  bool is_partly_known = false;
};
Work work_of(const std::vector<RunFigures>& side) {
  Work out;
  std::size_t known = 0;
  for (const RunFigures& run : side) {
    if (!run.samples_per_step || *run.samples_per_step <= 0) continue;
    ++known;
    if (!out.samples) out.samples = run.samples_per_step;
    out.is_mixed = out.is_mixed || std::abs(*run.samples_per_step / *out.samples - 1) > kSameWork;
  }
  out.is_partly_known = known > 0 && known < side.size();
  return out;
}

// Why times of a step do not mean the same on both sides; empty: they do.
std::string other_steps(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after) {
  const Work was = work_of(before);
  const Work is = work_of(after);
  if (was.is_mixed || is.is_mixed) return "the runs of one side have steps of different sizes";
  if (was.samples && is.samples && std::abs(*is.samples / *was.samples - 1) > kSameWork) {
    return format("a step has {} samples before, {} after", figure(*was.samples), figure(*is.samples));
  }
  const bool is_known_once = was.samples.has_value() != is.samples.has_value();
  if (is_known_once || was.is_partly_known || is.is_partly_known) {
    return "how many samples a step has is known of one side only";
  }
  const auto is_inferred = [](const RunFigures& run) { return run.is_inferred; };
  const bool inferred_before = std::any_of(before.begin(), before.end(), is_inferred);
  const bool inferred_after = std::any_of(after.begin(), after.end(), is_inferred);
  if (inferred_before != inferred_after && !was.samples) {
    return "steps are marked on one side and inferred from the loader on the other";
  }
  return {};
}

bool is_per_step(std::string_view name) {
  return name == "step_ms" || name == "energy_per_step_j" || name == "cost_per_step";
}

std::string first_missing(const std::vector<RunFigures>& side, std::size_t place) {
  for (const RunFigures& run : side) {
    if (!run.figures[place].measured) return run.figures[place].missing;
  }
  return {};
}

std::vector<Measured> measured(const std::vector<RunFigures>& side, std::size_t place) {
  std::vector<Measured> out;
  for (const RunFigures& run : side) {
    if (run.figures[place].measured) out.push_back(*run.figures[place].measured);
  }
  return out;
}

// Of a side: the mean of its runs, with an interval where it is one run.
std::optional<Measured> mean_of_side(const std::vector<Measured>& runs, std::size_t side_size) {
  if (runs.size() != side_size || runs.empty()) return std::nullopt;
  if (runs.size() == 1) return runs.front();
  double sum = 0;
  for (const Measured& run : runs) sum += run.value;
  return Measured{sum / static_cast<double>(runs.size()), std::nullopt};
}

std::string word_for(const FigureDesc& desc, const Change& change) {
  switch (desc.better) {
    case Better::kLower: return std::string(word_of(change, "better", "worse"));
    case Better::kHigher: return std::string(word_of(change, "worse", "better"));
    case Better::kNeither: break;
  }
  return std::string(word_of(change, "lower", "higher"));
}

// Money of two currencies is not one figure.
std::string currency_of(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after) {
  std::set<std::string> found;
  for (const auto* side : {&before, &after}) {
    for (const RunFigures& run : *side) {
      if (!run.currency.empty()) found.insert(run.currency);
    }
  }
  return found.size() == 1 ? *found.begin() : found.empty() ? std::string("USD") : std::string();
}

ComparedFigure compare_figure(std::size_t place, const std::vector<RunFigures>& before,
                              const std::vector<RunFigures>& after, const std::string& step_reason,
                              const std::string& currency) {
  ComparedFigure out;
  out.desc = &figure_descriptions()[place];
  const bool is_money = out.desc->unit == "$";
  out.unit = is_money ? (currency.empty() ? "money" : currency) : std::string(out.desc->unit);
  const std::vector<Measured> was = measured(before, place);
  const std::vector<Measured> is = measured(after, place);
  out.before = mean_of_side(was, before.size());
  out.after = mean_of_side(is, after.size());
  if (!out.before || !out.after) {
    const bool is_both = !out.before && !out.after;
    const std::string reason = first_missing(!out.before ? before : after, place);
    out.missing = is_both ? reason : format("{}: {}", !out.before ? "before" : "after", reason);
    return out;
  }
  if (is_per_step(out.desc->name) && !step_reason.empty()) {
    out.missing = step_reason;
    return out;
  }
  if (is_money && currency.empty()) {
    out.missing = "prices in different currencies";
    return out;
  }
  out.change = change_of(was, is, out.desc->scale);
  if (!out.change) {
    const bool is_zero = out.desc->scale == ChangeScale::kPercent && (out.before->value <= 0 || out.after->value <= 0);
    out.missing = is_zero ? "a change in percent of 0 means nothing" : "too few samples for an interval";
    return out;
  }
  out.word = word_for(*out.desc, *out.change);
  return out;
}

std::optional<Prediction> prediction_of(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after,
                                        const ComparedFigure& step) {
  if (!step.change) return std::nullopt;
  const Result<PreviousRun> followed = compare_runs(steps_of(before.back().document), steps_of(after.back().document));
  if (!followed.ok() || !followed->predicted_ms_low || !followed->predicted_ms_high) return std::nullopt;
  const double now_ms = step.after->value;
  Prediction out{.change = followed->predicted_change,
                 .step_ms_low = *followed->predicted_ms_low,
                 .step_ms_high = *followed->predicted_ms_high,
                 .place = "inside"};
  if (now_ms < out.step_ms_low) out.place = "better than predicted";
  if (now_ms > out.step_ms_high) out.place = "worse than predicted";
  return out;
}

std::string unit_text(const ComparedFigure& figure) {
  return figure.unit.starts_with('{') ? std::string(figure.desc->title) : figure.unit;
}

CheckedCondition check(const FailCondition& condition, const ComparedFigure& compared) {
  CheckedCondition out{.text = condition.text, .holds = {}, .why = {}};
  const auto is_beyond = [&](double value) {
    if (condition.is_or_equal && value == condition.limit) return true;
    return condition.is_greater ? value > condition.limit : value < condition.limit;
  };
  if (condition.limit_kind == FailCondition::Limit::kValue) {
    if (!compared.after) {
      out.why = compared.missing;
      return out;
    }
    out.holds = is_beyond(compared.after->value);
    out.why = format("{} is {} {}", compared.desc->name, figure(compared.after->value), unit_text(compared));
    return out;
  }
  if (!compared.change) {
    out.why = compared.missing;
    return out;
  }
  const Change& change = *compared.change;
  const bool is_pct = condition.limit_kind == FailCondition::Limit::kChangePct;
  const double value = is_pct ? change.change : change.after - change.before;
  // A change in the direction asked for counts only where it is more than chance.
  const bool asks_for_rise = condition.is_greater && condition.limit >= 0;
  const bool asks_for_fall = !condition.is_greater && condition.limit <= 0;
  const bool is_chance = (asks_for_rise && change.low <= 0) || (asks_for_fall && change.high >= 0);
  out.holds = is_beyond(value) && !is_chance;
  out.why = format("{} changed by {} {} ({} to {})", compared.desc->name, change_figure(change.change),
                   compared.desc->scale == ChangeScale::kPercent ? "%" : "points", change_figure(change.low),
                   change_figure(change.high));
  if (is_beyond(value) && is_chance) out.why += ": not more than the measurements differ";
  return out;
}

void add_notes(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after,
               const std::string& step_reason, Comparison& out) {
  std::set<std::string> scripts;
  for (const auto* side : {&before, &after}) {
    for (const RunFigures& run : *side) {
      scripts.insert(run.info.script);
      if (run.is_live) out.notes.push_back(format("run {} goes on: figures as of now", run.info.id));
      if (run.is_inferred) {
        out.notes.push_back(format("steps of run {} are inferred from its loader's cadence", run.info.id));
      }
      out.problems.insert(out.problems.end(), run.document.problems.begin(), run.document.problems.end());
    }
  }
  if (scripts.size() > 1) out.notes.emplace_back("the runs are of different scripts");
  if (!step_reason.empty()) out.notes.push_back(step_reason + ": compared by samples, not by steps");
  const bool is_several = before.size() + after.size() > 2;
  out.notes.push_back(is_several ? std::string("intervals: of the runs' means, 95 %")
                                 : format("intervals: within each run, 95 %, never finer than {} %", kFloorPct));
}

}  // namespace

bool Comparison::fails() const {
  return std::any_of(conditions.begin(), conditions.end(),
                     [](const CheckedCondition& one) { return one.holds.value_or(false); });
}

std::string Comparison::unchecked() const {
  for (const CheckedCondition& one : conditions) {
    if (!one.holds) return format("'{}' cannot be checked: {}", one.text, one.why);
  }
  return {};
}

Comparison compare_sides(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after,
                         const std::vector<FailCondition>& conditions) {
  Comparison out;
  out.before = described(before);
  out.after = described(after);
  for (const auto* side : {&before, &after}) {
    for (const RunFigures& run : *side) {
      if (out.refusal.empty()) out.refusal = unfit(run);
    }
  }
  std::vector<const RunSettings*> settings_before;
  std::vector<const RunSettings*> settings_after;
  for (const RunFigures& run : before) settings_before.push_back(&run.settings);
  for (const RunFigures& run : after) settings_after.push_back(&run.settings);
  out.settings = settings_differences(settings_before, settings_after);
  if (!out.refusal.empty()) {
    for (const FailCondition& condition : conditions) {
      out.conditions.push_back({.text = condition.text, .holds = {}, .why = out.refusal});
    }
    return out;
  }
  const std::string step_reason = other_steps(before, after);
  const std::string currency = currency_of(before, after);
  for (std::size_t i = 0; i < figure_descriptions().size(); ++i) {
    out.figures.push_back(compare_figure(i, before, after, step_reason, currency));
  }
  // By steps where they mean the same, else by what was worked off.
  for (const std::string_view name : {"step_ms", "samples_per_s", "tokens_per_s"}) {
    const std::size_t place = *find_figure(name);
    if (!out.figures[place].change) continue;
    out.headline = place;
    break;
  }
  if (!out.figures[out.headline].change) {
    const std::string& why = out.figures[out.headline].missing;
    out.refusal = step_reason.empty() ? format("the step times cannot be compared: {}", why)
                                      : format("{}: their times cannot be compared", step_reason);
  }
  out.prediction = prediction_of(before, after, out.figures[*find_figure("step_ms")]);
  for (const FailCondition& condition : conditions) {
    out.conditions.push_back(check(condition, out.figures[condition.figure]));
  }
  add_notes(before, after, step_reason, out);
  return out;
}

}  // namespace hotlap
