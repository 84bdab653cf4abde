#include "view/verdict_kind.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "cost/machine_price.h"
#include "cost/price.h"
#include "rules/end_of_job.h"
#include "rules/step_findings.h"
#include "rules/trace_findings.h"
#include "rules/words.h"
#include "view/analyze.h"

namespace hotlap {
namespace {

constexpr std::size_t kReasonsMax = 3;

// What was seen although it does not suffice for an answer.
std::vector<std::string> seen_words(const FactTable& facts, const AnalysisDocument& d) {
  std::vector<std::string> seen;
  if (d.idle_pct && d.cannot_tell.empty()) {
    seen.push_back(format("the GPU ran nothing {} % of the time", figure(*d.idle_pct)));
  }
  if (d.steps.mean_ms) {
    std::string text = format("{} steps of {} ms", d.steps.count, figure(*d.steps.mean_ms));
    if (d.steps.breakdown.data_wait)
      text += format(", {} % of it waiting for data", figure(*d.steps.breakdown.data_wait));
    seen.push_back(text);
  }
  if (const Fact* cores = facts.find("core_use.summary")) {
    const auto busy = cores->number("busy_pct");
    const auto usable = cores->number("usable_cores");
    if (busy && usable) seen.push_back(format("{} cores at {} %", cores_figure(*usable), figure(*busy)));
    const auto full = cores->number("full_share_pct");
    const auto hottest = cores->number("hottest_core_pct");
    if (full && *full >= 50) {
      seen.push_back(format("all cores full {} % of the time", figure(*full)));
    } else if (hottest && busy && *hottest >= 85 && *busy <= 60) {
      seen.push_back(format("{} full", cores->text("hottest_core").value_or("one core")));
    }
    if (const Fact* thread = facts.find("core_use.thread");
        thread != nullptr && thread->number("busy_pct").value_or(0) >= 85) {
      seen.push_back(format("thread '{}' of {} at {} %", thread->text("thread").value_or("?"),
                            thread->text("process").value_or("?"), figure(*thread->number("busy_pct"))));
    }
  }
  return seen;
}

// Time in which the devices of a trace compute nothing, where it is too much to be called healthy; empty: it is little.
std::string idle_words(const FactTable& facts) {
  constexpr double kSaidFromPct = 15;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kCauses{
      {{"idle_data_ms", "it waited for data"},
       {"idle_sync_ms", "the host had waited for it"},
       {"idle_setup_ms", "the host was allocating memory or loading code"},
       {"idle_dispatch_ms", "the host was dispatching operators"},
       {"idle_host_ms", "the host did something else"},
       {"idle_launch_ms", "launches were on their way"},
       {"idle_queued_ms", "queued work waited for work that the trace does not show"},
       {"idle_unknown_ms", "the trace does not tell why"},
       {"exposed_copy_ms", "copies ran with nothing beside them"},
       {"exposed_communication_ms", "it communicated with nothing beside that"}}};
  const auto sum_of = [&](std::string_view field) {
    double sum_ms = 0;
    for (const Fact* device : facts.all("device.time")) sum_ms += device->number(field).value_or(0);
    return sum_ms;
  };
  std::string_view words;
  double most_ms = -1;
  double all_ms = 0;
  for (const auto& [field, what] : kCauses) {
    const double sum_ms = sum_of(field);
    if (sum_ms > most_ms) words = what;
    most_ms = std::max(most_ms, sum_ms);
    all_ms += sum_ms;
  }
  const double wall_ms = sum_of("wall_ms");
  if (wall_ms <= 0 || 100 * all_ms / wall_ms < kSaidFromPct) return {};
  const Fact* const device = facts.find("device.time");
  std::string text =
      format("the {} computed nothing {} % of the time and no rule says what to change: mostly {}",
             device_word(device == nullptr ? "" : device->where.device), figure(100 * all_ms / wall_ms), words);
  // Python's profiler knows which function that was.
  const Fact* const function = facts.find("device.idle_function");
  const double function_ms = function == nullptr ? 0 : function->number("total_ms").value_or(0);
  const double host_ms = sum_of("idle_host_ms");
  if (host_ms == most_ms && function_ms > host_ms / 2) {
    text += format(", {} % of it in {}", figure(100 * function_ms / host_ms), function->text("name").value_or("?"));
  }
  return text;
}

// Nothing: none of it is measured.
std::optional<double> left_to_win(const Breakdown& b) {
  std::optional<double> sum;
  for (const auto& part : {b.data_wait, b.communication, b.checkpoint, b.gc, b.evaluation, b.compile}) {
    if (part) sum = sum.value_or(0) + *part;
  }
  return sum ? std::optional(std::min(*sum, 100.0)) : std::nullopt;
}

std::string without_steps_words(const FactTable& facts, const AnalysisDocument& d) {
  if (d.is_trace) return "the trace has no training steps, marked or inferred";
  const bool has_machine = facts.find("system.use") != nullptr || facts.find("gpu.use") != nullptr;
  const bool has_timeline = facts.find("negotiations.summary") != nullptr;
  if (has_timeline && !has_machine) return "no training step was seen: the timeline has collectives alone";
  return "no training step was seen: machine series only";
}

// What is likely without a step heads the answer, marked as such: a leak, a GPU that is too hot or little used.
bool tells_without_steps(const AnalysisDocument& d) {
  if (d.findings.empty()) return false;
  const Finding& first = d.findings.front();
  return !first.is_note() && first.severity != Severity::kInfo && first.certainty >= Certainty::kLikely;
}

// What was told and not reckoned from steps: few of them say it as surely as many.
bool says_how_it_ended(const Finding& finding) {
  return finding.claims == kClaimsEnd && finding.certainty == Certainty::kCertain;
}

// Memory that runs out in a moment does not wait for thirty steps.
bool is_urgent(const Finding& finding) {
  const bool is_of_memory = finding.claims == "gpu_memory" || finding.claims == "host_memory";
  return is_of_memory && finding.severity == Severity::kCritical && finding.certainty >= Certainty::kLikely;
}

}  // namespace

void decide_verdict(const FactTable& facts, const RulesOutcome& outcome, AnalysisDocument& d) {
  for (const Doubt& doubt : outcome.cannot_tell) {
    if (d.cannot_tell.size() < kReasonsMax) d.cannot_tell.push_back(doubt.because);
  }
  const bool has_finding = !d.findings.empty() && d.findings.front().explained_by.empty() &&
                           !d.findings.front().is_note() && !d.small.contains(d.findings.front().id());
  if (d.grade == "B") {
    // What a trace shows of a device holds without steps, too.
    const bool tells = (d.is_trace && has_finding) || tells_without_steps(d);
    d.verdict = tells ? VerdictKind::kFinding : VerdictKind::kCannotTell;
    d.cannot_tell.insert(d.cannot_tell.begin(), without_steps_words(facts, d));
    if (const std::string idle = idle_words(facts); d.is_trace && !idle.empty()) d.cannot_tell.push_back(idle);
    d.seen = seen_words(facts, d);
    return;
  }
  if (d.steps.count < (d.is_trace ? kTraceStepsToJudge : kStepsToJudge)) {
    const bool tells = has_finding && (says_how_it_ended(d.findings.front()) || is_urgent(d.findings.front()));
    d.verdict = tells ? VerdictKind::kFinding : VerdictKind::kTooShort;
    d.seen = seen_words(facts, d);
    return;
  }
  if (has_finding) {
    d.verdict = VerdictKind::kFinding;
    return;
  }
  if (!outcome.errors.empty()) d.cannot_tell.push_back("a rule could not run: " + outcome.errors.front().message);
  if (const std::string idle = idle_words(facts); !idle.empty()) d.cannot_tell.push_back(idle);
  if (!d.cannot_tell.empty()) {
    d.verdict = VerdictKind::kCannotTell;
    d.seen = seen_words(facts, d);
    return;
  }
  d.verdict = VerdictKind::kHealthy;
  d.left_to_win_pct = left_to_win(d.steps.breakdown);
  const auto price = price_of_nodes(d.price, d.nodes);
  if (!d.left_to_win_pct || !price || !d.duration_s || (d.status == RunStatus::kRunning && !d.remaining)) return;
  const double whole_s = *d.duration_s + (d.remaining ? d.remaining->as_is_s.high : 0);
  d.left_to_win = money_for(*d.left_to_win_pct / 100 * whole_s, *price);
}

}  // namespace hotlap
