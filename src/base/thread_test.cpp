#include "base/thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <stdexcept>

#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"

namespace hotlap {
namespace {

constexpr std::int64_t kForEver = INT64_MAX;

TEST(BoundedQueue, RefusesWhenFullAndKeepsOrder) {
  BoundedQueue<std::unique_ptr<int>> queue(2, 100);
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(2)));
  auto third = std::make_unique<int>(3);
  EXPECT_FALSE(queue.try_push(std::move(third)));
  ASSERT_NE(third, nullptr);  // NOLINT(bugprone-use-after-move): a refused value is untouched

  std::vector<std::unique_ptr<int>> taken;
  queue.take_all(taken);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(*taken[0], 1);
  EXPECT_EQ(*taken[1], 2);
  EXPECT_EQ(queue.size(), 0U);
}

TEST(BoundedQueue, WakesTheConsumerAtTheMarkOnly) {
  BoundedQueue<int> queue(8, 2);
  queue.try_push(1);
  EXPECT_TRUE(system_clock().sleep_until(0, queue.wake().fd()));
  queue.try_push(2);
  EXPECT_FALSE(system_clock().sleep_until(kForEver, queue.wake().fd()));
  std::vector<int> taken;
  queue.take_all(taken);
  EXPECT_TRUE(system_clock().sleep_until(0, queue.wake().fd()));
}

TEST(NamedThread, StopsOutOfAnEndlessSleep) {
  NamedThread thread("sleeper", [](const std::stop_token& stop, const WakeEvent& wake) {
    while (!stop.stop_requested()) system_clock().sleep_until(kForEver, wake.fd());
  });
  thread.request_stop();
  thread.join();
  EXPECT_TRUE(thread.has_ended());
}

TEST(NamedThread, OneThatEndsInTimeIsJoined) {
  auto thread = std::make_unique<NamedThread>("short", [](const std::stop_token&, const WakeEvent&) {});
  EXPECT_TRUE(join_or_leave_behind(std::move(thread), system_clock(), kForEver));
}

TEST(NamedThread, OneThatHangsIsLeftBehind) {
  static std::atomic<bool> is_released{false};
  static std::atomic<bool> has_returned{false};
  auto thread = std::make_unique<NamedThread>("hangs", [](const std::stop_token&, const WakeEvent&) {
    while (!is_released.load()) system_clock().sleep_until(system_clock().mono_ns() + kNsPerMs, -1);
    has_returned.store(true);
  });
  EXPECT_FALSE(join_or_leave_behind(std::move(thread), system_clock(), system_clock().mono_ns()));
  EXPECT_FALSE(has_returned.load());
  is_released.store(true);
  while (!has_returned.load()) system_clock().sleep_until(system_clock().mono_ns() + kNsPerMs, -1);
}

TEST(NamedThread, AnExceptionEndsTheThreadAlone) {
  set_log_level(LogLevel::kOff);
  NamedThread thread("thrower", [](const std::stop_token&, const WakeEvent&) { throw std::runtime_error("lost"); });
  thread.join();
  EXPECT_TRUE(thread.has_ended());
  set_log_level(LogLevel::kWarning);
}

TEST(NamedThreadDeathTest, AnExceptionEndsTheProcessWhereThatIsAsked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    NamedThread thread(
        "thrower", [](const std::stop_token&, const WakeEvent&) { throw std::runtime_error("lost"); },
        OnException::kEndsProcess);
    thread.join();
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGABRT), "internal error: thread thrower ended: lost");
}

TEST(ThreadChecker, KnowsItsThread) {
  ThreadChecker checker;
  EXPECT_TRUE(checker.calls_on_owner());
  bool elsewhere = true;
  {
    NamedThread thread("other",
                       [&](const std::stop_token&, const WakeEvent&) { elsewhere = checker.calls_on_owner(); });
    thread.join();
  }
  EXPECT_FALSE(elsewhere);
  checker.release();
  EXPECT_TRUE(checker.calls_on_owner());
}

}  // namespace
}  // namespace hotlap
