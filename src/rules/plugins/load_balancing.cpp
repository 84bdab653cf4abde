// GPUs of one job do unequal work.
#include <algorithm>
#include <array>

#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.use"}};
constexpr std::array kParams{
    ParamDesc{.name = "threshold",
              .default_text = "0.2",
              .min = 0.01,
              .max = 1,
              .unit = "1",
              .help = "difference of the mean use of two GPUs, of the higher one, from which on the rule speaks"},
    patience_param(),
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  std::vector<const Fact*> gpus = job_gpus(facts, "gpu.use");
  std::erase_if(gpus, [&](const Fact* gpu) {
    return !gpu->number("mean_pct") || !is_in_use(*gpu) || !is_seen_for(*gpu, params.number("patience"));
  });
  if (gpus.size() < 2) return {};
  const auto mean = [](const Fact* gpu) { return *gpu->number("mean_pct"); };
  std::ranges::stable_sort(gpus, {}, mean);
  const Fact& low = *gpus.front();
  const Fact& high = *gpus.back();
  const double difference = (mean(&high) - mean(&low)) / std::max(mean(&high), 1.0);
  if (difference <= params.number("threshold")) return {};
  const auto name = [](const Fact& gpu) {
    return gpu.where.node.empty() ? gpu.where.device : format("{} {}", gpu.where.node, gpu.where.device);
  };
  // What most of them do tells whether one works more, or one less.
  const double middle = mean(gpus[gpus.size() / 2]);
  const bool one_works_more = gpus.size() > 2 && mean(&high) - middle > middle - mean(&low);
  const Fact& odd = one_works_more ? high : low;
  Finding finding;
  finding.where = place_of({&odd});
  finding.cause =
      format("Unequal work: {} is busy {} %, {} {} %", name(high), figure(mean(&high)), name(low), figure(mean(&low)));
  finding.loss = "the slowest sets the pace";
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "imbalance";
  finding.evidence["high_pct"] = mean(&high);
  finding.evidence["low_pct"] = mean(&low);
  finding.evidence["gpus"] = static_cast<double>(gpus.size());
  finding.why.push_back(format("of {} GPUs that work, {} does {} than the others", gpus.size(), name(odd),
                               one_works_more ? "more" : "less"));
  finding.advice.push_back({.change = "split batches or layers evenly; gather and log in turns, not all on one rank",
                            .note = "whether the steps of the ranks differ is not known from this"});
  finding.look_alikes_excluded.emplace_back("GPUs that do nothing (counted apart)");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_load_balancing{.id = "LoadBalancing",
                                                    .title = "GPUs of one job do unequal work",
                                                    .why =
                                                        "Compares the mean use of every two GPUs that work, over all "
                                                        "machines, during the typical steps. Busy is not the "
                                                        "same as doing work, so it is likely only.",
                                                    .advice = "Where unequal work comes from.",
                                                    .needs = kNeeds,
                                                    .params = kParams,
                                                    .evaluate = evaluate};

}  // namespace hotlap
