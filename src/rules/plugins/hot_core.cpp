// One thread fills its core while the machine looks idle: the average hides it.
#include <algorithm>
#include <array>

#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"core_use.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "thread_pct",
              .default_text = "85",
              .min = 50,
              .max = 100,
              .unit = "%",
              .help = "use of one core from which on a thread is at its limit"},
    ParamDesc{.name = "average_pct",
              .default_text = "60",
              .min = 5,
              .max = 100,
              .unit = "%",
              .help = "use of all cores up to which they look idle"},
    ParamDesc{.name = "other_pct",
              .default_text = "10",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "share of the step in code that is neither loading nor the model, from which on it is named"},
};

struct Hot {
  std::string process;  // empty: unknown
  std::string thread;
  double busy_pct = 0;
  bool is_training = false;
  bool is_loader = false;
};

struct Scene {
  const Fact* cores = nullptr;
  const Fact* steps = nullptr;
  const Fact* parts = nullptr;
  double usable = 1;
  double busy_pct = 0;
  bool may_have_gpu = false;
  std::optional<double> gpu_busy_pct;  // of the GPU that works most; nothing: not recorded, or missing
  bool computes_on_cpu = false;        // known, not only likely
};

std::optional<Hot> hottest(const FactTable& facts, const Scene& scene, double thread_pct) {
  for (const Fact* fact : facts.all("core_use.thread")) {
    const auto busy = fact->number("busy_pct");
    if (!busy || *busy < thread_pct) continue;
    Hot hot{
        .process = fact->text("process").value_or(""), .thread = fact->text("thread").value_or(""), .busy_pct = *busy};
    hot.is_loader = hot.process.starts_with("loader");
    hot.is_training = hot.process == "main" || hot.process.starts_with("rank");
    return hot;
  }
  // Threads are looked at now and then only; a core that stays full tells the same without a name.
  if (const auto core = scene.cores->number("hottest_core_pct"); core && *core >= thread_pct)
    return Hot{.busy_pct = *core};
  if (const auto share = scene.cores->number("hot_share_pct"); share && *share >= thread_pct)
    return Hot{.busy_pct = *share};
  return std::nullopt;
}

constexpr double kGpuWaitsPct = 70;
constexpr double kNextCoreMaxPct = 50;

std::string_view who(const Hot& hot) { return hot.process.empty() ? std::string_view("a thread") : hot.process; }

// Threads of the training process that carry its name run Python; others are helpers with names of their own.
bool is_helper(const Hot& hot) { return hot.thread.starts_with("pt_") || hot.thread.find("pin") != std::string::npos; }

Finding base_finding(const Scene& scene, const Hot& hot) {
  Finding finding;
  finding.where = scene.steps != nullptr ? scene.steps->where : scene.cores->where;
  finding.where.process = hot.process;
  finding.evidence["thread_pct"] = hot.busy_pct;
  finding.evidence["busy_pct"] = scene.busy_pct;
  finding.evidence["usable_cores"] = scene.usable;
  std::string core = "one core";
  if (const auto name = scene.cores->text("hottest_core")) {
    if (const auto pct = scene.cores->number("hottest_core_pct"); pct && *pct >= 60) {
      core = format("{} at {} %", *name, figure(*pct));
      finding.where.device = *name;
    }
  }
  const std::string thread = hot.thread.empty()
                                 ? std::string{}
                                 : format("thread '{}' fills {} % of a core; ", hot.thread, figure(hot.busy_pct));
  finding.why.push_back(format("{}{}, the average of {} cores is {} %", thread, core, cores_figure(scene.usable),
                               figure(scene.busy_pct)));
  return finding;
}

void set_loss(const Scene& scene, double share_pct, Finding& finding) {
  set_step_loss(*scene.steps, share_pct, finding);
  finding.severity = share_pct >= 30 ? Severity::kCritical : Severity::kWarning;
}

// The training thread itself, in code that is neither loading nor the model.
void own_code(const Scene& scene, const Hot& hot, double other_pct, Finding& finding) {
  if (scene.gpu_busy_pct) {
    finding.why.push_back(format("GPU busy {} %", figure(*scene.gpu_busy_pct)));
    finding.evidence["gpu_busy_pct"] = *scene.gpu_busy_pct;
    finding.look_alikes_excluded.emplace_back("waiting for the GPU");
  }
  finding.cause = format("One full core: {} thread of {}", is_helper(hot) ? "a helper" : "the training", who(hot));
  finding.loss = format("{} % of the step outside loader and model", figure(other_pct));
  finding.certainty = Certainty::kLikely;
  finding.claims = "other";
  set_loss(scene, other_pct, finding);
  Advice advice{.change = "do that work less often, in a worker process, or in one batched call", .note = {}};
  if (const auto step = scene.steps->number("mean_ms")) {
    const double without = *step * (1 - other_pct / 100);
    advice.note = format("at most: step {} -> {} ms without it; which code it is was not looked at", figure(*step),
                         figure(without));
  }
  finding.advice.push_back(std::move(advice));
  finding.look_alikes_excluded.emplace_back("the loader");
}

// Arithmetic on the CPU that uses one core of many.
void single_threaded_model(const Scene& scene, const Hot& hot, double compute_pct, Finding& finding) {
  finding.cause = format("The model computes on 1 of {} cores", cores_figure(scene.usable));
  finding.loss = format("{} % of the step is forward, backward and optimizer", figure(compute_pct));
  finding.certainty = Certainty::kPossible;
  finding.severity = Severity::kWarning;
  finding.claims = "compute";
  finding.where.process = hot.process;
  finding.advice.push_back({.change = "torch.set_num_threads(…), or OMP_NUM_THREADS, towards the number of cores",
                            .note = "small models gain little: try it"});
  finding.limits.emplace_back("the gain is not known");
}

