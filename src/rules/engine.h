#pragma once
// Runs rules over the facts of a run and sorts out what they say: each lost second in one finding (the others that see
// the same wait explain it), the largest loss first, nothing below the smallest loss worth a change.
//
// A pure function: live, offline and in tests the same.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/fact.h"
#include "model/finding.h"
#include "rules/rule.h"

namespace hotlap {

// Below this share of step time nothing is recommended.
inline constexpr double kSmallestLossPct = 3;
// A risk that is critical, and whose loss is not known yet, is said before smaller losses.
inline constexpr double kCriticalRiskPct = 20;

struct SkippedRule {
  std::string rule;
  std::vector<std::string> missing;  // facts that it needs; "a or b": either would do
};
struct Doubt {
  std::string rule;
  std::string because;
};
struct RulesOutcome {
  std::vector<Finding> findings;  // primary ones first, by loss; then those that explain them
  std::vector<SkippedRule> not_run;
  std::vector<Doubt> cannot_tell;
  std::vector<Error> errors;  // of rules: bugs of ours, or parameters that cannot be; shown, never fatal
  std::int64_t run = 0;       // rules that ran
};

// Set by the user: rule → parameter → text.
using RuleSettings = std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>>;

RulesOutcome run_rules(std::span<const RuleSpec* const> rules, const FactTable& facts, const RuleSettings& settings);

}  // namespace hotlap
