#include "collect/mount_prober.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "support/fake_host.h"

namespace hotlap::test {
namespace {

// What a mount says; kCancelled: it did not answer.
Result<FilesystemUsage> ask(MountProber& prober, const std::string& mount_point) {
  std::optional<Result<FilesystemUsage>> answer = prober.ask(mount_point);
  return std::move(answer).value_or(Error{ErrorCode::kCancelled, "no answer"});
}

bool is_stuck(MountProber& prober, const std::string& mount_point) {
  const Result<FilesystemUsage> answer = ask(prober, mount_point);
  return !answer.ok() && answer.error().code == ErrorCode::kCancelled;
}

// A dead server holds up its own mount only, for one deadline only, and with one thread only; when it is back, so
// are we.
TEST(MountProber, AStuckMountHoldsUpNoOther) {
  auto host = FakeHost::parse(
      "@tick 0s\n@usage /dead hangs\n@usage /good 10 5 4 3 2\n@usage /bad EIO\n"
      "@tick 1s\n@usage /dead 9 8 7 6 5\n");
  ASSERT_TRUE(host.ok());
  ASSERT_TRUE((*host)->advance().ok());
  MountProber prober(**host, 50 * kNsPerMs);
  EXPECT_TRUE(is_stuck(prober, "/dead"));
  const Result<FilesystemUsage> good = ask(prober, "/good");
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->available_bytes, 4U);
  const Result<FilesystemUsage> bad = ask(prober, "/bad");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kIo);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(is_stuck(prober, "/dead"));
  EXPECT_EQ(prober.stuck_count(), 1U);

  ASSERT_TRUE((*host)->advance().ok());
  Result<FilesystemUsage> again = ask(prober, "/dead");
  while (!again.ok()) {
    std::this_thread::yield();
    again = ask(prober, "/dead");
  }
  EXPECT_EQ(again->total_bytes, 9U);
  EXPECT_EQ(prober.stuck_count(), 0U);
}

// Its destructor waits for nothing; what is left behind ends when the call returns.
TEST(MountProber, EndsWhileMountsAreStuckAndIsBounded) {
  std::string script = "@tick 0s\n";
  for (std::size_t i = 0; i <= MountProber::kStuckMax; ++i) script += "@usage /dead" + std::to_string(i) + " hangs\n";
  auto host = FakeHost::parse(script + "@usage /good 10 5 4 3 2\n");
  ASSERT_TRUE(host.ok());
  ASSERT_TRUE((*host)->advance().ok());
  {
    MountProber prober(**host, kNsPerMs);
    for (std::size_t i = 0; i <= MountProber::kStuckMax; ++i)
      EXPECT_TRUE(is_stuck(prober, "/dead" + std::to_string(i)));
    EXPECT_EQ(prober.stuck_count(), MountProber::kStuckMax);
    EXPECT_TRUE(is_stuck(prober, "/good"));
  }
  host->reset();
  MountProber::join_abandoned();
}

}  // namespace
}  // namespace hotlap::test
