// The loader does not keep up: training waits for data. Says with how many workers it would, or why no number will do.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/loader_model.h"
#include "rules/step_findings.h"
#include "rules/unknown_loader.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"steps.summary"}, std::string_view{"breakdown.parts"}};
constexpr std::array kParams{
    ParamDesc{.name = "wait_pct",
              .default_text = "3",
              .min = 0.1,
              .max = 100,
              .unit = "%",
              .help = "share of step time spent waiting for data from which on the rule speaks"},
    steps_min_param("typical steps that must have been seen"),
    ParamDesc{.name = "workers_max",
              .default_text = "64",
              .min = 1,
              .max = 1024,
              .unit = "{process}",
              .help = "never advise more workers than this"},
};

constexpr double kTraceStepsMin = 3;
constexpr double kIoShareHigh = 0.5;   // of a batch's time: the loader waits for storage, not for cores
constexpr double kIoShareLow = 0.2;    // below, storage is excluded as a cause
constexpr double kCoreWaitMin = 0.05;  // of the time without a core: below, others do not hold the job up
constexpr double kGainMin = 0.03;      // of step time, for a change of workers to be advised
constexpr double kUnexplained = 1.35;  // the step is so much longer than the model of it: something else is going on

// What the facts say about one training process, per batch where it makes sense.
struct Case {
  const Fact* steps = nullptr;
  double step_ms = 0;
  double wait_ms = 0;
  double wait_pct = 0;
  double pauses_ms = 0;  // checkpoints and evaluation inside steps: no part of the pipeline
  double batches = 1;    // per step
  double measured_error = 0.05;
  int workers = 0;
  bool is_known = false;  // the hook knows the loader and saw what a batch costs
  int workers_seen = 0;
  int delivering() const { return workers_seen > 0 ? std::min(workers, workers_seen) : workers; }
  double io_share = 0;  // of a batch's time in a worker
  double cores = 1;     // usable
  double outside = 0;   // cores taken by others
  double busy_pct = 0;
  bool has_cores = false;
  std::optional<double> core_wait_share;  // of the time, of who wants most for a core
  LoaderCosts costs;
  std::string party = "training";  // who waits
  const Fact* loader = nullptr;
  const Fact* core_use = nullptr;

  double model_ms(int n) const { return with_cores_ms(n, cores); }
  // Other programs may go on taking their cores, or not.
  double crowded_ms(int n) const { return with_cores_ms(n, std::max(cores - outside, 0.3 * cores)); }
  bool shares_cores() const { return outside > 0.25 * cores; }
  // Others hold it up only where it wants for a core; where that was not measured, full cores stand for it.
  bool is_crowded_out() const { return shares_cores() && core_wait_share.value_or(1) >= kCoreWaitMin; }
  double with_cores_ms(int n, double cores_then) const {
    LoaderCosts then = costs;
    then.cores = cores_then;
    return batches * hotlap::step_ms(then, n) + pauses_ms;
  }
};

const Fact* training_process(const FactTable& facts, const Case& c) {
  const auto label = c.steps->text("process");
  for (const Fact* fact : facts.all("core_use.process")) {
    if (label && fact->text("process") == label && same_place(fact->where, c.steps->where)) return fact;
  }
  return nullptr;
}

// Time in which a process's main thread could run but had no core, of a time that it was looked at.
std::optional<double> core_wait_share(const Fact* process) {
  if (process == nullptr) return std::nullopt;
  const auto pct = process->number("main_wait_pct");
  return pct ? std::optional(*pct / 100) : std::nullopt;
}

// The same of the loader's workers, mean.
std::optional<double> workers_core_wait_share(const FactTable& facts, const Case& c) {
  double sum = 0;
  int workers = 0;
  for (const Fact* fact : facts.all("core_use.process")) {
    if (fact->text("role") != "loader" || !same_place(fact->where, c.steps->where)) continue;
    if (const auto share = core_wait_share(fact)) sum += *share, ++workers;
  }
  return workers > 0 ? std::optional(sum / workers) : std::nullopt;
}

void read_cores(const FactTable& facts, Case& c) {
  c.core_use = fact_for(facts, "core_use.summary", c.steps->where);
  if (c.core_use == nullptr) return;
  const auto usable = c.core_use->number("usable_cores");
  if (!usable) return;
  c.has_cores = true;
  c.cores = std::max(*usable, 0.1);
  c.outside = c.core_use->number("outside_cores").value_or(0);
  c.busy_pct = c.core_use->number("busy_pct").value_or(0);
  c.costs.cores = c.cores;
}

