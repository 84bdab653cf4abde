// What shows of the communication between ranks: explicit calls, the timers of DistributedDataParallel's reducer, and
// what of it nobody sees.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/analyzer.h"
#include "analysis/figure_table.h"
#include "analysis/step_table.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/json_reader.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"calls_per_step", "{call}", "explicit calls of torch.distributed inside steps, waits left out"},
    FactField{"host_ms_per_step", "ms", "time of the host in them, and in waiting for work that ran meanwhile"},
    FactField{"bytes_per_step", "By", "that the rank handed in"},
    FactField{"call", "text", "the one that took most time"},
    FactField{"call_ms_per_step", "ms", "its time"},
    FactField{"reducer_ms", "ms", "from the first bucket's all-reduce to the end of the last, per backward"},
    FactField{"reducer_overlap_ms", "ms", "the part of it during which backward still computed"},
    FactField{"reducer_exposed_ms", "ms", "the rest: backward waited for it"},
    FactField{"unseen", "text", "where communication happens of which neither shows how long it takes"},
};
constexpr std::array kSchemas{
    FactSchema{"communication.summary", "communication of one rank, as far as it shows", kFields}};
constexpr std::array kSpans{SpanKind::kCollective};
constexpr std::array<std::string_view, 1> kMetrics{"ddp."};
constexpr std::size_t kNamesMax = 1024;  // per process

struct Calls {
  std::uint64_t count = 0;
  std::int64_t ns = 0;
};

struct Process {
  std::uint64_t calls = 0;
  std::int64_t ns = 0;
  double bytes = 0;
  bool has_bytes = false;
  std::map<std::string, Calls> by_name;
};

class CommunicationAnalyzer final : public Analyzer {
 public:
  explicit CommunicationAnalyzer(const RunDescription& run) : run_(run), table_(run.steps) {}
  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    figures_.add(series, points);
  }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override {
    figures_.add(series, minutes);
  }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.step < 0 || span.duration_ns < 0) continue;
      Process& process = by_slot_[span.process];
      const std::string name = run_.name_of(span.name);
      if (name != "wait") ++process.calls;
      process.ns += span.duration_ns;
      if (span.value_a >= 0) {
        process.bytes += static_cast<double>(span.value_a);
        process.has_bytes = true;
      }
      auto found = process.by_name.find(name);
      if (found == process.by_name.end()) {
        if (process.by_name.size() >= kNamesMax) continue;
        found = process.by_name.emplace(name, Calls{}).first;
      }
      ++found->second.count;
      found->second.ns += span.duration_ns;
    }
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const CommunicationAnalyzer&>(other);
    for (const StepTable::Entry& entry : from.table_->entries()) {
      Fact fact = from.fact_of(entry);
      fact.where.node = from.run_.recording->node;
      if (!fact.fields.empty()) merged_.push_back(std::move(fact));
    }
    merged_.insert(merged_.end(), from.merged_.begin(), from.merged_.end());
  }

  void snapshot(FactTable& out) const override {
    for (const StepTable::Entry& entry : table_->entries()) {
      Fact fact = fact_of(entry);
      if (!fact.fields.empty()) out.add(std::move(fact));
    }
    for (const Fact& fact : merged_) out.add(fact);
  }

 private:
  Fact fact_of(const StepTable::Entry& entry) const {
    Fact fact{.kind = "communication.summary", .where = entry.where};
    fact.where.process = entry.process;
    if (entry.steps->rank() >= 0) fact.where.rank = entry.steps->rank();
    const auto steps = static_cast<double>(entry.steps->count());
    if (const auto found = by_slot_.find(entry.slot); found != by_slot_.end() && steps > 0) {
      const Process& process = found->second;
      const auto ms_per_step = [&](std::int64_t ns) {
        return static_cast<double>(ns) / steps / static_cast<double>(kNsPerMs);
      };
      fact.set("calls_per_step", static_cast<double>(process.calls) / steps);
      fact.set("host_ms_per_step", ms_per_step(process.ns));
      if (process.has_bytes) fact.set("bytes_per_step", process.bytes / steps);
      const auto most = std::ranges::max_element(process.by_name, {}, [](const auto& one) { return one.second.ns; });
      if (most != process.by_name.end()) {
        fact.set_text("call", most->first).set("call_ms_per_step", ms_per_step(most->second.ns));
      }
    }
    const auto whole = settled_mean_of(figures_.find("ddp.communication.ms", entry.process));
    const auto overlap = settled_mean_of(figures_.find("ddp.overlap.ms", entry.process));
    fact.set("reducer_ms", whole).set("reducer_overlap_ms", overlap);
    if (whole && overlap) fact.set("reducer_exposed_ms", std::max(*whole - *overlap, 0.0));
    const auto unseen = run_.recording->attributes.find(format("process.{}.communication_unseen", entry.process));
    if (unseen == run_.recording->attributes.end()) return fact;
    const Result<JsonDocument> document = JsonDocument::parse(unseen->second);
    const auto text = document.ok() ? document->root().text() : std::nullopt;
    // The reducer's timers show what DistributedDataParallel would hide.
    if (text && !(whole && *text == "DistributedDataParallel")) fact.set_text("unseen", *text);
    return fact;
  }

  RunDescription run_;
  const StepTable* table_;
  std::map<std::uint32_t, Process> by_slot_;
  FigureTable figures_;
  std::vector<Fact> merged_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<CommunicationAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_communication{.id = "communication",
                                                           .summary = "What shows of the communication between ranks.",
                                                           .produces = kSchemas,
                                                           .metrics = kMetrics,
                                                           .spans = kSpans,
                                                           .takes_minutes = true,
                                                           .open = open};

}  // namespace hotlap
