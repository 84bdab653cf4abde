// One kernel takes a large part of the GPU's time, and it is none of those that a training is expected to live in.
#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/trace_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"device.time"}, std::string_view{"kernels.kernel"}};
constexpr std::array kParams{
    ParamDesc{.name = "share_pct",
              .default_text = "25",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "share of the device's time in one kernel from which on the rule speaks"}};
constexpr std::size_t kNameMax = 60;
constexpr double kIdlePct = 50;  // of all devices' time: from here on no kernel is what it goes into

struct Remedy {
  std::string_view sort;  // of kernel
  std::string_view change;
};
constexpr std::array kRemedies{
    Remedy{"softmax", "F.scaled_dot_product_attention in the place of softmax(q k) v written out"},
    Remedy{"element-wise", "torch.compile(model): it joins element-wise operators into one kernel"},
    Remedy{"normalisation", "channels_last and mixed precision, or a fused normalisation (apex, Liger)"},
    Remedy{"reduction", "torch.compile(model): it joins reductions with what stands before them"},
    Remedy{"embedding", "EmbeddingBag, sparse gradients, or sorted indices"},
    Remedy{"optimizer", "the optimizer's fused=True, or a larger batch: its cost does not grow with it"},
    Remedy{"copy", "layouts and types that need no conversion: channels_last, one dtype, no .contiguous()"},
    Remedy{"pooling", "channels_last and mixed precision"},
    Remedy{"convolution", "torch.backends.cudnn.benchmark = True for inputs of fixed shapes, channels_last"},
    Remedy{"matrix product", "sizes that are multiples of 8 (64 is better)"},
    Remedy{"attention", "F.scaled_dot_product_attention with a flash kernel"},
};

// Where a training is expected to spend its time: then a large share is no fault. Of matrix work outside of tensor
// cores MixedPrecisionUnused speaks, where it is in fp32; of communication other facts do.
bool is_expected(const Fact& kernel) {
  const std::string sort = kernel.text("sort").value_or("");
  if (sort == "communication") return true;
  const bool is_matrix = sort == "matrix product" || sort == "convolution" || sort == "attention";
  return is_matrix && (kernel.number("matrix_units") != 0 || kernel.text("type") == "fp32");
}

bool is_mostly_idle(const FactTable& facts) {
  double idle_ms = 0;
  double wall_ms = 0;
  for (const Fact* device : facts.all("device.time")) {
    idle_ms += device->number("idle_ms").value_or(0);
    wall_ms += device->number("wall_ms").value_or(0);
  }
  return 100 * idle_ms > kIdlePct * wall_ms;
}

std::string short_name(const std::string& name) {
  return name.size() <= kNameMax ? name : name.substr(0, kNameMax - 3) + "...";
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const auto c = trace_case(facts);
  if (!c) return {};
  const Fact* kernel = facts.find("kernels.kernel");  // the one that takes most
  const double total_ms = kernel->number("total_ms").value_or(0);
  const double share = c->share_of_all_pct(total_ms);
  if (share < params.number("share_pct") || is_expected(*kernel) || is_mostly_idle(facts)) return {};
  const std::string sort = kernel->text("sort").value_or("other");
  Finding finding = trace_finding(
      *c, {.cause = format("One kernel takes much of the {}'s time", device_word(c->device->where.device)),
           .loss = format("{} % of it in {}", figure(share), sort == "other" ? "one" : sort),
           .claims = "",
           .lost_ms = total_ms});
  // It does something that is needed: how much of it could go is not known.
  finding.severity = Severity::kInfo;
  finding.certainty = Certainty::kLikely;
  finding.lost_pct.reset();
  finding.lost_s.reset();
  finding.evidence.erase("lost_ms");
  finding.evidence["kernel_ms"] = total_ms;
  finding.evidence["share_pct"] = share;
  finding.evidence["kernel"] = kernel->text("name").value_or("");
  finding.why.push_back(short_name(kernel->text("name").value_or("")));
  finding.why.push_back(
      format("{} of {} us, {} of {} ms", counted(kernel->number("calls").value_or(0), "call", "calls"),
             figure(kernel->number("mean_us").value_or(0)), figure(total_ms), figure(c->all_wall_ms)));
  const auto remedy = std::ranges::find(kRemedies, sort, &Remedy::sort);
  Advice advice{.change = remedy == kRemedies.end() ? "find what launches it: hotlap sql, table kernel, column operator"
                                                    : std::string(remedy->change)};
  advice.basis = Basis::kRuleOfThumb;
  if (c->step_ms) {
    advice.gain =
        format("at most: step {} -> {} ms without it", figure(*c->step_ms), figure(*c->step_ms * (1 - share / 100)));
  }
  finding.advice.push_back(std::move(advice));
  finding.limits.emplace_back("how much faster it can be is not known");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_kernel_hotspot{
    .id = "KernelHotspot",
    .title = "One kernel takes much of the GPU's time",
    .why =
        "Looks at the kernel that takes most of a device's time. Matrix products, convolutions and attention "
        "are where a training lives and are not meant, nor is communication. Says nothing where the devices idle more "
        "than half of the time.",
    .advice = "By the sort of the kernel: what usually makes it cheaper, with the step without it as the limit.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
