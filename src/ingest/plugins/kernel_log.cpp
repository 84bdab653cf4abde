// The kernel's log: dmesg with any of its times, /var/log/kern.log, journalctl -k. What it says of GPUs, memory,
// mounts, disks and heat becomes events; what else it says is passed over.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/civil_time.h"
#include "ingest/importer.h"
#include "ingest/kernel_line.h"
#include "ingest/kernel_messages.h"
#include "ingest/lines.h"
#include "model/log_message.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = 4096;
constexpr std::size_t kEventsMax = 20'000;                // a broken disk reports without end
constexpr std::int64_t kBootUncertaintyNs = 5 * kNsPerS;  // the stamps' clock stands still while the machine sleeps
constexpr std::int64_t kYearNs = 365 * 86'400 * kNsPerS;

class KernelLogImporter final : public StreamImporter {
 public:
  explicit KernelLogImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }

  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    tell_clock();
    // Those of the time since the machine was started have a place only where some line tells when that was.
    for (auto& [event, boot_ns] : events_) {
      if (!has_unix_time_ && boot_ns && !boot_unix_ns_ && event.kind == EventKind::kNote)
        event.text += format(" boot_s={:.0f}", static_cast<double>(*boot_ns) / static_cast<double>(kNsPerS));
      if (!has_unix_time_ && event.kind == EventKind::kGpuXid && !boot_unix_ns_)
        event.text += format(" boot_s={:.0f}", static_cast<double>(event.t_ns) / static_cast<double>(kNsPerS));
      out_.event(event);
    }
    out_.attribute("kernel.lines", format("{}", read_));
    return ImportStats{.bytes = lines_.bytes(), .events = events_.size()};
  }

 private:
  void take(const TextLine& line) {
    if (trim(line.text).empty()) return;
    const auto read = read_kernel_line(line.text);
    if (!read) return out_.count_loss("ingest.lines_unknown", 1, line.offset);
    ++read_;
    if (read->unix_ns) {
      has_unix_time_ = true;
      has_zone_ = read->has_zone;
      has_year_ = read->has_year;
    }
    if (read->boot_ns && !boot_unix_ns_) {
      if (const auto unix_ns = kernel_unix_time(read->text)) boot_unix_ns_ = *unix_ns - *read->boot_ns;
    }
    auto event = messages_.take(read->text);
    if (!event) return;
    if (events_.size() >= kEventsMax) return out_.count_loss("ingest.events_dropped", 1, line.offset);
    event->t_ns = read->unix_ns ? with_year(*read) : read->boot_ns.value_or(0);
    events_.emplace_back(std::move(*event), read->boot_ns);
  }

  // Times without a year go on over the turn of the year.
  std::int64_t with_year(const KernelLine& line) {
    if (line.has_year) return *line.unix_ns;
    if (last_ns_ && *line.unix_ns + year_ns_ < *last_ns_ - kYearNs / 2) year_ns_ += kYearNs;
    last_ns_ = *line.unix_ns + year_ns_;
    return *last_ns_;
  }

  void tell_clock() {
    if (has_unix_time_) {
      out_.clock({.offset_ns = 0,
                  .uncertainty_ns = !has_year_  ? -1
                                    : has_zone_ ? kNsPerS
                                                : kZoneUncertaintyNs,
                  .is_absolute = has_year_,
                  .has_year = has_year_});
      if (!has_year_) out_.attribute("import.time", "the log says no year");
      if (has_year_ && !has_zone_)
        out_.attribute("import.time", "the log says no time zone: its times are taken for UTC");
    } else if (boot_unix_ns_) {
      out_.clock({.offset_ns = *boot_unix_ns_, .uncertainty_ns = kBootUncertaintyNs, .is_absolute = true});
    } else {
      out_.clock({.offset_ns = 0, .uncertainty_ns = -1, .is_absolute = false});
      out_.attribute("import.time",
                     "times since the machine was started, and no line says when that was: dmesg --time-format iso "
                     "gives times that can be put beside those of other files");
    }
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  KernelMessages messages_;
  std::vector<std::pair<Event, std::optional<std::int64_t>>> events_;
  std::optional<std::int64_t> boot_unix_ns_;  // when the machine was started
  std::optional<std::int64_t> last_ns_;
  std::int64_t year_ns_ = 0;
  std::uint64_t read_ = 0;
  bool has_unix_time_ = false;
  bool has_zone_ = false;
  bool has_year_ = true;
};

// Most lines have its form, and one of them says what only a kernel does.
bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = sniffed_text(head_untrusted);
  std::string_view rest = text;
  std::size_t lines = 0;
  std::size_t of_kernel = 0;
  bool has_word = false;
  for (std::string_view line; next_line(rest, line);) {
    if (trim(line).empty() || rest.empty()) continue;  // the last one may be cut
    ++lines;
    const auto read = read_kernel_line(line);
    if (!read) continue;
    ++of_kernel;
    has_word = has_word || is_kernel_text(read->text);
  }
  if (lines == 0) {
    const auto only = read_kernel_line(text.substr(0, text.find('\n')));
    return only && is_kernel_text(only->text);
  }
  return has_word && 2 * of_kernel > lines;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<KernelLogImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_kernel_log{.name = "kernel_log",
                                                        .summary = "The kernel's log: dmesg, kern.log, journalctl -k.",
                                                        .extensions = ".txt .log",
                                                        .priority = 220,
                                                        .sniff = sniff,
                                                        .open_stream = open_stream};

}  // namespace hotlap
