// The loader does not keep up: training waits for data. Says with how many workers it would, or why no number will do.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/bigger_size.h"
#include "rules/fact_number.h"
#include "rules/loader_case.h"
#include "rules/median.h"
#include "rules/mount_kinds.h"
#include "rules/page_cache_words.h"
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

constexpr double kStorageBytesPerSMin = 1e6;  // one thread that reads at random from a slow disk gets as much
constexpr double kStorageBytesPerSNone = 1e5;
// Of step time: below, what passes before forward is housekeeping, where no loader is known.
constexpr double kGapPct = 10;
constexpr std::string_view kOthersLeave = "how much the other programs leave of the gain is not known";
constexpr double kUnexplained = 1.35;  // the step is so much longer than the model of it: something else is going on

Finding base_finding(const LoaderCase& c) {
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

void exclude_look_alikes(const FactTable& facts, const LoaderCase& c, Finding& finding) {
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

std::string cores_words(const LoaderCase& c) {
  const double idle = std::max(c.cores * (1 - c.busy_pct / 100), 0.0);
  return format("{} of {} idle", cores_figure(idle), cores_counted(c.cores));
}

// Which part of making a batch is worth a look.
std::string dear_part(const LoaderCase& c) {
  const double wall = c.loader->number("batch_wall_ms").value_or(0);
  if (wall <= 0) return {};
  for (const auto& [field, name] : {std::pair{"transform_ms", "transforms"}, std::pair{"collate_ms", "collate"},
                                    std::pair{"fetch_ms", "the dataset's __getitem__"}}) {
    const auto part = c.loader->number(field);
    if (part && *part >= 0.4 * wall) return format("{} {} % of worker time", name, figure(100 * *part / wall));
  }
  return {};
}

void advise_workers(const LoaderCase& c, const LoaderChoice& choice, Finding& finding) {
  const bool on_full_cores = choice.limit == LoaderLimit::kCores;
  const MsRange range =
      predict_step(c, c.model_ms(choice.workers), c.crowded_ms(choice.workers), choice.workers, on_full_cores);
  // A range that begins at no change is no prediction.
  const bool is_predicted = range.high < (1 - kGainMin) * c.step_ms;
  Advice advice{.change = format("DataLoader(num_workers={})", choice.workers),
                .step_ms_low = is_predicted ? std::optional(range.low) : std::nullopt,
                .step_ms_high = is_predicted ? std::optional(range.high) : std::nullopt,
                .basis = Basis::kModel,
                .note = format("now {}; ", c.workers)};
  if (choice.least < choice.workers) advice.note += format("{} is the least that could do, ", choice.least);
  advice.note += format("more than {} adds nothing", choice.workers);
  if (on_full_cores) advice.note += format(": {} full", cores_counted(c.cores));
  if (!is_predicted) {
    const std::string_view why = c.shares_cores() ? kOthersLeave : "how much more workers gain is not known";
    if (std::ranges::find(finding.limits, why) == finding.limits.end()) finding.limits.emplace_back(why);
  }
  finding.evidence["advised_workers"] = static_cast<double>(choice.workers);
  finding.advice.push_back(std::move(advice));
  if (c.io_share >= kIoShareHigh) finding.advice.back().note += "; IF what it waits for gives that much, not measured";
}

void too_few_workers(const LoaderCase& c, const LoaderChoice& choice, Finding& finding) {
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
    finding.limits.emplace_back(kOthersLeave);
  } else if (c.has_cores) {
    finding.why.push_back(cores_words(c));
  }
  advise_workers(c, choice, finding);
}

void cores_full(const FactTable& facts, const LoaderCase& c, int workers_max, Finding& finding) {
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
  if (const auto size = bigger_size(facts, c, workers_max)) {
    finding.advice.push_back({.change = size->change(),
                              .step_ms_low = size->step_ms.low,
                              .step_ms_high = size->step_ms.high,
                              .basis = Basis::kModel,
                              .note = size->note()});
    return;
  }
  const double cores_then = 2 * c.cores;
  LoaderCosts then = costs;
  then.cores = cores_then;
  const LoaderChoice choice = choose_workers(then, std::min(static_cast<int>(2 * cores_then), workers_max));
  const double then_ms = c.with_cores_ms(choice.workers, cores_then);
  const MsRange range = predict_step(c, then_ms, then_ms, choice.workers, choice.limit == LoaderLimit::kCores);
  if ((range.low + range.high) / 2 > (1 - kGainMin) * c.step_ms) return;
  finding.advice.push_back({.change = format("{} and num_workers={}", cores_counted(cores_then), choice.workers),
                            .step_ms_low = range.low,
                            .step_ms_high = range.high,
                            .basis = Basis::kModel,
                            .note = c.party == "the GPU" ? "with the same GPU" : ""});
}

void crowded_out(const LoaderCase& c, double alone_ms, Finding& finding) {
  finding.cause = format("Other programs take {} of {} cores", cores_figure(c.outside), cores_figure(c.cores));
  finding.certainty = std::min(finding.certainty, Certainty::kLikely);
  finding.why.push_back(format("all cores are full; a step takes {} ms, with the machine to itself about {} ms",
                               figure(c.step_ms), figure(alone_ms)));
  const MsRange range = predict_step(c, alone_ms, alone_ms, c.workers, true);
  finding.advice.push_back({.change = "run it when they are done, or give it cores of its own",
                            .step_ms_low = range.low,
                            .step_ms_high = std::min(range.high, c.step_ms),
                            .basis = Basis::kModel,
                            .note = "more workers will not help"});
}

void few_shards(const LoaderCase& c, const LoaderChoice& choice, Finding& finding) {
  finding.cause = format("Only {} of {} loader workers deliver", c.workers_seen, c.workers);
  finding.certainty = std::min(finding.certainty, Certainty::kLikely);
  finding.why.push_back(format("{} never made a batch: the dataset has fewer shards than workers",
                               counted(c.workers - c.workers_seen, "worker")));
  finding.why.push_back(format("a batch costs {} ms of worker time, {} needs {} ms", figure(c.costs.worker_ms()),
                               c.party, figure(c.costs.compute_ms)));
  const MsRange range = predict_step(c, c.model_ms(choice.workers), c.crowded_ms(choice.workers), choice.workers,
                                     choice.limit == LoaderLimit::kCores);
  finding.advice.push_back({.change = format("split the data into at least {} shards", choice.workers),
                            .step_ms_low = range.low,
                            .step_ms_high = range.high,
                            .basis = Basis::kModel,
                            .note = "more workers alone will not help"});
}

// What loading that waits, and not for a core, waits for.
enum class WaitsFor : std::uint8_t { kStorage, kElsewhere, kUnknown };

// Elsewhere: next to nothing comes from the disks of this machine, or hardly ever did anybody wait for I/O. Network
// file systems count as storage; what a program fetches itself does not show.
WaitsFor loading_waits_for(const FactTable& facts, const LoaderCase& c) {
  const Fact* storage = facts.find("storage.summary");
  const auto rate = number_in(storage, "read_storage_bytes_per_s");
  if (!rate) return WaitsFor::kUnknown;
  if (is_network_mount(storage->text("data_mount_type").value_or(""))) return WaitsFor::kStorage;
  if (*rate < kStorageBytesPerSNone) return WaitsFor::kElsewhere;
  // If all of the waiting was for I/O, somebody waits for I/O for so much of the time.
  const double waiting_pct =
      std::min(100.0, 100 * c.io_share * c.costs.worker_ms() * c.batches / std::max(c.step_ms, 0.001));
  const auto pressure_pct = storage->number("io_pressure_pct");
  const bool is_unmoved = pressure_pct && *pressure_pct < waiting_pct / 4;
  return *rate < kStorageBytesPerSMin && is_unmoved ? WaitsFor::kElsewhere : WaitsFor::kStorage;
}

void waits_without_storage(const FactTable& facts, const LoaderCase& c, const LoaderChoice& choice, Finding& finding) {
  const auto rate = number_in(facts.find("storage.summary"), "read_storage_bytes_per_s");
  finding.cause =
      rate ? "Loading waits, but neither for cores nor for this machine's disks" : "Loading waits, but not for cores";
  finding.certainty = std::min(finding.certainty, Certainty::kLikely);
  finding.why.push_back(format("of a batch's {} ms {} {} % without using a core", figure(c.costs.worker_ms()),
                               c.workers > 0 ? "a worker waits" : "loading waits", figure(100 * c.io_share)));
  if (rate) {
    finding.why.push_back(format("{} MB/s come from storage", figure(*rate / 1e6)));
    finding.look_alikes_excluded.emplace_back("this machine's disks");
  }
  finding.limits.push_back(
      format("what it waits for: {}an answer over the network, a lock, a sleep", rate ? "" : "storage, "));
  if (choice.workers > c.workers && c.model_ms(choice.workers) < (1 - kGainMin) * c.step_ms) {
    advise_workers(c, choice, finding);
  }
  finding.advice.push_back({.change = "look where it waits: hotlap run --profile functions=20hz",
                            .step_ms_low = std::nullopt,
                            .step_ms_high = std::nullopt,
                            .basis = Basis::kRuleOfThumb,
                            .note = rate ? "a faster disk does not help" : ""});
}

void storage_bound(const FactTable& facts, const LoaderCase& c, const LoaderChoice& choice, Finding& finding) {
  finding.cause = "Loader waits for storage";
  finding.certainty = std::min(finding.certainty, Certainty::kLikely);
  std::string where;
  if (const Fact* storage = fact_for(facts, "storage.summary", c.steps->where)) {
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
  add_page_cache(facts, c.steps->where, finding);
  if (choice.workers > c.workers && c.model_ms(choice.workers) < (1 - kGainMin) * c.step_ms) {
    advise_workers(c, choice, finding);
  }
  finding.advice.push_back({.change = "keep the data on a faster disk or in memory",
                            .step_ms_low = std::nullopt,
                            .step_ms_high = std::nullopt,
                            .basis = Basis::kRuleOfThumb,
                            .note = "its speed is not measured"});
}

// Where one rank of several waits for data, the others wait for that rank, and not for their loaders.
void name_rank(const FactTable& facts, const LoaderCase& c, Finding& finding) {
  constexpr double kAloneTimes = 3;
  if (!c.steps->where.rank) return;
  std::vector<double> others_ms;
  for (const Fact* steps : facts.all("steps.summary")) {
    const auto wait_ms = steps->number("data_wait_ms");
    if (steps != c.steps && steps->where.rank && wait_ms) others_ms.push_back(*wait_ms);
  }
  if (others_ms.empty()) return;
  const double others = median(others_ms);
  if (c.wait_ms < kAloneTimes * others) return;
  finding.cause = format("Rank {} alone: {}", *c.steps->where.rank, finding.cause);
  finding.loss = format("it waits {} % of each step, and {} for it", figure(c.wait_pct),
                        others_ms.size() == 1 ? std::string("the other one") : std::string("all others"));
  finding.why.push_back(
      format("{} ms of its step wait for data; of the other ranks {} ms", figure(c.wait_ms), figure(others)));
  finding.look_alikes_excluded.emplace_back("a loader that is too slow on all ranks");
}

void judge(const FactTable& facts, const LoaderCase& c, const Params& params, FindingSink& out) {
  if (c.is_gap && c.wait_pct < kGapPct) return;
  Finding finding = base_finding(c);
  if (!c.is_known) {
    describe_unknown_loader(
        facts, c.steps->where,
        {.step_ms = c.step_ms, .wait_ms = c.wait_ms, .has_loader = c.loader != nullptr, .is_gap = c.is_gap}, finding);
    name_rank(facts, c, finding);
    out.add(std::move(finding));
    return;
  }
  if (c.wait_pct < kHandOverPct && keep_up(c.costs.worker_ms(), c.delivering(), c.costs.compute_ms)) return;
  const LoaderChoice choice = choose_for(c, static_cast<int>(params.number("workers_max")));
  const double best_ms = c.model_ms(choice.workers);
  // What the model says about the run as it was, with the workers that deliver.
  const double now_ms = c.workers == 0 ? c.step_ms : c.model_ms(c.delivering());
  const bool helps = best_ms < (1 - kGainMin) * std::min(c.step_ms, now_ms);
  exclude_look_alikes(facts, c, finding);
  // Workers that wait for something else than a core give more when they are more, however full the cores are.
  const bool helps_beside_others =
      choice.workers > c.workers && c.crowded_ms(choice.workers) < (1 - kGainMin) * c.crowded_ms(c.delivering());

  if (c.workers > 0 && c.is_crowded_out() && !helps_beside_others && c.busy_pct >= 90 &&
      now_ms < (1 - kGainMin) * c.step_ms) {
    crowded_out(c, now_ms, finding);
  } else if (c.workers > 0 && c.workers_seen > 0 && c.workers_seen < c.workers && helps) {
    few_shards(c, choice, finding);
  } else if (c.workers > 0 && c.step_ms > kUnexplained * now_ms && c.busy_pct < 90) {
    out.cannot_tell(
        format("{} % of each step is waiting for data, but {} should give a batch per {} ms: a thread between "
               "them (pin_memory), or bursts",
               figure(c.wait_pct), counted(c.workers, "worker"), figure(c.costs.worker_ms() / c.workers)));
    return;
  } else if (c.io_share >= kIoShareHigh && loading_waits_for(facts, c) == WaitsFor::kStorage) {
    storage_bound(facts, c, choice, finding);
  } else if (c.io_share >= kIoShareHigh) {
    waits_without_storage(facts, c, choice, finding);
  } else if (helps && choice.workers > c.workers) {
    too_few_workers(c, choice, finding);
  } else if (c.core_use != nullptr && (choice.limit == LoaderLimit::kCores || c.busy_pct >= 90)) {
    cores_full(facts, c, std::max(static_cast<int>(params.number("workers_max")), 1), finding);
  } else {
    out.cannot_tell(format("{} % of each step is waiting for data and no number of workers in the model changes that",
                           figure(c.wait_pct)));
    return;
  }
  name_rank(facts, c, finding);
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  bool is_measured = false;
  for (const Fact* steps : facts.all("steps.summary")) is_measured = is_measured || steps->number("data_wait_ms");
  const auto worst = worst_loader_case(facts, params);
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
