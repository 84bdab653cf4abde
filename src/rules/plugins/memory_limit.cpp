// Memory is at its limit: a process was killed for it, what is held all but fills the control group, or tasks wait for
// memory while next to none is left. Page cache is given back and does not count.
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/step_findings.h"
#include "rules/time_to_limit.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"host_memory.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "held_pct",
              .default_text = "95",
              .min = 50,
              .max = 100,
              .unit = "%",
              .help = "of the group's limit, held by what cannot be given back, from which on the rule speaks"},
    ParamDesc{.name = "pressure_pct",
              .default_text = "10",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "share of time in which some task waits for memory, that counts"},
    ParamDesc{.name = "available_pct",
              .default_text = "10",
              .min = 0.1,
              .max = 50,
              .unit = "%",
              .help = "of the machine's memory still to be had: with more of it waiting is of another group's limit"},
};
constexpr double kNearLimitShare = 0.8;
constexpr double kHeldUnderPressurePct = 80;  // of the group's limit: then its tasks wait for that

bool is_by_group(const Fact& memory) { return memory.text("limited_by") == "group"; }

std::string limit_words(const Fact& memory) {
  const double limit = memory.number("limit_bytes").value_or(0);
  return is_by_group(memory) ? format("the control group's limit of {}", format_bytes(limit))
                             : format("the machine's {}", format_bytes(limit));
}

void add_advice(const Fact& memory, Finding& finding) {
  finding.advice.push_back({.change = is_by_group(memory) ? "a larger memory limit (docker --memory, "
                                                            "resources.limits.memory), or less held: fewer loader "
                                                            "workers, a smaller prefetch_factor"
                                                          : "less held: fewer loader workers, a smaller "
                                                            "prefetch_factor; or a machine with more memory",
                            .note = "the kernel kills without a message of the job's own; the exit code is 137"});
}

// The machine's counter alone may have counted a process of another group: then the limit that binds the job was far.
bool is_ours(const Fact& memory) {
  const auto by_group = memory.number("group_kills");
  if (!by_group || *by_group > 0) return true;
  const auto before = memory.number("kill_before_bytes");
  return !is_by_group(memory) && (!before || *before >= kNearLimitShare * memory.number("limit_bytes").value_or(0));
}

void judge_kill(const Fact& memory, double kills, FindingSink& out) {
  const bool is_sure = is_ours(memory);
  const bool is_one = kills < 1.5;
  Finding finding;
  finding.where = memory.where;
  finding.cause =
      format("{} killed: {}", is_one ? std::string("A process was") : format("{} processes were", count_figure(kills)),
             !is_sure              ? "memory ran out on the machine"
             : is_by_group(memory) ? "its control group's memory was full"
                                   : "the machine's memory was full");
  const auto at_s = memory.number("kill_s");
  finding.loss =
      at_s ? format("{}at {}", is_one ? "" : "first ", time_words(*at_s)) : std::string("for want of memory");
  finding.severity = is_sure ? Severity::kCritical : Severity::kWarning;
  finding.certainty = is_sure ? Certainty::kCertain : Certainty::kPossible;
  finding.claims = "memory_kill";
  finding.evidence["oom_kills"] = kills;
  if (at_s) finding.evidence["kill_s"] = *at_s;
  std::string why = at_s ? format("{} after the first sample: ", time_words(*at_s)) : std::string();
  why += limit_words(memory);
  if (const auto before = memory.number("kill_before_bytes")) {
    finding.evidence["kill_before_bytes"] = *before;
    why += format(", {} in use before", format_bytes(*before));
    if (const auto after = memory.number("kill_after_bytes")) why += format(", {} after", format_bytes(*after));
  }
  finding.why.push_back(std::move(why));
  add_advice(memory, finding);
  finding.look_alikes_excluded.emplace_back("page cache");
  finding.limits.emplace_back(is_sure ? "which process it was" : "whether it was one of the job's");
  out.add(std::move(finding));
}

void judge_shortage(const Fact& memory, bool is_waiting, FindingSink& out) {
  const auto held_pct = memory.number("held_pct");
  const auto some_pct = memory.number("memory_pressure_pct");
  const auto full_pct = memory.number("full_pressure_pct");
  Finding finding;
  finding.where = memory.where;
  finding.cause =
      is_by_group(memory) ? "Memory of the control group is all but full" : "The machine is short of memory";
  finding.loss = is_waiting && some_pct ? format("tasks wait for memory {} % of the time", figure(*some_pct))
                                        : format("{} % of its limit held", figure(held_pct.value_or(0)));
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "host_memory";
  finding.distance = 1;  // what grows is nearer to the cause
  if (const auto held = memory.number("held_bytes"); held && is_by_group(memory)) {
    finding.evidence["held_bytes"] = *held;
    finding.why.push_back(format("{} of {} ({} %) cannot be given back", format_bytes(*held), limit_words(memory),
                                 figure(held_pct.value_or(0))));
  }
  if (const auto left = memory.number("available_pct"); left && !is_by_group(memory)) {
    finding.evidence["available_pct"] = *left;
    finding.why.push_back(format("{} % of {} can still be had", figure(*left), limit_words(memory)));
  }
  if (some_pct) {
    finding.evidence["memory_pressure_pct"] = *some_pct;
    std::string why = format("some task waits for memory {} % of the time", figure(*some_pct));
    if (full_pct) why += format(", all of them {} %", figure(*full_pct));
    finding.why.push_back(std::move(why));
  }
  add_advice(memory, finding);
  finding.look_alikes_excluded.emplace_back("page cache, which is given back");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* memory : facts.all("host_memory.summary")) {
    if (!memory->number("limit_bytes")) continue;
    if (const double kills = memory->number("oom_kills").value_or(0); kills > 0) {
      judge_kill(*memory, kills, out);
      continue;
    }
    const bool is_pressed = memory->number("memory_pressure_pct").value_or(0) >= params.number("pressure_pct");
    const double held_pct = memory->number("held_pct").value_or(0);
    const bool is_scarce = is_by_group(*memory)
                               ? held_pct >= kHeldUnderPressurePct
                               : memory->number("available_pct").value_or(100) <= params.number("available_pct");
    const bool is_waiting = is_pressed && is_scarce;
    if (is_waiting || held_pct >= params.number("held_pct")) judge_shortage(*memory, is_waiting, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_memory_limit{
    .id = "MemoryLimit",
    .title = "Memory is at its limit, or a process was killed for it",
    .why =
        "Looks at kills that the kernel counted, at what the control group holds and cannot give back against its "
        "limit, and at the time that tasks wait for memory while next to none is left. Page cache does not count.",
    .advice = "A larger limit, or less that is held.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
