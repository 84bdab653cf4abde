// Where the time of the steps goes. Never a fault: a table that reports show.
#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"breakdown.parts"}, std::string_view{"steps.summary"}};

Result<void> evaluate(const FactTable& facts, const Params&, FindingSink& out) {
  for (const Fact* parts : facts.all("breakdown.parts")) {
    const Fact* steps = fact_for(facts, "steps.summary", parts->where);
    const auto mean = number_in(steps, "mean_ms");
    if (!mean) continue;
    Finding note;
    note.where = parts->where;
    note.severity = Severity::kInfo;
    note.certainty = Certainty::kCertain;
    note.cause = "Where the time of a step goes";
    note.loss = "no fault";
    std::vector<std::pair<double, std::string>> shares;
    for (const auto& [field, value] : parts->fields) {
      const double* share = std::get_if<double>(&value);
      if (share == nullptr || field == "compute_known") continue;
      note.evidence[field + "_pct"] = *share;
      if (*share >= 1) shares.emplace_back(*share, field);
    }
    std::ranges::stable_sort(shares, std::greater{}, &std::pair<double, std::string>::first);
    std::string why;
    for (const auto& [share, name] : shares) why += format("{}{} {} %", why.empty() ? "" : ", ", name, figure(share));
    note.why.push_back(format("{} ms: ", figure(*mean)) + why);
    out.add(std::move(note));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_overall_framework_metrics{
    .id = "OverallFrameworkMetrics",
    .title = "Where the time of the steps goes",
    .why = "Lists the shares of a typical step's parts for each training process. Never a fault.",
    .advice = "None: it is what other findings are read beside.",
    .needs = kNeeds,
    .params = {},
    .evaluate = evaluate};

}  // namespace hotlap
