#include "cli/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/format.h"
#include "collect/registry.h"
#include "support/fake_host.h"

namespace hotlap {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const Check* find(const Checks& checks, std::string_view name) {
  for (const Check& check : checks) {
    if (check.name == name) return &check;
  }
  return nullptr;
}

// The checks of a fake machine under an environment.
Checks examine(const std::string& script, const std::vector<const char*>& environment, std::int32_t job_pid = 7) {
  auto host = test::FakeHost::parse(script);
  EXPECT_TRUE(host.ok()) << (host.ok() ? "" : host.error().message);
  EXPECT_TRUE((*host)->advance().ok());
  std::vector<const char*> variables(environment);
  variables.push_back(nullptr);
  Checks checks;
  Texts texts;
  const Readings readings = check_collectors(**host, all_collectors(), job_pid, checks, texts);
  check_machine(**host, readings, variables.data(), checks);
  check_gpus(**host, readings, texts, Checks(checks), variables.data(), checks);
  return checks;
}

// A pod whose /dev/shm is Docker's default of 64 MiB.
std::string pod() {
  const auto file = std::filesystem::path(HOTLAP_SOURCE_DIR) / "tests/hosts/container-v2/host.txt";
  std::string script = *system_host().read_text(file.string());
  constexpr std::string_view kBegin = "@tick 0s\n";
  script.insert(script.find(kBegin) + kBegin.size(), "@usage /dev/shm 67108864 67108864 67108864 10 10\n");
  return script;
}

TEST(Doctor, ALimitedPodIsNamedWithWhatItsJobMayUse) {
  const Checks checks = examine(pod(), {"KUBERNETES_SERVICE_HOST=10.0.0.1"});
  ASSERT_NE(find(checks, "cgroup"), nullptr);
  EXPECT_EQ(find(checks, "cgroup")->health, Health::kGood);
  ASSERT_NE(find(checks, "container"), nullptr);
  EXPECT_EQ(find(checks, "container")->text, "Kubernetes");
  ASSERT_NE(find(checks, "/dev/shm"), nullptr);
  EXPECT_EQ(find(checks, "/dev/shm")->health, Health::kWarning);
  EXPECT_THAT(find(checks, "/dev/shm")->mend, HasSubstr("emptyDir"));
}

TEST(Doctor, NeededCollectorsThatFailAreBrokenOthersAreAbsent) {
  const Checks checks = examine("@tick 0s\n@file /proc/self/status\nName:\thotlap\n", {});
  ASSERT_NE(find(checks, "cpu"), nullptr);
  EXPECT_EQ(find(checks, "cpu")->health, Health::kBroken);
  EXPECT_FALSE(find(checks, "cpu")->text.empty());
  EXPECT_EQ(find(checks, "infiniband")->health, Health::kAbsent);
  EXPECT_EQ(find(checks, "pressure")->health, Health::kAbsent);
  EXPECT_THAT(find(checks, "pressure")->text, HasSubstr("psi=1"));
}

Checks machine(const Readings& readings, const std::vector<const char*>& environment, std::string_view script) {
  auto host = test::FakeHost::parse(script);
  EXPECT_TRUE(host.ok()) << (host.ok() ? "" : host.error().message);
  EXPECT_TRUE((*host)->advance().ok());
  std::vector<const char*> variables(environment);
  variables.push_back(nullptr);
  Checks checks;
  check_machine(**host, readings, variables.data(), checks);
  return checks;
}

TEST(Doctor, CoresThatMayNotBeUsedAreANote) {
  Readings readings{
      {"cpu.count", Value::of(96.0)}, {"cpu.usable.cores", Value::of(2.5)}, {"cgroup.cpu.limit.cores", Value::of(2.5)}};
  const Checks limited = machine(readings, {}, "@tick 0s\n");
  EXPECT_EQ(find(limited, "cores")->text, "96 online, 2.5 usable (quota 2.5)");
  EXPECT_EQ(find(limited, "cores")->health, Health::kNote);
  readings = {{"cpu.count", Value::of(96.0)}, {"cpu.usable.cores", Value::of(96.0)}};
  EXPECT_EQ(find(machine(readings, {}, "@tick 0s\n"), "cores")->health, Health::kGood);
  // Missing is not 0: without the figure there is no line.
  EXPECT_EQ(find(machine({{"cpu.count", Value::missing(MissingReason::kReadFailed)}}, {}, "@tick 0s\n"), "cores"),
            nullptr);
}

TEST(Doctor, ATaskWithFewerCoresThanAskedForIsAWarning) {
  const Readings readings{{"cpu.usable.cores", Value::of(1.0)}};
  const Checks few = machine(readings, {"SLURM_JOB_ID=42", "SLURM_CPUS_PER_TASK=8"}, "@tick 0s\n");
  EXPECT_EQ(find(few, "SLURM")->health, Health::kWarning);
  EXPECT_THAT(find(few, "SLURM")->mend, HasSubstr("SRUN_CPUS_PER_TASK"));
  const Checks enough = machine(readings, {"SLURM_JOB_ID=42", "SLURM_CPUS_PER_TASK=1"}, "@tick 0s\n");
  EXPECT_EQ(find(enough, "SLURM")->health, Health::kNote);
  EXPECT_THAT(find(enough, "SLURM")->mend, IsEmpty());
}

TEST(Doctor, HiddenProcessesAreNamed) {
  const Checks checks = machine({}, {}, "@tick 0s\n@file /proc/self/mounts\nproc /proc proc rw,nosuid,hidepid=2 0 0\n");
  ASSERT_NE(find(checks, "/proc"), nullptr);
  EXPECT_EQ(find(checks, "/proc")->health, Health::kNote);
  EXPECT_EQ(find(machine({}, {}, "@tick 0s\n@file /proc/self/mounts\nproc /proc proc rw 0 0\n"), "/proc"), nullptr);
}

// The lines of a machine's GPUs: "ok gpu0: …", and what mends each.
std::string gpu_lines(const std::string& script, const std::vector<const char*>& environment = {}) {
  std::string text;
  for (const Check& check : examine(script, environment)) {
    if (check.area != "GPUs") continue;
    text += std::string(to_string(check.health)) + " " + check.name + ": " + check.text + "\n";
    if (!check.mend.empty()) text += "  -> " + check.mend + "\n";
  }
  return text;
}

TEST(Doctor, GpusAreListedWithWhatIsWrongWithThem) {
  const std::string lines = gpu_lines(
      "@tick 0s\n@dir /dev/nvidiactl\n@link /proc/self/ns/pid pid:[4026531836]\n@nvml current\n"
      "driver 590.48.01\ngpu 0 like h100 uuid GPU-aa field.230 1\ngpu 1 like a10g uuid GPU-bb\n"
      "gpu 2 like t4 fail nvmlDeviceGetHandleByIndex 4\n");
  EXPECT_THAT(lines, HasSubstr("ok gpu0: NVIDIA H100 80GB HBM3, 79.6 GiB, GPU-aa"));
  EXPECT_THAT(lines, HasSubstr("warning gpu0: the driver asks for a reset\n  -> nvidia-smi --gpu-reset"));
  EXPECT_THAT(lines, HasSubstr("note gpu1: uses 8 of 16 PCIe lanes"));
  EXPECT_THAT(lines, HasSubstr("warning gpu2: cannot be read: no permission"));
  EXPECT_THAT(lines, HasSubstr("ok driver: 590.48.01"));
  EXPECT_THAT(lines, HasSubstr("  -> export CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  EXPECT_THAT(lines, testing::Not(HasSubstr("--pid=host")));
}

TEST(Doctor, MigInsideAContainerIsExplained) {
  const std::string lines = gpu_lines(
      "@tick 0s\n@dir /dev/nvidiactl\n@link /proc/self/ns/pid pid:[4026533333]\n@nvml current\n"
      "gpu 0 like h100 mig 1 busy na controller na\ngpu 0/0 like mig-1g.10gb\n");
  EXPECT_THAT(lines, HasSubstr("note gpu0: split into MIG instances"));
  EXPECT_THAT(lines, HasSubstr("ok gpu0/mig0: NVIDIA H100 80GB HBM3 MIG 1g.10gb, 9.8 GiB"));
  EXPECT_THAT(lines, HasSubstr("--pid=host"));
}

TEST(Doctor, ADriverThatIsNotWholeHasItsLine) {
  EXPECT_EQ(gpu_lines("@tick 0s\n"), "none GPU: none is visible\n");
  EXPECT_THAT(gpu_lines("@tick 0s\n@dir /dev/nvidiactl\n"), HasSubstr("NVIDIA_DRIVER_CAPABILITIES=compute,utility"));
  EXPECT_THAT(gpu_lines("@tick 0s\n@dir /dev/nvidiactl\n@nvml current\ninit 18\n"), HasSubstr("different versions"));
  EXPECT_THAT(gpu_lines("@tick 0s\n@file /proc/driver/nvidia/version\nNVRM version\n"), HasSubstr("not in use yet"));
  EXPECT_THAT(gpu_lines("@tick 0s\n@file /sys/bus/pci/devices/0000:01:00.0/vendor\n0x10de\n"
                        "@file /sys/bus/pci/devices/0000:01:00.0/class\n0x030200\n"),
              HasSubstr("without its driver"));
}

TEST(Doctor, AcceleratorsWithoutACollectorAreNamed) {
  const auto device = [](std::string_view vendor, std::string_view kind) {
    return format(
        "@tick 0s\n@file /sys/bus/pci/devices/0000:01:00.0/vendor\n{}\n"
        "@file /sys/bus/pci/devices/0000:01:00.0/class\n{}\n",
        vendor, kind);
  };
  EXPECT_THAT(gpu_lines(device("0x8086", "0x038000")), HasSubstr("note Intel GPU: is here and not supported yet"));
  EXPECT_THAT(gpu_lines(device("0x1da3", "0x120000")), HasSubstr("note Intel Gaudi: is here and not supported yet"));
  EXPECT_EQ(gpu_lines(device("0x8086", "0x020000")), "none GPU: none is visible\n") << "a network card";
}

}  // namespace
}  // namespace hotlap
