#include "rules/engine.h"

#include <algorithm>
#include <array>

#include "rules/step_findings.h"

namespace hotlap {
namespace {

class Collected final : public FindingSink {
 public:
  Collected(std::string_view rule, RulesOutcome& out) : rule_(rule), out_(out) {}
  void add(Finding finding) override {
    finding.rule = rule_;
    out_.findings.push_back(std::move(finding));
  }
  void cannot_tell(std::string_view because) override { out_.cannot_tell.push_back({rule_, std::string(because)}); }

 private:
  std::string rule_;
  RulesOutcome& out_;
};

// "breakdown.parts or shapes.summary"
std::string alternatives(std::span<const std::string_view> kinds) {
  std::string text;
  for (const std::string_view kind : kinds) text += (text.empty() ? "" : " or ") + std::string(kind);
  return text;
}

double loss_of(const Finding& finding) { return finding.lost_pct.value_or(0); }

// What is to be said first: a loss by its size; a risk whose loss is not known yet by its severity.
double share_of(const Finding& finding) {
  if (finding.lost_pct) return *finding.lost_pct;
  switch (finding.severity) {
    case Severity::kCritical: return kCriticalRiskPct;
    case Severity::kWarning: return kSmallestLossPct;
    case Severity::kInfo: return 0;
  }
  return 0;
}

bool overlap(const Where& a, const Where& b) {
  const bool same_node = a.node.empty() || b.node.empty() || a.node == b.node;
  const bool same_rank = !a.rank || !b.rank || a.rank == b.rank;
  return same_node && same_rank;
}

constexpr double kExplainingShare = 0.3;  // of a symptom's loss, that its cause must take itself

bool is_symptom(const Finding& finding) { return finding.claims == kClaimsGpuIdle; }

// It takes time of the steps, so that a GPU waits.
bool holds_up_steps(const Finding& finding) {
  constexpr std::array kParts{std::string_view{"data_wait"},  std::string_view{"other"},
                              std::string_view{"checkpoint"}, std::string_view{"evaluation"},
                              std::string_view{"epoch_gap"},  std::string_view{"gc"},
                              std::string_view{"compile"},    std::string_view{"communication"}};
  return std::ranges::find(kParts, finding.claims) != kParts.end() && loss_of(finding) >= kSmallestLossPct;
}

// Of the findings that claim the same part of the same steps, the nearest to the cause keeps the loss.
void settle_claims(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) {
    if (is_symptom(a) != is_symptom(b)) return is_symptom(b);
    if (a.distance != b.distance) return a.distance < b.distance;
    return loss_of(a) > loss_of(b);
  });
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].claims.empty()) continue;
    for (std::size_t j = 0; j < findings.size(); ++j) {
      Finding& cause = findings[j];
      // A wait that shows on the GPU is explained by whatever says where the time of the steps goes.
      const bool tells_why =
          is_symptom(findings[i]) && holds_up_steps(cause) && loss_of(cause) >= kExplainingShare * loss_of(findings[i]);
      const bool is_nearer = j < i && cause.claims == findings[i].claims;
      if (j == i || !cause.explained_by.empty() || !(tells_why || is_nearer)) continue;
      if (!overlap(cause.where, findings[i].where)) continue;
      findings[i].explained_by = cause.id();
      cause.explains.push_back(findings[i].id());
      break;
    }
  }
}

// Losses of different parts of one step cannot add up to more than the step, nor those between typical steps to more
// than the run.
void bound_losses(std::vector<Finding>& findings) {
  double left_of_steps = 100;
  double left_of_run = 100;
  for (Finding& finding : findings) {
    double& left = finding.lost_of == LostOf::kRun ? left_of_run : left_of_steps;
    if (!finding.explained_by.empty()) {
      finding.lost_pct.reset();
      finding.lost_s.reset();
      finding.money.reset();
      continue;
    }
    if (!finding.lost_pct || *finding.lost_pct <= left) {
      left -= loss_of(finding);
      continue;
    }
    const double share = *finding.lost_pct > 0 ? left / *finding.lost_pct : 0;
    finding.lost_pct = left;
    if (finding.lost_s) finding.lost_s = *finding.lost_s * share;
    left = 0;
  }
}

}  // namespace

RulesOutcome run_rules(std::span<const RuleSpec* const> rules, const FactTable& facts, const RuleSettings& settings) {
  RulesOutcome out;
  for (const RuleSpec* rule : rules) {
    SkippedRule skipped{.rule = std::string(rule->id), .missing = {}};
    for (const std::string_view kind : rule->needs) {
      if (facts.find(kind) == nullptr) skipped.missing.emplace_back(kind);
    }
    const bool has_one =
        rule->needs_one_of.empty() ||
        std::ranges::any_of(rule->needs_one_of, [&](std::string_view kind) { return facts.find(kind) != nullptr; });
    if (!has_one) skipped.missing.push_back(alternatives(rule->needs_one_of));
    if (!skipped.missing.empty()) {
      out.not_run.push_back(std::move(skipped));
      continue;
    }
    const auto set = settings.find(rule->id);
    Result<Params> params =
        Params::make(rule->id, rule->params, set == settings.end() ? decltype(set->second){} : set->second);
    if (!params.ok()) {
      out.errors.push_back(std::move(params).error());
      continue;
    }
    Collected sink(rule->id, out);
    if (Result<void> ran = rule->evaluate(facts, *params, sink); !ran.ok()) {
      out.errors.push_back(std::move(ran).error().with_context(rule->id));
      continue;
    }
    ++out.run;
  }
  std::erase_if(out.findings,
                [](const Finding& finding) { return finding.lost_pct && *finding.lost_pct < kSmallestLossPct; });
  // Where nobody saw a step, what was looked at is all that was recorded.
  if (facts.find("steps.summary") == nullptr) {
    for (Finding& finding : out.findings) finding.lost_of = LostOf::kRun;
  }
  settle_claims(out.findings);
  // By time where it is known, since shares may be of different things.
  double seconds_of_pct = 0;
  for (const Finding& finding : out.findings) {
    if (finding.lost_s && loss_of(finding) > 0)
      seconds_of_pct = std::max(seconds_of_pct, *finding.lost_s / loss_of(finding));
  }
  const auto weight_of = [&](const Finding& finding) {
    return finding.lost_s && seconds_of_pct > 0 ? *finding.lost_s / seconds_of_pct : share_of(finding);
  };
  std::ranges::stable_sort(out.findings, [&](const Finding& a, const Finding& b) {
    if (a.explained_by.empty() != b.explained_by.empty()) return a.explained_by.empty();
    return weight_of(a) > weight_of(b);
  });
  bound_losses(out.findings);
  return out;
}

}  // namespace hotlap
