#include "view/verdict_text.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "base/format.h"
#include "base/text.h"
#include "cost/machine_price.h"
#include "cost/price.h"
#include "model/losses.h"
#include "rules/trace_findings.h"
#include "rules/words.h"
#include "view/fact_words.h"

namespace hotlap {
namespace {

constexpr std::string_view kDot = " \u00B7 ";
constexpr std::size_t kStepsForMoney = 1'000;  // gains are told for so many steps where no epoch has ended yet
constexpr std::size_t kFooterIndent = 4;
constexpr double kMsPerS = 1e3;
constexpr double kSecondsPerMinute = 60;
constexpr double kSecondsPerHour = 3600;

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string range(double low, double high) {
  const std::string from = figure(low);
  const std::string to = figure(high);
  return from == to ? from : from + "-" + to;
}

// Where `line` is cut so that what stands before is at most kVerdictColumns wide: where a clause ends in its second
// half, else at a blank, but not before `begin`. A word that is longer stays whole.
std::size_t break_of(std::string_view line, std::size_t begin) {
  std::size_t columns = 0;
  std::size_t at = line.size();
  bool is_clause = false;
  for (std::size_t i = 0; i < line.size() && (columns <= kVerdictColumns || at == line.size()); ++i) {
    if (line[i] == ' ' && i > begin && line[i - 1] != ' ') {
      const bool ends_clause = columns >= kVerdictColumns / 2 &&
                               (line[i - 1] == ';' || line[i - 1] == ',' || line.substr(0, i).ends_with("\u00B7") ||
                                line.substr(i).starts_with("   ("));
      if (ends_clause || !is_clause) at = i;
      is_clause = is_clause || ends_clause;
    }
    if ((static_cast<unsigned char>(line[i]) & 0xC0U) != 0x80U) ++columns;  // not for what goes on a UTF-8 character
  }
  return columns <= kVerdictColumns ? line.size() : at;
}

// One line as several, separated by '\n', all but the first behind `indent` blanks; its first `begin` bytes stay whole.
std::string wrapped(std::string text, std::size_t begin, std::size_t indent) {
  std::string done;
  for (;;) {
    const std::size_t end = break_of(text, begin);
    done += text.substr(0, end);
    const std::size_t next = text.find_first_not_of(' ', end);
    if (next == std::string::npos) return done;
    text = std::string(indent, ' ') + text.substr(next);
    begin = indent;
    done += '\n';
  }
}

constexpr std::size_t kTextColumn = 8;  // where the text of a labelled line begins

std::string first_line(std::string text) { return wrapped(std::move(text), 0, kTextColumn); }

std::string line(std::string_view label, std::string_view text) {
  return wrapped(format("  {:<5} {}", label, text), kTextColumn, kTextColumn);
}

std::string waiting_party(const AnalysisDocument& d) {
  if (!d.has_gpu) return "training";
  const auto device = std::ranges::find(d.facts, "device.time", &Fact::kind);
  return std::string(device_word(device == d.facts.end() ? "" : device->where.device));
}

// Counters of what is left out because nothing is made of it are in the JSON: nobody misses an answer for them.
bool is_lost(const Loss& loss) {
  const auto known = std::ranges::find(kLosses, loss.counter, &LossDesc::counter);
  return known == kLosses.end() || known->severity != LossSeverity::kInfo;
}

std::string loss_words(const AnalysisDocument& d, const Finding& finding) {
  if (!finding.loss.empty()) return finding.loss;
  if (!finding.lost_pct) return "loss not measured";
  return format("{} waits {} % of {}", waiting_party(d), figure(*finding.lost_pct),
                finding.lost_of == LostOf::kSteps ? "each step" : "the time");
}

// "2.2-3.7 min", both in the unit of the larger one; equal ends once.
std::string duration_range(double low_s, double high_s) {
  const auto [unit, scale] = high_s >= 3 * kSecondsPerHour     ? std::pair{"h", kSecondsPerHour}
                             : high_s >= 3 * kSecondsPerMinute ? std::pair{"min", kSecondsPerMinute}
                                                               : std::pair{"s", 1.0};
  return format("{} {}", range(low_s / scale, high_s / scale), unit);
}

// "an epoch: 3.5 min -> 98-112 s, saves $0.045-0.051 at $1.515/h". How many steps the job has left is not known.
std::string saving_words(const AnalysisDocument& d, double now_ms, double low_ms, double high_ms) {
  const bool has_epoch = d.steps.epoch_steps.value_or(0) >= 1;
  const double steps = has_epoch ? *d.steps.epoch_steps : static_cast<double>(kStepsForMoney);
  const auto taken_s = [&](double step_ms) { return step_ms * steps / kMsPerS; };
  std::string text =
      format("; {}: {} -> {}", has_epoch ? "an epoch" : format("{} steps", shown_count(kStepsForMoney)),
             duration_range(taken_s(now_ms), taken_s(now_ms)), duration_range(taken_s(low_ms), taken_s(high_ms)));
  const auto price = price_of_nodes(d.price, d.nodes);
  if (!price) return text;
  const double low = money_for(taken_s(now_ms - high_ms), *price).amount;
  const double high = money_for(taken_s(now_ms - low_ms), *price).amount;
  return text + format(", saves {}-{} at {}/h ({})", format_money(low, price->currency),
                       format_money(high, price->currency), format_money(price->per_hour, price->currency),
                       price->source);
}

// What a step takes where the finding is: one rank may be slower than the one that stands for the run.
std::optional<double> step_ms_of(const AnalysisDocument& d, const Finding& finding) {
  const auto own = finding.evidence.find("step_ms");
  const double* ms = own == finding.evidence.end() ? nullptr : std::get_if<double>(&own->second);
  return ms != nullptr ? std::optional(*ms) : d.steps.mean_ms;
}

std::string gain_words(const AnalysisDocument& d, const Finding& finding) {
  const std::optional<double> step_ms = step_ms_of(d, finding);
  for (std::size_t i = 0; i < finding.advice.size(); ++i) {
    const Advice& advice = finding.advice[i];
    const std::string which = i == 0 ? "" : format("({}) ", static_cast<char>('a' + i));
    if (!advice.gain.empty()) return which + format("{} ({})", advice.gain, to_string(advice.basis));
    if (!advice.step_ms_low || !advice.step_ms_high || !step_ms) continue;
    const double now_ms = *step_ms;
    return which +
           format("step {} -> {} ms ({})", figure(now_ms), range(*advice.step_ms_low, *advice.step_ms_high),
                  to_string(advice.basis)) +
           saving_words(d, now_ms, *advice.step_ms_low, *advice.step_ms_high);
  }
  return "not known: no change whose step time can be predicted";
}

std::string advice_words(const Finding& finding) {
  std::string text;
  const bool has_several = finding.advice.size() > 1;
  for (std::size_t i = 0; i < finding.advice.size(); ++i) {
    const Advice& advice = finding.advice[i];
    if (i > 0) text += "   ";
    if (has_several) text += format("({}) ", static_cast<char>('a' + i));
    text += advice.change;
    if (!advice.note.empty()) text += format("   ({})", advice.note);
  }
  return text.empty() ? "no change is known" : text;
}

std::string finding_text(const AnalysisDocument& d, const Finding& finding) {
  std::string sure(to_string(finding.certainty));
  if (d.steps.count > 0) sure += format(" ({} steps)", shown_count(static_cast<std::uint64_t>(d.steps.count)));
  if (d.grade == "B") sure += " (no step was seen)";
  std::string text = first_line(join({finding.cause, loss_words(d, finding), sure}, kDot));
  text += "\n" + line("why", join(finding.why, "; "));
  text += "\n" + line("do", advice_words(finding));
  text += "\n" + line("gain", gain_words(d, finding));
  std::vector<std::string> excluded = finding.look_alikes_excluded;
  excluded.insert(excluded.end(), finding.limits.begin(), finding.limits.end());
  if (!excluded.empty()) text += "\n" + line("not", join(excluded, ", "));
  return text;
}

std::string healthy_text(const AnalysisDocument& d) {
  std::string text = "Healthy: nothing found worth changing";
  if (d.steps.breakdown.data_wait) {
    text += format("{}{} waits {} % for data", kDot, waiting_party(d), figure(*d.steps.breakdown.data_wait));
  }
  text += format("{}{} steps", kDot, shown_count(static_cast<std::uint64_t>(d.steps.count)));
  if (d.steps.mean_ms) text += format(", {} ms each", figure(*d.steps.mean_ms));
  if (!d.left_to_win_pct) {
    text += "\n" + line("left", "what waits and pauses take is not measured");
  } else {
    std::string left = format("all waits and pauses together: at most {} % to win", figure(*d.left_to_win_pct));
    if (d.left_to_win)
      left += format(" ({} of this job)", format_money(d.left_to_win->amount, d.left_to_win->currency));
    text += "\n" + line("left", left);
  }
  std::string blind =
      format("{} of {} rules ran", d.rules_run, d.rules_run + static_cast<std::int64_t>(d.rules_not_run.size()));
  // By what is missing: on a machine without a GPU one clause, not one for each rule.
  std::vector<std::pair<std::string, std::vector<std::string>>> by_fact;
  for (const RuleNotRun& rule : d.rules_not_run) {
    const std::string fact = rule.missing.empty() ? std::string() : rule.missing.front();
    const std::string about = fact_words(fact);
    auto found = std::ranges::find(by_fact, about, &std::pair<std::string, std::vector<std::string>>::first);
    if (found == by_fact.end()) found = by_fact.insert(by_fact.end(), {about, {}});
    found->second.push_back(rule.rule);
  }
  constexpr std::size_t kClausesMax = 5;
  std::ranges::stable_sort(by_fact, std::greater{}, [](const auto& one) { return one.second.size(); });
  std::size_t others = 0;
  for (const auto& [fact, rules] : by_fact | std::views::drop(kClausesMax)) others += rules.size();
  for (const auto& [fact, rules] : by_fact | std::views::take(kClausesMax)) {
    blind += rules.size() == 1 ? format("; {} needs {}", rules.front(), fact)
                               : format("; {} rules need {}", rules.size(), fact);
  }
  if (others > 0) blind += format("; {} more: --json names what each needs", others);
  return text + "\n" + line("blind", blind);
}

std::string seen_text(const AnalysisDocument& d, std::string_view head) {
  std::string text = first_line(std::string(head));
  if (!d.seen.empty()) text += "\n" + line("seen", join(d.seen, "; "));
  return text;
}

// What is told of the cost where no price is known: the dearer of what the job holds. Empty: too little to speak of.
std::string hours_words(const AnalysisDocument& d) {
  constexpr double kLeastHours = 0.01;
  const bool has_gpu = d.gpu_hours.value_or(0) >= kLeastHours;
  const double hours = has_gpu ? *d.gpu_hours : d.cpu_hours.value_or(0);
  if (hours < kLeastHours) return {};
  return format("so far {} {}-hours; with --price USD/H or --instance TYPE: in money", figure(hours),
                has_gpu ? "GPU" : "CPU");
}

// What looking into steps cost, or why it was not done.
std::string profile_words(const Fact& fact) {
  std::string text;
  const auto windows = static_cast<std::int64_t>(fact.number("windows").value_or(0));
  if (windows > 0) {
    const auto steps = static_cast<std::int64_t>(fact.number("steps").value_or(0));
    text = format("looked into {} step{} in {} window{}: the job stood still {} ms for it", steps,
                  steps == 1 ? "" : "s", windows, windows == 1 ? "" : "s", figure(fact.number("pause_ms").value_or(0)));
    if (const auto slower_ms = fact.number("slower_ms")) text += format(" and lost {} ms in them", figure(*slower_ms));
    if (const auto cost_pct = fact.number("cost_pct")) text += format(" ({:.2f} % of its time)", *cost_pct);
  }
  if (const auto why = fact.text("refused")) {
    text += format("{}asked to look into steps, but did not: {}", text.empty() ? "" : "; later ", *why);
  }
  return text;
}

}  // namespace

std::string change_words(const PreviousRun& previous, double now_ms) {
  std::string text =
      format("step {} -> {} ms, {:+.0f} % ({:+.0f} to {:+.0f}): {}", figure(previous.step_ms), figure(now_ms),
             previous.change_pct, previous.change_pct_low, previous.change_pct_high, previous.word);
  if (previous.predicted_ms_low && previous.predicted_ms_high) {
    const std::string_view place = now_ms < *previous.predicted_ms_low    ? "better than predicted"
                                   : now_ms > *previous.predicted_ms_high ? "worse than predicted"
                                                                          : "inside";
    text += format("; predicted for {}: {} ms, {}", previous.predicted_change,
                   range(*previous.predicted_ms_low, *previous.predicted_ms_high), place);
  }
  return text;
}

std::string verdict_text(const AnalysisDocument& d) {
  switch (d.verdict) {
    case VerdictKind::kFinding:
      if (!d.findings.empty()) return strip_control(finding_text(d, d.findings.front()));
      break;
    case VerdictKind::kHealthy: return strip_control(healthy_text(d));
    case VerdictKind::kTooShort:
      return strip_control(seen_text(d, format("Too short to judge: {} steady step{}, {} are needed",
                                               shown_count(static_cast<std::uint64_t>(d.steps.count)),
                                               d.is_trace && d.steps.count == 1 ? "" : "s", d.is_trace ? 3 : 30)));
    case VerdictKind::kCannotTell: break;
  }
  std::string reasons = join(d.cannot_tell, "; ");
  if (reasons.empty()) reasons = "no step was seen";
  return strip_control(seen_text(d, format("Can't tell, because {}", reasons)));
}

std::vector<std::string> footer_lines(const AnalysisDocument& d) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view text) {
    const std::string broken = wrapped(strip_control(text), 0, kFooterIndent);
    std::string_view rest(broken);
    for (std::string_view one; next_line(rest, one);) lines.emplace_back(one);
  };
  if (d.previous && d.steps.mean_ms) {
    add("vs previous run of this script: " + change_words(*d.previous, *d.steps.mean_ms));
  }
  if (d.oom_kills > 0) {
    add(format("out of memory: the kernel killed {} of the job's control group",
               d.oom_kills == 1 ? std::string("a process") : format("{} processes", d.oom_kills)));
  }
  if (d.hook.hooked < d.hook.python_processes) {
    add(format("hook in {} of {} Python processes{}{}", d.hook.hooked, d.hook.python_processes,
               d.hook.because.empty() ? "" : ", because ", d.hook.because));
  }
  if (d.resolution) {
    add(format("a long run: each sample was read of {} h, of {} h means, extremes and sums of minutes",
               figure(d.resolution->full_s / 3600), figure(d.resolution->minutes_s / 3600)));
  }
  if (d.self.overhead_pct_low && d.self.overhead_pct_high) {
    const std::string low = format("{:.2f}", *d.self.overhead_pct_low);
    const std::string high = format("{:.2f}", *d.self.overhead_pct_high);
    std::string text = format("hotlap itself cost {}{} % of step time", low, low == high ? "" : "-" + high);
    if (d.self.hook_us_per_step)
      text += format(" (hook {} us per step, self-measured)", figure(*d.self.hook_us_per_step));
    add(text);
  }
  for (const Fact& fact : d.facts) {
    if (fact.kind == "profile.summary") add(profile_words(fact));
  }
  if (!d.price && d.verdict == VerdictKind::kFinding) add(hours_words(d));
  if (d.remaining) {
    for (const std::string& text : remaining_lines(*d.remaining, price_of_nodes(d.price, d.nodes))) add(text);
  }
  // A rule of the user's that did not run is no recording that could not be read.
  for (const std::string& problem : d.problems) {
    add((problem.starts_with("rule ") ? "" : "not readable: ") + problem);
  }
  for (const Loss& loss : d.losses) {
    if (is_lost(loss)) add(format("lost: {} {} ({})", shown_count(loss.count), loss.counter, loss.help));
  }
  return lines;
}

std::string full_text(const AnalysisDocument& d) {
  std::string text = d.verdict_text + "\n";
  for (const std::string& line : footer_lines(d)) text += line + "\n";
  return text;
}

}  // namespace hotlap
