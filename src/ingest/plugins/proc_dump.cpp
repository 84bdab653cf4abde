// Copies of files below /proc and of a control group, taken again and again into a text: "## t=<seconds>" stands before
// each. The collectors read them as they read this machine's, so that they give the same metrics.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/memory_host.h"
#include "base/text.h"
#include "collect/registry.h"
#include "ingest/dump_clock.h"
#include "ingest/importer.h"
#include "ingest/lines.h"
#include "model/clock_step.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{256} << 10;  // "intr" of a large machine
constexpr std::size_t kDumpBytesMax = std::size_t{16} << 20;
constexpr std::size_t kFilesMax = 64;

// Collectors that read nothing but such files, and those whose presence makes them worth asking.
struct Source {
  std::string_view collector;
  std::array<std::string_view, 8> files;
};
constexpr std::array kSources{
    Source{"cpu", {"/proc/stat"}},
    Source{"memory", {"/proc/meminfo"}},
    Source{"disk", {"/proc/diskstats"}},
    Source{"network", {"/proc/net/dev"}},
    Source{"load", {"/proc/loadavg"}},
    Source{"pressure", {"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory", "/proc/pressure/irq"}},
    Source{"nfs", {"/proc/self/mountstats"}},
    Source{"cgroup",
           {"/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat",
            "/sys/fs/cgroup/io.stat", "/sys/fs/cgroup/cpu/cpu.stat", "/sys/fs/cgroup/cpu/cpuacct.usage",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat"}},
};
constexpr std::string_view kGroupFolder = "/sys/fs/cgroup/";
// Of version 1, whatever the folder is called in the dump: "cpu,cpuacct", "cpuacct".
constexpr std::array<std::string_view, 4> kFoldersV1{"cpu/", "memory/", "blkio/", "cpuset/"};
constexpr std::string_view kMountsV2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
constexpr std::string_view kMountsV1 =
    "34 23 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 23 0:28 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
    "33 23 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
constexpr std::array<std::string_view, 35> kPaths{"/proc/stat",
                                                  "/proc/meminfo",
                                                  "/proc/diskstats",
                                                  "/proc/net/dev",
                                                  "/proc/loadavg",
                                                  "/proc/vmstat",
                                                  "/proc/pressure/cpu",
                                                  "/proc/pressure/io",
                                                  "/proc/pressure/memory",
                                                  "/proc/pressure/irq",
                                                  "/proc/self/mountstats",
                                                  "/proc/uptime",
                                                  "/sys/fs/cgroup/cpu.stat",
                                                  "/sys/fs/cgroup/memory.stat",
                                                  "/sys/fs/cgroup/io.stat",
                                                  "/sys/fs/cgroup/cpu.max",
                                                  "/sys/fs/cgroup/memory.current",
                                                  "/sys/fs/cgroup/memory.max",
                                                  "/sys/fs/cgroup/memory.events",
                                                  "/sys/fs/cgroup/cpu.pressure",
                                                  "/sys/fs/cgroup/io.pressure",
                                                  "/sys/fs/cgroup/memory.pressure",
                                                  "/sys/fs/cgroup/cpuset.cpus.effective",
                                                  "/sys/fs/cgroup/cpu/cpu.stat",
                                                  "/sys/fs/cgroup/memory/memory.stat",
                                                  "/sys/fs/cgroup/cpu/cpuacct.usage",
                                                  "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
                                                  "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
                                                  "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                                                  "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                                  "/sys/fs/cgroup/memory/memory.oom_control",
                                                  "/sys/fs/cgroup/memory/memory.failcnt",
                                                  "/sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes_recursive",
                                                  "/sys/fs/cgroup/blkio/blkio.throttle.io_serviced_recursive",
                                                  "/sys/fs/cgroup/cpuset/cpuset.effective_cpus"};
constexpr std::string_view kCpuStat = kPaths[12];
constexpr std::string_view kMemoryStat = kPaths[13];
constexpr std::string_view kIoStat = kPaths[14];
constexpr std::string_view kCpuMax = kPaths[15];
constexpr std::string_view kCpuStatV1 = kPaths[23];
constexpr std::string_view kMemoryStatV1 = kPaths[24];
constexpr std::string_view kQuotaPeriodUs = "100000";       // the kernel's, which hardly anybody changes
constexpr std::string_view kPressure = "/proc/pressure/?";  // which of them is not told

bool is_of_group_v1(std::string_view path) {
  if (!path.starts_with(kGroupFolder)) return false;
  path.remove_prefix(kGroupFolder.size());
  return std::ranges::any_of(kFoldersV1, [&](std::string_view folder) { return path.starts_with(folder); });
}

// "sys/fs/cgroup/cpu,cpuacct/docker/c0ffee/cpu.stat": the first folder is a controller's.
bool lies_in_v1(std::string_view name) {
  if (!name.starts_with(kGroupFolder.substr(1))) return false;
  const std::string_view folder = name.substr(kGroupFolder.size() - 1);
  constexpr std::array<std::string_view, 7> kControllers{"cpu/",    "cpuacct/", "cpu,cpuacct/", "cpuacct,cpu/",
                                                         "memory/", "blkio/",   "cpuset/"};
  return std::ranges::any_of(kControllers, [&](std::string_view one) { return folder.starts_with(one); });
}

// Of a control group, by the file's name. Two of them are called alike in both versions: then by the folder.
std::string_view group_path_named(std::string_view file, bool is_v1) {
  std::string_view found;
  for (const std::string_view path : kPaths) {
    if (!path.starts_with(kGroupFolder) || path.substr(path.rfind('/') + 1) != file) continue;
    if (found.empty() || is_of_group_v1(path) == is_v1) found = path;
  }
  return found;
}

// The one of kPaths that `text` names: "/proc/net/dev", "proc/net/dev", "net/dev", "net_dev.txt"; of a control group
// whatever its folder: "/sys/fs/cgroup/kubepods/cpu.stat", "cpu.stat".
std::string_view path_named(std::string_view text) {
  std::string name(trim(text));
  if (name.ends_with(".txt")) name.resize(name.size() - 4);
  if (name.starts_with("/")) name.erase(0, 1);
  if (name.starts_with("proc/") || name.starts_with("proc_")) name.erase(0, 5);
  const std::string_view file = std::string_view(name).substr(name.rfind('/') + 1);
  const bool may_be_of_group =
      file.size() == name.size() || name.starts_with(kGroupFolder.substr(1)) || name.starts_with("cgroup/");
  if (may_be_of_group) {
    if (const std::string_view path = group_path_named(file, lies_in_v1(name)); !path.empty()) return path;
  }
  for (const std::string_view path : kPaths) {
    if (path.starts_with(kGroupFolder)) continue;
    std::string known(path.substr(sizeof("/proc/") - 1));
    if (name == known) return path;
    std::ranges::replace(known, '/', '_');
    if (name == known) return path;
  }
  return {};
}

// A line that says which file follows: "==> /proc/stat <==", "### /proc/stat", "/proc/stat:". Nothing: it is none.
std::optional<std::string_view> read_marker(std::string_view line) {
  std::string_view text = trim(line);
  const bool is_marked = text.starts_with('#') || text.starts_with("==>") || text.starts_with("---");
  const bool is_path = text.starts_with("/proc/") || text.starts_with(kGroupFolder);
  if (!is_marked && !(is_path && text.ends_with(':'))) return std::nullopt;
  const std::size_t begin = text.find_first_not_of("#=>- ");
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin);
  text = text.substr(0, text.find_last_not_of("<=:- ") + 1);
  for (const std::string_view word : {"file:", "file=", "cat "}) {
    if (text.starts_with(word)) text = trim(text.substr(word.size()));
  }
  const std::string_view path = path_named(text);
  if (path.empty() && !text.starts_with("/proc/") && !text.starts_with("/sys/")) return std::nullopt;
  return path;  // empty: a file that no collector reads
}

std::size_t leading_numbers(std::string_view line) {
  std::size_t count = 0;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    if (!parse_u64(word)) break;
    ++count;
  }
  return count;
}

