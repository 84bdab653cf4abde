// A good part of the step lies outside everything that is measured: no loader, no model. It is said, by the names that
// the program has given it, so that "nothing found" never covers it.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"breakdown.parts"}, std::string_view{"steps.summary"}};
constexpr std::array kParams{
    share_param("10", "share of a typical step in other code from which on the rule speaks"),
    steps_min_param("typical steps that must have been seen"),
};

// Of the time in which the training thread wanted a core, the part in which it had one. 1: not known.
double share_with_core(const FactTable& facts, const Fact& steps) {
  const Fact* process = process_of(facts, steps);
  const auto wait_pct = number_in(process, "main_wait_pct");
  const auto cores = number_in(process, "main_thread_cores");
  if (!wait_pct || !cores || *wait_pct + 100 * *cores <= 0) return 1;
  return 100 * *cores / (*wait_pct + 100 * *cores);
}

// What the program calls a stretch of it, and its share of the step.
struct Named {
  std::string name;
  double share = 0;
};
constexpr double kNamedLeastPct = 1;
constexpr double kMostOfIt = 0.5;
constexpr double kWholeStepPct = 80;  // what takes more is the step itself by another name

// On one line, and short.
std::string shown_name(std::string name) {
  constexpr std::size_t kBytesMax = 40;
  std::ranges::replace(name, '\n', ' ');
  if (name.size() <= kBytesMax) return name;
  std::size_t end = kBytesMax - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;  // inside a character of UTF-8
  return name.substr(0, end) + "...";
}

// The largest first. `scale`: of other code, what counts.
std::vector<Named> named_parts(const FactTable& facts, const Where& where, double scale) {
  std::vector<Named> out;
  for (const Fact* fact : facts.all("breakdown.named")) {
    const double share = scale * fact->number("share_pct").value_or(0);
    if (!same_place(fact->where, where) || share < kNamedLeastPct) continue;
    out.push_back({shown_name(fact->text("name").value_or("")), share});
  }
  return out;
}

void advise_named(const Named& most, std::optional<double> mean_ms, Finding& finding) {
  Advice advice{.change = format("make '{}' cheaper, do it every so many steps, or beside the training", most.name),
                .basis = Basis::kRuleOfThumb,
                .note = "in a thread it still takes Python's lock"};
  if (mean_ms) {
    advice.gain =
        format("at most: step {} -> {} ms without it", figure(*mean_ms), figure(*mean_ms * (1 - most.share / 100)));
  }
  finding.advice.push_back(std::move(advice));
}

// `unnamed_least`: from this share on what has no name is worth naming.
void judge(const Fact& steps, double share, double unnamed_least, const std::vector<Named>& named, FindingSink& out) {
  double unnamed = share;
  for (const Named& one : named) unnamed -= one.share;
  const bool is_mostly_one = !named.empty() && named.front().share >= kMostOfIt * share;
  Finding finding = share_finding(
      steps.where, {.cause = is_mostly_one ? format("'{}' is neither loading nor the model", named.front().name)
                                           : "Code that is neither loading nor the model",
                    .loss = format("{} % of each step", figure(share)),
                    .claims = "other",
                    .share_pct = share});
  finding.severity = Severity::kWarning;  // how much of it could go is not known
  finding.distance = 2;                   // a rule that knows what the code does is nearer
  set_step_loss(steps, share, finding);
  Advice advice{.change = "name its parts: with hotlap.span('...') between optimizer.step() and the next batch",
                .basis = Basis::kRuleOfThumb,
                .note = "metrics, logging and loss.item() are the usual ones"};
  if (const auto mean = steps.number("mean_ms")) {
    finding.why.push_back(format("{} of {} ms pass outside data wait, forward, backward and optimizer",
                                 figure(*mean * share / 100), figure(*mean)));
    finding.evidence["other_ms"] = *mean * share / 100;
    for (const Named& one : named) {
      finding.why.push_back(format("of these {} ms, {} % of the step, in '{}'", figure(*mean * one.share / 100),
                                   figure(one.share), one.name));
    }
    advice.gain = format("at most: step {} -> {} ms without it", figure(*mean), figure(*mean * (1 - share / 100)));
  }
  if (is_mostly_one) advise_named(named.front(), steps.number("mean_ms"), finding);
  if (unnamed >= unnamed_least) {
    finding.advice.push_back(std::move(advice));
    finding.limits.emplace_back(named.empty() ? "which code it is" : "which code the rest is");
  }
  out.add(std::move(finding));
}

