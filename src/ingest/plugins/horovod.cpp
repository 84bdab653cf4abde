// Horovod's own timeline (HOROVOD_TIMELINE): a list of trace events, one row for each tensor, closed or not. A tensor
// is negotiated until every rank has announced it, then reduced, gathered or sent in phases.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "ingest/importer.h"
#include "ingest/json_objects.h"

namespace hotlap {
namespace {

constexpr std::size_t kObjectBytesMax = std::size_t{1} << 20;
constexpr std::size_t kTensorsMax = std::size_t{1} << 18;
constexpr std::size_t kOpenMax = 64;  // phases of one tensor inside each other; Horovod has 3
constexpr std::size_t kNameMax = 512;
constexpr double kTimeMaxUs = 9e15;  // beyond, nanoseconds leave int64

class HorovodImporter final : public StreamImporter {
 public:
  explicit HorovodImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    objects_.push(chunk_untrusted, [&](const JsonObjectText& object) { take(object); });
    return {};
  }

  // What the end of the file left open had not ended: of a job that hung, the collective in which it did.
  Result<ImportStats> finish() override {
    objects_.finish([&](const JsonObjectText& object) { take(object); });
    for (const auto& [id, tensor] : tensors_) {
      for (std::size_t i = 0; i < tensor.open.size(); ++i) {
        out_.count_loss("ingest.begins_unmatched", 1, tensor.open[i].offset);
        give(tensor, tensor.open[i], -1, i);
      }
    }
    return ImportStats{.bytes = objects_.bytes(), .events = events_};
  }

 private:
  struct Open {
    std::string name;
    std::int64_t start_ns = 0;
    std::int64_t offset = 0;
    std::int64_t last_rank = -1;  // that announced the tensor
    std::int64_t ranks = 0;
  };
  struct Tensor {
    std::string name;
    std::vector<Open> open;
  };

  void take(const JsonObjectText& object) {
    if (process_ == 0) {
      // Microseconds since Horovod started, or of the machine's monotonic clock: which is not told.
      out_.clock({.offset_ns = 0, .uncertainty_ns = -1, .is_absolute = false});
      process_ = out_.process({.role = ProcessRole::kRank, .index = 0});
    }
    bool is_read = false;
    if (object.is_whole) {
      const auto document = JsonDocument::parse(object.text, true);
      is_read = document.ok() && take_event(document->root(), object.offset);
    }
    if (!is_read) out_.count_loss("ingest.events_dropped", 1, object.offset);
  }

  bool take_event(const JsonValue& event, std::int64_t offset) {
    const auto kind = event["ph"].text();
    if (!kind) return event.keys().empty();
    const auto id = event["pid"].integer();
    if (*kind == "M") {
      const auto name = event["args"]["name"].text();
      if (event["name"].text() != "process_name") return true;
      if (!id || !name) return false;
      Tensor* const tensor = tensor_of(*id);
      if (tensor == nullptr) return false;
      tensor->name = strip_control(std::string_view(*name).substr(0, kNameMax));
      return true;
    }
    const auto time_us = event["ts"].number();
    if (!time_us || !(std::fabs(*time_us) < kTimeMaxUs)) return false;
    const std::int64_t t_ns = std::llround(*time_us * 1e3);
    if (*kind == "i" || *kind == "I") {  // a cycle of the background thread begins
      out_.count_loss("ingest.events_skipped", 1, offset);
      return true;
    }
    Tensor* const tensor = id ? tensor_of(*id) : nullptr;
    if (tensor == nullptr) return false;
    if (*kind == "B") return begin(event, *tensor, t_ns, offset);
    if (*kind == "E") return end(*tensor, t_ns, offset);
    if (*kind == "X") return complete(event, *tensor, t_ns, offset);
    return false;
  }

  Tensor* tensor_of(std::int64_t id) {
    const auto found = tensors_.find(id);
    if (found != tensors_.end()) return &found->second;
    return tensors_.size() == kTensorsMax ? nullptr : &tensors_[id];
  }

  bool begin(const JsonValue& event, Tensor& tensor, std::int64_t t_ns, std::int64_t offset) {
    auto name = event["name"].text();
    if (!name || tensor.open.size() == kOpenMax) return false;
    tensor.open.push_back({.name = std::move(*name), .start_ns = t_ns, .offset = offset});
    return true;
  }

  bool end(Tensor& tensor, std::int64_t t_ns, std::int64_t offset) {
    if (tensor.open.empty()) {
      out_.count_loss("ingest.ends_unmatched", 1, offset);
      return true;
    }
    const Open open = std::move(tensor.open.back());
    tensor.open.pop_back();
    if (t_ns < open.start_ns) out_.count_loss("ingest.durations_invalid", 1, offset);
    give(tensor, open, t_ns < open.start_ns ? -1 : t_ns - open.start_ns, tensor.open.size());
    return true;
  }

  // A rank announces the tensor: an event without duration whose name is the rank.
  bool complete(const JsonValue& event, Tensor& tensor, std::int64_t t_ns, std::int64_t offset) {
    const auto name = event["name"].text();
    if (!name) return false;
    const auto rank = parse_u64(*name);
    if (rank && *rank < 1'000'000 && !tensor.open.empty() && tensor.open.back().name.starts_with("NEGOTIATE_")) {
      tensor.open.back().last_rank = static_cast<std::int64_t>(*rank);
      ++tensor.open.back().ranks;
      ++events_;
      return true;
    }
    const auto duration_us = event["dur"].number();
    const bool has_duration = duration_us && *duration_us >= 0 && *duration_us < kTimeMaxUs;
    if (!has_duration) out_.count_loss("ingest.durations_invalid", 1, offset);
    const Open whole{.name = rank ? format("rank {} is ready", *rank) : *name, .start_ns = t_ns, .offset = offset};
    give(tensor, whole, has_duration ? std::llround(*duration_us * 1e3) : -1, rank ? 1 : 0);
    return true;
  }

  // `depth`: phases around it. Only the outermost are collectives, so that none is counted twice.
  void give(const Tensor& tensor, const Open& open, std::int64_t duration_ns, std::size_t depth) {
    ++events_;
    const std::string name = tensor.name.empty() ? open.name : format("{}: {}", tensor.name, open.name);
    out_.span({.start_ns = open.start_ns,
               .duration_ns = duration_ns,
               .kind = depth == 0 ? SpanKind::kCollective : SpanKind::kUser,
               .process = process_,
               .name = out_.name(strip_control(name).substr(0, 2 * kNameMax)),
               .value_a = open.last_rank,
               .value_b = open.ranks > 0 ? open.ranks : -1});
  }

  ImportSink& out_;
  JsonObjectCutter objects_{kObjectBytesMax};
  std::map<std::int64_t, Tensor> tensors_;  // by the row in which its events stand
  std::uint32_t process_ = 0;
  std::uint64_t events_ = 0;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string_view head = as_text(head_untrusted);
  const auto has = [&](std::string_view text) { return head.find(text) != std::string_view::npos; };
  return trim(head).starts_with('[') && has("\"ph\"") && !has("\"start_time_since_epoch_in_micros\"") &&
         (has("\"NEGOTIATE_") || has("\"CYCLE_START\"") || has("HorovodAll") || has("HorovodBroadcast"));
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<HorovodImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_horovod{.name = "horovod",
                                                     .summary = "Horovod timelines (HOROVOD_TIMELINE), also unclosed.",
                                                     .extensions = ".json",
                                                     .priority = 330,
                                                     .sniff = sniff,
                                                     .open_stream = open_stream};

}  // namespace hotlap