// Time per batch of workers and training process as it would be with cores to spare.
void derive_costs(const FactTable& facts, Case& c) {
  const double wait = c.wait_ms / c.batches;
  double wall = c.loader == nullptr ? 0 : c.loader->number("batch_wall_ms").value_or(0);
  const double cpu_share = wall > 0 ? std::min(c.loader->number("batch_cpu_ms").value_or(wall) / wall, 1.0) : 1.0;
  const bool in_series = c.workers == 0;
  if (in_series) wall = wait;
  double compute = std::max((c.step_ms - c.wait_ms - c.pauses_ms) / c.batches, 0.01);

  const Fact* process = training_process(facts, c);
  const double per_batch = c.step_ms / c.batches;
  c.costs.worker_cpu_ms = wall * cpu_share;
  const double off_cpu = wall - c.costs.worker_cpu_ms;
  // Who is not on CPU waits for a core or for storage. The kernel counts the former; where it was not asked, full cores
  // stand for it.
  std::optional<double> for_core;
  c.core_wait_share = core_wait_share(process);
  if (const auto share = c.core_wait_share) {
    const double waited = *share * per_batch;
    const double used = std::max(process->number("main_thread_cores").value_or(0) * per_batch, c.costs.worker_cpu_ms);
    // A thread loses its core where it uses it.
    double in_loading = 0;
    if (in_series) {
      in_loading = process->number("main_thread_cores") ? waited * c.costs.worker_cpu_ms / std::max(used, 0.01)
                                                        : waited * wall / (wall + compute);
      for_core = in_loading;
    }
    compute -= std::min(waited - in_loading, 0.6 * compute);
  }
  if (!in_series) {
    if (const auto share = workers_core_wait_share(facts, c)) {
      for_core = *share * per_batch * c.delivering();
      c.core_wait_share = std::max(c.core_wait_share.value_or(0), *share);
    }
  }
  const double crowded = std::clamp((c.busy_pct - 70) / 25, 0.0, 1.0);
  c.costs.worker_io_ms = for_core ? std::max(off_cpu - *for_core, 0.0) : off_cpu * (1 - crowded);
  c.costs.compute_ms = compute;
  c.costs.compute_cpu_ms = compute;
  if (const auto cores = process == nullptr ? std::nullopt : process->number("cores")) {
    const double cpu = *cores * per_batch - (in_series ? c.costs.worker_cpu_ms : 0);
    c.costs.compute_cpu_ms = std::clamp(cpu, 0.05 * compute, std::max(c.cores, 1.0) * compute);
  }
  c.io_share = c.costs.worker_ms() > 0 ? c.costs.worker_io_ms / c.costs.worker_ms() : 0;
  if (c.loader == nullptr) return;
  c.costs.worker_spread = std::min(c.loader->number("batch_wall_cv").value_or(0), 0.6);
  // Workers hand batches over through shared memory: a fixed cost and one per byte, seen on several machines.
  c.costs.transfer_ms = 0.5 + c.loader->number("batch_bytes").value_or(0) / 2e6;
}

std::optional<Case> read_case(const FactTable& facts, const Fact& steps, const Params& params) {
  Case c;
  c.steps = &steps;
  const auto step = steps.number("mean_ms");
  const auto wait = steps.number("data_wait_ms");
  if (!step || !wait || *step <= 0) return std::nullopt;
  // A profiler's trace has few steps, chosen after a warm-up of its own.
  const bool is_trace = steps.number("chosen") == 1;
  const double steps_min = is_trace ? std::min(params.number("steps_min"), kTraceStepsMin) : params.number("steps_min");
  if (steps.number("steady_count").value_or(0) < steps_min) return std::nullopt;
  c.step_ms = *step;
  c.wait_ms = std::min(*wait, *step);
  c.wait_pct = 100 * c.wait_ms / c.step_ms;
  c.batches = std::max(steps.number("batches_per_step").value_or(1), 1.0);
  c.measured_error = steps.number("half_width_ms").value_or(0.05 * *step) / *step;
  if (const Fact* parts = fact_for(facts, "breakdown.parts", steps.where)) {
    c.pauses_ms = (parts->number("checkpoint").value_or(0) + parts->number("evaluation").value_or(0)) / 100 * c.step_ms;
  }
  if (const Fact* software = facts.find("job.software"); software != nullptr && software->number("gpu") == 1) {
    c.party = "the GPU";
  }
  c.loader = fact_for(facts, "loader.summary", steps.where);
  if (c.loader != nullptr) {
    c.workers_seen = static_cast<int>(c.loader->number("workers_seen").value_or(0));
    c.workers = static_cast<int>(c.loader->number("workers").value_or(c.workers_seen));
    const bool has_costs = c.loader->number("batch_wall_ms").has_value();
    c.is_known = c.loader->number("known").value_or(has_costs ? 1 : 0) == 1 && (has_costs || c.workers == 0);
  }
  read_cores(facts, c);
  derive_costs(facts, c);
  return c;
}