void judge(const FactTable& facts, const Scene& scene, const Params& params, FindingSink& out) {
  const auto hot = hottest(facts, scene, params.number("thread_pct"));
  if (!hot) return;
  Finding finding = base_finding(scene, *hot);
  if (scene.steps == nullptr || scene.parts == nullptr) {
    finding.cause =
        hot->process.empty() ? "One full core behind a low average" : format("One full core: {}", hot->process);
    finding.loss = scene.steps == nullptr ? "what it costs is not known without steps"
                                          : "what it costs is not known: the parts of a step were not measured";
    finding.certainty = Certainty::kPossible;
    // A GPU that is idle much of the time while one core is full and no other near it: it waits for that core.
    const auto next = scene.cores->number("next_core_pct");
    if (scene.gpu_busy_pct && *scene.gpu_busy_pct < kGpuWaitsPct && next && *next <= kNextCoreMaxPct) {
      finding.certainty = Certainty::kLikely;
      finding.severity = Severity::kWarning;
      finding.claims = "other";
      finding.loss = format("GPU busy {} %", figure(*scene.gpu_busy_pct));
      finding.lost_pct = 100 - *scene.gpu_busy_pct;
      finding.evidence["gpu_busy_pct"] = *scene.gpu_busy_pct;
      finding.why.push_back(format("the next core is at {} %: one thread does it all", figure(*next)));
      finding.advice.push_back(
          {.change = "loader workers (num_workers > 0), or that work in one batched call on the GPU",
           .note = "which code it is was not looked at: py-spy top, or hotlap run"});
      finding.limits.emplace_back(scene.steps == nullptr ? "how much of a step it takes: no step was seen"
                                                         : "how much of a step it takes: its parts were not measured");
    } else {
      finding.advice.push_back(
          {.change = "see which code it is: py-spy top, or hotlap run --profile functions=20hz", .note = {}});
    }
    out.add(std::move(finding));
    return;
  }
  const double wait = scene.parts->number("data_wait").value_or(0);
  const double other = scene.parts->number("other").value_or(0);
  const double compute = scene.parts->number("forward").value_or(0) + scene.parts->number("backward").value_or(0) +
                         scene.parts->number("optimizer").value_or(0);
  const bool is_measured = scene.parts->number("compute_known").value_or(0) == 1;
  if (hot->is_loader || (is_helper(*hot) && wait >= other) || (hot->is_training && wait > std::max(other, compute))) {
    // It makes batches: the loader's finding is nearer to the cause, unless a helper thread is between.
    finding.cause = format("One full core: {} makes batches", who(*hot));
    finding.certainty = Certainty::kLikely;
    finding.claims = "data_wait";
    finding.distance = is_helper(*hot) ? 0 : 1;
    set_loss(scene, wait, finding);
    if (is_helper(*hot)) {
      finding.advice.push_back({.change = "pin_memory=False, or batches of fewer and larger tensors",
                                .note = "one thread copies every batch, more workers will not help"});
    }
    out.add(std::move(finding));
    return;
  }
  if (!hot->is_training && !hot->process.empty())
    return;  // a process beside training: it holds nothing up that we know
  if (is_measured && other >= params.number("other_pct")) {
    if (scene.may_have_gpu && !scene.gpu_busy_pct) {
      out.cannot_tell("a thread that waits for the GPU fills a core as well: how busy the GPU was is missing");
      return;
    }
    // While the GPU works, the thread waits for it: only the rest of its time holds anything up.
    const double held_up = scene.may_have_gpu ? std::min(other, 100 - *scene.gpu_busy_pct) : other;
    if (held_up < params.number("other_pct")) return;
    own_code(scene, *hot, held_up, finding);
    out.add(std::move(finding));
    return;
  }
  if (scene.computes_on_cpu && hot->is_training && is_measured && compute >= 50) {
    single_threaded_model(scene, *hot, compute, finding);
    out.add(std::move(finding));
  }
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* cores : facts.all("core_use.summary")) {
    Scene scene;
    scene.cores = cores;
    const auto usable = cores->number("usable_cores");
    const auto busy = cores->number("busy_pct");
    if (!usable || !busy || *usable < 2) continue;  // with one core there is no average to hide behind
    scene.usable = *usable;
    scene.busy_pct = *busy;
    if (scene.busy_pct > params.number("average_pct")) continue;
    scene.steps = fact_for(facts, "steps.summary", cores->where);
    scene.parts = fact_for(facts, "breakdown.parts", cores->where);
    scene.gpu_busy_pct = gpu_busy_pct(facts, cores->where);
    const Fact* software = facts.find("job.software");
    scene.may_have_gpu = may_have_gpu(facts);
    scene.computes_on_cpu = software != nullptr &&
                            (software->number("gpu_build") == 0 || software->number("gpu") == 0) &&
                            software->number("torch_threads").value_or(1) < scene.usable / 2;
    judge(facts, scene, params, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_hot_core{
    .id = "HotCore",
    .title = "One core at its limit while the average looks idle",
    .why =
        "Looks at the use of single cores and threads beside the average, and at what the training thread and the GPU "
        "do "
        "then: a thread that waits for a busy GPU fills a core as well. Without steps it names the core and the thread "
        "only.",
    .advice = "What the full thread does, and how much of the step would go without it.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