// The file that a line looks like being of; empty: none that is known.
std::string_view path_of_line(std::string_view line) {
  std::string_view rest = line;
  const std::string_view first = next_word(rest);
  if (first == "device" && line.find(" mounted on ") != std::string_view::npos) return kPaths[10];
  const auto begins = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, first) != words.end();
  };
  if (first.starts_with("cpu") && first.find_first_not_of("0123456789", 3) == std::string_view::npos) return kPaths[0];
  if (begins({"intr", "ctxt", "btime", "processes", "procs_running", "procs_blocked", "softirq"})) return kPaths[0];
  if (begins({"some", "full"}) && trim(rest).starts_with("avg10=")) return kPressure;
  if (first == "Inter-|" || (first == "face" && rest.find("|bytes") != std::string_view::npos)) return kPaths[3];
  if (first.find(':') != std::string_view::npos && trim(rest).starts_with("rbytes=")) return kIoStat;
  if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    if (leading_numbers(line.substr(colon + 1)) >= 12) return kPaths[3];
    const std::string_view value = trim(line.substr(colon + 1));
    if (leading_numbers(value) == 1 && first.front() >= 'A' && first.front() <= 'Z') return kPaths[1];
    return {};
  }
  // "8 0 sda 1 2 3 …"
  std::string_view numbers = line;
  if (parse_u64(next_word(numbers)) && parse_u64(next_word(numbers)) && !next_word(numbers).empty() &&
      leading_numbers(numbers) >= 11) {
    return kPaths[2];
  }
  // "12345.67 45678.90"
  std::string_view times = line;
  const std::string_view seconds = next_word(times);
  if (seconds.find('.') != std::string_view::npos && parse_f64(seconds) && parse_f64(next_word(times)) &&
      trim(times).empty()) {
    return kPaths[11];
  }
  // "0.02 0.04 0.05 1/497 11947"
  std::string_view loads = line;
  if (parse_f64(next_word(loads)) && parse_f64(next_word(loads)) && parse_f64(next_word(loads)) &&
      next_word(loads).find('/') != std::string_view::npos) {
    return kPaths[4];
  }
  if (begins(
          {"usage_usec", "user_usec", "system_usec", "nr_periods", "nr_throttled", "throttled_usec", "throttled_time"}))
    return kCpuStat;
  if (begins({"anon", "file", "cache", "inactive_file", "kernel_stack", "shmem"}) && leading_numbers(rest) == 1)
    return kMemoryStat;
  // "max 100000", "400000 100000"
  if (first == "max" && leading_numbers(rest) == 1) return kCpuMax;
  if (parse_u64(first) && trim(rest) == kQuotaPeriodUs) return kCpuMax;
  const bool is_key = !first.empty() && first.front() >= 'a' && first.front() <= 'z';
  if (is_key && leading_numbers(rest) == 1 &&
      first.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos) {
    return kPaths[5];
  }
  return {};
}