struct Range {
  double low = 0;
  double high = 0;
};

double square(double x) { return x * x; }

// How far the model's answer may be off, as a share of it: what was measured varies, the model has its limits, and both
// are larger the further we go from what was seen.
double uncertainty(const Case& c, int workers_then, bool on_full_cores) {
  const double tasks = c.costs.compute_ms > 0 ? c.costs.compute_cpu_ms / c.costs.compute_ms : 1;
  double sum = square(c.measured_error) + square(0.04);
  if (c.workers == 0) sum += square(0.04);
  if (on_full_cores) sum += square(0.06);
  if (on_full_cores && tasks > 1.3) sum += square(0.06);
  if (!c.has_cores) sum += square(0.1);
  if (c.io_share >= kIoShareHigh) sum += square(0.2);  // whether storage gives more was not tried
  sum += square(0.015 * std::log2(1.0 + static_cast<double>(std::max(workers_then, 1)) / std::max(c.workers, 1)));
  return std::clamp(std::sqrt(sum), 0.05, 0.3);
}

// How far off the model is for what was measured, with the workers that the run had.
double model_error(const Case& c) { return std::clamp(c.step_ms / c.model_ms(c.delivering()), 0.8, 1.3); }

// No step is shorter than its own computation, and none gets longer by what is advised.
Range bounded(const Case& c, Range range) {
  range.low = std::max(range.low, 0.97 * (c.batches * c.costs.compute_ms + c.pauses_ms));
  range.low = std::min(range.low, c.step_ms);
  range.high = std::clamp(range.high, range.low, c.step_ms);
  if (c.shares_cores()) range.high = std::max(range.high, c.step_ms);  // they may take whatever is won
  return range;
}

// Around the model's answer. Overheads that the model leaves out make a step longer, hardly ever shorter.
Range predict(const Case& c, double then_ms, double crowded_ms, int workers_then, bool on_full_cores) {
  const double half = uncertainty(c, workers_then, on_full_cores);
  // On full cores the model is a floor: caches, memory bandwidth and two threads of one physical core make what shares
  // them dearer, nothing makes it cheaper (8 and 20 % were seen).
  const double below = on_full_cores ? 0.35 : 0.7;
  const double above = on_full_cores ? 2.0 : 1.2;
  // Other programs that take much are taken to go on.
  // Where they would take all of the gain it comes when they are done: from there to the step as it is.
  const bool gains_beside_them = c.shares_cores() && crowded_ms < (1 - kGainMin) * c.step_ms;
  Range range{(gains_beside_them ? crowded_ms : then_ms) * (1 - below * half),
              std::max(then_ms, crowded_ms) * (1 + above * half)};
  if (c.workers > 0) {
    range.low = std::min(range.low, then_ms * model_error(c));
    range.high = std::max(range.high, then_ms * model_error(c));
  }
  return bounded(c, range);
}

Finding base_finding(const Case& c) {
  Finding finding;
  finding.where = c.steps->where;
  finding.severity = c.wait_pct >= 30 ? Severity::kCritical : c.wait_pct >= 10 ? Severity::kWarning : Severity::kInfo;
  const double wait_error = c.steps->number("data_wait_half_width_ms").value_or(c.wait_ms) / std::max(c.wait_ms, 0.001);
  const bool is_long = c.steps->number("steady_count").value_or(0) >= 60;
  finding.certainty = is_long && wait_error < 0.25 ? Certainty::kCertain : Certainty::kLikely;
  finding.from_ns = static_cast<std::int64_t>(c.steps->number("from_s").value_or(0) * 1e9);
  finding.to_ns = static_cast<std::int64_t>(c.steps->number("to_s").value_or(0) * 1e9);
  finding.claims = "data_wait";
  set_step_loss(*c.steps, c.wait_pct, finding);
  finding.evidence["step_ms"] = c.step_ms;
  finding.evidence["data_wait_ms"] = c.wait_ms;
  finding.evidence["compute_ms"] = c.costs.compute_ms;
  if (c.is_known) {
    finding.evidence["workers"] = static_cast<double>(c.workers);
    finding.evidence["batch_ms"] = c.costs.worker_ms();
    finding.evidence["batch_cpu_ms"] = c.costs.worker_cpu_ms;
  }
  if (c.has_cores) {
    finding.evidence["usable_cores"] = c.cores;
    finding.evidence["busy_pct"] = c.busy_pct;
    finding.evidence["outside_cores"] = c.outside;
  }
  return finding;
}

