#include "collect/gpu_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hotlap {
namespace {

using testing::HasSubstr;

using Words = std::vector<std::string_view>;  // of literals

std::vector<GpuSeen> machine(const Words& names, const Words& uuids) {
  static constexpr std::array<std::string_view, 4> kLabels{"gpu0", "gpu1", "gpu2", "gpu3"};
  std::vector<GpuSeen> gpus;
  for (std::size_t g = 0; g < names.size(); ++g) {
    gpus.push_back({.label = kLabels.at(g),
                    .uuid = uuids[g],
                    .name = names[g],
                    .index = static_cast<std::uint32_t>(g),
                    .minor = static_cast<std::uint32_t>(g),
                    .is_mig = false,
                    .is_split = false,
                    .parent_uuid = {},
                    .gpu_instance = 0,
                    .compute_instance = 0,
                    .slots = std::nullopt});
  }
  return gpus;
}

const Words kAlike{"A10G", "A10G", "A10G"};
const Words kUuids{"GPU-11aa", "GPU-11bb", "GPU-22cc"};

GpuLimits visible(std::string text) {
  return {.visible = std::move(text), .is_pci_order = false, .local_rank = {}, .minors = {}};
}
const GpuLimits kFree{.visible = {}, .is_pci_order = false, .local_rank = {}, .minors = {}};

// "y", "n" or "?" for each GPU.
std::string answers(const std::vector<GpuSeen>& gpus, const std::vector<GpuLimits>& limits, bool has_job = true) {
  std::string text;
  for (const GpuUse& use : find_gpu_use(gpus, limits, has_job))
    text += !use.is_of_job ? '?' : *use.is_of_job ? 'y' : 'n';
  return text;
}

TEST(GpuUse, AContextIsProofAndItsAbsenceOnlyWhereListsCanBeRead) {
  std::vector<GpuSeen> gpus = machine(kAlike, kUuids);
  EXPECT_EQ(answers(gpus, {kFree}), "???");
  gpus[0].slots = {"rank 0"};
  gpus[1].slots.emplace();
  EXPECT_EQ(answers(gpus, {kFree}), "yn?");
  EXPECT_THAT(find_gpu_use(gpus, std::vector{kFree}, true)[0].why, HasSubstr("rank 0"));
  EXPECT_THAT(find_gpu_use(gpus, std::vector{kFree}, true)[2].why, HasSubstr("container"));
  EXPECT_EQ(answers(gpus, {}, false), "???");
}

TEST(GpuUse, VisibleDevicesByIndexUuidAndUpToTheFirstThatIsWrong) {
  const std::vector<GpuSeen> gpus = machine(kAlike, kUuids);
  EXPECT_EQ(answers(gpus, {visible("2,0")}), "yny");
  EXPECT_EQ(answers(gpus, {visible("GPU-22")}), "nny");
  EXPECT_EQ(answers(gpus, {visible("GPU-11")}), "nnn") << "two fit: CUDA takes none";
  EXPECT_EQ(answers(gpus, {visible("1,7,0")}), "nyn") << "CUDA stops at the first that is not there";
  EXPECT_EQ(answers(gpus, {visible("")}), "nnn");
  EXPECT_EQ(answers(gpus, {visible("-1")}), "nnn");
  EXPECT_EQ(answers(gpus, {visible("0"), visible("1")}), "yyn") << "each rank has its own";
  EXPECT_EQ(answers(gpus, {kFree, visible("1")}), "?y?") << "one that is not limited may use the others";
}

// CUDA numbers GPUs by speed unless it is told otherwise; NVML by PCI address. Between equal GPUs the two agree.
TEST(GpuUse, NumbersOnAMachineWithDifferentGpusAreUnknownWithoutPciOrder) {
  const std::vector<GpuSeen> gpus = machine({"T4", "H100"}, kUuids);
  EXPECT_EQ(answers(gpus, {visible("0")}), "??");
  EXPECT_THAT(find_gpu_use(gpus, std::vector{visible("0")}, true)[0].why, HasSubstr("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  GpuLimits ordered = visible("0");
  ordered.is_pci_order = true;
  EXPECT_EQ(answers(gpus, {ordered}), "yn");
  EXPECT_EQ(answers(gpus, {visible("GPU-11bb")}), "ny");
}

TEST(GpuUse, LocalRankIsAGuessThatSaysSo) {
  const std::vector<GpuSeen> gpus = machine(kAlike, kUuids);
  GpuLimits rank = kFree;
  rank.local_rank = 1;
  EXPECT_EQ(answers(gpus, {rank}), "?y?");
  EXPECT_THAT(find_gpu_use(gpus, std::vector{rank}, true)[1].why, HasSubstr("guess"));
  rank.visible = "2,1";
  EXPECT_EQ(answers(gpus, {rank}), "ny?") << "the rank counts in what is visible";
}

TEST(GpuUse, MigInstancesByUuidByOldNameAndAsTheFirstOfTheirGpu) {
  std::vector<GpuSeen> gpus = machine({"A100"}, {"GPU-11aa"});
  gpus[0].is_split = true;
  const std::array<std::string, 2> uuids{"MIG-5555", "MIG-6666"};
  for (std::uint32_t m = 0; m < 2; ++m) {
    GpuSeen mig = gpus[0];
    mig.uuid = uuids.at(m);
    mig.is_mig = true;
    mig.is_split = false;
    mig.parent_uuid = "GPU-11aa";
    mig.gpu_instance = 7 + m;
    gpus.push_back(mig);
  }
  EXPECT_EQ(answers(gpus, {visible("MIG-6666")}), "?ny");
  EXPECT_EQ(answers(gpus, {visible("MIG-GPU-11aa/7/0")}), "?yn");
  EXPECT_EQ(answers(gpus, {visible("0")}), "?yn");
}

TEST(GpuUse, TheDeviceCgroupForbids) {
  const std::vector<GpuSeen> gpus = machine(kAlike, kUuids);
  GpuLimits limits = kFree;
  limits.minors = {1};
  EXPECT_EQ(answers(gpus, {limits}), "n?n");
  limits.local_rank = 0;
  EXPECT_EQ(answers(gpus, {limits}), "nyn");
}

}  // namespace
}  // namespace hotlap
