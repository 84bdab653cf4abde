// The job says that device memory ran out, with the figures of its message.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"log.out_of_memory"}};
constexpr std::array kParams{
    percent_param("gap_pct", "5",
                  "of the device, held by the allocator and not in tensors, from which on that is said to be stranded"),
    ParamDesc{.name = "went_on_s",
              .default_text = "60",
              .min = 1,
              .max = 1e6,
              .unit = "s",
              .help = "of steps after the message, from which on the job is taken to have caught the error"},
};

std::string gib(double bytes) { return format("{:.2f} GiB", bytes / (1024.0 * 1024 * 1024)); }

// What the allocator holds would have sufficed: pieces that cannot be joined.
bool is_fragmented(const Fact& memory, double gap_pct) {
  const auto gap = memory.number("gap_bytes");
  const auto ask = memory.number("ask_bytes");
  const auto total = memory.number("total_bytes");
  if (!gap || !ask) return false;
  return *gap >= *ask && (!total || *total <= 0 || 100 * *gap / *total >= gap_pct);
}

// Steps long after the message: a program that tries batch sizes catches the error and takes a smaller one.
bool went_on(const FactTable& facts, const Fact& memory, double went_on_s) {
  const auto at_s = memory.number("at_s");
  const auto last_step_s = number_in(fact_for(facts, "steps.summary", memory.where), "to_s");
  return at_s && last_step_s && *last_step_s - *at_s >= went_on_s;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const std::vector<const Fact*> all = facts.all("log.out_of_memory");
  const Fact& memory = *all.front();
  if (went_on(facts, memory, params.number("went_on_s"))) return {};
  const bool fragmented = is_fragmented(memory, params.number("gap_pct"));
  const auto ask = memory.number("ask_bytes");
  const auto gap = memory.number("gap_bytes");
  const auto total = memory.number("total_bytes");
  const auto allocated = memory.number("allocated_bytes");
  Finding finding;
  finding.where = memory.where;
  finding.cause = fragmented ? "Out of memory: what is free is in pieces" : "Out of memory: the device is full";
  finding.loss = "the job died of it, unless it caught the error";
  finding.severity = Severity::kCritical;
  finding.certainty = Certainty::kCertain;
  finding.claims = "gpu_memory";
  finding.distance = -1;
  std::string why = ask ? gib(*ask) + " asked for" : std::string("an allocation failed");
  if (total) why += " on a device of " + gib(*total);
  if (const auto free = memory.number("free_bytes")) why += ", " + gib(*free) + " free";
  finding.why.push_back(std::move(why));
  if (allocated) {
    finding.why.push_back(gib(*allocated) + " in tensors" +
                          (gap ? ", " + gib(*gap) + " held by the allocator and not in use" : std::string()));
  }
  const auto process = memory.number("process_bytes");
  if (process && total && *process < 0.9 * *total && memory.number("free_bytes").value_or(*total) < 0.05 * *total)
    finding.why.push_back("the process has " + gib(*process) + ": the rest is of other processes");
  if (all.size() > 1) finding.why.push_back(format("{} ranks say so", all.size()));
  for (const std::string_view field : {"ask_bytes", "total_bytes", "free_bytes", "allocated_bytes", "gap_bytes"}) {
    if (const auto value = memory.number(field)) finding.evidence[std::string(field)] = *value;
  }
  if (fragmented) {
    finding.advice.push_back(
        {.change = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that pieces can be joined",
         .gain = gap ? format("up to {} become usable", gib(*gap)) : std::string()});
    finding.look_alikes_excluded.emplace_back("a model that is simply too large (what is held would have sufficed)");
  } else {
    finding.advice.push_back({.change = "a smaller batch, activation checkpointing, or sharding of the optimizer",
                              .note = "a smaller batch changes training, unless gradients are accumulated"});
    if (gap && total && *gap < 0.05 * *total) finding.look_alikes_excluded.emplace_back("fragmentation");
  }
  if (facts.find("gpu.memory") == nullptr)
    finding.limits.emplace_back("a leak is not excluded: memory over time was not seen");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_out_of_memory{
    .id = "OutOfMemory",
    .title = "Device memory ran out",
    .why =
        "Reads the message of an allocation that failed, with its figures: what was asked for, what is in tensors, "
        "what "
        "the allocator holds. Certain: it was told. Whether what is held would have sufficed tells pieces from a full "
        "device.",
    .advice = "Joining pieces, or what takes less memory.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
