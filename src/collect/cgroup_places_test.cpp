#include "collect/cgroup_places.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hotlap {
namespace {

using Folders = std::vector<std::string>;

CgroupPlaces find(std::string_view cgroup, std::string_view mountinfo, const Folders& absent = {}) {
  return find_cgroups(cgroup, parse_mountinfo(mountinfo, 100), [&](const std::string& folder) {
    return std::find(absent.begin(), absent.end(), folder) == absent.end();
  });
}

constexpr std::string_view kV2 = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr std::string_view kV1 =
    "31 1 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 1 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "33 1 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

TEST(CgroupPlaces, V2FromTheOwnGroupUp) {
  const CgroupPlaces places = find("0::/user.slice/job.scope\n", kV2);
  ASSERT_TRUE(places.memory.exists());
  EXPECT_TRUE(places.memory.is_v2);
  EXPECT_EQ(places.memory.folders,
            (Folders{"/sys/fs/cgroup/user.slice/job.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"}));
  EXPECT_EQ(places.cpu.own(), places.io.own());
}

TEST(CgroupPlaces, HybridTakesV1WhereItIsInUse) {
  const CgroupPlaces places = find("4:memory:/box/a\n2:cpu,cpuacct:/\n0::/x\n", kV1);
  EXPECT_FALSE(places.memory.is_v2);
  EXPECT_EQ(places.memory.own(), "/sys/fs/cgroup/memory/box/a");
  EXPECT_EQ(places.cpu.folders, Folders{"/sys/fs/cgroup/cpu,cpuacct"});
  EXPECT_EQ(places.unified.own(), "/sys/fs/cgroup/unified/x");
  // No v1 controller for block I/O: v2 has it, if anybody.
  EXPECT_TRUE(places.io.is_v2);
}

// A container sees its own group as the top, under several guises.
TEST(CgroupPlaces, AGroupThatIsNotVisibleMeansTheTop) {
  const Folders top{"/sys/fs/cgroup"};
  EXPECT_EQ(find("0::/\n", kV2).cpu.folders, top);
  EXPECT_EQ(find("0::/../other\n", kV2).cpu.folders, top);
  EXPECT_EQ(find("0::/docker/abc\n", kV2, {"/sys/fs/cgroup/docker/abc"}).cpu.folders, top);
  EXPECT_EQ(find("", kV2).cpu.folders, top);
  const std::string_view bound = "30 1 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
  EXPECT_EQ(find("9:memory:/docker/abc\n", bound).memory.folders, Folders{"/sys/fs/cgroup/memory"});
  EXPECT_EQ(find("9:memory:/docker/abc/job\n", bound).memory.folders.size(), 2U);
  EXPECT_EQ(find("9:memory:/docker/abcdef\n", bound).memory.folders, Folders{"/sys/fs/cgroup/memory"});
}

TEST(CgroupPlaces, WithoutHierarchiesThereIsNothing) {
  const CgroupPlaces places = find("0::/\n", "1 0 8:1 / / rw - ext4 /dev/a rw\n");
  EXPECT_FALSE(places.cpu.exists() || places.memory.exists() || places.unified.exists());
}

TEST(CpuList, ReadsRangesAndRefusesOtherThings) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n").value_or(CpuSet{}).count(), 7U);
  EXPECT_EQ(parse_cpu_list("\t0\n").value_or(CpuSet{}).count(), 1U);
  EXPECT_EQ(parse_cpu_list("\n").value_or(CpuSet{1}).count(), 0U);
  EXPECT_TRUE(parse_cpu_list("8191"));
  for (const std::string_view bad : {"3-1", "0;1", "8192", "0-99999999999", "a", "1-"})
    EXPECT_FALSE(parse_cpu_list(bad)) << bad;
}

}  // namespace
}  // namespace hotlap