// What a collector pushes, with the time of the dump.
class DumpSink final : public SampleSink {
 public:
  DumpSink(ImportSink& out, const CollectorSpec& spec) : out_(out), spec_(spec) {}
  void set_time(std::int64_t t_ns, std::int64_t offset) {
    t_ns_ = t_ns;
    offset_ = offset;
  }
  std::uint64_t samples() const { return samples_; }

  // Nobody looked: what counters grew by across `t_ns` is not of the time that passed.
  void add_gap(std::int64_t t_ns) {
    for (const SeriesHandle series : series_) out_.sample(series, t_ns, Value::missing(MissingReason::kNotSampled));
  }

  SeriesHandle series(std::uint16_t metric, std::string_view instance) override {
    const SeriesHandle handle = out_.series(spec_.metrics[metric], instance);
    if (handle.valid()) series_.push_back(handle);
    return handle;
  }
  void add(SeriesHandle series, Value value) override {
    ++samples_;
    if (series.valid()) out_.sample(series, t_ns_, value);
  }
  void event(EventKind kind, std::int64_t value, std::string_view text) override {
    out_.event({.t_ns = t_ns_, .kind = kind, .value = value, .text = std::string(text)});
  }
  void attribute(std::string_view key, std::string_view text) override { out_.attribute(key, text); }
  void count_loss(std::string_view counter, std::uint64_t count) override { out_.count_loss(counter, count, offset_); }

