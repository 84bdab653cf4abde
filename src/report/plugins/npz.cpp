// Every series and the steps as NumPy arrays: numpy.load("run.npz")["cpu.busy.seconds"]["value"].
#include "report/npz.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <ostream>

#include "analysis/recorded_steps.h"
#include "base/clock.h"
#include "base/format.h"
#include "report/exporter.h"

namespace hotlap {
namespace {

constexpr std::size_t kSeriesAtOnce = 16;  // their samples are in memory together
constexpr std::string_view kSampleType = "[('t_ns', '<i8'), ('value', '<f8')]";
constexpr std::string_view kStepType =
    "[('step', '<i8'), ('rank', '<i8'), ('start_ns', '<i8'), ('ms', '<f8'), ('data_wait_ms', '<f8'), ('forward_ms', "
    "'<f8'), ('backward_ms', '<f8'), ('optimizer_ms', '<f8'), ('communication_ms', '<f8'), ('checkpoint_ms', '<f8'), "
    "('gc_ms', '<f8'), ('samples', '<f8'), ('tokens', '<f8')]";

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
double ms(std::optional<std::int64_t> ns) {
  return ns ? static_cast<double>(*ns) / static_cast<double>(kNsPerMs) : kNan;
}
double known(std::int64_t count) { return count >= 0 ? static_cast<double>(count) : kNan; }

// "node/metric instance", without the node where there is one recording.
std::string array_name(const std::string& prefix, const StoredSeries& series) {
  return prefix + (series.instance.empty() ? series.metric : format("{} {}", series.metric, series.instance));
}

Result<void> write_series(RecordingReader& reader, const std::string& prefix, NpzWriter& npz) {
  const std::vector<StoredSeries>& series = reader.series();
  for (std::size_t first = 0; first < series.size(); first += kSeriesAtOnce) {
    const std::size_t end = std::min(first + kSeriesAtOnce, series.size());
    std::vector<SeriesHandle> wanted;
    for (std::size_t i = first; i < end; ++i) wanted.push_back(series[i].handle);
    std::map<std::uint32_t, std::pair<Bytes, std::size_t>> content;
    const auto take = [&](SeriesHandle handle, std::span<const SamplePoint> points) {
      auto& [bytes, count] = content[handle.index];
      const auto found = std::find_if(series.begin(), series.end(),
                                      [&](const StoredSeries& s) { return s.handle.index == handle.index; });
      for (const SamplePoint& point : points) {
        put_fixed(bytes, point.t_ns);
        const auto number = point.value.number();
        put_fixed(bytes, number ? *number * found->scale : kNan);
        ++count;
      }
    };
    HOTLAP_TRY(reader.read_samples(wanted, {}, take));
    for (std::size_t i = first; i < end; ++i) {
      const auto& [bytes, count] = content[series[i].handle.index];
      HOTLAP_TRY(npz.add(array_name(prefix, series[i]), npy_of(kSampleType, count, bytes)));
    }
  }
  return {};
}

Result<void> write_steps(RecordingReader& reader, const std::string& prefix, NpzWriter& npz) {
  Bytes bytes;
  std::size_t count = 0;
  HOTLAP_TRY(read_steps(reader, [&](const Step& step) {
    ++count;
    for (const std::int64_t whole : {step.index, std::int64_t{step.rank}, step.start_ns}) put_fixed(bytes, whole);
    put_fixed(bytes, ms(step.duration_ns));
    for (const auto& part : {step.data_wait_ns, step.forward_ns, step.backward_ns, step.optimizer_ns,
                             step.communication_ns, step.checkpoint_ns, step.gc_ns}) {
      put_fixed(bytes, ms(part));
    }
    put_fixed(bytes, known(step.samples));
    put_fixed(bytes, known(step.tokens));
  }));
  return npz.add(prefix + "steps", npy_of(kStepType, count, bytes));
}

// The clock: Unix time = unix_ns[i] + t_ns - mono_ns[i], by the last i at or before t_ns.
Result<void> write_clock(RecordingReader& reader, const std::string& prefix, NpzWriter& npz) {
  HOTLAP_TRY_ASSIGN(const std::vector<ClockReading> readings, reader.read_clock());
  Bytes bytes;
  for (const ClockReading& reading : readings) {
    put_fixed(bytes, reading.mono_ns);
    put_fixed(bytes, reading.wall_ns);
  }
  return npz.add(prefix + "clock", npy_of("[('mono_ns', '<i8'), ('unix_ns', '<i8')]", readings.size(), bytes));
}

Result<void> write(const ReportView& view, std::ostream& out) {
  NpzWriter npz(out);
  std::size_t number = 0;
  for (const std::unique_ptr<RecordingReader>& reader : view.run.recordings()) {
    const bool is_one = view.run.recordings().size() == 1;
    const std::string prefix = is_one ? std::string() : format("{} {}/", ++number, reader->info().node);
    HOTLAP_TRY(write_clock(*reader, prefix, npz));
    HOTLAP_TRY(write_steps(*reader, prefix, npz));
    HOTLAP_TRY(write_series(*reader, prefix, npz));
  }
  return npz.finish();
}

}  // namespace

extern constinit const ExporterSpec exporter_npz{.name = "npz",
                                                 .summary = "every series and the steps as NumPy arrays",
                                                 .media_type = "application/x-npz",
                                                 .extension = ".npz",
                                                 .write = write};

}  // namespace hotlap
