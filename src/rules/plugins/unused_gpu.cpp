// GPUs that are paid for and do nothing.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.use"}};
constexpr std::array kParams{
    percent_param("ever_pct", "5", "highest use up to which a GPU counts as unused"),
    patience_param(),
};

constexpr double kHeldPct = 50;  // of a GPU's memory, that is held while nothing runs there

// "gpu0/mig1": an instance of a split one.
bool is_instance(std::string_view device) {
  const std::size_t slash = device.rfind('/');
  return slash != std::string_view::npos && device.substr(slash + 1).starts_with("mig");
}

// "algo-2" of "algo-2/gpu0": files of several machines name theirs so.
std::string node_of(const Where& where) {
  const std::size_t slash = where.device.rfind('/');
  return slash == std::string::npos ? where.node : where.device.substr(0, slash);
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  std::map<std::string, std::pair<std::vector<const Fact*>, std::vector<const Fact*>>> by_node;  // unused, used
  for (const Fact* use : facts.all("gpu.use")) {
    // Missing is not unused; nor is one that others work on, or an instance of a split one.
    const auto ever = use->number("ever_pct");
    if (!ever || is_instance(use->where.device) || !is_seen_for(*use, params.number("patience"))) continue;
    const bool is_unused = *ever <= params.number("ever_pct") && !is_in_use(*use);
    if (!is_unused && use->number("is_of_job") == 0) continue;
    auto& [unused, used] = by_node[node_of(use->where)];
    (is_unused ? unused : used).push_back(use);
  }
  const bool has_used = std::ranges::any_of(by_node, [](const auto& node) { return !node.second.second.empty(); });
  for (const auto& [node, gpus] : by_node) {
    const auto& [unused, used] = gpus;
    if (unused.empty()) continue;
    const std::size_t all = unused.size() + used.size();
    double held = 0;
    double full = 0;  // highest fill of one of them, in percent
    double taken = 0;
    double paid_s = 0;
    for (const Fact* use : unused) {
      paid_s = std::max(paid_s, use->number("observed_s").value_or(0));
      const Fact* memory = same_device(facts, "gpu.memory", *use);
      if (memory == nullptr) continue;
      held += memory->number("job_bytes").value_or(0);
      full = std::max(full, memory->number("mean_pct").value_or(0));
      taken += memory->number("mean_bytes").value_or(0);
    }
    Finding finding;
    finding.where = place_of(unused);
    finding.cause = !used.empty() ? format("{} of {} GPUs unused", unused.size(), all)
                    : has_used    ? format("No GPU of one machine is used: {} idle", devices_words(unused))
                                  : format("No GPU is used: {} idle", devices_words(unused));
    finding.loss = "paid for all the time";
    finding.severity = 2 * unused.size() > all ? Severity::kCritical : Severity::kWarning;
    if (!used.empty()) {
      finding.lost_of = LostOf::kRun;
      finding.lost_pct = 100 * static_cast<double>(unused.size()) / static_cast<double>(all);
      finding.lost_s = paid_s * *finding.lost_pct / 100;
    }
    finding.certainty = Certainty::kCertain;
    finding.claims = "unused_gpu";
    finding.evidence["unused"] = static_cast<double>(unused.size());
    finding.evidence["gpus"] = static_cast<double>(all);
    std::string why = format("nothing ever ran on {}", devices_words(unused));
    if (!used.empty()) why += format(", {} {} busy", devices_words(used), used.size() == 1 ? "is" : "are");
    finding.why.push_back(std::move(why));
    if (held < 1e8 && full >= kHeldPct) {
      finding.why.push_back(format("memory is held all the same: {}, up to {} % full; they are not free",
                                   format_bytes(taken), figure(full)));
      finding.evidence["held_pct"] = full;
      finding.advice.push_back({.change =
                                    "look for processes that hold it and do nothing (nvidia-smi, ps): stuck ones and "
                                    "notebooks that were left open",
                                .note = "a process in state D goes only with a reboot"});
    }
    if (held >= 1e8)
      finding.why.push_back(format("the job holds {} of memory on them all the same", format_bytes(held)));
    if (used.empty() && has_used) {
      finding.advice.push_back({.change = "start the job on this machine too (torchrun --nnodes), or take one less",
                                .note = "GPUs of the others work"});
    } else if (used.empty()) {
      finding.advice.push_back(
          {.change = "move model and batches to the GPU (.to('cuda')), or take a machine without one",
           .note = "an idle GPU costs as much as a busy one"});
    } else {
      finding.advice.push_back(
          {.change = format("torchrun --nproc-per-node={} train.py with DistributedDataParallel", all),
           .note = "how well it scales is not known"});
      finding.advice.push_back(
          {.change = used.size() == 1 ? "or the size with 1 GPU" : format("or a size with {} GPUs", used.size()),
           .note = "the same speed as now for less"});
    }
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_unused_gpu{.id = "UnusedGPU",
                                                .title = "GPUs do nothing",
                                                .why =
                                                    "Looks for GPUs on which nothing ran in the whole recording. "
                                                    "Memory that a framework takes on them does not count "
                                                    "as use; a GPU whose use is missing is not unused.",
                                                .advice = "Using them, or a smaller machine.",
                                                .needs = kNeeds,
                                                .params = kParams,
                                                .evaluate = evaluate};

}  // namespace hotlap
