// Every collector over every fake machine: the whole output is golden. HOTLAP_UPDATE_GOLDEN=1 rewrites expected.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "collect/mount_prober.h"
#include "collect/registry.h"
#include "support/capture_sink.h"
#include "support/fake_host.h"
#include "support/golden.h"

namespace hotlap::test {
namespace {

namespace fs = std::filesystem;

const fs::path kHosts = fs::path(HOTLAP_SOURCE_DIR) / "tests/hosts";

std::vector<std::string> host_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kHosts)) {
    if (fs::exists(entry.path() / "host.txt")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Runs every collector over every tick of `host`; the whole output as text, and empty after a failure.
std::string run_all(FakeHost& host, CaptureSink& sink) {
  std::vector<std::unique_ptr<CollectorRun>> runs;
  for (std::size_t t = 0; t < host.tick_count(); ++t) {
    const Result<void> advanced = host.advance();
    EXPECT_TRUE(advanced.ok()) << advanced.error().message;
    if (!advanced.ok()) return {};
    sink.begin_tick();
    if (t == 0) {
      for (const CollectorSpec* spec : all_collectors()) {
        runs.push_back(std::make_unique<CollectorRun>(*spec, host, sink));
      }
    }
    for (const auto& run : runs) run->tick(host.tick());
  }
  return sink.to_text();
}

class EveryHost : public testing::TestWithParam<std::string> {};

TEST_P(EveryHost, GivesTheGoldenOutput) {
  const fs::path folder = kHosts / GetParam();
  auto host = FakeHost::load(folder / "host.txt");
  ASSERT_TRUE(host.ok()) << host.error().message;
  CaptureSink sink;
  const std::string text = run_all(**host, sink);
  EXPECT_GT(sink.series_count(), 0U);
  expect_golden(folder / "expected.txt", text);
  host->reset();
  MountProber::join_abandoned();
}

std::string test_name(const testing::TestParamInfo<std::string>& host) {
  std::string name = host.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Hosts, EveryHost, testing::ValuesIn(host_names()), test_name);

// A node for training: 96 cores, 8 GPUs, 8 local NVMe disks in a RAID, an InfiniBand adapter, two EFA ones, Lustre.
std::string gpu_node() {
  std::string script = "@tick 0s\n@file /proc/stat\ncpu  960000 0 96000 9600000 960 0 96 0 0 0\n";
  for (int core = 0; core < 96; ++core) {
    script += format("cpu{} {} 0 1000 100000 {} 0 1 0 0 0\n", core, 10000 + core, core % 4);
  }
  script += "intr 12345 0 1 2 3\nctxt 987654321\nbtime 1750000000\nprocesses 5000\nprocs_running 97\nprocs_blocked 3\n";
  script += "@file /proc/diskstats\n";
  for (int disk = 0; disk < 8; ++disk) {
    script += format("259 {} nvme{}n1 {} 0 {} 10 0 0 0 0 1 20 10 0 0 0 0 0 0\n", disk, disk, 1000 + disk, 8000 + disk);
  }
  script += "9 0 md0 8028 0 64028 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n@dir /sys/block/md0\n";
  for (int disk = 0; disk < 8; ++disk) script += format("@dir /sys/block/nvme{}n1/device\n", disk);
  const std::string mlx = "/sys/class/infiniband/mlx5_0/ports/1/";
  script += format(
      "@file {0}counters/port_rcv_data\n1000000\n@file {0}counters/port_xmit_data\n2000000\n"
      "@file {0}counters/port_rcv_packets\n5000\n@file {0}counters/port_xmit_wait\n7\n"
      "@file {0}counters/port_xmit_packets\n6000\n@file {0}counters/port_xmit_discards\n1\n"
      "@file {0}counters/link_downed\n2\n"
      "@file {0}counters/port_rcv_errors\nN/A (no PMA)\n@file {0}rate\n400 Gb/sec (4X NDR)\n",
      mlx);
  for (int port = 0; port < 2; ++port) {
    const std::string efa = format("/sys/class/infiniband/rdmap{}s0/ports/1/", port);
    script += format(
        "@file {0}hw_counters/rx_bytes\n{1}\n@file {0}hw_counters/tx_bytes\n{1}\n"
        "@file {0}hw_counters/rdma_read_bytes\n{1}\n@file {0}hw_counters/rdma_write_bytes\n77\n"
        "@file {0}hw_counters/retrans_bytes\n8\n@file {0}hw_counters/rx_drops\n0\n",
        efa, 123456789 + port);
  }
  const std::string lustre = "/proc/fs/lustre/llite/scratch-ffff8888d1ab0000";
  script += format(
      "@file {}/stats\nsnapshot_time 1750000000.5 secs.usecs\n"
      "read_bytes 60 samples [bytes] 4096 1048576 47175680\nwrite_bytes 2 samples [bytes] 1 9 10\n"
      "open 12 samples [usecs] 1 2 3\nclose 11 samples [usecs]\ngetattr 100 samples [regs]\n",
      lustre);
  // Rank k of 8 has GPU k; rank 0's process list also has one that is not the job's.
  script += "@dir /dev/nvidiactl\n@link /proc/self/ns/pid pid:[4026531836]\n@job 1000\n@process 1000 main\n";
  for (int rank = 0; rank < 8; ++rank) script += format("@process {} rank {}\n", 1001 + rank, rank);
  script += "@nvml current\ngpu 0-7 like h100\ngpu 0 process 77 300\n";
  for (int rank = 0; rank < 8; ++rank) {
    script += format("gpu {} uuid GPU-0000000{} busy {} process {} {}\n", rank, rank, 90 + rank, 1001 + rank, 16000);
  }
  script += "@tick 1s\n@file " + mlx + "counters/port_rcv_data\n1500000\n";
  script += "@tick 2s\n@remove /sys/class/infiniband/rdmap1s0\n@remove " + lustre + "\n@tick 32s\n";
  return script;
}

TEST(MadeHost, GpuNodeGivesTheGoldenOutput) {
  const auto host = FakeHost::parse(gpu_node());
  ASSERT_TRUE(host.ok()) << host.error().message;
  CaptureSink sink;
  const std::string text = run_all(**host, sink);
  EXPECT_TRUE(sink.has_series("cpu.core.busy.seconds", "core 95"));
  expect_golden(kHosts / "gpu-node" / "expected.txt", text);
}

// 100 KiB of /proc/stat: every core is read, those beyond the bound on series are counted as not recorded.
TEST(MadeHost, MoreCoresThanSeries) {
  std::string script = "@tick 0s\n@file /proc/stat\ncpu  1 2 3 4 5 6 7 8 9 10\n";
  for (int core = 0; core < 1030; ++core)
    script += format("cpu{} {} 0 7 100000000 3 0 1 2 0 0\n", core * 2, 123456789 + core);
  script +=
      "intr 1" + std::string(200'000, '0') + "\nctxt 42\nprocesses 5\nprocs_running 6\nprocs_blocked 7\n@tick 1s\n";
  const auto host = FakeHost::parse(script);
  ASSERT_TRUE(host.ok()) << host.error().message;
  CaptureSink sink;
  (void)run_all(**host, sink);
  EXPECT_EQ(sink.value("cpu.count"), Value::of(std::uint64_t{1030}));
  EXPECT_EQ(sink.value("cpu.core.busy.seconds", "core 2046"), Value::of(std::uint64_t{123456789 + 1023 + 7 + 1}));
  EXPECT_FALSE(sink.has_series("cpu.core.busy.seconds", "core 2048"));
  EXPECT_EQ(sink.value("cpu.context_switches"), Value::of(std::uint64_t{42}));
  EXPECT_EQ(sink.loss("record.series_refused"), 6U * 3U);
  EXPECT_TRUE(sink.events().empty());
}

// The bound on processes: the first ones are followed, the rest is counted once.
TEST(MadeHost, MoreProcessesThanAreFollowed) {
  std::string script = "@tick 0s\n@job 1\n@file /proc/self/stat\n1 (x) R\n";
  for (int pid = 1; pid <= 515; ++pid) {
    script += format(
        "@process {0} p{0}\n@cpu_ns {0} {0}000\n@file /proc/{0}/stat\n"
        "{0} (p) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 77 1000 10 0 0\n",
        pid);
  }
  script += "@tick 1s\n@tick 2s\n@process 3 gone\n";
  const auto host = FakeHost::parse(script);
  ASSERT_TRUE(host.ok()) << host.error().message;
  CaptureSink sink;
  (void)run_all(**host, sink);
  EXPECT_EQ(sink.value("process.count"), Value::of(std::uint64_t{514}));
  EXPECT_EQ(sink.value("process.cpu.seconds", "p512"), Value::of(std::uint64_t{512'000}));
  EXPECT_EQ(sink.value("process.cpu.seconds", "p3"), Value::missing(MissingReason::kSourceLost));
  EXPECT_FALSE(sink.has_series("process.cpu.seconds", "p514"));
  EXPECT_EQ(sink.loss("record.processes_refused"), 3U);
}

// Files that are cut off, empty or not what they should be: nothing is read out of them, least of all a 0.
TEST(MadeHost, DamagedTextGivesNoNumbers) {
  constexpr std::array kFiles{"stat",           "loadavg",      "meminfo",         "vmstat",          "diskstats",
                              "net/dev",        "pressure/cpu", "pressure/memory", "self/mountstats", "7/stat",
                              "7/io",           "7/status",     "7/schedstat",     "7/smaps_rollup",  "7/cgroup",
                              "self/mountinfo", "self/status",  "self/stat"};
  const std::array<std::string, 6> contents{"",
                                            "\n\n",
                                            "x\n(\n)) R\n",
                                            "cpu \ncpu\ncpu99999999999999999999 1\n",
                                            "-1 -1 -1\n 1 1\n1:1:1:1\n",
                                            std::string(100'000, '9')};
  for (const std::string& content : contents) {
    std::string script = "@tick 0s\n@job 7\n@process 7 main\n";
    for (const char* file : kFiles) script += format("@file /proc/{}\n{}\n", file, content);
    script += "@tick 1s\n@tick 12s\n";
    const auto host = FakeHost::parse(script);
    ASSERT_TRUE(host.ok()) << host.error().message;
    CaptureSink sink;
    (void)run_all(**host, sink);
    for (const CollectorSpec* spec : all_collectors()) {
      for (const MetricDesc& metric : spec->metrics) {
        if (metric.name == "process.count") continue;  // from the recorder, not from a file
        EXPECT_TRUE(sink.value(metric.name).is_missing()) << metric.name << " of " << content.substr(0, 20);
      }
    }
  }
}

}  // namespace
}  // namespace hotlap::test
