#include "collect/mount_prober.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "support/fake_host.h"

namespace hotlap::test {
namespace {

// A dead server holds up its own mount only, for one deadline only, and with one thread only; when it is back, so
// are we.
TEST(MountProber, AStuckMountHoldsUpNoOther) {
  auto host = FakeHost::parse(
      "@tick 0s\n@usage /dead hangs\n@usage /good 10 5 4 3 2\n@usage /bad EIO\n"
      "@tick 1s\n@usage /dead 9 8 7 6 5\n");
  ASSERT_TRUE(host.ok());
  ASSERT_TRUE((*host)->advance().ok());
  {
    MountProber prober(**host, 50 * kNsPerMs);
    EXPECT_FALSE(prober.ask("/dead"));
    const std::optional<Result<FilesystemUsage>> good = prober.ask("/good");
    ASSERT_TRUE(good && good->ok());
    EXPECT_EQ((*good)->available_bytes, 4U);
    const std::optional<Result<FilesystemUsage>> bad = prober.ask("/bad");
    ASSERT_TRUE(bad.has_value());
    EXPECT_FALSE(bad->ok());
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(prober.ask("/dead"));
    EXPECT_EQ(prober.stuck_count(), 1U);

    ASSERT_TRUE((*host)->advance().ok());
    std::optional<Result<FilesystemUsage>> again = prober.ask("/dead");
    while (!again) {
      std::this_thread::yield();
      again = prober.ask("/dead");
    }
    ASSERT_TRUE(again->ok());
    EXPECT_EQ((*again)->total_bytes, 9U);
    EXPECT_EQ(prober.stuck_count(), 0U);
  }
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
    for (std::size_t i = 0; i <= MountProber::kStuckMax; ++i) EXPECT_FALSE(prober.ask("/dead" + std::to_string(i)));
    EXPECT_EQ(prober.stuck_count(), MountProber::kStuckMax);
    EXPECT_FALSE(prober.ask("/good"));
  }
  host->reset();
  MountProber::join_abandoned();
}

}  // namespace
}  // namespace hotlap::test
