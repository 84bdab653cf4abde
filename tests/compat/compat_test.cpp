// Recordings of every released format are read for ever: tests/compat/vN/ holds what hotlap of that time wrote and, as
// text, what it read. A failure here means that users' old recordings would be read differently.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/format.h"
#include "store/recording_reader.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

std::string text_of(Value value) {
  switch (value.kind()) {
    case Value::Kind::kMissing: return format("missing: {}", to_string(value.reason()));
    case Value::Kind::kI64: return format("{}i", value.i64());
    case Value::Kind::kU64: return format("{}u", value.u64());
    case Value::Kind::kF64: return format("{}f", value.f64());
  }
  return "?";
}

// Everything that a reader gives, as lines. Long series by their first samples and a checksum of all.
std::string dump(RecordingReader& reader) {
  const RecordingInfo& info = reader.info();
  std::string out =
      format("recording {} run {} node {} version {} boot {} interval {} closed {}\n", info.id, info.run_id, info.node,
             info.hotlap_version, info.boot_id, info.interval_ns, reader.is_closed());
  for (const auto& [key, text] : info.attributes) out += format("attribute {} = {}\n", key, text);
  const TimeRange extent = *reader.extent();
  out += format("extent {} {}\n", extent.from_ns, extent.to_ns);
  std::vector<SeriesHandle> all;
  for (const StoredSeries& series : reader.series()) {
    all.push_back(series.handle);
    out += format("series {} {} \"{}\" {} kind {} scale {} window {} period {}\n", series.handle.index, series.metric,
                  series.instance, series.unit, static_cast<int>(series.kind), series.scale, series.window_ns,
                  series.min_period_ns);
  }
  EXPECT_TRUE(reader
                  .read_samples(all, {},
                                [&](SeriesHandle series, std::span<const SamplePoint> points) {
                                  std::string lines;
                                  for (const SamplePoint& point : points)
                                    lines += format("{} {}\n", point.t_ns, text_of(point.value));
                                  out += format("samples of {}: {} crc {:08x}\n", series.index, points.size(),
                                                crc32(as_bytes(lines)));
                                  for (std::size_t i = 0; i < points.size() && i < 4; ++i) {
                                    out += format("  {} {}\n", points[i].t_ns, text_of(points[i].value));
                                  }
                                })
                  .ok());
  for (const std::size_t points_max : {2U, 12U, 100U}) {
    EXPECT_TRUE(
        reader
            .read_tiers(std::vector{all[1], all[66], all[67]}, {}, points_max,
                        [&](SeriesHandle series, std::span<const TierPoint> points) {
                          out += format("tier of {} for {}: {}\n", series.index, points_max, points.size());
                          for (std::size_t i = 0; i < points.size() && i < 3; ++i) {
                            const TierPoint& point = points[i];
                            out += format(
                                "  {} {} min {:g} mean {:.3g} max {:g} first {:g} last {:g} count {} missing {}\n",
                                point.from_ns, point.to_ns, point.min, point.mean, point.max, point.first, point.last,
                                point.count, point.missing);
                          }
                        })
            .ok());
  }
  std::string spans;
  std::size_t span_count = 0;
  EXPECT_TRUE(reader
                  .read_spans({}, {},
                              [&](std::span<const Span> some) {
                                for (const Span& span : some) {
                                  ++span_count;
                                  spans += format("{} {} {} {} {} {} {} {} {}\n", span.start_ns, span.duration_ns,
                                                  to_string(span.kind), span.process, span.thread,
                                                  reader.name(span.name), span.step, span.value_a, span.value_b);
                                }
                              })
                  .ok());
  out +=
      format("spans {} crc {:08x}\n{}", span_count, crc32(as_bytes(spans)), spans.substr(0, spans.find("\n", 400) + 1));
  const std::vector<Event> events = *reader.read_events({});
  for (const Event& event : events) {
    out += format("event {} {} {} {}\n", event.t_ns, to_string(event.kind), event.value, event.text);
  }
  const std::vector<ClockReading> clock = *reader.read_clock();
  for (const ClockReading& reading : clock) {
    out += format("clock {} {} {}\n", reading.mono_ns, reading.wall_ns, reading.boot_ns);
  }
  const std::vector<ProcessInfo> processes = *reader.read_processes();
  for (const ProcessInfo& process : processes) {
    out += format("process {} {} {} {} {} \"{}\" {} {} \"{}\" {} \"{}\"\n", process.slot, process.pid,
                  to_string(process.role), process.index, process.parent, process.label, process.start_ns,
                  process.end_ns, process.command, process.has_hook, process.hook_absent_reason);
  }
  const std::vector<Loss> losses = *reader.read_losses();
  for (const Loss& loss : losses) out += format("loss {} {}\n", loss.counter, loss.count);
  return out;
}

TEST(Compat, EveryReleasedFormatIsReadAsItWas) {
  const fs::path versions = fs::path(HOTLAP_SOURCE_DIR) / "tests/compat";
  std::string pattern = (fs::temp_directory_path() / "hotlap-compat-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const bool update = std::getenv("HOTLAP_UPDATE") != nullptr;  // NOLINT(concurrency-mt-unsafe): one thread
  std::size_t read = 0;
  for (const fs::directory_entry& version : fs::directory_iterator(versions)) {
    if (!version.is_directory()) continue;
    for (const char* name : {"closed", "killed"}) {
      SCOPED_TRACE(version.path().filename().string() + " " + name);
      // A copy: reading a file with a log makes an index beside it.
      const fs::path copy = fs::path(pattern) / format("{}.hotlap", name);
      for (const char* suffix : {"", "-wal"}) {
        const fs::path from = version.path() / format("{}.hotlap{}", name, suffix);
        if (fs::exists(from)) fs::copy_file(from, copy.string() + suffix, fs::copy_options::overwrite_existing);
      }
      auto reader = RecordingReader::open(copy);
      ASSERT_TRUE(reader.ok()) << reader.error().message;
      const std::string got = dump(**reader);
      const fs::path expected = version.path() / format("{}.txt", name);
      if (update) std::ofstream(expected) << got;
      std::ifstream in(expected);
      const std::string want((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      EXPECT_EQ(got, want);
      ++read;
    }
  }
  fs::remove_all(pattern);
  EXPECT_GE(read, 2U);
}

}  // namespace
}  // namespace hotlap
