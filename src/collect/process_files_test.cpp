#include "collect/process_files.h"

#include <gtest/gtest.h>

#include <string>

#include "collect/mounts.h"

namespace hotlap {
namespace {

constexpr std::string_view kFields =
    " D 28378 1020 1020 34842 -1 4218880 286 0 7 0 31 12 -5 -6 -20 -19 8 0 10839175 10395648 155 18446744073709551615 "
    "4194304\n";

TEST(ProcessStat, TheNameMayHoldAnything) {
  for (const std::string_view name : {"python3", "a b) R 1 (c", "x\ny", ""}) {
    const auto stat = parse_process_stat("1020 (" + std::string(name) + ")" + std::string(kFields));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->state, ProcessState::kDiskSleep);
    EXPECT_EQ(stat->major_faults, 7U);
    EXPECT_EQ(stat->user_ticks, 31U);
    EXPECT_EQ(stat->system_ticks, 12U);
    EXPECT_EQ(stat->threads, 8U);
    EXPECT_EQ(stat->start_ticks, 10'839'175U);
    EXPECT_EQ(stat->rss_pages, 155U);
  }
}

TEST(ProcessStat, ShortTextIsRefused) {
  EXPECT_FALSE(parse_process_stat(""));
  EXPECT_FALSE(parse_process_stat("12 (sh"));
  EXPECT_FALSE(parse_process_stat("12 (sh) S 1 2 3"));
}

TEST(ProcessFiles, AbsentKeysAreNothing) {
  EXPECT_FALSE(parse_process_io("rchar: 1\nwchar: 2\n"));
  EXPECT_FALSE(parse_context_switches("Name:\tx\nvoluntary_ctxt_switches:\t\n"));
  EXPECT_FALSE(parse_schedstat("12"));
  EXPECT_FALSE(parse_pss_kib("Rss: 1 kB\n"));
  EXPECT_EQ(parse_pss_kib("Rss: 1 kB\nPss:    42 kB\n"), 42U);
}

TEST(Mounts, PathsBelongToTheirLongestMount) {
  const auto mounts = parse_mountinfo(
      "1 0 8:1 / / rw - ext4 /dev/a rw\n"
      "2 1 0:5 / /data rw shared:1 master:2 - nfs4 s:/x rw,vers=4\n"
      "broken line\n"
      "3 1 0:6 /part /data/my\\040set rw - fuse.sshfs me@box:/ rw\n",
      10);
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[2].point, "/data/my set");
  EXPECT_EQ(mounts[2].root, "/part");
  EXPECT_EQ(mounts[1].source, "s:/x");
  EXPECT_EQ(mount_of(mounts, "/data/a")->type, "nfs4");
  EXPECT_EQ(mount_of(mounts, "/database")->type, "ext4");
  EXPECT_EQ(mount_of(mounts, "/data/my set")->type, "fuse.sshfs");
  EXPECT_EQ(mount_of({}, "/x"), nullptr);
}

TEST(Mounts, TheTableIsBounded) {
  EXPECT_EQ(parse_mountinfo("1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /b rw - ext4 b rw\n", 1).size(), 1U);
}

}  // namespace
}  // namespace hotlap
