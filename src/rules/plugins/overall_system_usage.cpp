// How the machines' resources were used. Never a fault: a table that reports show.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"system.use"}};

// Where a quota leaves the job a part of the machine, which of the two a figure is a share of.
std::string of_words(const Fact& use, bool has_quota) {
  const auto cores = use.number("cores");
  if (!cores || !has_quota) return {};
  return format(" of {}{} cores", use.text("resource") == "cpu" ? "the machine's " : "", cores_figure(*cores));
}

Result<void> evaluate(const FactTable& facts, const Params&, FindingSink& out) {
  std::map<std::string, std::vector<const Fact*>> by_node;
  for (const Fact* use : facts.all("system.use")) {
    if (use->number("p50")) by_node[use->where.node].push_back(use);
  }
  for (const auto& [node, uses] : by_node) {
    Finding note;
    note.where.node = node;
    note.severity = Severity::kInfo;
    note.certainty = Certainty::kCertain;
    note.cause = "Use of the machine";
    note.loss = "no fault";
    const bool has_quota =
        std::ranges::any_of(uses, [](const Fact* use) { return use->text("resource") == "group_cpu"; });
    for (const Fact* use : uses) {
      const std::string resource = use->text("resource").value_or("");
      for (const std::string_view field : {"max", "p99", "p95", "p50", "min"}) {
        if (const auto value = use->number(field)) note.evidence[format("{}_{}", resource, field)] = *value;
      }
      if (use->text("unit") == "%") {
        note.why.push_back(format(
            "{} median {} %{}, 95 % of the time below {} %", resource == "group_cpu" ? "CPU quota" : resource,
            figure(use->number("p50").value_or(0)), of_words(*use, has_quota), figure(use->number("p95").value_or(0))));
      }
    }
    out.add(std::move(note));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_overall_system_usage{
    .id = "OverallSystemUsage",
    .title = "Use of cores, memory, GPUs and network",
    .why =
        "Lists median, quantiles and extremes of each resource of each machine during the typical steps. Never a "
        "fault.",
    .advice = "None: it is what other findings are read beside.",
    .needs = kNeeds,
    .params = {},
    .evaluate = evaluate};

}  // namespace hotlap
