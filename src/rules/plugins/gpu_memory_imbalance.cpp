// One GPU of the job holds far more than the others: other ranks put something there.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.memory"}};
constexpr std::array kParams{
    percent_param("difference_pct", "15", "of a GPU's memory, by which one must hold more than the others"),
};

// Processes of several ranks on one GPU are the cause itself: a small difference does.
constexpr double kOwnContextsPct = 5;

constexpr double kContextBytes = 128e6;  // of CUDA; one more of them than on the others is no accident
constexpr double kMoreShare = 0.15;
constexpr double kMoreBytes = 1e9;

// A list of processes alone: how much they hold and how many they are, of GPUs whose size is not known.
void judge_by_processes(std::vector<const Fact*> gpus, FindingSink& out) {
  const auto bytes = [](const Fact* gpu) { return *gpu->number("job_bytes"); };
  std::ranges::stable_sort(gpus, std::greater{}, bytes);
  const Fact& most = *gpus[0];
  const Fact& next = *gpus[1];
  const double extra = bytes(&most) - bytes(&next);
  const double here = most.number("job_processes").value_or(0);
  double there = 0;
  for (const Fact* gpu : gpus) {
    if (gpu != &most) there = std::max(there, gpu->number("job_processes").value_or(0));
  }
  const bool has_more = here > there && there > 0 && extra >= kContextBytes * (here - there);
  if (!has_more && (extra < kMoreBytes || extra < kMoreShare * bytes(&most))) return;
  Finding finding;
  finding.where = place_of({&most});
  finding.cause = format("{} holds {} memory than the others", most.where.device, has_more ? "more" : "far more");
  finding.loss = format("{} more than the next one", format_bytes(extra));
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "gpu_memory_imbalance";
  finding.evidence["most_bytes"] = bytes(&most);
  finding.evidence["next_bytes"] = bytes(&next);
  finding.why.push_back(format("{}, the next one {}", format_bytes(bytes(&most)), format_bytes(bytes(&next))));
  if (has_more) {
    finding.why.push_back(
        format("{} processes are on it, at most {} on each other", std::lround(here), std::lround(there)));
    finding.advice.push_back(
        {.change = "torch.cuda.set_device(local_rank) first of all, and torch.load(map_location=device)",
         .note = "its fill caps the batch of all"});
  } else {
    finding.advice.push_back(
        {.change = "look at what only that rank holds: gathered outputs, an EMA copy, the evaluation",
         .note = "its fill caps the batch of all"});
  }
  finding.limits.emplace_back("how full it is: the size of its memory was not recorded");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  std::map<std::string, std::vector<const Fact*>> by_node;
  std::map<std::string, std::vector<const Fact*>> lists_by_node;
  for (const Fact* memory : job_gpus(facts, "gpu.memory")) {
    if (!memory->number("used_bytes") && memory->number("job_bytes")) {
      lists_by_node[memory->where.node].push_back(memory);
      continue;
    }
    const Fact* use = same_device(facts, "gpu.use", *memory);
    if (!memory->number("mean_pct") || (use != nullptr && use->number("ever_pct") && !is_in_use(*use))) continue;
    by_node[memory->where.node].push_back(memory);
  }
  for (const auto& [node, gpus] : lists_by_node) {
    if (gpus.size() >= 2 && !by_node.contains(node)) judge_by_processes(gpus, out);
  }
  for (auto& [node, gpus] : by_node) {
    if (gpus.size() < 2) continue;
    const auto mean = [](const Fact* gpu) { return *gpu->number("mean_pct"); };
    std::ranges::stable_sort(gpus, std::greater{}, mean);
    const Fact& most = *gpus[0];
    const double others = mean(gpus[1]);
    const double extra = most.number("mean_bytes").value_or(0) - gpus[1]->number("mean_bytes").value_or(0);
    const double here = most.number("job_processes").value_or(0);
    const double there = gpus[1]->number("job_processes").value_or(0);
    const bool has_more_processes = here > there && there > 0;
    const double least_pct = params.number("difference_pct");
    if (mean(&most) - others < (has_more_processes ? std::min(least_pct, kOwnContextsPct) : least_pct)) continue;
    Finding finding;
    finding.where = place_of({&most});
    finding.cause = format("{} holds far more memory than the others", most.where.device);
    finding.loss = format("{} more than the next one", format_bytes(extra));
    finding.severity = Severity::kWarning;
    finding.certainty = has_more_processes ? Certainty::kCertain : Certainty::kLikely;
    finding.claims = "gpu_memory_imbalance";
    finding.evidence["most_pct"] = mean(&most);
    finding.evidence["next_pct"] = others;
    finding.why.push_back(format("{} % full, the next one {} %", figure(mean(&most)), figure(others)));
    if (has_more_processes) {
      finding.why.push_back(
          format("{} processes of the job are on it, {} on the next", std::lround(here), std::lround(there)));
      finding.advice.push_back(
          {.change = "torch.cuda.set_device(local_rank) first of all, and torch.load(map_location=device)",
           .note = "its fill caps the batch of all"});
    } else {
      finding.advice.push_back(
          {.change = "look at what only that rank holds: gathered outputs, an EMA copy, the evaluation",
           .note = "its fill caps the batch of all"});
    }
    if (const auto foreign = most.number("other_bytes"); foreign && *foreign >= extra / 2) {
      finding.why.push_back(format("{} of it by other programs", format_bytes(*foreign)));
      finding.advice.clear();
      finding.advice.push_back({.change = "end the other program on that GPU", .note = {}});
    }
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_gpu_memory_imbalance{
    .id = "GPUMemoryImbalance",
    .title = "One GPU of the job holds far more memory than the others",
    .why =
        "Compares the memory in use of the job's GPUs on one machine. Certain when the driver's list shows more "
        "processes of the job there; then 5 % are enough.",
    .advice = "Keeping each rank on its own GPU.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
