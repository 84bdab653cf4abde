// How long the first picture of a long recording takes: opens it and reads what a dashboard draws.
//
//   store_read_30d make FILE [DAYS=30] [SERIES=300]     writes a recording at 2 Hz
//   store_read_30d read FILE [IN_VIEW=40] [POINTS=1000] opens and reads it, from the disk and from memory
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "store/recording_reader.h"
#include "store/recording_writer.h"

namespace hotlap {
namespace {

constexpr double kTargetMs = 200;

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    (void)std::fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

void make(const std::filesystem::path& file, std::int64_t days, std::uint32_t series_count) {
  auto writer = must(RecordingWriter::create(file, {.interval_ns = 500'000'000}, {}));
  std::mt19937_64 random(42);
  std::vector<Sample> samples(series_count);
  std::vector<std::uint64_t> now(series_count, 1'000'000);
  for (std::uint32_t s = 0; s < series_count; ++s) {
    const MetricDesc metric{
        .name = "made.value", .unit = "1", .kind = s % 2 == 0 ? MetricKind::kCounter : MetricKind::kGauge};
    samples[s].series = must(writer->add_series(metric, std::to_string(s)));
  }
  const std::int64_t ticks = days * 86'400 * 2;
  for (std::int64_t tick = 0; tick < ticks; ++tick) {
    std::uint64_t bits = random();
    for (std::uint32_t s = 0; s < series_count; ++s) {
      if (s % 16 == 0) bits = random();
      const std::uint64_t part = (bits >> (s % 16 * 4)) & 15U;
      switch (s % 4) {
        case 0: now[s] += part; break;                           // counter
        case 1: now[s] += part < 4 ? part - 1 : 0; break;        // gauge that walks
        case 2: now[s] += part == 0 ? bits & 0xFFFU : 0; break;  // counter in bursts
        default: now[s] += tick % 7'200 == 0 ? part : 0;         // hardly ever changes
      }
      samples[s].value = Value::of(now[s]);
    }
    writer->add_tick(tick * 500'000'000 + static_cast<std::int64_t>(random() % 100'000), samples);
    if (tick % 120 == 119) must(writer->commit());
  }
  must(writer->close());
  (void)std::printf("%lld ticks of %u series: %llu bytes\n", static_cast<long long>(ticks), series_count,
                    static_cast<unsigned long long>(std::filesystem::file_size(file)));
}

void forget_pages(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ::fdatasync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

double read_once(const std::filesystem::path& file, std::int64_t seconds, std::size_t in_view, std::size_t points,
                 std::string& told) {
  const std::int64_t start = system_clock().mono_ns();
  auto reader = must(RecordingReader::open(file));
  const std::int64_t opened = system_clock().mono_ns();
  std::vector<SeriesHandle> wanted;
  const std::size_t step = std::max<std::size_t>(reader->series().size() / in_view, 1);
  for (std::size_t s = 0; s < reader->series().size() && wanted.size() < in_view; s += step) {
    wanted.push_back(reader->series()[s].handle);
  }
  const TimeRange all = must(reader->extent());
  std::size_t found = 0;
  must(reader->read_tiers(wanted, {all.to_ns - seconds * kNsPerS, all.to_ns}, points,
                          [&](SeriesHandle, std::span<const TierPoint> some) { found += some.size(); }));
  const std::int64_t end = system_clock().mono_ns();
  told = format("{} series, {} points: open {:.1f} ms, read {:.1f} ms", wanted.size(), found,
                static_cast<double>(opened - start) / 1e6, static_cast<double>(end - opened) / 1e6);
  return static_cast<double>(end - start) / 1e6;
}

int read(const std::filesystem::path& file, std::size_t in_view, std::size_t points) {
  struct View {
    const char* name;
    std::int64_t seconds;
  };
  double first_ms = 0;
  for (const View& view : {View{"30 days", 30 * 86'400}, View{"7 days", 7 * 86'400}, View{"1 day", 86'400},
                           View{"6 hours", 6 * 3'600}, View{"1 hour", 3'600}, View{"10 minutes", 600}}) {
    std::string cold_told;
    std::string warm_told;
    forget_pages(file);
    const double cold = read_once(file, view.seconds, in_view, points, cold_told);
    double warm = 1e9;
    for (int i = 0; i < 5; ++i) warm = std::min(warm, read_once(file, view.seconds, in_view, points, warm_told));
    if (first_ms == 0) first_ms = cold;
    (void)std::printf("%-10s from the disk %7.1f ms, from memory %6.1f ms (%s)\n", view.name, cold, warm,
                      warm_told.c_str());
  }
  (void)std::printf("first picture of 30 days: %.1f ms, target %.0f ms: %s\n", first_ms, kTargetMs,
                    first_ms <= kTargetMs ? "met" : "MISSED");
  return first_ms <= kTargetMs ? 0 : 1;
}

int run(const std::vector<std::string>& arguments) {
  const auto number = [&](std::size_t i, std::int64_t absent) {
    return i < arguments.size() ? parse_i64(arguments[i]).value_or(absent) : absent;
  };
  if (arguments.size() >= 2 && arguments[0] == "make") {
    make(arguments[1], number(2, 30), static_cast<std::uint32_t>(number(3, 300)));
    return 0;
  }
  if (arguments.size() >= 2 && arguments[0] == "read") {
    return read(arguments[1], static_cast<std::size_t>(number(2, 40)), static_cast<std::size_t>(number(3, 1'000)));
  }
  (void)std::fputs("store_read_30d make FILE [DAYS] [SERIES] | read FILE [IN_VIEW] [POINTS]\n", stderr);
  return 2;
}

}  // namespace
}  // namespace hotlap

int main(int argc, char** argv) { return hotlap::run({argv + 1, argv + argc}); }
