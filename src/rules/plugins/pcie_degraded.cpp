// A GPU's link to the machine is narrower or older than both can.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/gpu_limits_words.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.limits"}};
constexpr std::array kParams{
    ParamDesc{.name = "replays",
              .default_text = "1000",
              .min = 1,
              .max = 1e12,
              .unit = "{event}",
              .help = "packets sent again from which on a link is bad whatever its width"},
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* limits : working_limits(facts)) {
    const auto width = limits->number("pcie_width");
    const auto width_max = limits->number("pcie_width_max");
    const auto generation = limits->number("pcie_generation");
    const auto generation_max = limits->number("pcie_generation_max");
    const bool is_narrow = width && width_max && *width > 0 && *width < *width_max;
    // It is the best that was seen while the GPU worked: an idle link is slower by design.
    const bool is_old = generation && generation_max && *generation > 0 && *generation < *generation_max;
    const double replays = limits->number("pcie_replays").value_or(0);
    if (!is_narrow && !is_old && replays < params.number("replays")) continue;
    Finding finding;
    finding.where = place_of({limits});
    finding.cause = is_narrow || is_old ? format("The link of {} is slower than it can be", limits->where.device)
                                        : format("The link of {} loses packets", limits->where.device);
    finding.loss = is_narrow || is_old ? format("PCIe {} x{} of {} x{}", std::lround(generation.value_or(0)),
                                                std::lround(width.value_or(0)), std::lround(generation_max.value_or(0)),
                                                std::lround(width_max.value_or(0)))
                                       : format("{} sent again", shown_count(static_cast<std::uint64_t>(replays)));
    finding.severity = Severity::kWarning;
    finding.certainty = is_narrow ? Certainty::kCertain : Certainty::kLikely;
    finding.claims = "pcie";
    if (width) finding.evidence["width"] = *width;
    if (generation) finding.evidence["generation"] = *generation;
    finding.evidence["replays"] = replays;
    if (const auto rate = limits->number("pcie_bytes_per_s"))
      finding.why.push_back(format("it carries {} MB/s towards the GPU", figure(*rate / 1e6)));
    finding.why.emplace_back("the best that was seen while it worked");
    if (replays > 0)
      finding.why.push_back(format("{} packets sent again", shown_count(static_cast<std::uint64_t>(replays))));
    finding.advice.push_back({.change = "seat the board anew, or another slot; look at the riser and the BIOS setting",
                              .note = "some slots and instance types have fewer lanes by design"});
    finding.limits.emplace_back("what it costs: nothing, where little is copied");
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_pcie_degraded{.id = "PCIeDegraded",
                                                   .title = "A GPU's link to the machine is slower than it can be",
                                                   .why =
                                                       "Compares the widest and fastest link that was seen with what "
                                                       "GPU and slot can, for GPUs that worked: an idle GPU "
                                                       "lowers its link.",
                                                   .advice = "Where to look.",
                                                   .needs = kNeeds,
                                                   .params = kParams,
                                                   .evaluate = evaluate};

}  // namespace hotlap
