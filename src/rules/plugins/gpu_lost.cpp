// A GPU vanished, or says that it is failing.
#include <array>
#include <cmath>

#include "rules/end_of_job.h"
#include "rules/fact_number.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"
#include "rules/xid_words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.health"}};
constexpr std::array kParams{
    ParamDesc{.name = "xids",
              .default_text = "1",
              .min = 1,
              .max = 1e9,
              .unit = "{event}",
              .help = "error reports of the driver from which on the rule speaks"},
};

// A kernel's log may reach back for weeks: errors of another time are not of this job.
bool is_of_the_job(const FactTable& facts, const Fact& health) {
  constexpr double kUnixS = 1e9;
  constexpr double kNearS = 1800;  // steps before the typical ones, and what comes behind the last
  const Fact* steps = facts.find("steps.summary");
  const auto at_s = health.number("xid_at_s");
  const auto from_s = number_in(steps, "from_s");
  const auto to_s = number_in(steps, "to_s");
  if (!at_s || !from_s || !to_s || *at_s < kUnixS || *from_s < kUnixS) return true;
  return *at_s >= *from_s - kNearS && *at_s <= *to_s + kNearS;
}

// What the driver's error reports say.
void add_xids(const FactTable& facts, const Fact& health, const XidMeaning& xid, double count, Finding& finding) {
  std::string why = format("XID {}: {}", xid.number, xid.words);
  if (count > 1) why += format("; {} reports in all", std::lround(count));
  const std::string numbers = health.text("xid_numbers").value_or("");
  if (numbers.find(',') != std::string::npos) why += format(" ({})", numbers);
  finding.why.push_back(std::move(why));
  Fact told{.kind = {}};
  told.set("at_s", health.number("xid_at_s")).set("boot_s", health.number("xid_boot_s"));
  told.set("pid", health.number("xid_pid"));
  const std::string when = when_words(told);
  const auto process = health.text("xid_process");
  if (process) {
    finding.why.push_back(format("in the work of {}{}", *process, when.empty() ? "" : ", " + when));
  } else if (!when.empty()) {
    finding.why.push_back("first " + when);
  }
  tie_to_end(at_end(facts, machine_event(told, "gpu")), finding);
}

std::string loss_words(const Fact& health, bool is_fatal, bool is_of_program) {
  const double lost = health.number("lost").value_or(0);
  if (lost >= 1 && lost > health.number("back").value_or(0)) return "it did not come back";
  if (lost >= 1) return format("for {} s", figure(health.number("lost_for_s").value_or(0)));
  if (is_of_program) return "that program dies of it";
  return is_fatal ? "it should not be trusted" : "training goes on";
}