void exclude_look_alikes(const FactTable& facts, const Case& c, Finding& finding) {
  if (c.is_known && c.io_share < kIoShareLow) {
    finding.look_alikes_excluded.push_back(
        format("storage ({} {} % on CPU)", c.workers == 0 ? "loading is" : "workers", figure(100 * (1 - c.io_share))));
  }
  const Fact* parts = fact_for(facts, "breakdown.parts", c.steps->where);
  const auto checkpoint = parts == nullptr ? std::nullopt : parts->number("checkpoint");
  if (checkpoint && *checkpoint < 1) finding.look_alikes_excluded.emplace_back("checkpoints");
  const auto other = parts == nullptr ? std::nullopt : parts->number("other");
  if (other && *other < 10 && c.workers > 0) finding.look_alikes_excluded.emplace_back("hot core");
}

// "1 core", "0.5 cores".
std::string cores_counted(double cores) {
  const std::string figure = cores_figure(cores);
  return figure + (figure == "1" ? " core" : " cores");
}

std::string cores_words(const Case& c) {
  const double idle = std::max(c.cores * (1 - c.busy_pct / 100), 0.0);
  return format("{} of {} idle", cores_figure(idle), cores_counted(c.cores));
}

// Which part of making a batch is worth a look.
std::string dear_part(const Case& c) {
  const double wall = c.loader->number("batch_wall_ms").value_or(0);
  if (wall <= 0) return {};
  for (const auto& [field, name] : {std::pair{"transform_ms", "transforms"}, std::pair{"collate_ms", "collate"},
                                    std::pair{"fetch_ms", "the dataset's __getitem__"}}) {
    const auto part = c.loader->number(field);
    if (part && *part >= 0.4 * wall) return format("{} {} % of worker time", name, figure(100 * *part / wall));
  }
  return {};
}

void advise_workers(const Case& c, const LoaderChoice& choice, Finding& finding) {
  const bool on_full_cores = choice.limit == LoaderLimit::kCores;
  const Range range =
      predict(c, c.model_ms(choice.workers), c.crowded_ms(choice.workers), choice.workers, on_full_cores);
  Advice advice{.change = format("DataLoader(num_workers={})", choice.workers),
                .step_ms_low = range.low,
                .step_ms_high = range.high,
                .basis = Basis::kModel,
                .note = format("now {}; ", c.workers)};
  if (choice.least < choice.workers) advice.note += format("{} is the least that could do, ", choice.least);
  advice.note += format("more than {} adds nothing", choice.workers);
  if (on_full_cores) advice.note += format(": {} full", cores_counted(c.cores));
  finding.evidence["advised_workers"] = static_cast<double>(choice.workers);
  finding.advice.push_back(std::move(advice));
  if (c.io_share >= kIoShareHigh) finding.advice.back().note += "; IF the storage gives that much, not measured";
}

void too_few_workers(const Case& c, const LoaderChoice& choice, Finding& finding) {
  const LoaderCosts& costs = c.costs;
  if (c.workers == 0) {
    finding.cause = "Data is loaded between the steps: no loader workers";
    finding.why.push_back(format("making a batch takes {} ms, the step itself {} ms, one after the other",
                                 figure(costs.worker_ms()), figure(costs.compute_ms)));
  } else {
    finding.cause = "Loader too slow, too few workers";
    finding.why.push_back(format("a batch costs {} ms of worker time; {} give one per {} ms, {} needs {} ms",
                                 figure(costs.worker_ms()), counted(c.workers, "worker"),
                                 figure(costs.worker_ms() / c.workers), c.party, figure(costs.compute_ms)));
  }
  if (c.shares_cores()) {
    finding.why.push_back(format("other programs take {} of {} cores", cores_figure(c.outside), cores_figure(c.cores)));
    finding.certainty = std::min(finding.certainty, Certainty::kLikely);
    finding.limits.emplace_back("how much the other programs leave of the gain is not known");
  } else if (c.has_cores) {
    finding.why.push_back(cores_words(c));
  }
  advise_workers(c, choice, finding);
}

