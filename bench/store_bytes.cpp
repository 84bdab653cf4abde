// Bytes per stored sample and CPU of the writer, on what this machine's collectors really read and on made-up
// series.
//
//   store_bytes record FILE [SECONDS=600] [HZ=10] [PROCESSES=16]   samples the collectors in real time, keeps raw ticks
//   store_bytes replay FILE [EVERY=1]     writes the ticks (each EVERY-th) as a recorder would: one commit a second
//   store_bytes made [SECONDS=600] [HZ=10] [SERIES=300]            the same with made-up series
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "collect/registry.h"
#include "store/recording_reader.h"
#include "store/recording_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

struct RawSeries {
  std::string metric;
  std::string unit;
  std::string instance;
  MetricKind kind = MetricKind::kGauge;
  double scale = 1;
};
struct RawTick {
  std::int64_t t_ns;
  std::vector<Sample> samples;
};
struct Raw {
  std::vector<RawSeries> series;
  std::vector<RawTick> ticks;
};

[[noreturn]] void fail(const std::string& why) {
  (void)std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}
template <class T>
T must(Result<T> result) {
  if (!result.ok()) fail(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

std::int64_t cpu_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * kNsPerS + t.tv_nsec;
}

// Series handles by (collector, metric, instance).
class RawSink final : public SampleSink {
 public:
  explicit RawSink(Raw& raw) : raw_(raw) {}
  void start(const CollectorSpec& spec, RawTick& tick) {
    spec_ = &spec;
    tick_ = &tick;
  }
  SeriesHandle series(std::uint16_t metric, std::string_view instance) override {
    const MetricDesc& desc = spec_->metrics[metric];
    const auto [place, fresh] =
        ids_.try_emplace(format("{}\n{}", desc.name, instance), static_cast<std::uint32_t>(raw_.series.size()));
    if (fresh) {
      raw_.series.push_back(
          {std::string(desc.name), std::string(desc.unit), std::string(instance), desc.kind, desc.scale});
    }
    return {place->second};
  }
  void add(SeriesHandle series, Value value) override { tick_->samples.push_back({series, value}); }
  void event(EventKind /*kind*/, std::int64_t /*value*/, std::string_view /*text*/) override {}
  void count_loss(std::string_view /*counter*/, std::uint64_t /*count*/) override {}

 private:
  Raw& raw_;
  const CollectorSpec* spec_ = nullptr;
  RawTick* tick_ = nullptr;
  std::map<std::string, std::uint32_t> ids_;
};

Raw record(std::int64_t seconds, std::int64_t hz, std::size_t processes_max) {
  struct Open {
    const CollectorSpec* spec;
    std::unique_ptr<Collector> collector;
    std::int64_t due_ns;
    std::uint64_t ticks;
  };
  Raw raw;
  std::vector<Open> open;
  for (const CollectorSpec* spec : all_collectors()) {
    Result<std::unique_ptr<Collector>> collector = spec->open(system_host());
    if (collector.ok()) open.push_back({spec, std::move(collector).value(), 0, 0});
  }
  std::vector<JobProcess> processes;
  std::deque<std::string> slots;
  for (const std::string& name : must(system_host().list("/proc"))) {
    const auto pid = parse_i64(name);
    const auto command = system_host().read_link("/proc/" + name + "/exe");
    if (!pid || !command.ok() || processes.size() >= processes_max) continue;
    slots.push_back(format("process {}", processes.size()));
    processes.push_back({static_cast<std::int32_t>(*pid), slots.back()});
  }
  std::sort(processes.begin(), processes.end(), [](const JobProcess& a, const JobProcess& b) { return a.pid < b.pid; });
  RawSink sink(raw);
  const Clock& clock = system_clock();
  const std::int64_t period = kNsPerS / hz;
  std::int64_t deadline = clock.mono_ns();
  for (std::int64_t i = 0; i < seconds * hz; ++i, deadline += period) {
    clock.sleep_until(deadline, -1);
    RawTick& tick = raw.ticks.emplace_back();
    tick.t_ns = clock.mono_ns();
    for (Open& one : open) {
      if (tick.t_ns < one.due_ns) continue;
      one.due_ns = tick.t_ns + one.spec->min_period_ns - period / 2;
      sink.start(*one.spec, tick);
      const TickInfo info{.t_ns = tick.t_ns,
                          .number = one.ticks++,
                          .job = {.root_pid = processes.empty() ? 0 : processes[0].pid, .processes = processes}};
      (void)one.collector->sample(info, sink).ok();
    }
  }
  return raw;
}

void save(const Raw& raw, const fs::path& path) {
  Bytes out;
  const auto put_text = [&](const std::string& text) {
    put_varint(out, text.size());
    put_bytes(out, as_bytes(text));
  };
  put_varint(out, raw.series.size());
  for (const RawSeries& series : raw.series) {
    put_text(series.metric);
    put_text(series.unit);
    put_text(series.instance);
    put_varint(out, static_cast<std::uint64_t>(series.kind));
    put_fixed(out, series.scale);
  }
  put_varint(out, raw.ticks.size());
  for (const RawTick& tick : raw.ticks) {
    put_fixed(out, tick.t_ns);
    put_varint(out, tick.samples.size());
    for (const Sample& sample : tick.samples) {
      put_varint(out, sample.series.index);
      put_fixed(out, sample.value.kind());
      switch (sample.value.kind()) {
        case Value::Kind::kMissing: put_fixed(out, sample.value.reason()); break;
        case Value::Kind::kI64: put_fixed(out, sample.value.i64()); break;
        case Value::Kind::kU64: put_fixed(out, sample.value.u64()); break;
        case Value::Kind::kF64: put_fixed(out, sample.value.f64()); break;
      }
    }
  }
  std::ofstream file(path, std::ios::binary);
  file.write(as_text(out).data(), static_cast<std::streamsize>(out.size()));
}

Raw load(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ByteReader in(as_bytes(text));
  const auto text_of = [&] { return std::string(as_text(in.bytes(in.varint()))); };
  Raw raw;
  raw.series.resize(in.varint());
  for (RawSeries& series : raw.series) {
    series.metric = text_of();
    series.unit = text_of();
    series.instance = text_of();
    series.kind = static_cast<MetricKind>(in.varint());
    series.scale = in.fixed<double>();
  }
  raw.ticks.resize(in.varint());
  for (RawTick& tick : raw.ticks) {
    tick.t_ns = in.fixed<std::int64_t>();
    tick.samples.resize(in.varint());
    for (Sample& sample : tick.samples) {
      sample.series.index = static_cast<std::uint32_t>(in.varint());
      switch (in.fixed<Value::Kind>()) {
        case Value::Kind::kMissing: sample.value = Value::missing(in.fixed<MissingReason>()); break;
        case Value::Kind::kI64: sample.value = Value::of(in.fixed<std::int64_t>()); break;
        case Value::Kind::kU64: sample.value = Value::of(in.fixed<std::uint64_t>()); break;
        case Value::Kind::kF64: sample.value = Value::of(in.fixed<double>()); break;
      }
    }
  }
  if (!in.ok()) fail(path.string() + ": is damaged");
  return raw;
}

// A mix like a host's: a third constant, counters of steady and of bursty growth, gauges that walk, decimals, a few
// that go missing.
Raw make_up(std::int64_t seconds, std::int64_t hz, std::uint32_t series_count) {
  Raw raw;
  std::mt19937_64 random(42);
  std::normal_distribution<double> normal;
  const auto scaled = [&](double s) { return static_cast<std::int64_t>(std::llround(normal(random) * s)); };
  std::vector<std::int64_t> now(series_count);
  for (std::uint32_t s = 0; s < series_count; ++s) {
    raw.series.push_back({format("made.metric_{}", s % 40), "1", format("{}", s / 40), MetricKind::kGauge, 1});
    now[s] = 1'000'000 + s;
  }
  for (std::int64_t i = 0; i < seconds * hz; ++i) {
    RawTick& tick = raw.ticks.emplace_back();
    tick.t_ns = i * kNsPerS / hz + std::abs(scaled(60'000));
    for (std::uint32_t s = 0; s < series_count; ++s) {
      Value value;
      switch (s % 12) {
        case 0:
        case 1:
        case 2:
        case 3: value = Value::of(static_cast<std::uint64_t>(now[s])); break;
        case 4:
        case 5:
        case 6:  // ticks of the CPU
          now[s] += std::clamp<std::int64_t>(3 + scaled(1.5), 0, 100 / hz);
          value = Value::of(static_cast<std::uint64_t>(now[s]));
          break;
        case 7:  // bytes in bursts
          if (random() % 20 == 0) now[s] += std::abs(scaled(100'000));
          value = Value::of(static_cast<std::uint64_t>(now[s]));
          break;
        case 8:  // memory in pages
          if (random() % 4 == 0) now[s] += scaled(40) * 4096;
          value = Value::of(static_cast<std::uint64_t>(now[s]));
          break;
        case 9:  // load
          if (i % (5 * hz) == 0) now[s] += scaled(5);
          value = Value::of(static_cast<double>(now[s]) / 100.0);
          break;
        case 10:  // a utilisation that is often the same
          if (random() % 3 == 0) now[s] = 40 + scaled(20);
          value = random() % 500 == 0 ? Value::missing(MissingReason::kTimedOut) : Value::of(now[s]);
          break;
        default:
          now[s] += 1 + static_cast<std::int64_t>(random() % 8 == 0);
          value = Value::of(static_cast<std::uint64_t>(now[s]));
      }
      tick.samples.push_back({{s}, value});
    }
  }
  return raw;
}

void replay(const Raw& raw, std::size_t every) {
  std::string folder = (fs::temp_directory_path() / "hotlap-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) fail("cannot make a temporary folder");
  const fs::path file = fs::path(folder) / "r.hotlap";
  const RecordingInfo info{.id = "01J00000000000000000000001", .run_id = "01J00000000000000000000000"};
  auto writer = must(RecordingWriter::create(file, info, {}));
  for (const RawSeries& series : raw.series) {
    const MetricDesc desc{.name = series.metric, .unit = series.unit, .kind = series.kind, .scale = series.scale};
    (void)must(writer->add_series(desc, series.instance));
  }
  std::int64_t add_ns = 0;
  std::int64_t commit_ns = 0;
  std::vector<std::int64_t> commits;
  std::uint64_t samples = 0;
  std::uint64_t live_bytes = 0;
  std::size_t ticks = 0;
  std::int64_t last_commit = raw.ticks.front().t_ns;
  for (std::size_t i = 0; i < raw.ticks.size(); i += every) {
    const RawTick& tick = raw.ticks[i];
    const std::int64_t before = cpu_ns();
    writer->add_tick(tick.t_ns, tick.samples);
    add_ns += cpu_ns() - before;
    samples += tick.samples.size();
    ++ticks;
    if (tick.t_ns - last_commit < kNsPerS) continue;
    last_commit += kNsPerS;
    const std::int64_t start = cpu_ns();
    must(writer->commit());
    commits.push_back(cpu_ns() - start);
    commit_ns += commits.back();
    live_bytes = std::max(live_bytes, writer->bytes_written());
  }
  const std::int64_t start = cpu_ns();
  must(writer->close());
  const std::int64_t close_ns = cpu_ns() - start;
  const std::uint64_t bytes = fs::file_size(file);
  std::sort(commits.begin(), commits.end());
  const double seconds = static_cast<double>(raw.ticks.back().t_ns - raw.ticks.front().t_ns) / 1e9;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const std::string report = format(
      "{} series, {} ticks, {} samples, {:.0f} s\n"
      "file {} bytes = {:.3f} B per sample; largest while live {} bytes\n"
      "CPU: add_tick {:.1f} us a tick, commit mean {:.0f} us, median {:.0f}, p99 {:.0f}, max {:.0f}; close {:.1f} ms; "
      "{:.3f} % of a core in all\n",
      raw.series.size(), ticks, samples, seconds, bytes, static_cast<double>(bytes) / static_cast<double>(samples),
      live_bytes, static_cast<double>(add_ns) / 1e3 / static_cast<double>(ticks),
      static_cast<double>(commit_ns) / 1e3 / static_cast<double>(commits.size()),
      static_cast<double>(commits[commits.size() / 2]) / 1e3,
      static_cast<double>(commits[commits.size() * 99 / 100]) / 1e3, static_cast<double>(commits.back()) / 1e3,
      static_cast<double>(close_ns) / 1e6,
      static_cast<double>(add_ns + commit_ns + close_ns) / 1e7 / std::max(seconds, 1e-9));
  (void)std::fputs(report.c_str(), stdout);
  if (::getenv("KEEP") != nullptr) {  // NOLINT(concurrency-mt-unsafe): one thread
    (void)std::printf("kept %s\n", file.c_str());
  } else {
    fs::remove_all(folder);
  }
}

int run(std::vector<std::string> arguments) {
  const auto number = [&](std::size_t i, std::int64_t absent) {
    return i < arguments.size() ? parse_i64(arguments[i]).value_or(absent) : absent;
  };
  const std::string what = arguments.empty() ? "" : arguments[0];
  if (what == "record" && arguments.size() >= 2) {
    save(record(number(2, 600), number(3, 10), static_cast<std::size_t>(number(4, 16))), arguments[1]);
  } else if (what == "replay" && arguments.size() >= 2) {
    replay(load(arguments[1]), static_cast<std::size_t>(number(2, 1)));
  } else if (what == "made") {
    replay(make_up(number(1, 600), number(2, 10), static_cast<std::uint32_t>(number(3, 300))), 1);
  } else {
    (void)std::fputs(
        "store_bytes record FILE [SECONDS] [HZ] [PROCESSES] | replay FILE [EVERY] | made [SECONDS] [HZ] "
        "[SERIES]\n",
        stderr);
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace hotlap

int main(int argc, char** argv) { return hotlap::run({argv + 1, argv + argc}); }
