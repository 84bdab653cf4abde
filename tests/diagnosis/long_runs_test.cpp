// A long run is looked at by minutes: what is said of it agrees with what every sample would have said, within the
// bounds that docs/design/0015-long-runs.md states.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "base/clock.h"
#include "base/format.h"
#include "collect/registry.h"
#include "store/recording_writer.h"
#include "support/temp_dir.h"

namespace hotlap {
namespace {

constexpr std::int64_t kHalfSecond = kNsPerS / 2;
constexpr ThinningLimits kEarly{.long_ns = 3600 * kNsPerS, .few_samples = 1'000, .sampled = 60'000, .every_max = 16};
constexpr ThinningLimits kNever{.long_ns = INT64_MAX};

// Four hours of a job on four cores and a GPU, at 2 Hz; it loads from a disk that is at its limit now and then.
class LongJob {
 public:
  explicit LongJob(const std::filesystem::path& path) {
    RecordingInfo info{.id = "01KDY0Q80000000000000000A1", .node = "n1", .attributes = {{"cpu.count", "4"}}};
    writer_ = RecordingWriter::create(path, info, {}).value();
    writer_->put_process({.slot = 1, .pid = 100, .role = ProcessRole::kMain, .start_ns = t_ns_, .has_hook = true});
    for (std::int64_t second = 0; second < 4 * 3600; ++second) {
      for (int half = 0; half < 2; ++half) tick(static_cast<double>(second) + half / 2.0);
      step(second);
      if (second % 5 == 0) {
        EXPECT_TRUE(writer_->commit().ok());
      }
    }
    EXPECT_TRUE(writer_->close().ok());
  }

 private:
  void put(std::string_view name, std::string_view instance, double value) {
    auto& handle = handles_[std::string(name) + "/" + std::string(instance)];
    double scale = 1;
    for (const CollectorSpec* spec : all_collectors()) {
      for (const MetricDesc& metric : spec->metrics) {
        if (metric.name != name) continue;
        scale = metric.scale;
        if (!handle.valid()) handle = writer_->add_series(metric, instance).value();
      }
    }
    ASSERT_TRUE(handle.valid()) << name;
    samples_.push_back({handle, Value::of(static_cast<std::int64_t>(std::llround(value / scale)))});
  }
  // A counter that grows by `rate` a second.
  void grow(std::string_view name, std::string_view instance, double rate) {
    double& total = totals_[std::string(name) + "/" + std::string(instance)];
    total += rate / 2;
    put(name, instance, total);
  }