void cores_full(const Case& c, int workers_max, Finding& finding) {
  const LoaderCosts& costs = c.costs;
  finding.cause = "All cores full: more loader workers will NOT help";
  std::string busy = format("{} at {} %", cores_counted(c.cores), figure(c.busy_pct));
  if (const auto runnable = c.core_use->number("runnable")) busy += format(", {} runnable", figure(*runnable));
  finding.why.push_back(busy);
  finding.why.push_back(format("a batch is {} ms of CPU, the step itself {} ms: >= {} ms on this machine",
                               figure(costs.worker_cpu_ms), figure(costs.compute_cpu_ms),
                               figure((costs.worker_cpu_ms + costs.compute_cpu_ms) / costs.cores)));
  finding.limits.emplace_back("more workers (no core is left for them)");
  const std::string part = dear_part(c);
  finding.advice.push_back({.change = "cheaper transforms, or batches made once and stored",
                            .step_ms_low = std::nullopt,
                            .step_ms_high = std::nullopt,
                            .basis = Basis::kRuleOfThumb,
                            .note = part});
  const double cores_then = 2 * c.cores;
  LoaderCosts then = costs;
  then.cores = cores_then;
  const LoaderChoice choice = choose_workers(then, std::min(static_cast<int>(2 * cores_then), workers_max));
  const double then_ms = c.with_cores_ms(choice.workers, cores_then);
  const Range range = predict(c, then_ms, then_ms, choice.workers, choice.limit == LoaderLimit::kCores);
  if ((range.low + range.high) / 2 > (1 - kGainMin) * c.step_ms) return;
  finding.advice.push_back({.change = format("{} and num_workers={}", cores_counted(cores_then), choice.workers),
                            .step_ms_low = range.low,
                            .step_ms_high = range.high,
                            .basis = Basis::kModel,
                            .note = c.party == "the GPU" ? "with the same GPU" : ""});
}

void crowded_out(const Case& c, double alone_ms, Finding& finding) {
  finding.cause = format("Other programs take {} of {} cores", cores_figure(c.outside), cores_figure(c.cores));
  finding.certainty = std::min(finding.certainty, Certainty::kLikely);
  finding.why.push_back(format("all cores are full; a step takes {} ms, with the machine to itself about {} ms",
                               figure(c.step_ms), figure(alone_ms)));
  const Range range = predict(c, alone_ms, alone_ms, c.workers, true);
  finding.advice.push_back({.change = "run it when they are done, or give it cores of its own",
                            .step_ms_low = range.low,
                            .step_ms_high = std::min(range.high, c.step_ms),
                            .basis = Basis::kModel,
                            .note = "more workers will not help"});
}

void few_shards(const Case& c, const LoaderChoice& choice, Finding& finding) {
  finding.cause = format("Only {} of {} loader workers deliver", c.workers_seen, c.workers);
  finding.certainty = std::min(finding.certainty, Certainty::kLikely);
  finding.why.push_back(format("{} never made a batch: the dataset has fewer shards than workers",
                               counted(c.workers - c.workers_seen, "worker")));
  finding.why.push_back(format("a batch costs {} ms of worker time, {} needs {} ms", figure(c.costs.worker_ms()),
                               c.party, figure(c.costs.compute_ms)));
  const Range range = predict(c, c.model_ms(choice.workers), c.crowded_ms(choice.workers), choice.workers,
                              choice.limit == LoaderLimit::kCores);
  finding.advice.push_back({.change = format("split the data into at least {} shards", choice.workers),
                            .step_ms_low = range.low,
                            .step_ms_high = range.high,
                            .basis = Basis::kModel,
                            .note = "more workers alone will not help"});
}

