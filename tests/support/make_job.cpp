// Makes a run folder in $HOTLAP_HOME as if a job had been recorded, without running one; for scenarios of what reads
// runs.
//
//   hotlap_make_job ID [name=value…]
//
// Values: the numbers of FakeJob ("steps=400", "workers=2", "batch_ms=60", "cores=4" …), "seed=N" (other noise),
// "gpus=N" with "gpu_busy=70" and "watts=300", "price=1.5", "node=n1", "script=/srv/train.py", "status=running",
// "revision=HEX", "env.NAME=TEXT", "attribute.NAME=TEXT", and "arg=WORD" for each word of the command behind python.
// Prints nothing.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "store/recording_writer.h"
#include "store/run_folder.h"
#include "support/fake_job.h"

namespace hotlap {
namespace {

constexpr std::int64_t kWallNs = 1'767'323'045 * kNsPerS;  // 2026-01-02 03:04:05 UTC
constexpr std::int64_t kMonoNs = 1'000 * kNsPerS;          // where FakeJob begins

struct Wanted {
  FakeJob job;
  RunInfo info;
  std::map<std::string, std::string> attributes;
  int gpus = 0;
  double gpu_busy = 70;
  double watts = 300;
  double seed = 0;
};

[[noreturn]] void fail(const std::string& text) {
  (void)std::fprintf(stderr, "hotlap_make_job: %s\n", text.c_str());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

void set(Wanted& out, const std::string& name, const std::string& text) {
  const double number = parse_f64(text).value_or(0);
  const auto whole = static_cast<std::int64_t>(number);
  FakeJob& job = out.job;
  const std::map<std::string, std::function<void()>> known{
      {"steps", [&] { job.steps = whole; }},
      {"workers", [&] { job.workers = static_cast<std::int32_t>(whole); }},
      {"batch_ms", [&] { job.batch_ms = number; }},
      {"batch_cpu_ms", [&] { job.batch_cpu_ms = number; }},
      {"compute_ms", [&] { job.compute_ms = number; }},
      {"compute_cpu_ms", [&] { job.compute_cpu_ms = number; }},
      {"wait_ms", [&] { job.wait_ms = number; }},
      {"jitter", [&] { job.jitter = number; }},
      {"cores", [&] { job.cores = static_cast<std::int32_t>(whole); }},
      {"batch_size", [&] { job.batch_size = static_cast<std::int32_t>(whole); }},
      {"checkpoint_ms", [&] { job.checkpoint_ms = number; }},
      {"checkpoint_every", [&] { job.checkpoint_every = whole; }},
      {"hook", [&] { job.has_hook = whole != 0; }},
      {"rank",
       [&] {
         job.rank = static_cast<std::int32_t>(whole);
         job.role = ProcessRole::kRank;
       }},
      {"gpus", [&] { out.gpus = static_cast<int>(whole); }},
      {"gpu_busy", [&] { out.gpu_busy = number; }},
      {"watts", [&] { out.watts = number; }},
      {"seed", [&] { out.seed = number; }},
      {"price", [&] { out.info.price = Price{.per_hour = number, .source = "--price"}; }},
      {"node", [&] { out.info.node = text; }},
      {"name", [&] { out.info.name = text; }},
      {"script", [&] { out.info.script = text; }},
      {"status", [&] { out.info.status = run_status_from(text).value_or(RunStatus::kUnknown); }},
      {"revision", [&] { out.attributes["code.git.revision"] = text; }},
      {"arg", [&] { out.info.command.push_back(text); }},
  };
  if (name.starts_with("env.")) {
    out.info.environment[name.substr(4)] = text;
  } else if (name.starts_with("attribute.")) {
    out.attributes[name.substr(10)] = text;
  } else if (const auto found = known.find(name); found != known.end()) {
    found->second();
  } else {
    fail("unknown: " + name);
  }
}

void add_gpus(const Wanted& wanted, std::int64_t end_ns, FakeRecording& out) {
  for (int gpu = 0; gpu < wanted.gpus; ++gpu) {
    const std::string name = format("gpu{}", gpu);
    int tick = 0;
    for (std::int64_t t = kMonoNs; t <= end_ns; t += kNsPerS / 2, ++tick) {
      const double wave = 1 + 0.05 * ((tick * 7919) % 13 - 6) / 6.0;
      const auto gauge = [&](const char* metric, double value) {
        out.add_sample(metric, name, MetricKind::kGauge, 1, {t, Value::of(value)});
      };
      gauge("gpu.busy.percent", std::min(wanted.gpu_busy * wave, 100.0));
      gauge("gpu.power.watts", wanted.watts * wave);
      gauge("gpu.memory.used.bytes", 8e9);
      gauge("gpu.is_of_job", 1);
    }
    out.add_attribute(name + ".name", "NVIDIA H100 80GB HBM3");
  }
}

void write(const Wanted& wanted, FakeRecording& recording, const std::filesystem::path& file) {
  RecordingInfo info{.id = wanted.info.id,
                     .run_id = wanted.info.id,
                     .node = wanted.info.node,
                     .hotlap_version = "0.1.0",
                     .boot_id = "boot",
                     .interval_ns = kNsPerS / 2,
                     .attributes = {{"cpu.count", format("{}", wanted.job.cores)}}};
  auto made = RecordingWriter::create(file, info, {});
  if (!made.ok()) fail(made.error().message);
  RecordingWriter& writer = **made;
  writer.add_clock({.mono_ns = kMonoNs, .wall_ns = kWallNs, .boot_ns = kMonoNs});
  const Result<std::vector<ProcessInfo>> processes = recording.read_processes();
  const Result<std::map<std::string, std::string>> attributes = recording.read_attributes();
  const Result<std::vector<Event>> events = recording.read_events({});
  for (const ProcessInfo& process : processes.value()) writer.put_process(process);
  for (const auto& [key, text] : attributes.value()) writer.put_attribute(key, text);
  for (const auto& [key, text] : wanted.attributes) writer.put_attribute(key, text);
  for (std::uint32_t id = 1; !recording.name(id).empty(); ++id) writer.add_name(recording.name(id));
  for (const Event& event : events.value()) writer.add_event(event);
  std::uint64_t cursor = 0;
  if (!recording
           .read_spans_since(cursor, {},
                             [&](std::span<const Span> spans) {
                               for (const Span& span : spans) writer.add_span(span);
                             })
           .ok()) {
    fail("spans");
  }
  std::map<std::int64_t, std::vector<Sample>> ticks;
  for (const StoredSeries& series : recording.series()) {
    const MetricDesc desc{.name = series.metric, .unit = "1", .kind = series.kind, .scale = series.scale};
    const auto handle = writer.add_series(desc, series.instance);
    if (!handle.ok()) fail(handle.error().message);
    const std::vector<SeriesHandle> one{series.handle};
    (void)recording
        .read_samples(one, {},
                      [&](SeriesHandle, std::span<const SamplePoint> points) {
                        for (const SamplePoint& point : points) ticks[point.t_ns].push_back({*handle, point.value});
                      })
        .ok();
  }
  for (const auto& [t_ns, samples] : ticks) writer.add_tick(t_ns, samples);
  if (const Result<void> closed = writer.close(); !closed.ok()) fail(closed.error().message);
}

int make(int argc, char** argv) {
  if (argc < 2) fail("ID [name=value…]");
  Wanted wanted;
  wanted.info.id = argv[1];
  wanted.info.name = "train.py";
  wanted.info.script = "/srv/train.py";
  wanted.info.working_directory = "/srv";
  wanted.info.node = "some-node";
  wanted.info.hotlap_version = "0.1.0";
  wanted.info.status = RunStatus::kFinished;
  wanted.info.exit_code = 0;
  wanted.info.interval_ns = kNsPerS / 2;
  wanted.info.command = {"python", "train.py"};
  for (int i = 2; i < argc; ++i) {
    const std::string word(argv[i]);
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) fail(word + ": not name=value");
    set(wanted, word.substr(0, equals), word.substr(equals + 1));
  }
  // FakeJob's noise is always the same: another seed makes everything so much longer or shorter.
  wanted.job.compute_ms *= 1 + wanted.seed / 100;
  wanted.job.batch_ms *= 1 + wanted.seed / 100;
  FakeRecording recording(wanted.info.node);
  if (wanted.job.steps > 0) wanted.job.record(recording);
  const Result<TimeRange> extent = recording.extent();
  std::int64_t end_ns = extent.value().to_ns;
  if (end_ns < kMonoNs) end_ns = kMonoNs + 10 * kNsPerS;
  add_gpus(wanted, end_ns, recording);
  wanted.info.start_wall_ns = kWallNs;
  if (wanted.info.status != RunStatus::kRunning) wanted.info.end_wall_ns = kWallNs + (end_ns - kMonoNs);
  const Result<std::filesystem::path> home = hotlap_home();
  if (!home.ok()) fail(home.error().message);
  const Result<RunFolder> folder = RunFolder::create(*home, wanted.info);
  if (!folder.ok()) fail(folder.error().message);
  write(wanted, recording, folder->path() / (wanted.info.id + ".hotlap"));
  return 0;
}

}  // namespace
}  // namespace hotlap

int main(int argc, char** argv) { return hotlap::make(argc, argv); }
