// Processes of a job, taken again and again into a text: "## t=<seconds>" before each reading, then a table of ps with
// its titles, or copies of /proc/PID/status and /proc/PID/smaps_rollup, each behind a line that names it. One that
// started others is a training process, those are its loader workers; a worker that takes a dead one's place has its
// name.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/dump_clock.h"
#include "ingest/importer.h"
#include "ingest/lines.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = 16'384;
constexpr std::size_t kProcessesMax = 4096;  // of one reading, and of all
constexpr double kKib = 1024;

enum Field : std::uint8_t { kRss, kPss, kThreads, kFields };
constexpr std::array<MetricDesc, kFields> kMetrics{
    MetricDesc{
        .name = "process.memory.rss.bytes", .unit = "By", .help = "Memory in RAM, shared pages counted in full."},
    MetricDesc{.name = "process.memory.pss.bytes",
               .unit = "By",
               .help = "Memory in RAM with shared pages divided among those who share."},
    MetricDesc{.name = "process.threads", .unit = "{thread}", .help = "Threads that exist."}};

struct Seen {
  std::uint64_t parent = 0;
  std::string command;
  std::array<std::optional<double>, kFields> values;
};

// "### /proc/4711/smaps_rollup", "==> /proc/4711/status <==": the process; 0: the line names none.
std::uint64_t process_named(std::string_view line) {
  const std::size_t at = line.find("/proc/");
  if (at == std::string_view::npos || (at > 0 && !(line.starts_with('#') || line.starts_with("==>")))) return 0;
  std::string_view path = line.substr(at + 6);
  const std::size_t slash = path.find('/');
  const auto pid = slash == std::string_view::npos ? std::nullopt : parse_u64(path.substr(0, slash));
  if (!pid) return 0;
  path = path.substr(slash + 1);
  return path.starts_with("status") || path.starts_with("smaps_rollup") ? *pid : 0;
}

// Titles of ps by column; empty: the line is no head of it.
enum class PsColumn : std::uint8_t { kOther, kPid, kParent, kRss, kPss, kThreads, kCommand };
std::vector<PsColumn> ps_titles(std::string_view line) {
  std::vector<PsColumn> columns;
  bool has_pid = false;
  bool has_figure = false;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    const PsColumn column = word == "PID"                                        ? PsColumn::kPid
                            : word == "PPID"                                     ? PsColumn::kParent
                            : word == "RSS" || word == "RSZ" || word == "RES"    ? PsColumn::kRss
                            : word == "PSS"                                      ? PsColumn::kPss
                            : word == "NLWP" || word == "THCNT" || word == "nTH" ? PsColumn::kThreads
                            : word == "COMMAND" || word == "CMD" || word == "COMM" || word == "ARGS"
                                ? PsColumn::kCommand
                                : PsColumn::kOther;
    has_pid |= column == PsColumn::kPid;
    has_figure |= column == PsColumn::kRss || column == PsColumn::kPss || column == PsColumn::kThreads;
    columns.push_back(column);
  }
  return has_pid && has_figure ? columns : std::vector<PsColumn>{};
}