// Forward and backward were not measured: what has no name may be the model, and what has one, too.
void judge_named_alone(const Fact& steps, const Named& most, FindingSink& out) {
  Finding finding = share_finding(steps.where, {.cause = format("'{}' takes much of each step", most.name),
                                                .loss = format("{} % of each step", figure(most.share)),
                                                .claims = "other",
                                                .share_pct = most.share});
  finding.severity = Severity::kInfo;
  finding.distance = 2;
  set_step_loss(steps, most.share, finding);
  if (const auto mean = steps.number("mean_ms")) {
    finding.why.push_back(
        format("{} of {} ms pass in '{}'", figure(*mean * most.share / 100), figure(*mean), most.name));
    finding.evidence["other_ms"] = *mean * most.share / 100;
  }
  advise_named(most, steps.number("mean_ms"), finding);
  finding.limits.emplace_back("whether it is the work itself: forward and backward were not measured");
  out.add(std::move(finding));
}

// Of a trace: the share of the device's time in which it idled while the host ran other code. Nothing: no device in it.
std::optional<double> idle_beside_pct(const FactTable& facts, const Where& where) {
  const Fact* device = fact_for(facts, "device.time", where);
  const auto wall_ms = number_in(device, "wall_ms");
  if (!wall_ms || *wall_ms <= 0) return std::nullopt;
  return 100 * number_in(device, "idle_host_ms").value_or(0) / *wall_ms;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const StepShare& one : step_shares(facts, params, "other")) {
    const Fact* parts = fact_for(facts, "breakdown.parts", one.steps->where);
    if (parts->number("compute_known") != 1) {  // the model itself is in it then
      const std::vector<Named> named = named_parts(facts, one.steps->where, share_with_core(facts, *one.steps));
      if (!named.empty() && named.front().share >= params.number("share_pct") && named.front().share <= kWholeStepPct &&
          !may_have_gpu(facts)) {
        judge_named_alone(*one.steps, named.front(), out);
      }
      continue;
    }
    double share = one.share_pct * share_with_core(facts, *one.steps);
    if (share < params.number("share_pct")) continue;  // it is the wait for a core that is long, wherever it comes
    if (const auto idle = idle_beside_pct(facts, one.steps->where)) {
      share = std::min(share, *idle);
      if (share < params.number("share_pct")) continue;
    } else if (may_have_gpu(facts)) {
      const auto busy = gpu_busy_pct(facts, one.steps->where);
      if (!busy) {
        out.cannot_tell(format("{} % of each step is other code, or waiting for the GPU: how busy it was is missing",
                               figure(share)));
        continue;
      }
      share = std::min(share, 100 - *busy);  // what the thread waits for the GPU holds nothing up
      if (share < params.number("share_pct")) continue;
    }
    judge(*one.steps, share, params.number("share_pct"), named_parts(facts, one.steps->where, share / one.share_pct),
          out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_other_code{
    .id = "OtherCode",
    .title = "Much of the step is neither loading nor the model",
    .why =
        "Looks at what is left of typical steps when everything that is measured has been taken off. What the program "
        "has named with hotlap.span is told by its name. With a GPU only the part in which the GPU did not work "
        "counts. "
        "HotCore, where it names the thread, explains the same time.",
    .advice =
        "Making what is named cheaper, rarer or part of another process, or naming the parts of that code; with "
        "the step time without it as the limit of what can be won.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
