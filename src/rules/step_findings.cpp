#include "rules/step_findings.h"

#include <algorithm>
#include <utility>

#include "rules/fact_number.h"

namespace hotlap {

std::optional<double> number_in(const Fact* fact, std::string_view field) {
  return fact == nullptr ? std::nullopt : fact->number(field);
}

bool same_place(const Where& a, const Where& b) {
  return (a.node.empty() || b.node.empty() || a.node == b.node) && (!a.rank || !b.rank || a.rank == b.rank);
}

const Fact* fact_for(const FactTable& facts, std::string_view kind, const Where& where) {
  for (const Fact* fact : facts.all(kind)) {
    if (same_place(fact->where, where)) return fact;
  }
  return nullptr;
}

double steps_needed(const Fact& steps, const Params& params) {
  const double steps_min = params.number("steps_min");
  return steps.number("chosen") == 1 ? std::min(steps_min, kChosenStepsMin) : steps_min;
}

std::vector<StepShare> step_shares(const FactTable& facts, const Params& params, std::string_view part) {
  std::vector<StepShare> out;
  for (const Fact* parts : facts.all("breakdown.parts")) {
    const auto share = parts->number(part);
    if (!share || *share < params.number("share_pct")) continue;
    const Fact* steps = fact_for(facts, "steps.summary", parts->where);
    if (steps == nullptr || steps->number("steady_count").value_or(0) < steps_needed(*steps, params)) continue;
    out.push_back({steps, *share});
  }
  return out;
}

void set_step_loss(const Fact& steps, double share_pct, Finding& finding) {
  finding.lost_pct = share_pct;
  if (const auto steady = steps.number("steady_s")) finding.lost_s = *steady * share_pct / 100;
}

bool may_have_gpu(const FactTable& facts) {
  const Fact* software = facts.find("job.software");
  return software != nullptr && software->number("gpu") == 1 && software->number("gpu_build") != 0;
}

std::optional<double> gpu_busy_pct(const FactTable& facts, const Where& where) {
  std::optional<double> most;
  for (const Fact* gpu : facts.all("gpu.use")) {
    const auto mean = gpu->number("mean_pct");
    if (mean && same_place(gpu->where, where) && gpu->number("is_of_job") != 0)
      most = std::max(most.value_or(*mean), *mean);
  }
  return most;
}

const Fact* process_of(const FactTable& facts, const Fact& steps) {
  const auto label = steps.text("process");
  if (!label) return nullptr;
  for (const Fact* process : facts.all("core_use.process")) {
    if (process->text("process") == label && same_place(process->where, steps.where)) return process;
  }
  return nullptr;
}

std::optional<double> taken_by_others_pct(const FactTable& facts, const Fact& steps) {
  constexpr double kManyCores = 0.25;
  const Fact* cores = fact_for(facts, "core_use.summary", steps.where);
  const Fact* process = process_of(facts, steps);
  const auto wait_pct = number_in(process, "main_wait_pct");
  const auto outside = number_in(cores, "outside_cores");
  const auto usable = number_in(cores, "usable_cores");
  if (!wait_pct || !outside || !usable || *outside < kManyCores * *usable) return std::nullopt;
  // The job's own tasks take cores from each other too.
  const double own = number_in(cores, "job_cores").value_or(0) - number_in(process, "main_thread_cores").value_or(0);
  return *wait_pct * *outside / (*outside + std::max(own, 0.0));
}

Finding share_finding(const Where& where, ShareHead head) {
  Finding finding;
  finding.where = where;
  finding.cause = std::move(head.cause);
  finding.loss = std::move(head.loss);
  finding.claims = std::move(head.claims);
  finding.severity = head.share_pct >= kCriticalShare ? Severity::kCritical : Severity::kWarning;
  finding.certainty = head.count >= kCertainCount ? Certainty::kCertain : Certainty::kLikely;
  finding.lost_pct = head.share_pct;
  finding.lost_of = head.lost_of;
  finding.lost_s = head.lost_s;
  return finding;
}

}  // namespace hotlap
