// The stages of a pipeline side by side, in the timeline of a whole job: what each computes in a step. Stages hand on
// to each other what they have computed, so that the slowest sets the pace of all.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analyzer.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/phase_names.h"

namespace hotlap {
namespace {

constexpr std::array kSummaryFields{
    FactField{"stages", "1", "of the pipeline, that compute"},
    FactField{"replicas", "1", "processes that each run all stages: data-parallel ranks"},
    FactField{"steps", "{step}", "in which all of them were seen"},
    FactField{"micro_batches", "1", "of one replica's step: forward passes of a stage, mean"},
    FactField{"slowest_stage", "1", "that computes longest, mean over steps and replicas"},
    FactField{"slowest_ms", "ms", "that it computes in a step"},
    FactField{"others_ms", "ms", "that the others do, median"},
    FactField{"mean_ms", "ms", "that all do: of each, were the work split evenly"},
    FactField{"slowest_share_pct", "%", "of the steps in which this stage was the slowest"},
    FactField{"even_saves_ms", "ms",
              "of a step, were the work split evenly: all micro-batches but one wait for the slowest stage"},
};
constexpr std::array kStageFields{
    FactField{"stage", "1", "its number, as the timeline has it"},
    FactField{"compute_ms", "ms", "that it computes in a step, mean over steps and replicas"},
    FactField{"forward_ms", "ms", "the part of it in the forward pass"},
    FactField{"backward_ms", "ms", "the part of it in the backward pass"},
    FactField{"slowest_share_pct", "%", "of the steps in which it was the slowest"},
};
constexpr std::array kSchemas{
    FactSchema{"pipeline.summary", "the stages of a pipeline side by side, from a timeline that names them",
               kSummaryFields},
    FactSchema{"pipeline.stage", "one stage of a pipeline", kStageFields}};
constexpr std::array kSpans{SpanKind::kOperator, SpanKind::kForward, SpanKind::kBackward};

constexpr std::size_t kCellsMax = std::size_t{1} << 18;  // stages of a step of a replica
constexpr std::size_t kNamesMax = 1'000'000;

double ms(double ns) { return ns / static_cast<double>(kNsPerMs); }

struct Work {
  double forward_ns = 0;
  double backward_ns = 0;
  double forwards = 0;
  double ns() const { return forward_ns + backward_ns; }
};
using Stages = std::map<std::int32_t, Work>;  // of one step of one replica

// "process.2.thread.31.stage"
std::optional<std::pair<std::uint32_t, std::uint32_t>> thread_of(std::string_view attribute) {
  constexpr std::string_view kProcess = "process.";
  constexpr std::string_view kThread = ".thread.";
  constexpr std::string_view kStage = ".stage";
  const std::size_t thread = attribute.find(kThread);
  if (!attribute.starts_with(kProcess) || !attribute.ends_with(kStage) || thread == std::string_view::npos)
    return std::nullopt;
  const auto slot = parse_u64(attribute.substr(kProcess.size(), thread - kProcess.size()));
  attribute.remove_prefix(thread + kThread.size());
  attribute.remove_suffix(std::min(kStage.size(), attribute.size()));
  const auto number = parse_u64(attribute);
  if (!slot || !number || *slot > UINT32_MAX || *number > UINT32_MAX) return std::nullopt;
  return std::pair(static_cast<std::uint32_t>(*slot), static_cast<std::uint32_t>(*number));
}

// Of all steps of all replicas that have as many stages as the pipeline.
struct Sums {
  std::size_t stages = 0;
  double cells = 0;
  std::map<std::uint64_t, double> replicas;  // steps of each
  Stages work;
  std::map<std::int32_t, double> slowest;  // times
};

class PipelineAnalyzer final : public Analyzer {
 public:
  explicit PipelineAnalyzer(const RunDescription& run) : name_of_(run.name_of) {
    if (run.recording == nullptr) return;
    for (const auto& [key, value] : run.recording->attributes) {
      const auto where = thread_of(key);
      const auto stage = parse_i64(value);
      if (where && stage && *stage >= 0 && *stage <= INT32_MAX)
        threads_[*where].stage = static_cast<std::int32_t>(*stage);
    }
  }

  void on_spans(std::span<const Span> spans) override {
    if (threads_.empty()) return;
    for (const Span& span : spans) add(span);
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const PipelineAnalyzer&>(other);
    // Another recording's processes are others: stages whose ranks were recorded apart do not meet here.
    const std::uint64_t shift = ++merged_ << 32U;
    for (const auto& [where, stages] : from.cells_)
      cells_.emplace(std::pair(where.first + shift, where.second), stages);
  }

