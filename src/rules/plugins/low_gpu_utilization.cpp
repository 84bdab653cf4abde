// The GPU is little used, or used by fits and starts. A symptom: what explains it comes first.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

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

// Used less and less, from use to little use; where its clock stays up it is not slowed down: it waits.
constexpr double kFallsTo = 0.6;
constexpr double kFallsBelowPct = 70;
constexpr double kFallsFromPct = 50;
constexpr double kSteadyClock = 0.95;
constexpr double kLongIdleS = 600;

bool is_falling(const Fact& gpu) {
  const auto first = gpu.number("first_pct");
  const auto last = gpu.number("last_pct");
  return first && last && *first >= kFallsFromPct && *last < kFallsBelowPct && *last <= kFallsTo * *first;
}

std::string falling_words(const FactTable& facts, const Fact& gpu) {
  std::string words = format("busy {} -> {} %", figure(gpu.number("first_pct").value_or(0)),
                             figure(gpu.number("last_pct").value_or(0)));
  const Fact* limits = same_device(facts, "gpu.limits", gpu);
  const auto power_first = number_in(limits, "power_first_w");
  const auto power_last = number_in(limits, "power_last_w");
  if (power_first && power_last) words += format(", {} -> {} W", figure(*power_first), figure(*power_last));
  const auto clock_first = number_in(limits, "clock_first_mhz");
  const auto clock_last = number_in(limits, "clock_last_mhz");
  if (clock_first && clock_last && *clock_last >= kSteadyClock * *clock_first)
    words += format(", at {} MHz all the time: it waits for something", figure(*clock_last));
  return words;
}

enum class Use : std::uint8_t { kLow, kFluctuating, kFalling };

std::string cause_words(Use use, const std::vector<const Fact*>& gpus) {
  switch (use) {
    case Use::kLow: return format("GPU little used: {}", devices_words(gpus));
    case Use::kFluctuating: return format("GPU used by fits and starts: {}", devices_words(gpus));
    case Use::kFalling: return format("GPU used less and less: {}", devices_words(gpus));
  }
  return {};
}

void judge(const FactTable& facts, const std::vector<const Fact*>& gpus, Use use, FindingSink& out) {
  const bool is_low = use == Use::kLow;
  const Fact& worst = **std::ranges::min_element(gpus, {}, [](const Fact* gpu) { return gpu->number("mean_pct"); });
  const double mean = worst.number("mean_pct").value_or(0);
  Finding finding;
  finding.where = place_of(gpus);
  finding.cause = cause_words(use, gpus);
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
  if (const auto longest = worst.number("idle_longest_s"); longest && *longest >= kLongIdleS)
    why += format("; idle for {} min without a break", figure(*longest / 60));
  if (use == Use::kFalling) finding.why.push_back(falling_words(facts, worst));
  finding.why.push_back(std::move(why));
  if (const std::string host = host_words(facts, worst); !host.empty()) finding.why.push_back(host);
  const bool has_steps = facts.find("steps.summary") != nullptr;
  finding.advice.push_back({.change = has_steps
                                          ? "a larger batch (hotlap compare tells what it gains), or a smaller GPU"
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
  std::vector<const Fact*> falling;
  bool is_missing = false;
  for (const Fact* gpu : job_gpus(facts, "gpu.use")) {
    const auto p95 = gpu->number("p95_pct");
    const auto p5 = gpu->number("p5_pct");
    is_missing = is_missing || (!p95 && gpu->number("missing_pct").value_or(0) > 0);
    // One that nothing ever ran on is not low: it is unused.
    if (!p95 || !p5 || !is_in_use(*gpu) || !is_seen_for(*gpu, params.number("patience"))) continue;
    if (*p95 < params.number("threshold_p95")) {
      low.push_back(gpu);
    } else if (*p5 < params.number("threshold_p5")) {
      fluctuating.push_back(gpu);
    } else if (is_falling(*gpu)) {
      falling.push_back(gpu);
    }
  }
  if (!low.empty()) {
    judge(facts, low, Use::kLow, out);
  } else if (!fluctuating.empty()) {
    judge(facts, fluctuating, Use::kFluctuating, out);
  } else if (!falling.empty()) {
    judge(facts, falling, Use::kFalling, out);
  }
  if (is_missing && low.empty() && fluctuating.empty() && falling.empty())
    out.cannot_tell("how busy a GPU was is missing: split by MIG, or no permission");
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_low_gpu_utilization{
    .id = "LowGPUUtilization",
    .title = "A GPU is little used, or by fits and starts",
    .why =
        "Looks at the distribution of each GPU's use over the typical steps, and whether it falls from their first to "
        "their last quarter. It yields to any finding that says where the time goes; alone it is likely at best.",
    .advice = "Where to look, or a larger batch, or a smaller GPU.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
