// The matrix of `nvidia-smi topo -m`: how the GPUs of a machine are connected. As facts: topology.gpu0.gpu1 = "NV12".
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "ingest/importer.h"
#include "ingest/lines.h"
#include "ingest/log_items.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = 16'384;
constexpr std::size_t kGpusMax = 128;

// "GPU3" as 3.
std::optional<std::uint64_t> gpu_of(std::string_view text) {
  if (!text.starts_with("GPU")) return std::nullopt;
  const auto number = parse_u64(text.substr(3));
  return number && *number < 10'000 ? number : std::nullopt;
}

bool is_way(std::string_view text) {
  return text == "PIX" || text == "PXB" || text == "PHB" || text == "NODE" || text == "SYS" ||
         (text.starts_with("NV") && parse_u64(text.substr(2)));
}

class NvidiaTopologyImporter final : public StreamImporter {
 public:
  explicit NvidiaTopologyImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }
  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    return ImportStats{.bytes = lines_.bytes(), .events = facts_};
  }

 private:
  void take(const TextLine& line) {
    const std::string plain = without_escapes(line.text);  // its titles are underlined
    std::string_view rest = plain;
    if (line.is_too_long) return out_.count_loss("ingest.events_dropped", 1, line.offset);
    const auto row = gpu_of(next_word(rest));
    if (!row) return;
    if (titles_.empty() && gpu_of(first_word(rest))) {
      titles_.push_back(*row);
      for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
        const auto gpu = gpu_of(word);
        if (!gpu || titles_.size() == kGpusMax) break;
        titles_.push_back(*gpu);
      }
      return;
    }
    for (const std::uint64_t column : titles_) {
      const std::string_view way = next_word(rest);
      if (way.empty()) break;
      if (*row >= column || !is_way(way)) continue;  // each pair once
      out_.attribute(format("topology.gpu{}.gpu{}", *row, column), way);
      ++facts_;
    }
  }
  static std::string_view first_word(std::string_view text) { return next_word(text); }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  std::vector<std::uint64_t> titles_;
  std::uint64_t facts_ = 0;
};

// A line of titles "GPU0 GPU1 …", then a row "GPU0 X PIX …".
bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = without_escapes(sniffed_text(head_untrusted));
  std::string_view rest = text;
  std::string_view line;
  while (next_line(rest, line)) {
    std::string_view words = line;
    if (next_word(words) != "GPU0") continue;
    if (next_word(words) != "GPU1") return false;
    if (!next_line(rest, line)) return false;
    words = line;
    return next_word(words) == "GPU0" && next_word(words) == "X" && is_way(next_word(words));
  }
  return false;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<NvidiaTopologyImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_nvidia_topology{.name = "nvidia_topology",
                                                             .summary = "The matrix of nvidia-smi topo -m.",
                                                             .extensions = ".txt",
                                                             .priority = 260,
                                                             .sniff = sniff,
                                                             .open_stream = open_stream};

}  // namespace hotlap
