// Output of df, taken again and again into a text: "## t=<seconds>" stands before each, as before copies of /proc.
// /dev/shm gives the metrics of the collector of shared memory, other mounts those of file systems.
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "ingest/dump_clock.h"
#include "ingest/importer.h"
#include "ingest/lines.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = 4096;
constexpr std::size_t kMountMax = 256;  // characters

constexpr MetricDesc bytes_of(std::string_view name, std::string_view help) {
  return {.name = name, .unit = "By", .help = help};
}
constexpr std::array kShm{bytes_of("shm.total.bytes", "Size of /dev/shm."),
                          bytes_of("shm.used.bytes", "Used in /dev/shm."),
                          bytes_of("shm.available.bytes", "Left in /dev/shm.")};
constexpr std::array kFilesystem{bytes_of("filesystem.total.bytes", "Size of the file system."),
                                 bytes_of("filesystem.used.bytes", "Used in the file system."),
                                 bytes_of("filesystem.available.bytes", "Free for programs of users.")};

// Bytes of a unit of the titles' second word: "1K-blocks", "1B-blocks", "1M-blocks", "1024-blocks"; "Size" has units
// in each figure, of 1024 (df -h).
std::optional<double> block_bytes(std::string_view title) {
  if (title == "Size") return 0;
  if (!title.ends_with("-blocks")) return std::nullopt;
  title = title.substr(0, title.size() - 7);
  const std::size_t digits = title.find_first_not_of("0123456789");
  const auto number = parse_f64(title.substr(0, digits));
  if (!number) return std::nullopt;
  const std::string_view unit = digits == std::string_view::npos ? std::string_view{} : title.substr(digits);
  constexpr std::array<std::pair<std::string_view, double>, 8> kUnits{
      {{"", 1}, {"B", 1}, {"K", 1024}, {"kB", 1e3}, {"M", 1048576}, {"MB", 1e6}, {"G", 1073741824}, {"GB", 1e9}}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) return *number * factor;
  }
  return std::nullopt;
}

// "1.5G" where units stand in the figures.
std::optional<double> amount_of(std::string_view text, double block) {
  if (block > 0) {
    const auto count = parse_f64(text);
    return count ? std::optional(*count * block) : std::nullopt;
  }
  const std::size_t digits = text.find_first_not_of("0123456789.");
  const auto number = parse_f64(text.substr(0, digits));
  if (!number) return std::nullopt;
  if (digits == std::string_view::npos) return *number == 0 ? std::optional(0.0) : std::nullopt;
  constexpr std::string_view kLetters = "KMGTP";
  const std::size_t power = kLetters.find(text[digits]);
  if (text[digits] == 'B') return number;
  return power == std::string_view::npos ? std::nullopt
                                         : std::optional(*number * std::pow(1024.0, static_cast<double>(power + 1)));
}

class DfDumpImporter final : public StreamImporter {
 public:
  explicit DfDumpImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }
  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    return ImportStats{.bytes = lines_.bytes(), .events = samples_};
  }

 private:
  void take(const TextLine& line) {
    const std::string_view text = trim(line.text);
    if (text.empty()) return;
    if (const auto header = read_dump_header(text)) {
      t_ns_ = header->t_ns;
      if (!is_clock_told_) {
        out_.clock({.offset_ns = 0, .uncertainty_ns = kNsPerS, .is_absolute = header->is_unix_time()});
        is_clock_told_ = true;
      }
      return;
    }
    if (text.starts_with("Filesystem")) {
      std::string_view rest = text.substr(sizeof("Filesystem") - 1);
      std::string_view second = next_word(rest);
      has_type_ = second == "Type";  // df -T
      if (has_type_) second = next_word(rest);
      block_ = block_bytes(second);
      return;
    }
    if (!is_clock_told_ || line.is_too_long || !line.has_end || !take_row(text)) {
      out_.count_loss("ingest.events_dropped", 1, line.offset);
    }
  }

  // "shm  1048576  524288  524288  50%  /dev/shm"
  bool take_row(std::string_view text) {
    if (!block_) return false;
    std::string_view rest = text;
    next_word(rest);
    if (has_type_) next_word(rest);
    std::array<std::optional<double>, 3> amounts;
    for (auto& amount : amounts) amount = amount_of(next_word(rest), *block_);
    if (!next_word(rest).ends_with('%') && !amounts[0]) return false;
    const std::string_view mount = trim(rest);
    if (mount.empty() || !mount.starts_with('/') || mount.size() > kMountMax) return false;
    const bool is_shm = mount == "/dev/shm";
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      const MetricDesc& metric = is_shm ? kShm[i] : kFilesystem[i];
      const SeriesHandle series = out_.series(metric, is_shm ? std::string_view{} : mount);
      out_.sample(series, t_ns_, amounts[i] ? Value::of(*amounts[i]) : Value::missing(MissingReason::kReadFailed));
      ++samples_;
    }
    return true;
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  std::int64_t t_ns_ = 0;
  std::optional<double> block_;
  bool has_type_ = false;
  bool is_clock_told_ = false;
  std::uint64_t samples_ = 0;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = sniffed_text(head_untrusted);
  std::string_view rest = text;
  std::string_view line;
  bool has_header = false;
  for (int i = 0; i < 8 && next_line(rest, line); ++i) {
    has_header = has_header || read_dump_header(line).has_value();
    if (has_header && line.starts_with("Filesystem")) return line.find("Mounted on") != std::string_view::npos;
  }
  return false;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<DfDumpImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_df_dump{.name = "df_dump",
                                                     .summary = "Output of df, \"## t=<seconds>\" before each.",
                                                     .extensions = ".txt .log",
                                                     .priority = 215,
                                                     .sniff = sniff,
                                                     .open_stream = open_stream};

}  // namespace hotlap
