// The rule's skeleton fires, lets a near miss pass, and says what it misses.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "rules/rule.h"

namespace hotlap {
extern const RuleSpec rule_long_step;

namespace {

class Findings final : public FindingSink {
 public:
  void add(Finding finding) override { text += finding.rule + ": " + finding.why.at(0); }
  void cannot_tell(std::string_view because) override { text += "cannot tell: " + std::string(because); }

  std::string text;
};

std::string judged(std::optional<double> longest_ms) {
  FactTable facts;
  Fact fact{.kind = "example.longest_step"};
  fact.set("longest_ms", longest_ms);
  facts.add(std::move(fact));
  const auto params = Params::make(rule_long_step.id, rule_long_step.params, {});
  if (!params.ok()) return params.error().message;
  Findings out;
  const auto done = rule_long_step.evaluate(facts, *params, out);
  return done.ok() ? out.text : done.error().message;
}

TEST(PluginSkeleton, RuleFiresPassesAndSaysWhatItMisses) {
  EXPECT_EQ(judged(10'001), "LongStep: the longest took 10.0 s, the limit is 10.0 s");
  EXPECT_EQ(judged(10'000), "");
  EXPECT_EQ(judged(std::nullopt), "cannot tell: no step was seen");
}

}  // namespace
}  // namespace hotlap