void storage_bound(const FactTable& facts, const Case& c, const LoaderChoice& choice, Finding& finding) {
  finding.cause = "Loader waits for storage";
  finding.certainty = std::min(finding.certainty, Certainty::kLikely);
  std::string where;
  if (const Fact* storage = facts.find("storage.summary")) {
    if (const auto mount = storage->text("data_mount")) {
      where = format(" at {} ({})", *mount, storage->text("data_mount_type").value_or("type unknown"));
    }
    if (const auto rate = storage->number("read_storage_bytes_per_s")) {
      finding.why.push_back(format("{} MB/s come from storage{}", figure(*rate / 1e6), where));
    }
  }
  finding.why.insert(finding.why.begin(),
                     format("of a batch's {} ms {} {} % for I/O", figure(c.costs.worker_ms()),
                            c.workers > 0 ? "a worker waits" : "loading waits", figure(100 * c.io_share)));
  if (choice.workers > c.workers && c.model_ms(choice.workers) < (1 - kGainMin) * c.step_ms) {
    advise_workers(c, choice, finding);
  }
  finding.advice.push_back({.change = "keep the data on a faster disk or in memory",
                            .step_ms_low = std::nullopt,
                            .step_ms_high = std::nullopt,
                            .basis = Basis::kRuleOfThumb,
                            .note = "its speed is not measured"});
}

void judge(const FactTable& facts, const Case& c, const Params& params, FindingSink& out) {
  Finding finding = base_finding(c);
  if (!c.is_known) {
    describe_unknown_loader(facts, c.steps->where,
                            {.step_ms = c.step_ms, .wait_ms = c.wait_ms, .has_loader = c.loader != nullptr}, finding);
    out.add(std::move(finding));
    return;
  }
  // Workers that compute all the time need a core each; those that wait for storage do not.
  const double per_core = c.io_share < kIoShareLow ? 1 : 4;
  const int most = std::clamp(static_cast<int>(std::ceil(per_core * c.cores)), c.workers + 1,
                              std::max(static_cast<int>(params.number("workers_max")), c.workers + 1));
  const LoaderChoice choice = choose_workers(c.costs, most);
  const double best_ms = c.model_ms(choice.workers);
  // What the model says about the run as it was, with the workers that deliver.
  const double now_ms = c.workers == 0 ? c.step_ms : c.model_ms(c.delivering());
  const bool helps = best_ms < (1 - kGainMin) * std::min(c.step_ms, now_ms);
  exclude_look_alikes(facts, c, finding);

  if (c.workers > 0 && c.is_crowded_out() && c.busy_pct >= 90 && now_ms < (1 - kGainMin) * c.step_ms) {
    crowded_out(c, now_ms, finding);
  } else if (c.workers > 0 && c.workers_seen > 0 && c.workers_seen < c.workers && helps) {
    few_shards(c, choice, finding);
  } else if (c.workers > 0 && c.step_ms > kUnexplained * now_ms && c.busy_pct < 90) {
    out.cannot_tell(
        format("{} % of each step is waiting for data, but {} should give a batch per {} ms: a thread between "
               "them (pin_memory), or bursts",
               figure(c.wait_pct), counted(c.workers, "worker"), figure(c.costs.worker_ms() / c.workers)));
    return;
  } else if (c.io_share >= kIoShareHigh) {
    storage_bound(facts, c, choice, finding);
  } else if (helps && choice.workers > c.workers) {
    too_few_workers(c, choice, finding);
  } else if (c.core_use != nullptr && (choice.limit == LoaderLimit::kCores || c.busy_pct >= 90)) {
    cores_full(c, std::max(static_cast<int>(params.number("workers_max")), 1), finding);
  } else {
    out.cannot_tell(format("{} % of each step is waiting for data and no number of workers in the model changes that",
                           figure(c.wait_pct)));
    return;
  }
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  // Ranks wait for each other: the one that waits most for data holds up all.
  std::optional<Case> worst;
  bool is_measured = false;
  for (const Fact* steps : facts.all("steps.summary")) {
    is_measured = is_measured || steps->number("data_wait_ms");
    const auto found = read_case(facts, *steps, params);
    if (!found || found->wait_pct < params.number("wait_pct")) continue;
    if (!worst || found->wait_pct > worst->wait_pct) worst = found;
  }
  if (worst) judge(facts, *worst, params, out);
  if (!is_measured) out.cannot_tell("how long training waits for data is not measured");
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_input_bound{
    .id = "InputBound",
    .title = "The data loader does not keep up",
    .why =
        "Compares what a batch costs in the loader (wall and CPU time per worker) with what a step needs, on the cores "
        "that the job may use. Certain when the wait is measured over 60 typical steps or more.",
    .advice =
        "The smallest number of loader workers that removes the wait, with the step time then; or why no number "
        "will: cores full, storage, too few shards.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
