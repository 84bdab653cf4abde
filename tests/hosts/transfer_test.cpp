#include "record/transfer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/fake_host.h"

namespace hotlap {
namespace {

constexpr std::string_view kBareMetal = R"(@tick 0s
@file /proc/net/dev
    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0
  eth0: 1000 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0
docker0: 1000 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0
@dir /sys/class/net/eth0/device
@file /sys/class/net/eth0/speed
1000
@file /sys/class/net/docker0/speed
10000
@file /proc/diskstats
   8 0 sda 1 0 8 0 5 0 10 0 0 0 0
   8 1 sda1 1 0 8 0 5 0 10 0 0 0 0
@dir /sys/block/sda/device
@tick 2s
@file /proc/net/dev
  eth0: 2098152 1 0 0 0 0 0 0 1024200 1 0 0 0 0 0 0
docker0: 9998152 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0
@file /proc/diskstats
   8 0 sda 1 0 8 0 5 0 2058 0 0 0 0
)";

std::string summary_of(std::string_view script, bool is_download, std::int64_t duration_ns = 2 * kNsPerS) {
  const auto host = std::move(*test::FakeHost::parse(script));
  EXPECT_TRUE(host->advance().ok());
  const MovedBytes before = moved_bytes(*host);
  EXPECT_TRUE(host->advance().ok());
  return summarise_transfer(before, moved_bytes(*host), duration_ns, is_download).text;
}

TEST(Transfer, TellsBytesRateShareOfTheLinkAndWhatWentToDisk) {
  EXPECT_EQ(summary_of(kBareMetal, true), "2.0 MiB in 2 s (1.0 MiB/s, 1 % of the link); 1.0 MiB written to disk");
  EXPECT_EQ(summary_of(kBareMetal, false), "1000.0 KiB in 2 s (500.0 KiB/s, 0 % of the link); 1.0 MiB written to disk");
}

// A container sees a virtual interface only, and no disk.
TEST(Transfer, InAContainerTheVirtualInterfaceIsTheOne) {
  EXPECT_EQ(summary_of(R"(@tick 0s
@file /proc/net/dev
    lo: 5000000 1 0 0 0 0 0 0 5000000 1 0 0 0 0 0 0
  eth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
@file /sys/class/net/eth0/speed
10000
@tick 2s
@file /proc/net/dev
    lo: 9000000 1 0 0 0 0 0 0 9000000 1 0 0 0 0 0 0
  eth0: 2097152 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0
)",
                       true),
            "2.0 MiB in 2 s (1.0 MiB/s, speed of the link unknown)");
}

TEST(Transfer, WithoutInterfacesOrAfterACounterResetBytesAreUnknownAndNotZero) {
  EXPECT_EQ(summary_of("@tick 0s\n@tick 2s\n", true), "unknown bytes in 2 s");
  EXPECT_EQ(summary_of(R"(@tick 0s
@file /proc/net/dev
  eth0: 2097152 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0
@tick 2s
@file /proc/net/dev
  eth0: 10 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0
)",
                       true),
            "unknown bytes in 2 s");
}

}  // namespace
}  // namespace hotlap
