// Far more threads want to run than there are cores: each loader worker brings a pool of its own.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"threads.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "runnable_per_core",
              .default_text = "2",
              .min = 1,
              .max = 1000,
              .unit = "1",
              .help = "tasks that want to run, per core, from which on the rule speaks"},
    ParamDesc{.name = "threads_per_core",
              .default_text = "2",
              .min = 1,
              .max = 1000,
              .unit = "1",
              .help = "threads of the job, per usable core, below which they are not to blame"},
    ParamDesc{.name = "throttled_pct",
              .default_text = "25",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "share of the quota's periods in which the job is stopped, that counts like waiting for a core"},
};

constexpr double kPoolMin = 4;      // threads of a loader worker from which on it has a pool of its own
constexpr double kMainPoolMin = 6;  // of a training process: a few sleep in each (autograd, pin_memory)

// Workers whose pools together are more than the cores.
bool is_by_workers(const Fact& threads, double usable) {
  const double loaders = threads.number("loaders").value_or(0);
  const double of_loader = threads.number("loader_threads").value_or(0);
  return loaders >= 1 && of_loader >= kPoolMin && loaders * of_loader > usable;
}

// Processes of one thread each are no pool, however many they are: that the cores are full InputBound says.
bool has_pool(const Fact& threads, double usable, double threads_per_core) {
  if (is_by_workers(threads, usable)) return true;
  const auto main = threads.number("main_threads");
  if (!main) return threads.number("loaders").value_or(0) == 0;  // nobody is known to train: the threads are one job's
  return *main >= std::max(threads_per_core * usable, kMainPoolMin);
}

void judge(const FactTable& facts, const Fact& threads, double per_core, bool is_throttled, FindingSink& out) {
  const double usable = threads.number("usable_cores").value_or(1);
  const double job = threads.number("job_threads").value_or(0);
  const double loaders = threads.number("loaders").value_or(0);
  const double of_loader = threads.number("loader_threads").value_or(0);
  Finding finding;
  finding.where = threads.where;
  finding.cause = "Too many threads for the cores";
  finding.loss = "switching and waiting for a core";
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.evidence["job_threads"] = job;
  finding.evidence["usable_cores"] = usable;
  finding.evidence["runnable_per_core"] = per_core;
  const auto host = threads.number("host_threads");
  std::string why = threads.number("job_threads")
                        ? format("{} threads of the job on {} cores", count_figure(job), cores_figure(usable))
                    : host ? format("{} threads on the machine, {} cores", count_figure(*host), cores_figure(usable))
                           : format("more tasks than {} cores", cores_figure(usable));
  if (loaders >= 1)
    why += format(": {} of {} each", counted(std::lround(loaders), "loader worker"), count_figure(of_loader));
  finding.why.push_back(std::move(why));
  if (is_throttled) {
    finding.why.push_back(
        format("stopped by its quota in {} % of all periods", figure(threads.number("throttled_pct").value_or(0))));
  } else {
    finding.why.push_back(format("{} want to run per core", figure(per_core)));
  }
  if (const auto system = threads.number("system_pct"); system && *system >= 15)
    finding.why.push_back(format("{} % of the busy time in the kernel", figure(*system)));
  // Workers' pools hold up the loader: then this is the cause of that wait.
  const Fact* steps = fact_for(facts, "steps.summary", threads.where);
  const Fact* parts = fact_for(facts, "breakdown.parts", threads.where);
  const auto wait = number_in(parts, "data_wait");
  // Where no process was seen, meta.json may tell how many workers there are, and how many threads each has.
  const Fact* told = facts.find("job.told");
  const auto told_workers = number_in(told, "workers");
  const auto told_each = number_in(told, "omp_num_threads");
  const bool are_told = told_workers && *told_workers >= 1 && (!told_each || *told_workers * *told_each > usable);
  const bool is_unseen = !threads.number("job_threads");
  if (is_unseen && are_told) {
    finding.why.push_back(format("by meta.json {} loader workers", count_figure(*told_workers)) +
                          (told_each ? format(" of {} threads each", count_figure(*told_each)) : std::string()));
  }
  const bool by_workers = is_by_workers(threads, usable) || is_unseen;
  if (by_workers && steps != nullptr && wait && *wait >= 3) {
    finding.loss.clear();
    finding.claims = "data_wait";
    finding.distance = -1;
    set_step_loss(*steps, *wait, finding);
    if (*wait >= 30) finding.severity = Severity::kCritical;
  }
  if (by_workers) {
    finding.advice.push_back(
        {.change = "OMP_NUM_THREADS=1, and torch.set_num_threads(1), cv2.setNumThreads(0) in each worker",
         .note = "worker_init_fn is the place"});
  } else {
    finding.advice.push_back(
        {.change = format("OMP_NUM_THREADS={}",
                          std::max(1L, std::lround(usable / std::max(threads.number("ranks").value_or(1), 1.0)))),
         .note = "libraries count the machine's cores, not those that the job may use"});
  }
  if (is_unseen) finding.limits.emplace_back("whose threads they are: no process of the job was seen");
  if (const auto set = threads.text("omp_num_threads"))
    finding.advice.back().note += format("; now OMP_NUM_THREADS={}", *set);
  finding.limits.emplace_back("how much faster fewer threads are");
  out.add(std::move(finding));
}

// The tasks that crowd the cores are counted over the machine: where others use most of what the job may use, they are
// theirs.
bool are_others(const FactTable& facts, const Where& where) {
  const Fact* cores = fact_for(facts, "core_use.summary", where);
  const auto outside = number_in(cores, "outside_cores");
  const auto busy = number_in(cores, "busy_cores");
  return outside && busy && *outside > 0.5 * *busy;
}

// Something is known of a job on this machine, though none of its processes was seen.
bool is_training_known(const FactTable& facts, const Where& where) {
  return facts.find("job.told") != nullptr || fact_for(facts, "steps.summary", where) != nullptr;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* threads : facts.all("threads.summary")) {
    const auto usable = threads->number("usable_cores");
    const auto job = threads->number("job_threads");
    const auto per_core = threads->number("runnable_per_core");
    if (!usable || !per_core || *usable <= 0) continue;
    const bool is_throttled = threads->number("throttled_pct").value_or(0) >= params.number("throttled_pct");
    const bool is_crowded = *per_core >= params.number("runnable_per_core");
    // Threads that sleep cost nothing; tasks that want to run may be others' programs.
    if (!is_crowded && !is_throttled) continue;
    // Where the job's processes were not seen, what crowds the cores is said all the same, and that nobody knows whose.
    if (job) {
      const double per_core_min = params.number("threads_per_core");
      if (*job < per_core_min * *usable || !has_pool(*threads, *usable, per_core_min)) continue;
    } else if (!is_crowded || !is_training_known(facts, threads->where)) {
      continue;
    }
    if (!is_throttled && are_others(facts, threads->where)) continue;
    judge(facts, *threads, *per_core, is_throttled, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_thread_oversubscription{
    .id = "ThreadOversubscription",
    .title = "Far more threads want to run than there are cores",
    .why =
        "Compares the job's threads with the cores that it may use, and speaks when tasks wait for a core or the quota "
        "stops the job. Threads that sleep do not count.",
    .advice = "How many threads each process should have.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
