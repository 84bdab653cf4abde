// What a batch costs where it is made: wall and CPU time per batch, its parts, how busy the workers are, and the
// loader's settings. Batches are made in worker processes, or inside next() when there are none. A process may have
// several loaders, told apart by the name on their spans: the facts are those of the one whose batches feed steps,
// whatever an evaluation's cost.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/analyzer.h"
#include "analysis/block_means.h"
#include "analysis/log_histogram.h"
#include "analysis/time_profile.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/json_reader.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"known", "1", "1: a loader that the hook knows; 0: only the gap before forward was seen"},
    FactField{"workers", "{process}", "num_workers"},
    FactField{"workers_seen", "{process}", "worker processes that made batches"},
    FactField{"in_process", "1", "1: batches are made inside next(), there are no workers"},
    FactField{"batches", "{batch}", "batches that the times below are made of"},
    FactField{"batch_wall_ms", "ms", "time of one worker per batch"},
    FactField{"batch_wall_half_width_ms", "ms", "half of its 95 % interval"},
    FactField{"batch_wall_p90_ms", "ms", ""},
    FactField{"batch_wall_cv", "1", "standard deviation of single batches over their mean"},
    FactField{"batch_cpu_ms", "ms", "CPU time of one batch"},
    FactField{"fetch_ms", "ms", "of a batch: getting the dataset's items, transforms included"},
    FactField{"transform_ms", "ms", "of a batch: recognisable transforms"},
    FactField{"collate_ms", "ms", "of a batch: putting items together"},
    FactField{"batch_bytes", "By", "size of a batch"},
    FactField{"worker_busy_share", "1", "share of time that the workers were making batches"},
    FactField{"queue_depth", "{batch}", "batches that were ready, mean"},
    FactField{"starts", "{start}", "times that workers were started"},
    FactField{"start_s", "s", "mean time from making the iterator to the first batch"},
    FactField{"batch_size", "{sample}", ""},
    FactField{"prefetch_factor", "{batch}", "batches that each worker makes ahead"},
    FactField{"persistent_workers", "1", ""},
    FactField{"epoch_batches", "{batch}", "of one pass over the data, as the loader tells its length"},
    FactField{"pin_memory", "1", ""},
    FactField{"start_method", "text", "fork, spawn or forkserver"},
    FactField{"dataset", "text", "class of the dataset"},
    FactField{"process", "text", "label of the training process"},
    FactField{"loader", "text", "which loader it is"},
    FactField{"loaders", "1", "loaders of the process that made batches or were waited for; evaluation's among them"},
};
constexpr std::array kSchemas{
    FactSchema{"loader.summary", "the data loader of one training process whose batches feed its steps", kFields}};
constexpr std::array kSpans{SpanKind::kWorkerBatch,   SpanKind::kWorkerFetch, SpanKind::kWorkerTransform,
                            SpanKind::kWorkerCollate, SpanKind::kWorkerStart, SpanKind::kDataWait};
constexpr std::array kMetrics{std::string_view{"hook.user.value"}};

constexpr std::uint64_t kFirstBatchesLeftOut = 2;  // of each worker: imports, cold caches, everybody starting at once
constexpr std::size_t kWorkersMax = 4096;
constexpr std::size_t kGroupsMax = 1024;
constexpr std::size_t kDepthsMax = 1024;
constexpr std::string_view kDepth = "loader.queue_depth";

// Mean and variance of many values, one at a time (Welford).
struct Moments {
  std::uint64_t n = 0;
  double mean = 0;
  double squares = 0;
  void add(double value) {
    ++n;
    const double delta = value - mean;
    mean += delta / static_cast<double>(n);
    squares += delta * (value - mean);
  }
};

struct Sum {
  double ns = 0;
  std::uint64_t n = 0;
  void add(std::int64_t value) {
    if (value < 0) return;
    ns += static_cast<double>(value);
    ++n;
  }
  std::optional<double> mean_ms() const {
    return n == 0 ? std::nullopt : std::optional(ns / static_cast<double>(n) / static_cast<double>(kNsPerMs));
  }
};

struct Worker {
  std::uint64_t batches = 0;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::int64_t busy_ns = 0;
};

