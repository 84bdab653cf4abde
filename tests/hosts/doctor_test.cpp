#include "cli/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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
  const Readings readings = check_collectors(**host, all_collectors(), job_pid, checks);
  check_machine(**host, readings, variables.data(), checks);
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

TEST(Doctor, HiddenProcessesAndGpusAreNamed) {
  const Checks checks = machine({}, {},
                                "@tick 0s\n@file /proc/self/mounts\nproc /proc proc rw,nosuid,hidepid=2 0 0\n"
                                "@file /proc/driver/nvidia/version\nNVRM version\n");
  ASSERT_NE(find(checks, "/proc"), nullptr);
  EXPECT_EQ(find(checks, "/proc")->health, Health::kNote);
  EXPECT_THAT(find(checks, "GPU")->text, HasSubstr("NVIDIA"));
  EXPECT_EQ(find(machine({}, {}, "@tick 0s\n@file /proc/self/mounts\nproc /proc proc rw 0 0\n"), "/proc"), nullptr);
}

}  // namespace
}  // namespace hotlap
