#include "rules/engine.h"

#include <algorithm>

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

double loss_of(const Finding& finding) { return finding.lost_pct.value_or(0); }

// By time where both know theirs: shares may be of different things.
bool loses_more(const Finding& a, const Finding& b) {
  return a.lost_s && b.lost_s ? *a.lost_s > *b.lost_s : loss_of(a) > loss_of(b);
}

bool overlap(const Where& a, const Where& b) {
  const bool same_node = a.node.empty() || b.node.empty() || a.node == b.node;
  const bool same_rank = !a.rank || !b.rank || a.rank == b.rank;
  return same_node && same_rank;
}

// Of the findings that claim the same part of the same steps, the nearest to the cause keeps the loss.
void settle_claims(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) {
    if (a.distance != b.distance) return a.distance < b.distance;
    return loss_of(a) > loss_of(b);
  });
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].claims.empty()) continue;
    for (std::size_t j = 0; j < i; ++j) {
      Finding& cause = findings[j];
      if (!cause.explained_by.empty() || cause.claims != findings[i].claims) continue;
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
  settle_claims(out.findings);
  std::ranges::stable_sort(out.findings, [](const Finding& a, const Finding& b) {
    if (a.explained_by.empty() != b.explained_by.empty()) return a.explained_by.empty();
    return loses_more(a, b);
  });
  bound_losses(out.findings);
  return out;
}

}  // namespace hotlap