// One loader of one training process.
struct Group {
  std::string node;
  std::uint32_t owner = 0;  // slot of the training process
  std::uint32_t name = 0;   // of its spans; 0: the hook did not know which loader it was
  std::string process;
  std::int32_t rank = -1;
  std::string loader;    // text of `name`
  std::string settings;  // JSON; empty: unknown
  std::size_t loaders = 0;
  bool is_chosen = false;  // what comes after the spans is filled in
  std::optional<double> queue_depth;
  std::uint64_t step_batches = 0;  // that steps waited for
  std::int64_t step_wait_ns = 0;
  bool is_in_process = false;
  std::map<std::uint32_t, Worker> workers;
  BlockMeans wall_blocks{8};
  LogHistogram wall_ns;
  Moments wall;
  Sum cpu;
  Sum fetch;
  Sum transform;
  Sum collate;
  Sum start;
  Sum first_batches;  // left out, unless there is nothing else
  Sum first_cpu;
  double bytes = 0;
  std::uint64_t bytes_n = 0;
};

double truth(const std::optional<bool>& value) { return value.value_or(false) ? 1 : 0; }

class LoaderAnalyzer final : public Analyzer {
 public:
  explicit LoaderAnalyzer(const RunDescription& run) : run_(run) { on_processes(run.processes); }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) processes_[process.slot] = process;
  }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns < 0) continue;
      switch (span.kind) {
        case SpanKind::kDataWait: on_wait(span); break;
        case SpanKind::kWorkerStart:
          if (Group* group = group_of(span.process, span.name)) group->start.add(span.duration_ns);
          break;
        default: on_worker_span(span);
      }
    }
  }

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  void merge(const Analyzer& other) override {
    for (Group& group : static_cast<const LoaderAnalyzer&>(other).training_groups()) {
      groups_.push_back(std::move(group));
    }
  }

  void snapshot(FactTable& out) const override {
    std::vector<Group> groups = training_groups();
    std::ranges::stable_sort(groups, {}, &Group::rank);
    std::map<std::pair<std::string, std::string>, const Group*> best;  // a restarted recorder has a process twice
    for (const Group& group : groups) {
      const Group*& kept = best[{group.node, group.process}];
      if (kept == nullptr || kept->wall.n < group.wall.n) kept = &group;
    }
    for (const Group& group : groups) {
      if (best[{group.node, group.process}] == &group) add_fact(group, best.size() > 1, out);
    }
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (series.instance.find(kDepth) == std::string::npos) return;
    if (queue_depths_.size() >= kDepthsMax && !queue_depths_.contains(series.instance)) return;
    queue_depths_[series.instance].add(points, series.scale);
  }

  const ProcessInfo* process_of(std::uint32_t slot) const {
    const auto found = processes_.find(slot);
    return found == processes_.end() ? nullptr : &found->second;
  }

  // A process of Python's multiprocessing that does nothing but fork what its own parent asks for.
  static bool is_fork_server(const ProcessInfo& process) {
    return process.role == ProcessRole::kOther &&
           process.command.find("multiprocessing.forkserver") != std::string::npos;
  }

  // The training process that batches of `slot` are for.
  std::uint32_t owner_of(std::uint32_t slot) const {
    const ProcessInfo* process = process_of(slot);
    if (process == nullptr || process->role != ProcessRole::kLoader) return slot;
    const ProcessInfo* parent = process_of(process->parent);
    if (parent != nullptr && is_fork_server(*parent)) process = parent;
    if (process->parent != 0) return process->parent;
    // Its parent was not seen: the only training process, if there is just one.
    std::uint32_t owner = 0;
    for (const auto& [number, candidate] : processes_) {
      if (candidate.role != ProcessRole::kMain && candidate.role != ProcessRole::kRank) continue;
      if (owner != 0) return 0;
      owner = number;
    }
    return owner;
  }

  Group* group_of(std::uint32_t owner, std::uint32_t name) {
    const auto found =
        std::ranges::find_if(groups_, [&](const Group& group) { return group.owner == owner && group.name == name; });
    if (found != groups_.end()) return &*found;
    if (groups_.size() >= kGroupsMax) return nullptr;
    Group& group = groups_.emplace_back();
    group.owner = owner;
    group.name = name;
    return &group;
  }

  void on_wait(const Span& span) {
    Group* group = group_of(span.process, span.name);
    // Without samples: making the iterator, or the end of the data, both before it is known what they are for.
    if (group == nullptr || span.step < 0 || span.value_a == 0) return;
    ++group->step_batches;
    group->step_wait_ns += span.duration_ns;
  }

  void on_worker_span(const Span& span) {
    const std::uint32_t owner = owner_of(span.process);
    Group* group = group_of(owner, span.name);
    if (group == nullptr) return;
    switch (span.kind) {
      case SpanKind::kWorkerFetch: group->fetch.add(span.duration_ns); return;
      case SpanKind::kWorkerTransform: group->transform.add(span.duration_ns); return;
      case SpanKind::kWorkerCollate: group->collate.add(span.duration_ns); return;
      default: break;
    }
    if (owner == span.process) group->is_in_process = true;
    if (group->workers.size() >= kWorkersMax && !group->workers.contains(span.process)) return;
    Worker& worker = group->workers[span.process];
    if (span.value_b >= 0) {
      group->bytes += static_cast<double>(span.value_b);
      ++group->bytes_n;
    }
    if (worker.batches++ < kFirstBatchesLeftOut) {
      group->first_batches.add(span.duration_ns);
      group->first_cpu.add(span.value_a);
      return;
    }
    if (worker.first_ns == 0) worker.first_ns = span.start_ns;
    worker.last_ns = std::max(worker.last_ns, span.start_ns + span.duration_ns);
    worker.busy_ns += span.duration_ns;
    group->wall_blocks.add(static_cast<double>(span.duration_ns));
    group->wall_ns.add(static_cast<double>(span.duration_ns));
    group->wall.add(static_cast<double>(span.duration_ns));
    group->cpu.add(span.value_a);
  }

  // Of each process the loader that feeds its steps, with what may have come after its spans: names and settings.
  std::vector<Group> training_groups() const {
    std::vector<Group> out;
    std::map<std::uint32_t, std::vector<const Group*>> of_owner;
    for (const Group& group : groups_) {
      if (group.is_chosen) {
        out.push_back(group);  // of another recording, chosen there
      } else {
        of_owner[group.owner].push_back(&group);
      }
    }
    for (const auto& [owner, groups] : of_owner) out.push_back(training_group(owner, groups));
    return out;
  }

  Group training_group(std::uint32_t owner, const std::vector<const Group*>& groups) const {
    const auto feeds = [](const Group* group) {
      return std::tuple(group->step_batches, group->step_wait_ns, group->wall.n + group->first_batches.n);
    };
    const Group* chosen = *std::ranges::max_element(groups, {}, feeds);
    Group out = *chosen;
    // A hook that did not say whose batches they are: those of all loaders are taken together.
    const auto nameless = std::ranges::find(groups, 0U, &Group::name);
    if (chosen->workers.empty() && nameless != groups.end() && *nameless != chosen) {
      out = **nameless;
      out.name = chosen->name;
      if (chosen->start.n > 0) out.start = chosen->start;
    }
    out.is_chosen = true;
    out.node = run_.recording->node;
    out.loader = run_.name_of ? run_.name_of(out.name) : std::string();
    out.loaders =
        static_cast<std::size_t>(std::ranges::count_if(groups, [](const Group* group) { return group->name != 0; }));
    if (const ProcessInfo* process = process_of(owner)) {
      out.process = slot_label(*process);
      if (process->role == ProcessRole::kRank) out.rank = process->index;
    }
    out.settings = settings_of(out);
    out.queue_depth = queue_depth_of(out);
    return out;
  }

  // The hook's INFO record "loader.N", of "loader N (…)"; an earlier hook said "loader", whichever it was.
  std::string settings_of(const Group& group) const {
    const auto& attributes = run_.recording->attributes;
    const std::string prefix = format("process.{}.loader", group.process);
    constexpr std::string_view kNamed = "loader ";
    if (group.loader.starts_with(kNamed)) {
      const std::size_t end = group.loader.find(' ', kNamed.size());
      const auto found = attributes.find(prefix + "." + group.loader.substr(kNamed.size(), end - kNamed.size()));
      if (found != attributes.end()) return found->second;
    }
    for (const std::string& key : {prefix, prefix + ".1"}) {
      if (const auto found = attributes.find(key); found != attributes.end()) return found->second;
    }
    return {};
  }

  std::optional<double> queue_depth_of(const Group& group) const {
    const std::string early = format("{} {}", group.process, kDepth);
    for (const std::string& instance : {early + " " + group.loader, early}) {
      const auto found = queue_depths_.find(instance);
      if (found != queue_depths_.end() && found->second.last()) {
        return found->second.mean(INT64_MIN / 4, INT64_MAX / 4);
      }
    }
    return std::nullopt;
  }

  void add_fact(const Group& group, bool has_several, FactTable& out) const {
    Fact fact{.kind = "loader.summary"};
    if (has_several && group.rank >= 0) fact.where.rank = group.rank;
    fact.set_text("process", group.process);
    if (!group.loader.empty()) fact.set_text("loader", group.loader);
    if (group.loaders > 0) fact.set("loaders", static_cast<double>(group.loaders));
    if (!group.settings.empty()) set_settings(group.settings, fact);
    set_costs(group, fact);
    if (group.start.n > 0) {
      fact.set("starts", static_cast<double>(group.start.n)).set("start_s", *group.start.mean_ms() / 1000);
    }
    fact.set("queue_depth", group.queue_depth);
    out.add(std::move(fact));
  }

  static void set_settings(const std::string& json, Fact& fact) {
    const Result<JsonDocument> document = JsonDocument::parse(json);
    if (!document.ok()) return;
    const JsonValue root = document->root();
    fact.set("known", truth(root["known"].truth()))
        .set("workers", root["num_workers"].number())
        .set("prefetch_factor", root["prefetch_factor"].number())
        .set("batch_size", root["batch_size"].number())
        .set("epoch_batches", root["batches"].number());
    for (const std::string_view name : {"persistent_workers", "pin_memory"}) {
      if (const auto value = root[name].truth()) fact.set(name, truth(value));
    }
    for (const std::string_view name : {"dataset", "start_method"}) {
      if (const auto value = root[name].text()) fact.set_text(name, *value);
    }
  }

  // Workers that are started anew each epoch keep their number.
  std::size_t workers_seen(const Group& group) const {
    if (group.is_in_process) return 0;
    std::set<std::pair<std::int32_t, std::uint32_t>> seen;
    for (const auto& [slot, worker] : group.workers) {
      const ProcessInfo* process = process_of(slot);
      const std::int32_t number = process == nullptr ? -1 : process->index;
      seen.emplace(number, number >= 0 ? 0 : slot);
    }
    return seen.size();
  }

  // Of a typical batch, by the part's share of all batches: the first ones, which are not typical, warm up in any part.
  static std::optional<double> part_ms(const Group& group, const Sum& part) {
    const double typical_ns = group.wall.mean * static_cast<double>(group.wall.n);
    const double all_ns = typical_ns + group.first_batches.ns;
    if (part.n == 0 || all_ns <= 0) return std::nullopt;
    const double batch_ms =
        group.wall.n > 0 ? group.wall.mean / static_cast<double>(kNsPerMs) : group.first_batches.mean_ms().value_or(0);
    return batch_ms * std::min(part.ns / all_ns, 1.0);
  }

  void set_costs(const Group& group, Fact& fact) const {
    if (group.workers.empty()) return;
    fact.set("in_process", group.is_in_process ? 1 : 0);
    fact.set("workers_seen", static_cast<double>(workers_seen(group)));
    const bool has_steady = group.wall.n > 0;
    fact.set("batches", static_cast<double>(has_steady ? group.wall.n : group.first_batches.n));
    fact.set("batch_wall_ms",
             has_steady ? group.wall.mean / static_cast<double>(kNsPerMs) : group.first_batches.mean_ms().value_or(0));
    fact.set("batch_cpu_ms", has_steady ? group.cpu.mean_ms() : group.first_cpu.mean_ms());
    if (has_steady) {
      if (const auto interval = group.wall_blocks.interval(); interval && interval->half_width) {
        fact.set("batch_wall_half_width_ms", *interval->half_width / static_cast<double>(kNsPerMs));
      }
      fact.set("batch_wall_p90_ms", *group.wall_ns.quantile(0.9) / static_cast<double>(kNsPerMs));
      if (group.wall.n > 1 && group.wall.mean > 0) {
        fact.set("batch_wall_cv",
                 std::sqrt(group.wall.squares / static_cast<double>(group.wall.n - 1)) / group.wall.mean);
      }
    }
    fact.set("fetch_ms", part_ms(group, group.fetch))
        .set("transform_ms", part_ms(group, group.transform))
        .set("collate_ms", part_ms(group, group.collate));
    if (group.bytes_n > 0) fact.set("batch_bytes", group.bytes / static_cast<double>(group.bytes_n));
    std::int64_t busy_ns = 0;
    std::int64_t span_ns = 0;
    for (const auto& [slot, worker] : group.workers) {
      busy_ns += worker.busy_ns;
      if (worker.first_ns != 0) span_ns += worker.last_ns - worker.first_ns;
    }
    if (span_ns > 0 && !group.is_in_process) {
      fact.set("worker_busy_share", std::min(static_cast<double>(busy_ns) / static_cast<double>(span_ns), 1.0));
    }
  }

  RunDescription run_;
  std::map<std::uint32_t, ProcessInfo> processes_;
  std::vector<Group> groups_;
  std::map<std::string, GaugeProfile> queue_depths_;  // by instance: "<process> loader.queue_depth <loader>"
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<LoaderAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_loader{.id = "loader",
                                                    .summary = "What a batch costs and how the loader is set up.",
                                                    .produces = kSchemas,
                                                    .metrics = kMetrics,
                                                    .spans = kSpans,
                                                    .takes_minutes = true,
                                                    .version = 2,
                                                    .open = open};

}  // namespace hotlap
