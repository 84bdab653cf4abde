// The NVIDIA collector over the fake libnvidia-ml.so.1: what a golden file does not show.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/shared_library.h"
#include "collect/registry.h"
#include "model/nvidia_metrics.h"
#include "record/lane.h"
#include "support/capture_sink.h"
#include "support/fake_host.h"

namespace hotlap::test {
namespace {

const CollectorSpec& nvidia() {
  for (const CollectorSpec* spec : all_collectors()) {
    if (spec->name == "nvidia") return *spec;
  }
  HOTLAP_CHECK(false);
}

constexpr std::string_view kMachine =
    "@tick 0s\n@dir /dev/nvidiactl\n@link /proc/self/ns/pid pid:[4026531836]\n@job 5\n@process 5 main\n";

std::unique_ptr<FakeHost> host_of(const std::string& script) {
  auto host = FakeHost::parse(script);
  EXPECT_TRUE(host.ok()) << (host.ok() ? "" : host.error().message);
  return host.ok() ? std::move(*host) : nullptr;
}

// Runs the collector over all ticks of a script.
void run(const std::string& script, CaptureSink& sink) {
  const std::unique_ptr<FakeHost> host = host_of(script);
  ASSERT_NE(host, nullptr);
  std::unique_ptr<CollectorRun> collector;
  for (std::size_t t = 0; t < host->tick_count(); ++t) {
    ASSERT_TRUE(host->advance().ok());
    sink.begin_tick();
    if (t == 0) collector = std::make_unique<CollectorRun>(nvidia(), *host, sink);
    collector->tick(host->tick());
  }
}

int left_open(const FakeHost& host) {
  const auto library = SharedLibrary::open(host.library("libnvidia-ml.so.1"));
  int (*count)() = nullptr;
  if (library.ok()) library->bind(count, {"fake_nvml_left_open"});
  return count == nullptr ? -1 : count();
}

TEST(Nvidia, WithoutADriverInUseTheLibraryIsNotEvenLoaded) {
  const auto host = host_of("@tick 0s\n@nvml current\ngpu 0 like t4\n");
  ASSERT_TRUE(host->advance().ok());
  const auto opened = nvidia().open(*host);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(left_open(*host), 0) << "NVML was started";
}

TEST(Nvidia, StartsThatFailSayWhatMendsThem) {
  struct Case {
    int status;
    ErrorCode code;
    std::string_view text;
  };
  for (const Case& one : {Case{9, ErrorCode::kUnsupported, "not loaded"},
                          Case{18, ErrorCode::kIo, "different versions"}, Case{999, ErrorCode::kIo, "999"}}) {
    const auto host = host_of(format("{}@nvml current\ninit {}\n", kMachine, one.status));
    ASSERT_TRUE(host->advance().ok());
    const auto opened = nvidia().open(*host);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, one.code) << one.status;
    EXPECT_NE(opened.error().message.find(one.text), std::string::npos) << opened.error().message;
  }
}

TEST(Nvidia, EverythingIsGivenBackAtTheEnd) {
  const auto host = host_of(std::string(kMachine) + "@nvml current\ngpu 0-1 like h100\ngpu 1 mig 1\n" +
                            "gpu 1/0 like mig-1g.10gb\n@tick 1s\n@tick 2s\n");
  ASSERT_TRUE(host->advance().ok());
  CaptureSink sink;
  sink.set_spec(nvidia());
  {
    auto opened = nvidia().open(*host);
    ASSERT_TRUE(opened.ok());
    for (int t = 0; t < 3; ++t) {
      sink.begin_tick();
      ASSERT_TRUE((*opened)->sample(host->tick(), sink).ok());
      if (t < 2) {
        ASSERT_TRUE(host->advance().ok());
      }
    }
    // One start, one set of events, two samples of counters for each of three devices.
    EXPECT_EQ(left_open(*host), 1 + 1 + 3 * 2);
  }
  EXPECT_EQ(left_open(*host), 0);
}

TEST(Nvidia, ASlowGpuIsLeftAloneForAWhile) {
  CaptureSink sink;
  run(std::string(kMachine) + "@clock real\n@nvml current\ngpu 0 like t4\nslow nvmlDeviceGetUtilizationRates 150\n" +
          "@tick 1s\n@nvml current\nslow nvmlDeviceGetUtilizationRates 0\n@tick 600s\n",
      sink);
  EXPECT_EQ(sink.value("gpu.busy.percent", "gpu0", 0), Value::of(std::uint64_t{0})) << "what was read counts";
  EXPECT_EQ(sink.value("gpu.busy.percent", "gpu0", 1), Value{}) << "1.5 s of rest at least";
  EXPECT_EQ(sink.value("gpu.busy.percent", "gpu0", 2), Value::of(std::uint64_t{0}));
}

// NVML inside a container that lost its devices: the same unknown error for ever, until it is started again.
TEST(Nvidia, AnUnknownErrorForEverEndsWithANewStart) {
  std::string script = std::string(kMachine) + "@nvml current\ngpu 0 like t4\n@tick 1s\n@nvml current\n" +
                       "gpu 0 fail nvmlDeviceGetMemoryInfo_v2 999\n";
  for (int t = 2; t <= 11; ++t) script += format("@tick {}s\n", t);
  script += "@nvml current\ngpu 0 fail nvmlDeviceGetMemoryInfo_v2 0\n@tick 20s\n";
  CaptureSink sink;
  run(script, sink);
  EXPECT_EQ(sink.value("gpu.memory.used.bytes", "gpu0", 1), Value::missing(MissingReason::kReadFailed));
  EXPECT_EQ(sink.value("gpu.memory.used.bytes", "gpu0"), Value::of(std::uint64_t{1032} << 20U));
  ASSERT_EQ(sink.events().size(), 3U);
  EXPECT_NE(sink.events()[1].find("unknown errors"), std::string::npos) << sink.events()[1];
  EXPECT_EQ(sink.loss("collect.duplicates"), 0U);
}

// Whatever call fails in whatever way: what it would have said is missing, everything else is as before, and no value
// is another one.
TEST(Nvidia, NoFailureOfAnyCallMakesANumber) {
  constexpr std::array kCalls{"nvmlDeviceGetName",
                              "nvmlDeviceGetUUID",
                              "nvmlDeviceGetUtilizationRates",
                              "nvmlDeviceGetMemoryInfo_v2",
                              "nvmlDeviceGetBAR1MemoryInfo",
                              "nvmlDeviceGetPowerUsage",
                              "nvmlDeviceGetTotalEnergyConsumption",
                              "nvmlDeviceGetEnforcedPowerLimit",
                              "nvmlDeviceGetPowerManagementDefaultLimit",
                              "nvmlDeviceGetPowerManagementLimit",
                              "nvmlDeviceGetTemperature",
                              "nvmlDeviceGetTemperatureThreshold",
                              "nvmlDeviceGetFanSpeed",
                              "nvmlDeviceGetClockInfo",
                              "nvmlDeviceGetMaxClockInfo",
                              "nvmlDeviceGetPerformanceState",
                              "nvmlDeviceGetCurrentClocksEventReasons",
                              "nvmlDeviceGetCurrPcieLinkGeneration",
                              "nvmlDeviceGetMaxPcieLinkGeneration",
                              "nvmlDeviceGetCurrPcieLinkWidth",
                              "nvmlDeviceGetMaxPcieLinkWidth",
                              "nvmlDeviceGetPcieReplayCounter",
                              "nvmlDeviceGetNvLinkState",
                              "nvmlDeviceGetTotalEccErrors",
                              "nvmlDeviceGetRemappedRows",
                              "nvmlDeviceGetEncoderUtilization",
                              "nvmlDeviceGetDecoderUtilization",
                              "nvmlDeviceGetFieldValues",
                              "nvmlDeviceGetComputeRunningProcesses_v3",
                              "nvmlDeviceGetMPSComputeRunningProcesses_v3",
                              "nvmlDeviceGetAccountingMode",
                              "nvmlDeviceGetMigMode",
                              "nvmlDeviceGetMinorNumber",
                              "nvmlGpmQueryDeviceSupport",
                              "nvmlGpmSampleGet",
                              "nvmlDeviceRegisterEvents"};
  const auto sampled = [](std::string_view failure) {
    CaptureSink sink;
    run(format("{}@nvml current\ngpu 0 like h100 process 5 700\n{}@tick 1s\n", kMachine, failure), sink);
    std::map<std::string, std::array<Value, 2>> values;
    for (const MetricDesc& metric : nvidia().metrics) {
      for (const std::string_view instance : {"gpu0", "gpu0/main", "gpu0/other"}) {
        values[format("{} {}", metric.name, instance)] = {sink.value(metric.name, instance, 0),
                                                          sink.value(metric.name, instance, 1)};
      }
    }
    EXPECT_EQ(sink.loss("collect.duplicates"), 0U) << failure;
    return values;
  };
  const auto whole = sampled("");
  for (const std::string_view call : kCalls) {
    for (const int status : {3, 4, 15, 21, 999, 12345}) {
      const std::string failure = format("gpu 0 fail {} {}\n", call, status);
      for (const auto& [name, values] : sampled(failure)) {
        for (std::size_t t = 0; t < values.size(); ++t) {
          const Value& expected = whole.at(name)[t];
          // What is then told from another source: whether the GPU is the job's, memory from the older call, PCIe
          // throughput from 20 ms instead of a counter.
          const bool is_other_source = name.starts_with("gpu.is_of_job") || name.starts_with("gpu.memory.") ||
                                       name.starts_with("gpu.pcie.transmit.rate") ||
                                       name.starts_with("gpu.pcie.receive.rate");
          if (values[t].is_missing() || is_other_source) continue;
          EXPECT_EQ(values[t], expected) << name << " at " << t << " with " << failure;
        }
      }
    }
  }
}

class ManualClock final : public Clock {
 public:
  std::int64_t mono_ns() const override { return now_ns; }
  ClockReading read() const override { return {}; }
  bool sleep_until(std::int64_t, int) const override { return true; }
  std::int64_t now_ns = 100 * kNsPerS;
};

// The job's own start loads the driver: it is looked for again, less and less often, and then sampled.
TEST(Nvidia, ADriverThatComesLaterIsPickedUp) {
  const auto host = host_of("@tick 0s\n@nvml current\ngpu 0 like t4\n@tick 1s\n@dir /dev/nvidiactl\n");
  ASSERT_TRUE(host->advance().ok());
  const ManualClock clock;
  SeriesTable series(1000);
  CollectorLane lane({.host = host.get(), .clock = &clock, .series = &series, .interval_ns = kNsPerS / 2});
  lane.add(nvidia());
  std::int64_t t_ns = clock.now_ns;
  std::vector<std::int64_t> looked_s;
  for (int look = 0; look < 4; ++look) {
    Batch batch;
    lane.tick(t_ns, {}, batch);
    EXPECT_TRUE(batch.samples.empty());
    EXPECT_TRUE(batch.losses.empty()) << "no GPU is not an error";
    looked_s.push_back((lane.next_due_ns() - t_ns) / kNsPerS);
    t_ns = lane.next_due_ns();
  }
  EXPECT_EQ(looked_s, (std::vector<std::int64_t>{2, 4, 8, 16}));
  ASSERT_TRUE(host->advance().ok());
  Batch batch;
  lane.tick(t_ns, {}, batch);
  EXPECT_FALSE(batch.samples.empty());
  EXPECT_EQ(batch.events.size(), 1U);
  const std::map<std::string, std::string> attributes(batch.attributes.begin(), batch.attributes.end());
  EXPECT_EQ(attributes.at("gpu0.name"), "Tesla T4");
  EXPECT_EQ(attributes.at("gpu0.uuid"), "GPU-00000000");
  EXPECT_EQ(attributes.at("gpu0.pci"), "00000000:10:00.0");
  EXPECT_EQ(attributes.at("gpu.driver"), "590.48.01");
  EXPECT_EQ(attributes.at("gpu.cuda"), "13.1");
  EXPECT_EQ(attributes.at("gpu0.job"), "unknown: no job is recorded, only the machine");
}

}  // namespace
}  // namespace hotlap::test
