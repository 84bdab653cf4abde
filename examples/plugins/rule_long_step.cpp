// Skeleton of a rule: a pure function over facts. Copy it to src/rules/plugins/<name>.cpp and give it its three cases
// (fires, near miss, missing data).
#include <array>

#include "base/format.h"
#include "rules/rule.h"

namespace hotlap {
namespace {

constexpr std::array<std::string_view, 1> kNeeds{"example.longest_step"};
constexpr std::array kParams{ParamDesc{.name = "limit",
                                       .type = ParamType::kDuration,
                                       .default_text = "10s",
                                       .min = 1e6,
                                       .max = 3.6e12,
                                       .unit = "ns",
                                       .help = "A step that takes longer is reported."}};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const Fact* steps = facts.find(kNeeds[0]);
  const auto longest_ms = steps == nullptr ? std::nullopt : steps->number("longest_ms");
  if (!longest_ms) {
    out.cannot_tell("no step was seen");
    return {};
  }
  const double limit_ms = static_cast<double>(params.duration_ns("limit")) * 1e-6;
  if (*longest_ms <= limit_ms) return {};
  Finding finding{.rule = "LongStep", .severity = Severity::kInfo, .certainty = Certainty::kCertain};
  finding.cause = "One step took very long";
  finding.why.push_back(
      format("the longest took {:.1f} s, the limit is {:.1f} s", *longest_ms * 1e-3, limit_ms * 1e-3));
  finding.evidence.emplace("longest_ms", *longest_ms);
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_long_step{
    .id = "LongStep",
    .title = "A very long step",
    .why = "Compares the longest step with a limit. Certain: it was measured.",
    .advice = "Look at what ran at that time.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
