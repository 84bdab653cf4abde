// The GPU's memory grows step by step and will run out.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "rules/gpu_findings.h"
#include "rules/time_to_limit.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeedsOneOf{std::string_view{"gpu.memory"}, std::string_view{"gpu.allocator"}};
constexpr std::array kParams{
    kTimeToLimitParam,
};
constexpr double kSoonS = 3600;
// Where nobody recorded how much there is: so much must have been taken, of what is in use now and at all.
constexpr double kTakenShare = 0.1;
constexpr double kTakenBytes = 256 * 1024 * 1024.0;
constexpr double kWindowMinS = 60;

// Of the processes' allocators, the one whose tensors grow most.
const Fact* grower(const FactTable& facts, const Where& where) {
  const Fact* most = nullptr;
  for (const Fact* allocator : facts.all("gpu.allocator")) {
    if (!same_place(allocator->where, where) || !allocator->number("allocated_bytes_per_s")) continue;
    if (most == nullptr || *allocator->number("allocated_bytes_per_s") > *most->number("allocated_bytes_per_s"))
      most = allocator;
  }
  return most;
}

bool is_fragmentation(const FactTable& facts, const Where& where) {
  for (const Fact* allocator : facts.all("gpu.allocator")) {
    const auto gap = allocator->number("gap_bytes_per_s");
    if (gap && same_place(allocator->where, where) && *gap > 2 * allocator->number("allocated_bytes_per_s").value_or(0))
      return true;
  }
  return false;
}

// `to_limit_s` is nothing where the size of its memory was not recorded.
void judge(const FactTable& facts, const Fact& memory, double per_s, std::optional<double> to_limit_s,
           FindingSink& out) {
  const bool is_stairs = memory.text("shape") == "stairs";
  const Fact* allocator = grower(facts, memory.where);
  const double half = memory.number("growth_half_width").value_or(0);
  Finding finding;
  finding.where = place_of({&memory});
  finding.cause = to_limit_s ? format("GPU memory leak: out of memory in ~{}", time_words(*to_limit_s))
                             : std::string("GPU memory leak");
  finding.loss = "certain that it grows, its cause likely";
  finding.severity = to_limit_s ? severity_of_limit(*to_limit_s, kSoonS) : Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "gpu_memory";
  finding.evidence["growth_bytes_per_s"] = per_s;
  if (to_limit_s) finding.evidence["to_limit_s"] = *to_limit_s;
  std::string why;
  const auto per_step = memory.number("growth_bytes_per_step");
  if (is_stairs) {
    why = format("{} rises of {}", std::lround(memory.number("rises").value_or(0)),
                 format_bytes(memory.number("rise_bytes").value_or(0)));
  } else if (per_step) {
    // The interval is that of the slope in time: steps are as many.
    why = format("+{} every step, +/-{} %", format_bytes(*per_step), figure(100 * half / per_s));
  } else {
    why = format("+{}/s, +/-{} %", format_bytes(per_s), figure(100 * half / per_s));
  }
  finding.why.push_back(std::move(why));
  const std::string used = format_bytes(memory.number("used_bytes").value_or(0));
  const auto total = memory.number("total_bytes");
  finding.why.push_back(total ? format("{} of {} in use", used, format_bytes(*total)) : used + " in use");
  if (!total) finding.limits.emplace_back("when it is full: how much memory the GPU has was not recorded");
  if (allocator != nullptr) {
    finding.why.push_back(format("it is in tensors of {}", allocator->text("process").value_or("the job")));
    finding.look_alikes_excluded.emplace_back("fragmentation (reserved minus allocated does not grow as fast)");
  } else {
    finding.limits.emplace_back("tensors or fragmentation: the allocator was not seen");
  }
  finding.advice.push_back(
      {.change = is_stairs ? "checkpoint now; look at what each epoch or evaluation keeps on the GPU"
                           : "checkpoint now; look for a tensor kept across steps (total += loss -> loss.item())",
       .note = {}});
  finding.look_alikes_excluded.emplace_back("a pool that fills up");
  out.add(std::move(finding));
}

