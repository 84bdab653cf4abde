#include "rules/sql_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"

namespace hotlap {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule =
    "-- Steps whose slowest ones are far from the rest.\n"
    "-- id: SlowTail\n"
    "-- severity: critical\n"
    "-- needs: steps.summary, cpu.busy.seconds\n"
    "\n"
    "-- cause: steps have a slow tail\n"
    "-- advice: look at what comes every 50th step\n"
    "-- advice: fewer checkpoints\n"
    "SELECT 1 AS x -- not: a header\n"
    "-- also: not\n";

TEST(SqlRule, TheHeaderIsRead) {
  const auto rule = parse_sql_rule(kRule, "slow.sql");
  ASSERT_TRUE(rule.ok()) << rule.error().message;
  EXPECT_EQ(rule->id, "SlowTail");
  EXPECT_EQ(rule->severity, Severity::kCritical);
  EXPECT_THAT(rule->needs, ElementsAre("steps.summary", "cpu.busy.seconds"));
  EXPECT_EQ(rule->cause, "steps have a slow tail");
  EXPECT_THAT(rule->advice, ElementsAre("look at what comes every 50th step", "fewer checkpoints"));
  EXPECT_THAT(rule->sql, HasSubstr("SELECT 1 AS x"));
}

TEST(SqlRule, WindowsEditorsMarkAndEndLines) {
  const auto rule = parse_sql_rule("\xEF\xBB\xBF-- id: Slow\r\n-- severity: info\r\nSELECT 1\r\n", "slow.sql");
  ASSERT_TRUE(rule.ok()) << rule.error().message;
  EXPECT_EQ(rule->id, "Slow");
}

TEST(SqlRule, WhatIsNoRuleIsOneClearLine) {
  for (const auto& [text, why] : {std::pair{"SELECT 1", "no id"}, std::pair{"", "no id"},
                                  std::pair{"-- id: slow tail\nSELECT 1", "not in PascalCase"},
                                  std::pair{"-- id: InputBound\nSELECT 1", "hotlap's own"},
                                  std::pair{"-- id: X1\n-- severity: bad\nSELECT 1", "x.sql:2: the severity 'bad'"},
                                  std::pair{"-- id: X1\n-- sevrity: info\nSELECT 1", "did you mean severity?"},
                                  std::pair{"-- id:\nSELECT 1", "id has no value"}}) {
    const auto rule = parse_sql_rule(text, "x.sql");
    ASSERT_FALSE(rule.ok()) << text;
    EXPECT_EQ(rule.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(rule.error().message, HasSubstr(why)) << text;
    EXPECT_EQ(rule.error().message.find('\n'), std::string::npos);
  }
  EXPECT_FALSE(parse_sql_rule(std::string("-- id: X1\nSELECT\0 1", 18), "x.sql").ok());
  EXPECT_FALSE(parse_sql_rule("-- id: X1\n" + std::string(70'000, ' '), "x.sql").ok());
}

std::vector<Finding> findings_of(const SqlRule& rule, const std::vector<std::string>& names,
                                 const std::vector<std::vector<Cell>>& rows) {
  SqlRuleRows taken(rule, 10, 20);
  taken.columns(names);
  for (const auto& row : rows) EXPECT_TRUE(taken.row(row).ok());
  return taken.take();
}

TEST(SqlRule, ARowIsAFinding) {
  const SqlRule rule = *parse_sql_rule(kRule, "slow.sql");
  const auto found = findings_of(
      rule, {"cause", "lost_pct", "rank", "p99_ms", "phase", "certainty", "step_ms_low", "step_ms_high", "lost_s"},
      {{std::string_view("tail\x1b of\nsteps"), 12.5, std::int64_t{3}, 91.25, std::string_view("night"),
        std::string_view("likely"), 40.0, 50.0, std::monostate()}});
  ASSERT_EQ(found.size(), 1U);
  const Finding& finding = found[0];
  EXPECT_EQ(finding.cause.find('\x1b'), std::string::npos);
  EXPECT_EQ(finding.cause.find('\n'), std::string::npos);
  EXPECT_EQ(finding.id(), "SlowTail/rank3") << finding.id();
  EXPECT_EQ(finding.lost_pct, 12.5);
  EXPECT_FALSE(finding.lost_s);  // NULL is not 0
  EXPECT_EQ(finding.certainty, Certainty::kLikely);
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(std::get<double>(finding.evidence.at("p99_ms")), 91.25);
  EXPECT_EQ(std::get<std::string>(finding.evidence.at("phase")), "night");
  EXPECT_THAT(finding.why, ElementsAre("p99_ms 91.25", "phase night"));
  ASSERT_EQ(finding.advice.size(), 2U);
  EXPECT_EQ(finding.advice[0].step_ms_low, 40.0);
  EXPECT_EQ(finding.from_ns, 10);
}

TEST(SqlRule, NonsenseInARowHarmsNobody) {
  const SqlRule rule = *parse_sql_rule("-- id: X1\nSELECT 1", "x.sql");
  const auto found = findings_of(
      rule, {"lost_pct", "rank", "from_ns", "severity", "step_ms_low", "lost_s"},
      {{1e300, std::int64_t{-5}, 1e300, std::string_view("dire"), 5.0, -3.0},
       {std::monostate(), std::monostate(), std::string_view("x"), std::int64_t{1}, std::monostate(), 1.0}});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].lost_pct, 100);
  EXPECT_FALSE(found[0].where.rank);
  EXPECT_EQ(found[0].from_ns, 10);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_FALSE(found[0].lost_s);
  EXPECT_TRUE(found[0].advice.empty());
  EXPECT_EQ(found[0].cause, "X1");
}

TEST(SqlRule, ManyRowsAreCutAndCounted) {
  const SqlRule rule = *parse_sql_rule("-- id: X1\nSELECT 1", "x.sql");
  SqlRuleRows taken(rule, 0, 1);
  taken.columns(std::vector<std::string>{"x"});
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(taken.row(std::vector<Cell>{std::int64_t{i}}).ok());
  EXPECT_EQ(taken.left_out(), 50 - kSqlRuleFindingsMax);
  EXPECT_EQ(taken.take().size(), kSqlRuleFindingsMax);
}

}  // namespace
}  // namespace hotlap