 private:
  ImportSink& out_;
  const CollectorSpec& spec_;
  std::vector<SeriesHandle> series_;
  std::int64_t t_ns_ = 0;
  std::int64_t offset_ = 0;
  std::uint64_t samples_ = 0;
};

class ProcDumpImporter final : public StreamImporter {
 public:
  explicit ProcDumpImporter(ImportSink& out) : out_(out) {
    // Where a control group's files are looked for.
    (void)host_.write("/proc/self/mountinfo", kMountsV2);
    (void)host_.write("/proc/self/status", "Name:\tjob\n");
    for (const Source& source : kSources) {
      for (const CollectorSpec* spec : all_collectors()) {
        if (spec->name == source.collector) readers_.push_back(std::make_unique<Reader>(source, *spec, out));
      }
    }
  }

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    if (error_) return *error_;
    return {};
  }
  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    // The last dump may be cut off in the middle of a line, which is then left out.
    end_dump();
    if (error_) return *error_;
    std::uint64_t samples = 0;
    for (const auto& reader : readers_) samples += reader->sink.samples();
    return ImportStats{.bytes = lines_.bytes(), .events = samples};
  }

 private:
  struct Reader {
    Reader(const Source& from, const CollectorSpec& of, ImportSink& out) : source(from), spec(of), sink(out, of) {}
    const Source& source;
    const CollectorSpec& spec;
    DumpSink sink;
    std::unique_ptr<Collector> collector;
    std::uint64_t ticks = 0;
  };

  void drop(std::int64_t offset) { out_.count_loss("ingest.events_dropped", 1, offset); }

  void take(const TextLine& line) {
    if (error_) return;
    if (const auto header = read_dump_header(line.text)) {
      if (is_in_dump_ && names_file(*header) && headed_.goes_on(*header))
        return take_path(path_named(header->rest), line.offset);
      end_dump();
      begin_dump(*header, line.offset);
      return;
    }
    if (!is_in_dump_) {
      if (!trim(line.text).empty()) drop(line.offset);
      return;
    }
    if (const auto marker = read_marker(line.text)) return take_path(*marker, line.offset);
    if (line.text.starts_with('#')) return;
    if (!line.has_end || line.is_too_long) return drop(line.offset);
    take_content(line);
  }

  void take_path(std::string_view path, std::int64_t offset) {
    path_ = path;
    is_path_told_ = true;
    // One group only: what comes again in a dump is of another.
    if (path_.starts_with(kGroupFolder) && files_.contains(path_)) path_ = {};
    if (path_.empty()) drop(offset);
  }

  static bool names_file(const DumpHeader& header) {
    return header.rest.starts_with('/') || !path_named(header.rest).empty();
  }

  void begin_dump(const DumpHeader& header, std::int64_t offset) {
    is_in_dump_ = true;
    headed_.begin(header, names_file(header));
    t_ns_ = header.t_ns;
    offset_ = offset;
    path_ = path_named(header.rest);
    is_path_told_ = names_file(header);
    if (is_path_told_ && path_.empty()) drop(offset);
    if (is_clock_told_) return;
    is_clock_told_ = true;
    out_.clock({.offset_ns = 0, .uncertainty_ns = kNsPerS, .is_absolute = header.is_unix_time()});
  }

  void take_content(const TextLine& line) {
    std::string_view text = line.text;
    // grep and tail write the name before each line: "/proc/pressure/cpu:some avg10=…".
    if (text.starts_with("/proc/") || text.starts_with(kGroupFolder)) {
      const std::size_t colon = text.find(':');
      const std::string_view path =
          colon == std::string_view::npos ? std::string_view{} : path_named(text.substr(0, colon));
      if (path.empty()) return drop(line.offset);
      return keep(path, text.substr(colon + 1), line.offset);
    }
    if (is_path_told_) {
      if (!path_.empty()) keep(path_, text, line.offset);
      return;
    }
    if (trim(text).empty()) return;
    const std::string_view path = path_of_line(text);
    if (path.empty()) return drop(line.offset);
    // What follows of such a file looks like nothing by itself.
    if (path == kPaths[10] || path == kMemoryStat) {
      path_ = path;
      is_path_told_ = true;
    }
    keep(path, text, line.offset);
  }

  void keep(std::string_view path, std::string_view text, std::int64_t offset) {
    const auto found = files_.find(path);
    if ((found == files_.end() && files_.size() == kFilesMax) || bytes_ + text.size() > kDumpBytesMax)
      return drop(offset);
    bytes_ += text.size() + 1;
    std::string& content = found != files_.end() ? found->second : files_[std::string(path)];
    content += text;
    content += '\n';
  }

  // `cat /proc/pressure/*` gives cpu, io, irq and memory in this order, and irq has no line "some".
  void tell_pressure_apart() {
    const auto found = files_.find(kPressure);
    if (found == files_.end()) return;
    const std::string content = std::move(found->second);
    files_.erase(found);
    std::vector<std::string> parts;
    std::string irq;
    std::string_view rest = content;
    std::string_view line;
    bool has_full = false;
    while (next_line(rest, line)) {
      const bool is_some = line.starts_with("some");
      if (is_some) {
        parts.emplace_back();
        has_full = false;
      }
      std::string& part = parts.empty() || (!is_some && has_full) ? irq : parts.back();
      has_full |= !is_some;
      part += std::string(line) + "\n";
    }
    if (parts.size() != 3) return out_.count_loss("ingest.events_dropped", parts.size(), offset_);
    for (std::size_t i = 0; i < parts.size(); ++i) files_[std::string(kPaths[6 + i])] = parts[i];
    if (!irq.empty()) files_[std::string(kPaths[9])] = irq;
  }

  // Files that are called alike in both versions, where their folder was not told. The first dump with a group's file
  // says which version the machine has.
  void tell_versions_apart() {
    const auto move_if = [&](std::string_view from, std::string_view to, std::string_view key) {
      const auto found = files_.find(from);
      if (found == files_.end() || found->second.find(key) == std::string::npos || files_.contains(to)) return;
      files_[std::string(to)] = std::move(found->second);
      files_.erase(found);
    };
    move_if(kCpuStat, kCpuStatV1, "throttled_time ");
    move_if(kMemoryStat, kMemoryStatV1, "total_rss ");
    if (is_version_told_) return;
    for (const auto& [path, text] : files_) {
      if (!path.starts_with(kGroupFolder)) continue;
      is_version_told_ = true;
      // Of a machine with both, pressure is told by version 2.
      if (is_of_group_v1(path))
        (void)host_.write("/proc/self/mountinfo", std::string(kMountsV1) + std::string(kMountsV2));
    }
  }

  void end_dump() {
    if (!is_in_dump_ || error_) return;
    is_in_dump_ = false;
    tell_pressure_apart();
    tell_versions_apart();
    tell_time();
    tell_cores();
    host_.set_time(t_ns_);
    for (const std::string_view path : kPaths) {
      const auto found = files_.find(path);
      // What this dump lacks must not be read again.
      if (found == files_.end() && !host_.exists(path)) continue;
      Result<void> written = host_.write(path, found == files_.end() ? std::string_view{} : found->second);
      if (!written.ok()) {
        error_ = std::move(written).error();
        return;
      }
    }
    if (files_.empty()) drop(offset_);
    for (const auto& reader : readers_) read(*reader);
    files_.clear();
    bytes_ = 0;
  }

  // The wall clock may have jumped since the dump before, and the machine may have slept.
  void tell_time() {
    const auto text = [&](std::string_view path) {
      const auto found = files_.find(path);
      return found == files_.end() ? std::string_view{} : std::string_view(found->second);
    };
    const std::int64_t before_ns = clock_.time_ns();
    const DumpClock::Jump jump = clock_.take(t_ns_, text("/proc/stat"), text("/proc/uptime"));
    t_ns_ = clock_.time_ns();
    if (jump.has_gap()) {
      for (const auto& reader : readers_) reader->sink.add_gap(before_ns + (t_ns_ - before_ns) / 2);
    }
    if (jump.unsure_ns != 0) {
      out_.event(
          {.t_ns = t_ns_, .kind = EventKind::kClockStep, .value = jump.unsure_ns, .text = std::string(kMayBeSleep)});
    }
    if (jump.step_ns != 0) {
      out_.event({.t_ns = t_ns_, .kind = EventKind::kClockStep, .value = jump.step_ns, .text = {}});
    }
    if (jump.sleep_ns != 0) {
      out_.event({.t_ns = t_ns_, .kind = EventKind::kSuspend, .value = jump.sleep_ns, .text = {}});
    }
  }

  // Where a group's quota is told beside the machine's cores, both count.
  void tell_cores() {
    const auto found = files_.find(kPaths[0]);
    if (found == files_.end()) return;
    std::string numbers;
    std::string_view rest = found->second;
    for (std::string_view line; next_line(rest, line);) {
      const std::string_view name = next_word(line);
      if (!name.starts_with("cpu") || !parse_u64(name.substr(3))) continue;
      numbers += (numbers.empty() ? "" : ",") + std::string(name.substr(3));
    }
    if (!numbers.empty()) (void)host_.write("/sys/devices/system/cpu/online", numbers + "\n");
  }

  void read(Reader& reader) {
    const bool is_there = std::ranges::any_of(
        reader.source.files, [&](std::string_view file) { return !file.empty() && files_.contains(file); });
    if (!is_there) return;
    if (reader.collector == nullptr) {
      auto opened = reader.spec.open(host_);
      if (!opened.ok()) return drop(offset_);
      reader.collector = std::move(opened).value();
    }
    reader.sink.set_time(t_ns_, offset_);
    const TickInfo tick{.t_ns = t_ns_, .number = reader.ticks++, .job = {}};
    if (!reader.collector->sample(tick, reader.sink).ok()) drop(offset_);
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  DumpClock clock_;
  MemoryHost host_;
  std::vector<std::unique_ptr<Reader>> readers_;  // after host_, which they read
  std::optional<Error> error_;
  std::map<std::string, std::string, std::less<>> files_;  // of the dump that is being read
  HeadedFiles headed_;
  std::size_t bytes_ = 0;
  std::string_view path_;
  std::int64_t t_ns_ = 0;
  std::int64_t offset_ = 0;  // of the dump's header
  bool is_path_told_ = false;
  bool is_in_dump_ = false;
  bool is_clock_told_ = false;
  bool is_version_told_ = false;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = sniffed_text(head_untrusted);
  std::string_view rest = text;
  std::string_view line;
  for (int i = 0; i < 16 && next_line(rest, line); ++i) {
    if (!read_dump_header(line)) continue;
    // A header of ours is followed by something that we know.
    if (!path_named(read_dump_header(line)->rest).empty()) return true;
    while (next_line(rest, line)) {
      if (trim(line).empty()) continue;
      const bool is_named = line.starts_with("/proc/") || line.starts_with(kGroupFolder);
      return read_marker(line).has_value() || is_named || !path_of_line(line).empty();
    }
  }
  return false;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<ProcDumpImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_proc_dump{
    .name = "proc_dump",
    .summary = "Copies of /proc and cgroup files, \"## t=<seconds>\" before each.",
    .extensions = ".txt .log",
    .priority = 210,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