  void tick(double s) {
    samples_.clear();
    const bool is_waiting = std::fmod(s, 5) < 1.5;                  // each fifth step and a half
    const double load = 0.4 + 0.2 * std::sin(s / 900);              // of the machine, over quarters of an hour
    const double busy_core = std::fmod(s, 600) < 240 ? 0.98 : 0.3;  // one core is full two fifths of the time
    grow("cpu.busy.seconds", "", 4 * load);
    grow("cpu.iowait.seconds", "", is_waiting ? 0.5 : 0.02);
    for (int core = 0; core < 4; ++core)
      grow("cpu.core.busy.seconds", "core " + std::to_string(core), core == 2 ? busy_core : load * 0.8);
    put("cpu.count", "", 4);
    put("cpu.runnable", "", 2 + std::fmod(s, 3));
    put("memory.total.bytes", "", 64e9);
    put("memory.working_set.bytes", "", 8e9 + 400e3 * s + 1e8 * std::sin(s));  // a leak
    put("process.memory.rss.bytes", "main", 6e9 + 400e3 * s);
    grow("process.cpu.seconds", "main", 3 * load);
    put("process.threads", "main", 40);
    grow("disk.total.read.bytes", "", is_waiting ? 200e6 : 20e6);
    grow("disk.busy.seconds", "nvme0n1", is_waiting ? 1.0 : 0.1);
    grow("disk.reads", "nvme0n1", is_waiting ? 1'000 : 100);
    grow("disk.read.bytes", "nvme0n1", is_waiting ? 200e6 : 20e6);
    grow("network.receive.bytes", "eth0", 1e6 * (1 + std::fmod(s, 7)));
    grow("network.total.receive.bytes", "", 1e6 * (1 + std::fmod(s, 7)));
    put("gpu.busy.percent", "gpu0", is_waiting ? 0 : 90 + std::fmod(s, 8));
    put("gpu.power.watts", "gpu0", is_waiting ? 90 : 300);
    put("gpu.clock.sm.mhz", "gpu0", s < 7'200 ? 1'980 : 1'500);
    put("gpu.clock.sm_max.mhz", "gpu0", 1'980);
    put("gpu.temperature.celsius", "gpu0", 60 + s / 1'000);
    put("gpu.memory.used.bytes", "gpu0", 20e9 + (std::fmod(s, 997) < 1 ? 10e9 : 0));
    put("gpu.memory.total.bytes", "gpu0", 80e9);
    writer_->add_tick(t_ns_, samples_);
    t_ns_ += kHalfSecond;
  }

  void step(std::int64_t index) {
    const std::int64_t start_ns = t_ns_ - kNsPerS;
    const std::int64_t wait_ns = index % 5 == 0 ? 300 * kNsPerMs : 20 * kNsPerMs;
    writer_->add_span({.start_ns = start_ns,
                       .duration_ns = wait_ns,
                       .kind = SpanKind::kDataWait,
                       .process = 1,
                       .step = index,
                       .value_a = 32});
    writer_->add_span({.start_ns = start_ns + wait_ns,
                       .duration_ns = 200 * kNsPerMs,
                       .kind = SpanKind::kForward,
                       .process = 1,
                       .step = index});
    writer_->add_span({.start_ns = start_ns,
                       .duration_ns = 980 * kNsPerMs + index % 7 * kNsPerMs,
                       .kind = SpanKind::kStep,
                       .process = 1,
                       .step = index,
                       .value_a = 32});
  }

  std::unique_ptr<RecordingWriter> writer_;
  std::map<std::string, SeriesHandle> handles_;
  std::map<std::string, double> totals_;
  std::vector<Sample> samples_;
  std::int64_t t_ns_ = 1'000 * kNsPerS;
};

struct Analysed {
  FactTable facts;
  Resolution resolution;
};

Analysed analyse(RecordingReader& reader, const ThinningLimits& limits) {
  const RunInfo run;
  RunAnalysis analysis(run, all_analyzers(), limits);
  std::vector<RecordingReader*> readers{&reader};
  EXPECT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  return {analysis.facts(), analysis.resolution()};
}

// How far a figure may be off, as a share of it or of 100 for percentages.
double bound_of(const Fact& fact, const std::string& field) {
  if (fact.kind == "gpu.host") return 0.1;
  if (field == "hot_share_pct" || field == "full_pct") return 0.1;
  if (field.find("p95") != std::string::npos) return 0.05;
  return 0.02;
}

TEST(LongRuns, MinutesSayWhatSamplesSay) {
  const test::TempDir dir;
  const LongJob job(dir.path() / "a.hotlap");
  const auto reader = RecordingReader::open(dir.path() / "a.hotlap").value();
  const Analysed full = analyse(*reader, kNever);
  const Analysed coarse = analyse(*reader, kEarly);
  EXPECT_EQ(full.resolution.minutes_ns, 0);
  EXPECT_GT(coarse.resolution.minutes_ns, 2 * 3600 * kNsPerS);
  EXPECT_NEAR(static_cast<double>(coarse.resolution.minutes_ns + coarse.resolution.full_ns), 4 * 3600e9, 5e9);

  ASSERT_EQ(full.facts.facts().size(), coarse.facts.facts().size());
  for (std::size_t i = 0; i < full.facts.facts().size(); ++i) {
    const Fact& want = full.facts.facts()[i];
    const Fact& got = coarse.facts.facts()[i];
    ASSERT_EQ(want.kind, got.kind);
    for (const auto& [field, value] : want.fields) {
      const auto* number = std::get_if<double>(&value);
      if (number == nullptr) {
        if (!field.ends_with("_joint")) {
          EXPECT_EQ(want.text(field), got.text(field)) << want.kind << " " << field;
        }
        continue;
      }
      // How long was looked at, where that is less.
      if (want.kind == "gpu.host" && (field == "seconds" || field == "idle_s")) continue;
      ASSERT_TRUE(got.number(field)) << want.kind << " " << field;
      const bool is_share = field.ends_with("_pct");
      // The interval of a slope is held against the slope.
      const bool is_interval = field == "growth_half_width";
      const double figure = is_interval ? want.number("growth_bytes_per_s").value_or(0) : std::abs(*number);
      const double size = std::max(figure, is_share ? 100.0 : 1e-3);
      EXPECT_NEAR(*got.number(field), *number, bound_of(want, field) * size) << want.kind << " " << field;
    }
  }
}

}  // namespace
}  // namespace hotlap