class ProcessDumpImporter final : public StreamImporter {
 public:
  explicit ProcessDumpImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }
  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    end_reading();
    return ImportStats{.bytes = lines_.bytes(), .events = samples_};
  }

 private:
  void drop(std::int64_t offset) { out_.count_loss("ingest.events_dropped", 1, offset); }

  void take(const TextLine& line) {
    const std::string_view text = trim(line.text);
    if (text.empty()) return;
    if (const auto header = read_dump_header(text)) {
      const std::uint64_t pid = process_named(header->rest);
      if (pid != 0 && headed_.goes_on(*header)) {
        named_ = pid;
        return;
      }
      end_reading();
      headed_.begin(*header, pid != 0);
      t_ns_ = header->t_ns;
      if (!is_clock_told_) {
        out_.clock({.offset_ns = 0, .uncertainty_ns = kNsPerS, .is_absolute = header->is_unix_time()});
      }
      is_clock_told_ = true;
      titles_.clear();
      named_ = pid;
      return;
    }
    if (!is_clock_told_ || line.is_too_long) return drop(line.offset);
    if (const std::uint64_t pid = process_named(text); pid != 0) {
      named_ = pid;
      titles_.clear();
      return;
    }
    if (auto titles = ps_titles(text); !titles.empty()) {
      titles_ = std::move(titles);
      return;
    }
    if (!line.has_end) return drop(line.offset);
    const bool is_read = !titles_.empty() ? take_row(text) : named_ != 0 && take_field(text);
    if (!is_read) drop(line.offset);
  }

  Seen* seen(std::uint64_t pid) {
    if (reading_.size() >= kProcessesMax && !reading_.contains(pid)) return nullptr;
    return &reading_[pid];
  }

  bool take_row(std::string_view text) {
    std::uint64_t pid = 0;
    Seen row;
    for (std::size_t i = 0; i < titles_.size(); ++i) {
      const bool is_rest = i + 1 == titles_.size() && titles_[i] == PsColumn::kCommand;
      const std::string_view word = is_rest ? trim(text) : next_word(text);
      const auto number = parse_u64(word);
      const auto kib = number ? std::optional(static_cast<double>(*number) * kKib) : std::nullopt;
      switch (titles_[i]) {
        case PsColumn::kPid: pid = number.value_or(0); break;
        case PsColumn::kParent: row.parent = number.value_or(0); break;
        case PsColumn::kRss: row.values[kRss] = kib; break;
        case PsColumn::kPss: row.values[kPss] = kib; break;
        case PsColumn::kThreads:
          if (number) row.values[kThreads] = static_cast<double>(*number);
          break;
        case PsColumn::kCommand: row.command = strip_control(word.substr(0, 256)); break;
        case PsColumn::kOther: break;
      }
    }
    Seen* const place = pid == 0 ? nullptr : seen(pid);
    if (place != nullptr) *place = std::move(row);
    return place != nullptr;
  }

  // "VmRSS:  5000 kB", "Pss: 400 kB", "Threads: 12", "PPid: 4700", "Name: python".
  bool take_field(std::string_view text) {
    const std::size_t colon = text.find(':');
    // "55d0-7ffe ---p 00000000 00:00 0 [rollup]"
    if (colon == std::string_view::npos || text.ends_with("[rollup]")) return text.ends_with("[rollup]");
    Seen* const place = seen(named_);
    if (place == nullptr) return false;
    const std::string_view key = text.substr(0, colon);
    std::string_view rest = text.substr(colon + 1);
    const std::string_view word = next_word(rest);
    const auto number = parse_u64(word);
    const auto kib = number ? std::optional(static_cast<double>(*number) * kKib) : std::nullopt;
    if (key == "VmRSS" || key == "Rss") place->values[kRss] = kib;
    if (key == "Pss") place->values[kPss] = kib;
    if (key == "Threads" && number) place->values[kThreads] = static_cast<double>(*number);
    if (key == "PPid") place->parent = number.value_or(0);
    if (key == "Name") place->command = strip_control(trim(text.substr(colon + 1)).substr(0, 256));
    return true;
  }

  // --- names ---

  struct Named {
    std::uint32_t slot = 0;
    std::string label;
    std::uint64_t parent = 0;
    int worker = -1;
  };

  void end_reading() {
    if (reading_.empty()) return;
    name_processes();
    for (const auto& [pid, one] : reading_) {
      const auto named = names_.find(pid);
      if (named == names_.end()) continue;
      for (std::size_t field = 0; field < kFields; ++field) {
        if (!one.values[field]) continue;
        const SeriesHandle series = out_.series(kMetrics[field], named->second.label);
        out_.sample(series, t_ns_, Value::of(*one.values[field]));
        ++samples_;
      }
    }
    reading_.clear();
  }

  // Who started two or more of those that are seen trains; a program that starts one only may be a shell.
  void name_processes() {
    std::map<std::uint64_t, int> children;
    for (const auto& [pid, one] : reading_) {
      if (reading_.contains(one.parent)) ++children[one.parent];
    }
    // A worker's place is free when its process is gone.
    std::erase_if(names_,
                  [&](const auto& named) { return named.second.worker >= 0 && !reading_.contains(named.first); });
    if (!has_trainers_) {
      for (const auto& [pid, count] : children) {
        if (count >= 2) trainers_.push_back(pid);
      }
      // A launcher that started those that train is none of them.
      std::erase_if(trainers_, [&](std::uint64_t pid) {
        return std::ranges::any_of(trainers_,
                                   [&](std::uint64_t other) { return other != pid && reading_[other].parent == pid; });
      });
      has_trainers_ = !trainers_.empty();
    }
    for (const auto& [pid, one] : reading_) {
      if (names_.contains(pid) || names_.size() >= kProcessesMax) continue;
      names_.emplace(pid, describe(pid, one));
    }
  }

  Named describe(std::uint64_t pid, const Seen& one) {
    ProcessInfo info{.pid = pid <= INT32_MAX ? static_cast<std::int32_t>(pid) : 0, .command = one.command};
    Named named{.parent = one.parent};
    const auto trainer = std::ranges::find(trainers_, pid);
    if (trainer != trainers_.end() && trainers_.size() > 1) {
      info.role = ProcessRole::kRank;
      info.index = static_cast<std::int32_t>(trainer - trainers_.begin());
    } else if (trainer != trainers_.end()) {
      info.role = ProcessRole::kMain;
      info.label = "main";
    } else if (std::ranges::find(trainers_, one.parent) != trainers_.end()) {
      info.role = ProcessRole::kLoader;
      named.worker = free_worker();
      info.index = named.worker;
    } else {
      info.label =
          format("{} ({})", one.command.empty() ? "process" : one.command.substr(0, one.command.find(' ')), pid);
    }
    named.label = slot_label(info);
    if (info.label.empty()) info.label = named.label;
    // The same place is the same process to whoever reads.
    const auto known = slots_.find(named.label);
    if (known == slots_.end()) slots_.emplace(named.label, out_.process(info));
    return named;
  }

  int free_worker() const {
    std::set<int> taken;
    for (const auto& [pid, named] : names_) {
      if (named.worker >= 0) taken.insert(named.worker);
    }
    int worker = 0;
    while (taken.contains(worker)) ++worker;
    return worker;
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  std::map<std::uint64_t, Seen> reading_;  // by pid, of the reading under way
  std::map<std::uint64_t, Named> names_;   // by pid
  std::map<std::string, std::uint32_t> slots_;
  std::vector<std::uint64_t> trainers_;
  std::vector<PsColumn> titles_;
  HeadedFiles headed_;
  std::uint64_t named_ = 0;
  std::int64_t t_ns_ = 0;
  std::uint64_t samples_ = 0;
  bool has_trainers_ = false;
  bool is_clock_told_ = false;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = sniffed_text(head_untrusted);
  std::string_view rest = text;
  std::string_view line;
  bool has_header = false;
  for (int i = 0; i < 8 && next_line(rest, line); ++i) {
    if (trim(line).empty()) continue;
    if (!has_header) {
      const auto header = read_dump_header(line);
      has_header = header.has_value();
      if (has_header && process_named(header->rest) != 0) return true;
      continue;
    }
    if (!ps_titles(line).empty() || process_named(trim(line)) != 0) return true;
  }
  return false;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<ProcessDumpImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_process_dump{
    .name = "process_dump",
    .summary = "Processes by ps, /proc/PID/status or smaps_rollup, \"## t=<seconds>\" before each reading.",
    .extensions = ".txt .log",
    .priority = 217,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
