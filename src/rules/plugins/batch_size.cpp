// GPU, its memory and the cores all have room: the batch is small for this GPU. A symptom: a wait explains it first.
#include <array>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.use"}, std::string_view{"gpu.memory"},
                            std::string_view{"system.use"}};
constexpr std::array kParams{
    percent_param("cpu_threshold_p95", "70", "95th percentile of the cores' use that there must be room above"),
    percent_param("gpu_threshold_p95", "70", "95th percentile of the GPU's use that there must be room above"),
    percent_param("gpu_memory_threshold_p95", "70", "fill of the GPU's memory that there must be room above"),
    patience_param(),
    window_param(),
};

const Fact* cores_of(const FactTable& facts, const Where& where) {
  for (const Fact* use : facts.all("system.use")) {
    if (use->text("resource") == "cpu" && same_place(use->where, where)) return use;
  }
  return nullptr;
}

void judge(const Fact& use, const Fact& memory, double cpu_p95, FindingSink& out) {
  Finding finding;
  finding.where = place_of({&use});
  finding.cause = "Batch small for this GPU";
  finding.loss = format("GPU busy {} %", figure(use.number("mean_pct").value_or(0)));
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kPossible;
  finding.claims = kClaimsGpuIdle;
  finding.distance = 3;
  // Of a GPU that is never idle long enough to show, what could be won is not known.
  if (const auto idle = use.number("idle_pct"); idle && *idle >= 3) finding.lost_pct = *idle;
  const double peak = memory.number("peak_bytes").value_or(0);
  const double total = memory.number("total_bytes").value_or(0);
  finding.why.push_back(format("95 % of the time GPU below {} %, cores below {} %; memory at most {} of {}",
                               figure(use.number("p95_pct").value_or(0)), figure(cpu_p95), format_bytes(peak),
                               format_bytes(total)));
  finding.evidence["gpu_p95_pct"] = use.number("p95_pct").value_or(0);
  finding.evidence["cpu_p95_pct"] = cpu_p95;
  finding.evidence["gpu_memory_peak_pct"] = memory.number("peak_pct").value_or(0);
  finding.advice.push_back({.change = "try twice the batch and more, a short run each, and hotlap compare them",
                            .note = "changes training: retune the learning rate, or cut gradient accumulation"});
  finding.advice.push_back({.change = "or a smaller GPU", .note = "its speed for this job is not known"});
  finding.limits.emplace_back("one batch size seen: the step time of another can't be predicted");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* use : job_gpus(facts, "gpu.use")) {
    const Fact* memory = same_device(facts, "gpu.memory", *use);
    const Fact* cores = cores_of(facts, use->where);
    const auto gpu_p95 = use->number("p95_pct");
    const auto memory_pct = number_in(memory, "peak_pct");
    const auto cpu_p95 = number_in(cores, "p95");
    if (!gpu_p95 || !memory_pct || !cpu_p95) continue;
    if (!is_in_use(*use) || !is_seen_for(*use, params.number("patience"))) continue;
    if (*gpu_p95 >= params.number("gpu_threshold_p95") || *cpu_p95 >= params.number("cpu_threshold_p95")) continue;
    if (*memory_pct >= params.number("gpu_memory_threshold_p95")) continue;
    judge(*use, *memory, *cpu_p95, out);
    return {};  // the batch of one is the batch of all
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_batch_size{
    .id = "BatchSize",
    .title = "GPU, its memory and the cores all have room",
    .why =
        "Compares 95th percentiles of GPU and cores over the typical steps, and the fill of the GPU's memory, with "
        "limits. Possible only: what one batch size costs says little of another. Says nothing where a framework takes "
        "all memory at once.",
    .advice = "Larger batches to try, or a smaller GPU; always that training changes.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
