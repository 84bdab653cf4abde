// Disks, memory and CPUs that report errors or heat in the kernel's log.
#include <array>
#include <cmath>

#include "rules/end_of_job.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"kernel.log"}};
constexpr std::array kParams{
    ParamDesc{.name = "messages",
              .default_text = "3",
              .min = 1,
              .max = 1e6,
              .unit = "{message}",
              .help = "of errors that could be corrected, and of heat, from which on the rule speaks"},
};

struct Kind {
  std::string_view what;
  std::string_view words;
  std::string_view advice;
  bool is_grave;
};
constexpr std::array kKinds{
    Kind{"disk_error", "reports errors of reading or writing",
         "save what is on it and exchange it; check the file system (fsck)", true},
    Kind{"memory_error", "reports errors of the memory", "have the memory module exchanged; leave the node out", false},
    Kind{"machine_check", "reports errors of its hardware", "read them with mcelog or rasdaemon; leave the node out",
         false},
    Kind{"hot", "lowers its clock because of heat", "look at cooling and fans of the node", false},
};

void judge(const FactTable& facts, const Fact& hardware, const Kind& kind, FindingSink& out) {
  const double count = hardware.number("count").value_or(0);
  const double devices = hardware.number("devices").value_or(0);
  const bool is_grave = kind.is_grave || hardware.number("grave") == 1;
  const std::string device = hardware.where.device.empty() ? std::string("the machine") : hardware.where.device;
  Finding finding;
  finding.where = hardware.where;
  finding.cause = format("{}{} {}", kind.what == "disk_error" ? "disk " : "", device, kind.words);
  finding.loss = kind.what == "hot" ? "everything on its CPUs is slower meanwhile"
                 : is_grave         ? "it should not be trusted"
                                    : "they were corrected";
  finding.severity = is_grave ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kCertain;
  finding.claims = "hardware";
  finding.why.push_back(counted(count, "message", "messages") +
                        (devices > 1 ? format(" of {} devices", std::lround(devices)) : std::string()));
  if (const std::string when = when_words(hardware); !when.empty()) finding.why.push_back("first " + when);
  if (is_grave) tie_to_end(at_end(facts, machine_event(hardware, "")), finding);
  finding.evidence["messages"] = count;
  finding.evidence["devices"] = devices;
  finding.advice.push_back({.change = std::string(kind.advice)});
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* hardware : facts.all("kernel.hardware")) {
    const std::string what = hardware->text("what").value_or("");
    for (const Kind& kind : kKinds) {
      if (kind.what != what) continue;
      const bool is_grave = kind.is_grave || hardware->number("grave") == 1;
      if (is_grave || hardware->number("count").value_or(0) >= params.number("messages"))
        judge(facts, *hardware, kind, out);
    }
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_hardware_errors{
    .id = "HardwareErrors",
    .title = "Disks, memory or CPUs report errors or heat",
    .why =
        "Counts what the kernel's log says of disks that cannot be read or written, of memory (EDAC, machine checks) "
        "and of CPUs that are too hot. Certain: it was told. GPUs have a rule of their own.",
    .advice = "Which part to look at.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
