#include "record/lane.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/log.h"

namespace hotlap {
namespace {

constexpr std::int64_t kIntervalNs = 100 * kNsPerMs;
constexpr std::array kMetrics{MetricDesc{.name = "test.value", .unit = "1", .help = "A value."}};

class StandingClock final : public Clock {
 public:
  std::int64_t mono_ns() const override { return 0; }
  ClockReading read() const override { return {}; }
  bool sleep_until(std::int64_t, int) const override { return true; }
};

// Calls back instead of reading anything.
class ScriptedCollector final : public Collector {
 public:
  explicit ScriptedCollector(std::function<Result<Outcome>(const TickInfo&, SampleSink&)> script)
      : script_(std::move(script)) {}
  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override { return script_(tick, out); }

 private:
  std::function<Result<Outcome>(const TickInfo&, SampleSink&)> script_;
};

class LaneTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kOff); }
  void TearDown() override { set_log_level(LogLevel::kWarning); }

  // Ticks 0 … count - 1, one interval apart; returns those at which `is_called` became true.
  std::vector<int> calls(CollectorLane& lane, int count) {
    std::vector<int> at;
    for (int i = 0; i < count; ++i) {
      Batch batch;
      called_ = false;
      lane.tick(i * kIntervalNs, {}, batch);
      losses_.insert(losses_.end(), batch.losses.begin(), batch.losses.end());
      samples_ += batch.samples.size();
      if (called_) at.push_back(i);
    }
    return at;
  }

  std::unique_ptr<Collector> counting(bool fails) {
    return std::make_unique<ScriptedCollector>([this, fails](const TickInfo&, SampleSink&) -> Result<Outcome> {
      called_ = true;
      if (fails) return Error{ErrorCode::kIo, "broken"};
      return Outcome::kSampled;
    });
  }

  StandingClock clock_;
  SeriesTable series_{4};
  CollectorLane::Setup setup_{&system_host(), &clock_, &series_, kIntervalNs};
  bool called_ = false;
  std::size_t samples_ = 0;
  std::vector<LossCount> losses_;
};

TEST_F(LaneTest, ASlowSourceIsSampledAtItsOwnPeriod) {
  const CollectorSpec spec{.name = "slow", .metrics = kMetrics, .min_period_ns = 3 * kIntervalNs};
  CollectorLane lane(setup_);
  lane.adopt(spec, counting(false));
  EXPECT_EQ(calls(lane, 8), (std::vector{0, 3, 6}));
}

TEST_F(LaneTest, AFailingCollectorPausesLongerAndLonger) {
  const CollectorSpec spec{.name = "broken", .metrics = kMetrics};
  CollectorLane lane(setup_);
  lane.adopt(spec, counting(true));
  EXPECT_EQ(calls(lane, 16), (std::vector{0, 1, 3, 7, 15}));
  EXPECT_EQ(losses_.size(), 5U);
  EXPECT_EQ(lane.use()[0].errors, 5U);
}

TEST_F(LaneTest, OneFailureDoesNotTakeOthersDown) {
  const CollectorSpec broken{.name = "broken", .metrics = kMetrics};
  const CollectorSpec sound{.name = "sound", .metrics = kMetrics};
  CollectorLane lane(setup_);
  lane.adopt(broken, std::make_unique<ScriptedCollector>([](const TickInfo&, SampleSink&) -> Result<Outcome> {
               return Error{ErrorCode::kIo, "broken"};
             }));
  lane.adopt(sound, counting(false));
  EXPECT_EQ(calls(lane, 4), (std::vector{0, 1, 2, 3}));
}

TEST_F(LaneTest, WhatTheMachineLacksIsLeftOutInSilence) {
  const CollectorSpec spec{
      .name = "absent", .metrics = kMetrics, .open = [](const Host&) -> Result<std::unique_ptr<Collector>> {
        return Error{ErrorCode::kUnsupported, "none here"};
      }};
  CollectorLane lane(setup_);
  lane.add(spec);
  EXPECT_TRUE(calls(lane, 3).empty());
  EXPECT_TRUE(losses_.empty());
  EXPECT_EQ(lane.next_due_ns(), INT64_MAX);
}

TEST_F(LaneTest, ASecondValueInOneTickIsDroppedAndCounted) {
  const CollectorSpec spec{.name = "twice", .metrics = kMetrics};
  CollectorLane lane(setup_);
  lane.adopt(spec, std::make_unique<ScriptedCollector>([](const TickInfo&, SampleSink& out) -> Result<Outcome> {
               const SeriesHandle handle = out.series(0, "a");
               out.add(handle, Value::of(1.0));
               out.add(handle, Value::of(2.0));
               return Outcome::kSampled;
             }));
  calls(lane, 2);
  EXPECT_EQ(samples_, 2U);
  ASSERT_EQ(losses_.size(), 2U);
  EXPECT_EQ(losses_[0].counter, "collect.duplicates");
}

// The kernel's count of processes that it killed for want of memory is asked for rarely: not after the last one.
TEST_F(LaneTest, WhoWantsToSeeTheEndIsAskedOnceMore) {
  const CollectorSpec spec{
      .name = "counts kills", .metrics = kMetrics, .min_period_ns = 10 * kIntervalNs, .sees_end = true};
  const CollectorSpec other{.name = "other", .metrics = kMetrics};
  std::vector<bool> asked;
  int others = 0;
  CollectorLane lane(setup_);
  lane.adopt(spec, std::make_unique<ScriptedCollector>([&](const TickInfo& tick, SampleSink&) -> Result<Outcome> {
               asked.push_back(tick.is_last);
               return Outcome::kSampled;
             }));
  lane.adopt(other, std::make_unique<ScriptedCollector>([&](const TickInfo&, SampleSink&) -> Result<Outcome> {
               ++others;
               return Outcome::kSampled;
             }));
  calls(lane, 3);
  Batch batch;
  lane.last_tick(3 * kIntervalNs, {}, batch);
  EXPECT_EQ(asked, (std::vector{false, true}));
  EXPECT_EQ(others, 3);
  EXPECT_EQ(batch.t_ns, 3 * kIntervalNs);
}

TEST_F(LaneTest, SeriesBeyondTheBoundAreCountedOnceEach) {
  const CollectorSpec spec{.name = "many", .metrics = kMetrics};
  CollectorLane lane(setup_);
  lane.adopt(spec, std::make_unique<ScriptedCollector>([](const TickInfo&, SampleSink& out) -> Result<Outcome> {
               for (const char* name : {"a", "b", "c", "d", "e", "f"}) out.add(out.series(0, name), Value::of(1.0));
               return Outcome::kSampled;
             }));
  calls(lane, 3);
  EXPECT_EQ(samples_, 12U);
  ASSERT_EQ(losses_.size(), 2U);
  EXPECT_EQ(losses_[0].counter, "record.series_refused");
}

}  // namespace
}  // namespace hotlap
