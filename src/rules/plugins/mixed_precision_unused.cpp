// Matrix work runs in fp32 outside of the tensor cores of a GPU that has them.
#include <array>

#include "rules/fact_number.h"
#include "rules/trace_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"device.time"}, std::string_view{"kernels.matrix"}};
constexpr std::array kParams{
    share_param("15", "share of the device's time in such work from which on the rule speaks")};

// A third of the time is what matrix kernels of a narrower type take as a rule (2 to 8 times as fast, and copies and
// casts are added); a half of that gain is where the kernels were bound by memory.
constexpr double kGainLow = 0.4;

bool has_tf32(std::string_view generation) {
  return generation == "ampere" || generation == "hopper" || generation == "blackwell";
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const auto c = trace_case(facts);
  if (!c) return {};
  const Fact* matrix = facts.find("kernels.matrix");
  const double fp32_ms = matrix->number("fp32_off_units_ms").value_or(0);
  const double unknown_ms = matrix->number("unknown_ms").value_or(0);
  const double share = c->share_of_all_pct(fp32_ms);
  if (share < params.number("share_pct")) {
    if (c->share_of_all_pct(unknown_ms) >= 50) {
      out.cannot_tell(format("{} % of the GPU's time is matrix work whose kernels' names do not tell its precision",
                             figure(c->share_of_all_pct(unknown_ms))));
    }
    return {};
  }
  const std::string generation = matrix->text("generation").value_or("");
  if (generation == "maxwell") return {};  // and Pascal, which runs its kernels: no tensor cores
  const auto saved = saved_pct(facts, *c, "matrix type");
  if (saved && *saved < 3) return {};  // the GPU is not what limits
  // Without a replay: what the kernels alone would take less.
  const double high = saved.value_or(share * 2 / 3);
  Finding finding = trace_finding(*c, {.cause = "Tensor cores stand idle: matrix work runs in fp32",
                                       .loss = format("{} % of the GPU's time", figure(share)),
                                       .claims = "precision",
                                       .lost_ms = high * kGainLow / 100 * c->wall_ms});
  finding.certainty = generation.empty() ? Certainty::kPossible : Certainty::kLikely;
  finding.evidence["fp32_off_units_ms"] = fp32_ms;
  finding.why.push_back(format("{} of {} ms of matrix products and convolutions in fp32 outside of tensor cores ({})",
                               figure(fp32_ms), figure(matrix->number("total_ms").value_or(0)),
                               matrix->text("types").value_or("")));
  if (!generation.empty()) finding.why.push_back(format("kernels were made for {}: it has tensor cores", generation));
  Advice autocast;
  if (has_tf32(generation)) {
    Advice tf32{.change = "torch.set_float32_matmul_precision(\"high\"): one line, TF32"};
    set_gain(*c, high, kGainLow * high, Basis::kModel, tf32);
    tf32.note = "keeps fp32 tensors; 10 bits of mantissa in products";
    finding.advice.push_back(std::move(tf32));
    autocast.change = "torch.autocast(\"cuda\", dtype=torch.bfloat16)";
    autocast.note = "halves activations' memory, too";
  } else {
    autocast.change = "torch.autocast(\"cuda\", dtype=torch.float16) with a GradScaler";
    set_gain(*c, high, kGainLow * high, Basis::kModel, autocast);
    autocast.note = "changes numerics: compare the loss";
  }
  finding.advice.push_back(std::move(autocast));
  if (generation.empty()) finding.limits.emplace_back("whether this GPU has tensor cores");
  finding.limits.emplace_back("sizes that are no multiples of 8 gain less");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_mixed_precision_unused{
    .id = "MixedPrecisionUnused",
    .title = "Matrix work runs in fp32 outside of the tensor cores",
    .why =
        "Looks at the names of kernels of matrix products, convolutions and attention: they tell type and units. The "
        "gain is a model: such work at three times the speed, in a replay of the trace.",
    .advice = "TF32, bfloat16 or float16 by what the GPU has, with the step time of the replay.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
