// The GPU is little used, or used by fits and starts. A symptom: what explains it comes first.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.use"}};
constexpr std::array kParams{
    percent_param("threshold_p95", "70", "a GPU whose 95th percentile of use is below this is little used"),
    percent_param("threshold_p5", "10", "one whose 5th percentile is below this is used by fits and starts"),
    window_param(),
    patience_param(),
};

constexpr double kSmallUsePct = 30;
constexpr double kSmallFillPct = 30;
constexpr double kCoarseS = 2;

void judge(const FactTable& facts, const std::vector<const Fact*>& gpus, bool is_low, FindingSink& out) {
  const Fact& worst = **std::ranges::min_element(gpus, {}, [](const Fact* gpu) { return gpu->number("mean_pct"); });
  const double mean = worst.number("mean_pct").value_or(0);
  Finding finding;
  finding.where = place_of(gpus);
  finding.cause = is_low ? format("GPU little used: {}", devices_words(gpus))
                         : format("GPU used by fits and starts: {}", devices_words(gpus));
  finding.loss = format("busy {} % of the time", figure(mean));
  finding.severity = mean < 50 ? Severity::kWarning : Severity::kInfo;
  finding.certainty = Certainty::kLikely;
  finding.claims = kClaimsGpuIdle;
  finding.distance = 4;
  // Of a GPU that is never idle long enough to show, what could be won is not known.
  if (const auto idle = worst.number("idle_pct"); idle && *idle >= 3) finding.lost_pct = *idle;
  for (const std::string_view field : {"mean_pct", "p5_pct", "p50_pct", "p95_pct", "idle_pct"}) {
    if (const auto value = worst.number(field)) finding.evidence[std::string(field)] = *value;
  }
  std::string why = format("{}: 5/50/95 % of the time below {}/{}/{} %", worst.where.device,
                           figure(worst.number("p5_pct").value_or(0)), figure(worst.number("p50_pct").value_or(0)),
                           figure(worst.number("p95_pct").value_or(0)));
  if (worst.number("idle_count").value_or(0) >= 2) {
    why += format("; {} idle stretches of {} s", std::lround(*worst.number("idle_count")),
                  figure(worst.number("idle_mean_s").value_or(0)));
  }
  finding.why.push_back(std::move(why));
  if (const std::string host = host_words(facts, worst); !host.empty()) finding.why.push_back(host);
  const bool has_steps = facts.find("steps.summary") != nullptr;
  finding.advice.push_back({.change = has_steps ? "a larger batch, or a smaller GPU; hotlap tune tries batch sizes"
                                                : "record it with the hook: hotlap run -- python train.py",
                            .note = has_steps ? "a larger batch changes training: retune the learning rate"
                                              : "which part of a step waits is not known without steps"});
  const Fact* memory = same_device(facts, "gpu.memory", worst);
  const auto fill = number_in(memory, "peak_pct");
  if (is_low && fill && *fill < kSmallFillPct && worst.number("p95_pct").value_or(100) < kSmallUsePct) {
    finding.why.push_back(format("memory at most {} of {}", format_bytes(memory->number("peak_bytes").value_or(0)),
                                 format_bytes(memory->number("total_bytes").value_or(0))));
    finding.advice.push_back({.change = "a smaller GPU, or none: a smaller type of the instance",
                              .note = "use and memory both leave most of it free; its speed there is not known"});
  }
  // Samples that are far apart miss bursts between them.
  const double samples_s = worst.number("sample_period_s").value_or(0);
  if (samples_s >= kCoarseS) {
    finding.limits.push_back(
        format("bursts between samples: there is one every {} s (nvidia-smi -lms 100)", figure(samples_s)));
  }
  if (const auto window = worst.number("source_window_s"); window && *window > 0)
    finding.limits.push_back(format("bursts shorter than the source's {} s", figure(*window)));
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  std::vector<const Fact*> low;
  std::vector<const Fact*> fluctuating;
  bool is_missing = false;
  for (const Fact* gpu : job_gpus(facts, "gpu.use")) {
    const auto p95 = gpu->number("p95_pct");
    const auto p5 = gpu->number("p5_pct");
    is_missing = is_missing || !p95;
    // One that nothing ever ran on is not low: it is unused.
    if (!p95 || !p5 || !is_in_use(*gpu) || !is_seen_for(*gpu, params.number("patience"))) continue;
    if (*p95 < params.number("threshold_p95")) {
      low.push_back(gpu);
    } else if (*p5 < params.number("threshold_p5")) {
      fluctuating.push_back(gpu);
    }
  }
  if (!low.empty()) judge(facts, low, true, out);
  if (low.empty() && !fluctuating.empty()) judge(facts, fluctuating, false, out);
  if (is_missing && low.empty() && fluctuating.empty())
    out.cannot_tell("how busy a GPU was is missing: split by MIG, or no permission");
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_low_gpu_utilization{
    .id = "LowGPUUtilization",
    .title = "A GPU is little used, or by fits and starts",
    .why =
        "Looks at the distribution of each GPU's use over the typical steps. It yields to any finding that says where "
        "the time goes; alone it is likely at best.",
    .advice = "Where to look, or a larger batch, or a smaller GPU.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
