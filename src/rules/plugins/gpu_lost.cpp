// A GPU vanished, or says that it is failing.
#include <array>
#include <cmath>

#include "rules/gpu_findings.h"
#include "rules/words.h"

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

struct Xid {
  int number;
  std::string_view words;
  bool is_fatal;
};
// Those that tell something beyond "the program did something wrong" (13, 31, 43, 45).
constexpr std::array kXids{
    Xid{48, "a memory error that could not be corrected", true},
    Xid{63, "a row of memory was replaced", false},
    Xid{64, "a row of memory could not be replaced", true},
    Xid{74, "an error of the NVLink", true},
    Xid{79, "it fell off the bus", true},
    Xid{94, "a memory error, contained to one program", false},
    Xid{95, "a memory error that was not contained", true},
    Xid{119, "its own processor does not answer", true},
    Xid{120, "its own processor failed", true},
};

std::string xid_words(double number, bool& is_fatal) {
  for (const Xid& xid : kXids) {
    if (xid.number != std::lround(number)) continue;
    is_fatal = xid.is_fatal;
    return format("XID {}: {}", xid.number, xid.words);
  }
  return format("XID {}: usually an error of the program, not of the GPU", std::lround(number));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* health : facts.all("gpu.health")) {
    const double lost = health->number("lost").value_or(0);
    const double back = health->number("back").value_or(0);
    const double xids = health->number("xids").value_or(0);
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
    bool is_fatal = lost > back || is_failing || is_sick || ended;
    Finding finding;
    finding.where = place_of({health});
    if (xids >= params.number("xids"))
      finding.why.push_back(
          format("{}; {} in all", xid_words(health->number("xid").value_or(0), is_fatal), std::lround(xids)));
    finding.cause =
        lost >= 1 ? format("{} was lost", health->where.device) : format("{} reports errors", health->where.device);
    if (lost < 1 && ended) finding.cause = format("{} vanished from the list", health->where.device);
    if (lost < 1 && !ended && (is_sick || unreadable) && !is_failing && xids < params.number("xids")) {
      finding.cause = is_sick ? format("{} is broken: its figures cannot be read or stand still", health->where.device)
                              : format("{} does not answer for some of its figures", health->where.device);
    }
    finding.loss = lost >= 1 ? (lost > back ? std::string("it did not come back")
                                            : format("for {} s", figure(health->number("lost_for_s").value_or(0))))
                             : std::string(is_fatal ? "it should not be trusted" : "training goes on");
    finding.severity = is_fatal ? Severity::kCritical : Severity::kWarning;
    finding.certainty =
        lost >= 1 || is_failing || xids >= params.number("xids") ? Certainty::kCertain : Certainty::kLikely;
    finding.claims = "gpu_health";
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
    if (const auto why = health->text("why")) finding.why.insert(finding.why.begin(), *why);
    if (const auto errors = health->number("ecc_uncorrected"))
      finding.why.push_back(format("{} memory errors that could not be corrected", std::lround(*errors)));
    if (health->number("rows_failed") == 1)
      finding.why.emplace_back("a row of its memory could not be replaced: the board is due for exchange");
    constexpr std::array kActions{"", "a reset", "a reboot", "its peers to be drained", "draining and a reset"};
    if (const auto action = health->number("recovery_action"); action && *action >= 1 && *action <= 4)
      finding.why.push_back(format("the driver asks for {}", kActions[static_cast<std::size_t>(*action)]));
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