// What the GPU's own counters say.
void add_counters(const Fact& health, Finding& finding) {
  if (const auto why = health.text("why")) finding.why.insert(finding.why.begin(), *why);
  if (const auto errors = health.number("ecc_uncorrected"))
    finding.why.push_back(format("{} memory errors that could not be corrected", std::lround(*errors)));
  if (health.number("rows_failed") == 1)
    finding.why.emplace_back("a row of its memory could not be replaced: the board is due for exchange");
  constexpr std::array kActions{"", "a reset", "a reboot", "its peers to be drained", "draining and a reset"};
  if (const auto action = health.number("recovery_action"); action && *action >= 1 && *action <= 4)
    finding.why.push_back(format("the driver asks for {}", kActions[static_cast<std::size_t>(*action)]));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* health : facts.all("gpu.health")) {
    const double lost = health->number("lost").value_or(0);
    const double back = health->number("back").value_or(0);
    const double xids = is_of_the_job(facts, *health) ? health->number("xids").value_or(0) : 0;
    const bool is_failing = health->number("rows_failed") == 1 || health->number("recovery_action").value_or(0) > 0 ||
                            health->number("ecc_uncorrected").value_or(0) > 0;
    const auto unreadable = health->text("unreadable");
    const auto frozen = health->number("frozen_busy_pct");
    const auto ended = health->number("ended_s");
    // One figure that a card does not give is no fault; with a figure of use that stands still it is.
    const bool is_sick = frozen || (unreadable && unreadable->find(',') != std::string::npos);
    // A part of a GPU (MIG) answers neither for its use nor for some others: that is how it is made.
    const Fact* use = same_device(facts, "gpu.use", *health);
    const bool is_part = use != nullptr && !use->number("mean_pct");
    const bool is_mute = unreadable && !is_part;
    if (lost < 1 && xids < params.number("xids") && !is_failing && !is_sick && !ended && !is_mute) continue;
    const bool has_xid = xids >= params.number("xids");
    const XidMeaning xid =
        gravest_xid(health->text("xid_numbers").value_or(format("{:.0f}", health->number("xid").value_or(0))));
    const bool is_fatal = lost > back || is_failing || is_sick || ended || (has_xid && xid.is_fatal());
    const bool is_of_program = has_xid && !is_fatal && lost < 1 && xid.blame == XidBlame::kProgram;
    Finding finding;
    finding.where = place_of({health});
    finding.claims = "gpu_health";
    if (has_xid) add_xids(facts, *health, xid, xids, finding);
    finding.cause =
        lost >= 1 ? format("{} was lost", health->where.device) : format("{} reports errors", health->where.device);
    if (lost < 1 && has_xid && xid.number == 79) finding.cause = format("{} fell off the bus", health->where.device);
    if (is_of_program) finding.cause = format("A program made an error on {}", health->where.device);
    if (lost < 1 && ended) finding.cause = format("{} vanished from the list", health->where.device);
    if (lost < 1 && !ended && (is_sick || unreadable) && !is_failing && xids < params.number("xids")) {
      finding.cause = is_sick ? format("{} is broken: its figures cannot be read or stand still", health->where.device)
                              : format("{} does not answer for some of its figures", health->where.device);
    }
    finding.loss = loss_words(*health, is_fatal, is_of_program);
    finding.severity = is_fatal ? Severity::kCritical : Severity::kWarning;
    finding.certainty =
        lost >= 1 || is_failing || xids >= params.number("xids") ? Certainty::kCertain : Certainty::kLikely;
    finding.evidence["lost"] = lost;
    finding.evidence["xids"] = xids;
    if (const auto at = health->number("lost_at_s"))
      finding.why.push_back(format("{} s on the recording's clock", figure(*at)));
    if (ended) finding.why.push_back(format("its samples end {} s before those of the others", figure(*ended)));
    if (unreadable) finding.why.push_back(format("the driver could not read: {}", *unreadable));
    if (frozen) {
      finding.why.push_back(format(
          "use stands at {} % all the time, with hardly any memory taken: not measured any more", figure(*frozen)));
      finding.limits.emplace_back("how busy it is: leave it out of means");
    }
    add_counters(*health, finding);
    if (has_xid && (!is_fatal || xid.is_fatal()) && lost < 1) {
      finding.advice.push_back(
          {.change = std::string(xid_advice(xid)),
           .note = is_fatal ? "a GPU that fell off the bus comes back after a reboot, or not at all" : ""});
      out.add(std::move(finding));
      continue;
    }
    finding.advice.push_back(
        {.change = is_fatal ? "checkpoint where it still works, leave this node out, reset the GPU"
                            : "watch it; look at the kernel's log (dmesg, NVRM)",
         .note = is_fatal ? "a GPU that fell off the bus comes back after a reboot, or not at all" : ""});
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_gpu_lost{
    .id = "GPULost",
    .title = "A GPU was lost, or reports errors",
    .why =
        "Reads the events of a GPU that vanished and of the driver's error reports (XID), and its own counters of "
        "errors. Certain: they were told. Likely: figures that cannot be read or stand still, and samples of a capture "
        "that end before those of the other GPUs.",
    .advice = "Whether to go on with it.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