  void snapshot(FactTable& out) const override {
    const Sums sums = sums_of();
    if (sums.stages < 2 || sums.cells <= 0) return;
    const auto slowest = std::ranges::max_element(sums.work, {}, [](const auto& one) { return one.second.ns(); });
    std::vector<double> others;
    double all_ns = 0;
    for (const auto& [stage, work] : sums.work) {
      all_ns += work.ns();
      if (stage != slowest->first) others.push_back(work.ns());
    }
    std::ranges::nth_element(others, others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2));
    const double mean_ns = all_ns / static_cast<double>(sums.stages);
    const auto per_step = [&](double ns) { return ms(ns / sums.cells); };
    const auto share_of = [&](std::int32_t stage) {
      const auto found = sums.slowest.find(stage);
      return found == sums.slowest.end() ? 0 : 100 * found->second / sums.cells;
    };
    Fact summary{.kind = "pipeline.summary"};
    double steps = 0;
    for (const auto& [replica, count] : sums.replicas) steps = std::max(steps, count);
    summary.set("stages", static_cast<double>(sums.stages)).set("steps", steps);
    summary.set("replicas", static_cast<double>(sums.replicas.size()));
    summary.set("slowest_stage", slowest->first).set("slowest_ms", per_step(slowest->second.ns()));
    summary.set("others_ms", per_step(others[others.size() / 2])).set("mean_ms", per_step(mean_ns));
    summary.set("slowest_share_pct", share_of(slowest->first));
    if (const double batches = slowest->second.forwards / sums.cells; batches >= 1) {
      summary.set("micro_batches", batches);
      // Filling and draining passes through every stage once, however the work is split.
      summary.set("even_saves_ms", per_step(slowest->second.ns() - mean_ns) * (batches - 1) / batches);
    }
    out.add(std::move(summary));
    for (const auto& [stage, work] : sums.work) {
      Fact fact{.kind = "pipeline.stage"};
      fact.set("stage", stage).set("compute_ms", per_step(work.ns())).set("forward_ms", per_step(work.forward_ns));
      fact.set("backward_ms", per_step(work.backward_ns)).set("slowest_share_pct", share_of(stage));
      out.add(std::move(fact));
    }
  }

 private:
  struct Thread {
    std::int32_t stage = 0;
    std::int64_t end_ns = INT64_MIN;  // of what was counted: what lies inside it is part of it
  };

  PhaseName phase_of(const Span& span) {
    if (span.kind == SpanKind::kForward) return PhaseName::kForward;
    if (span.kind == SpanKind::kBackward) return PhaseName::kBackward;
    if (span.name >= kNamesMax) return PhaseName::kNone;
    if (span.name >= phases_.size()) phases_.resize(span.name + 1);
    std::optional<PhaseName>& phase = phases_[span.name];
    if (!phase) phase = phase_name(name_of_(span.name));
    return *phase;
  }

  void add(const Span& span) {
    if (span.step < 0 || span.duration_ns < 0) return;
    const auto thread = threads_.find({span.process, span.thread});
    if (thread == threads_.end()) return;
    // What lies inside something that was taken is part of it; neighbours may overlap by what a clock is read apart.
    const std::int64_t start_ns = std::max(span.start_ns, thread->second.end_ns);
    if (start_ns - span.start_ns >= span.duration_ns / 2 && start_ns > span.start_ns) return;
    const PhaseName phase = phase_of(span);
    if (phase != PhaseName::kForward && phase != PhaseName::kBackward) return;
    thread->second.end_ns = span.start_ns + span.duration_ns;
    const std::pair<std::uint64_t, std::int64_t> where(span.process, span.step);
    if (kept_ >= kCellsMax) return;
    const auto [work, is_new] = cells_[where].try_emplace(thread->second.stage);
    kept_ += is_new ? 1 : 0;
    (phase == PhaseName::kForward ? work->second.forward_ns : work->second.backward_ns) +=
        static_cast<double>(thread->second.end_ns - start_ns);
    if (phase == PhaseName::kForward) work->second.forwards += 1;
  }

  Sums sums_of() const {
    Sums sums;
    for (const auto& [where, stages] : cells_) sums.stages = std::max(sums.stages, stages.size());
    for (const auto& [where, stages] : cells_) {
      if (stages.size() < sums.stages) continue;
      sums.cells += 1;
      sums.replicas[where.first] += 1;
      for (const auto& [stage, work] : stages) {
        Work& sum = sums.work[stage];
        sum.forward_ns += work.forward_ns;
        sum.backward_ns += work.backward_ns;
        sum.forwards += work.forwards;
      }
      const auto slowest = std::ranges::max_element(stages, {}, [](const auto& one) { return one.second.ns(); });
      sums.slowest[slowest->first] += 1;
    }
    return sums;
  }

  std::function<std::string(std::uint32_t)> name_of_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Thread> threads_;  // by slot and thread
  std::vector<std::optional<PhaseName>> phases_;                       // by name
  std::map<std::pair<std::uint64_t, std::int64_t>, Stages> cells_;     // by replica and step
  std::size_t kept_ = 0;
  std::uint64_t merged_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<PipelineAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_pipeline{
    .id = "pipeline",
    .summary = "The stages of a pipeline side by side, from a job's timeline.",
    .produces = kSchemas,
    .metrics = {},
    .spans = kSpans,
    .open = open};

}  // namespace hotlap
