#include "view/small_findings.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

Finding finding(const char* rule, std::optional<double> pct, std::optional<double> seconds) {
  Finding out;
  out.rule = rule;
  out.lost_pct = pct;
  out.lost_s = seconds;
  out.advice = {{.change = "change it"}};
  return out;
}

AnalysisDocument finished(std::vector<Finding> findings) {
  AnalysisDocument d;
  d.status = RunStatus::kFinished;
  d.duration_s = 3'600;
  d.price = Price{.per_hour = 2};
  d.findings = std::move(findings);
  return d;
}

TEST(Small, BelowThreePercentOfTheRun) {
  AnalysisDocument d = finished({finding("Slow", std::nullopt, 60), finding("Late", std::nullopt, 400)});
  d.price.reset();
  set_small(d);
  EXPECT_EQ(d.small, std::set<std::string>{"Slow"});
  EXPECT_EQ(d.findings.front().rule, "Late");  // small ones come behind
}

TEST(Small, BelowADollarOfTheWholeJob) {
  AnalysisDocument d = finished({finding("Minor", 8, 288), finding("Major", 20, 720)});
  set_small(d);  // $0.16 and $0.40
  EXPECT_EQ(d.small, std::set<std::string>{"Minor"});
  d.nodes = 8;  // $1.28
  set_small(d);
  EXPECT_TRUE(d.small.empty());
}

TEST(Small, OfALiveJobWhatIsLeftCounts) {
  AnalysisDocument d = finished({finding("Minor", 8, 288)});
  d.status = RunStatus::kRunning;
  set_small(d);  // how long it goes on is not known
  EXPECT_TRUE(d.small.empty());
  d.remaining = Remaining{.as_is_s = {3'500, 3'600}};
  set_small(d);  // $0.16 and as much again
  EXPECT_EQ(d.small, std::set<std::string>{"Minor"});
  d.remaining = Remaining{.as_is_s = {35'000, 36'000}};
  set_small(d);
  EXPECT_TRUE(d.small.empty());
}

TEST(Small, ARiskIsNeverSmall) {
  AnalysisDocument d = finished({finding("GPUMemoryLeak", std::nullopt, std::nullopt)});
  set_small(d);
  EXPECT_TRUE(d.small.empty());
}

}  // namespace
}  // namespace hotlap