bool is_large(double window_s, double used_bytes, double per_s) {
  return window_s >= kWindowMinS && per_s * window_s >= std::max(kTakenBytes, kTakenShare * used_bytes);
}

// A log or a table that tells what is in tensors, and nobody looked at the GPU.
void judge_allocator(const Fact& allocator, double per_s, FindingSink& out) {
  const double used = allocator.number("allocated_bytes").value_or(0);
  const auto per_step = allocator.number("allocated_bytes_per_step");
  Finding finding;
  finding.where.node = allocator.where.node;
  finding.where.device = allocator.text("device").value_or("");
  finding.cause = "GPU memory leak: what is in tensors grows";
  finding.loss = "certain that it grows, its cause likely";
  finding.certainty = Certainty::kLikely;
  finding.claims = "gpu_memory";
  finding.evidence["growth_bytes_per_s"] = per_s;
  const double half = 100 * allocator.number("allocated_half_width").value_or(0) / per_s;
  finding.why.push_back(per_step ? format("+{} every step, +/-{} %", format_bytes(*per_step), figure(half))
                                 : format("+{}/s, +/-{} %", format_bytes(per_s), figure(half)));
  finding.why.push_back(format("{} -> {} in tensors of {}",
                               format_bytes(allocator.number("allocated_first_bytes").value_or(0)), format_bytes(used),
                               allocator.text("process").value_or("the job")));
  if (allocator.number("maximum_only") == 1) finding.why.emplace_back("by the most so far, which is all that is told");
  finding.limits.emplace_back("when it is full: how much memory the GPU has was not recorded");
  finding.advice.push_back(
      {.change = allocator.text("allocated_shape") == "stairs"
                     ? "checkpoint now; look at what each epoch or evaluation keeps on the GPU"
                     : "checkpoint now; look for a tensor kept across steps (total += loss -> loss.item())"});
  finding.look_alikes_excluded.emplace_back("a pool that fills up");
  finding.look_alikes_excluded.emplace_back("fragmentation (it is in tensors)");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const double latest_s = static_cast<double>(params.duration_ns("time_to_limit")) * 1e-9;
  for (const Fact* memory : job_gpus(facts, "gpu.memory")) {
    const auto per_s = memory->number("growth_bytes_per_s");
    const auto to_limit_s = memory->number("to_limit_s");
    if (!per_s || is_fragmentation(facts, memory->where)) continue;
    if (to_limit_s ? *to_limit_s > latest_s
                   : memory->number("total_bytes") || !is_large(memory->number("window_s").value_or(0),
                                                                memory->number("used_bytes").value_or(0), *per_s))
      continue;
    // A slope that its own interval does not part from none is none.
    if (memory->text("shape") == "leak" && memory->number("growth_half_width").value_or(0) >= *per_s) continue;
    judge(facts, *memory, *per_s, to_limit_s, out);
  }
  if (facts.find("gpu.memory") != nullptr) return {};
  for (const Fact* allocator : facts.all("gpu.allocator")) {
    const auto per_s = allocator->number("allocated_bytes_per_s");
    if (!per_s || is_fragmentation(facts, allocator->where)) continue;
    if (!is_large(allocator->number("window_s").value_or(0), allocator->number("allocated_bytes").value_or(0), *per_s))
      continue;
    if (allocator->text("allocated_shape") == "leak" && allocator->number("allocated_half_width").value_or(0) >= *per_s)
      continue;
    judge_allocator(*allocator, *per_s, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_gpu_memory_leak{.id = "GPUMemoryLeak",
                                                     .title = "A GPU's memory grows until it is full",
                                                     .why =
                                                         "Looks at the floor of the memory in use over the typical "
                                                         "steps: it must rise all the time, or at intervals. Pools "
                                                         "that fill up, one step and peaks do not count; fragmentation "
                                                         "is told apart where the allocator's figures are known. "
                                                         "Where only a log or a table tells what is in tensors, it "
                                                         "goes by that.",
                                                     .advice = "Saving now, and where to look.",
                                                     .needs_one_of = kNeedsOneOf,
                                                     .params = kParams,
                                                     .evaluate = evaluate};

}  // namespace hotlap
