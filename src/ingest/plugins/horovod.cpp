// Horovod's own timeline (HOROVOD_TIMELINE): a list of trace events, one row for each tensor, closed or not. A tensor
// is negotiated until every rank has announced it, then reduced, gathered or sent in phases.
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/importer.h"
#include "ingest/trace_reader.h"

namespace hotlap {
namespace {

constexpr std::size_t kTensorsMax = std::size_t{1} << 18;
constexpr std::size_t kOpenMax = 64;  // phases of one tensor inside each other; Horovod has 3
constexpr std::size_t kNameMax = 512;
constexpr std::int64_t kTimeMaxNs = 4'000'000'000'000'000'000;  // the difference of two stays inside int64

class HorovodImporter final : public StreamImporter, private TraceReader::Handler {
 public:
  explicit HorovodImporter(ImportSink& out) : out_(out), reader_(*this, {.is_strict = out.is_strict()}) {}

  Result<void> push(ByteView chunk_untrusted) override {
    if (process_ == 0) {
      // Microseconds since Horovod started, or of the machine's monotonic clock: which is not told.
      out_.clock({.offset_ns = 0, .uncertainty_ns = -1, .is_absolute = false});
      process_ = out_.process({.role = ProcessRole::kRank, .index = 0});
    }
    reader_.push(chunk_untrusted);
    return {};
  }

  // What the end of the file left open had not ended: of a job that hung, the collective in which it did.
  Result<ImportStats> finish() override {
    reader_.finish();
    for (const auto& [id, tensor] : tensors_) {
      for (std::size_t i = 0; i < tensor.open.size(); ++i) {
        out_.count_loss("ingest.begins_unmatched", 1, tensor.open[i].offset);
        give(tensor, tensor.open[i], -1, i);
      }
    }
    return ImportStats{.bytes = reader_.bytes(), .events = events_};
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

  void on_loss(std::string_view counter, std::int64_t offset) override { out_.count_loss(counter, 1, offset); }
  void on_member(std::string_view, std::string_view) override {}
  void on_event(const TraceEvent& event, std::int64_t offset) override {
    if (event.phase == 0 && event.name.raw.empty() && !event.has_start) return;  // {} ends many a list
    if (!take_event(event, offset)) on_loss("ingest.events_dropped", offset);
  }

  std::string name_of(const TraceEvent& event, std::int64_t offset) {
    return clean_name(event, kNameMax, [&](std::string_view counter) { on_loss(counter, offset); });
  }

  bool take_event(const TraceEvent& event, std::int64_t offset) {
    const auto id = json::whole_number(event.process);
    if (event.phase == 'M') {
      if (event.name.raw != "process_name") return true;
      Tensor* const tensor = id && !event.argument_name.raw.empty() ? tensor_of(*id) : nullptr;
      if (tensor == nullptr) return false;
      std::string name;
      (void)json::append_clean({.raw = event.argument_name.raw.substr(0, kNameMax)}, name);
      tensor->name = strip_control(name);
      return true;
    }
    if (!event.has_start || event.start_ns > kTimeMaxNs || event.start_ns < -kTimeMaxNs) return false;
    if (event.phase == 'i' || event.phase == 'I') {  // a cycle of the background thread begins
      on_loss("ingest.events_skipped", offset);
      return true;
    }
    Tensor* const tensor = id ? tensor_of(*id) : nullptr;
    if (tensor == nullptr) return false;
    if (event.phase == 'B') return begin(event, *tensor, offset);
    if (event.phase == 'E') return end(*tensor, event.start_ns, offset);
    if (event.phase == 'X') return complete(event, *tensor, offset);
    return false;
  }

  Tensor* tensor_of(std::int64_t id) {
    const auto found = tensors_.find(id);
    if (found != tensors_.end()) return &found->second;
    return tensors_.size() == kTensorsMax ? nullptr : &tensors_[id];
  }

  bool begin(const TraceEvent& event, Tensor& tensor, std::int64_t offset) {
    if (event.name.raw.empty() || tensor.open.size() == kOpenMax) return false;
    tensor.open.push_back({.name = name_of(event, offset), .start_ns = event.start_ns, .offset = offset});
    return true;
  }

  bool end(Tensor& tensor, std::int64_t t_ns, std::int64_t offset) {
    if (tensor.open.empty()) {
      on_loss("ingest.ends_unmatched", offset);
      return true;
    }
    const Open open = std::move(tensor.open.back());
    tensor.open.pop_back();
    const bool is_reversed = t_ns < open.start_ns;
    if (is_reversed) on_loss("ingest.durations_invalid", offset);
    give(tensor, open, is_reversed ? -1 : t_ns - open.start_ns, tensor.open.size());
    return true;
  }

  // A rank announces the tensor: an event without duration whose name is the rank.
  bool complete(const TraceEvent& event, Tensor& tensor, std::int64_t offset) {
    if (event.name.raw.empty()) return false;
    const auto rank = parse_u64(event.name.raw);
    if (rank && *rank < 1'000'000 && !tensor.open.empty() && tensor.open.back().name.starts_with("NEGOTIATE_")) {
      tensor.open.back().last_rank = static_cast<std::int64_t>(*rank);
      ++tensor.open.back().ranks;
      ++events_;
      return true;
    }
    const bool has_duration = event.has_duration && event.duration_ns >= 0 && event.duration_ns <= kTimeMaxNs;
    if (!has_duration) on_loss("ingest.durations_invalid", offset);
    const Open whole{.name = rank ? format("rank {} is ready", *rank) : name_of(event, offset),
                     .start_ns = event.start_ns,
                     .offset = offset};
    give(tensor, whole, has_duration ? event.duration_ns : -1, rank ? 1 : 0);
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
  TraceReader reader_;
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
