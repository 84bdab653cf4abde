// Writes the small recordings of tests/compat/vN/ and seeds of fuzz/corpus/: run once per format version, by hand:
//
//   make_recording FOLDER    closed.hotlap, and killed.hotlap with its log, as after kill -9
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "store/recording_writer.h"

namespace hotlap {
namespace {

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    (void)std::fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

// Every kind of value, reason, span and row; long enough for tails, stretches, tiers of every width and a block of
// spans.
std::unique_ptr<RecordingWriter> make(const std::filesystem::path& file) {
  auto writer = must(RecordingWriter::create(file,
                                             {.id = "01J00000000000000000000001",
                                              .run_id = "01J00000000000000000000000",
                                              .node = "node-1",
                                              .hotlap_version = "0.1.0",
                                              .boot_id = "boot",
                                              .interval_ns = 500'000'000,
                                              .attributes = {{"cpu.count", "2"}, {"kernel", "6.1"}}},
                                             {.wal_pages_max = 60}));
  const MetricDesc counter{.name = "cpu.busy.seconds", .unit = "s", .kind = MetricKind::kCounter, .scale = 0.01};
  const MetricDesc gauge{.name = "load.1min", .unit = "1", .window_ns = kNsPerS, .min_period_ns = 5 * kNsPerS};
  const MetricDesc odd{.name = "odd.value", .unit = "By"};
  std::vector<SeriesHandle> handles;
  for (int i = 0; i < 66; ++i) handles.push_back(must(writer->add_series(counter, format("core {}", i))));
  const SeriesHandle load = must(writer->add_series(gauge, ""));
  const SeriesHandle mixed = must(writer->add_series(odd, "mixed"));
  const SeriesHandle edges = must(writer->add_series(odd, "edges"));
  const std::uint32_t name = writer->add_name("load image");
  writer->put_process({.slot = 1, .pid = 100, .role = ProcessRole::kMain, .start_ns = 5, .command = "python train.py"});
  writer->put_process({.slot = 2,
                       .pid = 101,
                       .role = ProcessRole::kLoader,
                       .index = 0,
                       .parent = 1,
                       .label = "loader 0",
                       .start_ns = 6,
                       .end_ns = 7,
                       .command = "python",
                       .has_hook = true,
                       .hook_absent_reason = "none"});
  writer->add_clock({.mono_ns = 1, .wall_ns = 1'700'000'000'000'000'000, .boot_ns = 2});
  std::vector<Sample> samples;
  for (std::int64_t tick = 0; tick < 800; ++tick) {
    const std::int64_t t = 1'000'000'000'000 + tick * 10 * kNsPerS + tick % 7 * 1'001;
    samples.clear();
    for (const SeriesHandle handle : handles) {
      samples.push_back({handle, Value::of(static_cast<std::uint64_t>(tick * (handle.index % 3) + handle.index))});
    }
    if (tick % 5 == 0) samples.push_back({load, Value::of(static_cast<double>(tick % 40) / 100)});
    samples.push_back({mixed, tick % 10 < 9 ? Value::missing(static_cast<MissingReason>(tick % 9))
                                            : Value::of(static_cast<std::int64_t>(-tick))});
    const Value edge[] = {Value::of(std::uint64_t{UINT64_MAX}), Value::of(std::int64_t{INT64_MIN}), Value::of(1.0 / 3),
                          Value::of(-std::numeric_limits<double>::infinity())};
    if (tick < 4) samples.push_back({edges, edge[tick]});
    writer->add_tick(t, samples);
    for (int i = 0; i < 6; ++i) {
      writer->add_span({.start_ns = t + i,
                        .duration_ns = i == 5 ? -1 : 1'000 * i,
                        .kind = static_cast<SpanKind>(i + 1),
                        .process = 1,
                        .thread = 100,
                        .name = i == 3 ? name : 0,
                        .step = tick,
                        .value_a = tick * 3,
                        .value_b = -1});
    }
    if (tick == 400) {
      writer->add_event({.t_ns = t, .kind = EventKind::kPhase, .value = 0, .text = "training"});
      writer->add_loss("record.ticks_late", 3);
    }
    if (tick % 10 == 9) must(writer->commit());
  }
  return writer;
}

}  // namespace
}  // namespace hotlap

int main(int argc, char** argv) {
  if (argc != 2) {
    (void)std::fputs("make_recording FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  hotlap::must(hotlap::make(folder / "closed.hotlap")->close());
  const auto killed = hotlap::make(folder / "killed.hotlap");
  std::fflush(nullptr);
  ::_exit(0);  // without close(): the log stays
}
