#include "view/small_findings.h"

#include <algorithm>

#include "cost/machine_price.h"
#include "cost/price.h"

namespace hotlap {
namespace {

// Of the time that it is a share of; of a loss in seconds alone, of the run so far.
std::optional<double> share_pct(const AnalysisDocument& d, const Finding& finding) {
  if (finding.lost_pct) return finding.lost_pct;
  if (!finding.lost_s || !d.duration_s || *d.duration_s <= 0) return std::nullopt;
  return std::min(100 * *finding.lost_s / *d.duration_s, 100.0);
}

bool is_small(const AnalysisDocument& d, const Finding& finding) {
  const auto share = share_pct(d, finding);
  if (!share) return false;  // a risk, or a loss that is not measured
  if (*share < kSmallPct) return true;
  const auto price = price_of_nodes(d.price, d.nodes);
  const auto whole_s = whole_loss_s(d, finding);
  return *share < kMinorPct && price && whole_s && money_for(*whole_s, *price).amount < kMinorMoney;
}

}  // namespace

std::optional<double> whole_loss_s(const AnalysisDocument& d, const Finding& finding) {
  if (!finding.lost_s) return std::nullopt;
  if (d.status != RunStatus::kRunning) return finding.lost_s;
  if (!d.remaining) return std::nullopt;
  // What comes before the first step comes no second time.
  return *finding.lost_s + finding.lost_pct.value_or(0) / 100 * d.remaining->as_is_s.high;
}

void set_small(AnalysisDocument& d) {
  d.small.clear();
  for (const Finding& finding : d.findings) {
    if (finding.explained_by.empty() && !finding.is_note() && is_small(d, finding)) d.small.insert(finding.id());
  }
  std::ranges::stable_sort(d.findings, {}, [&](const Finding& finding) {
    return !finding.explained_by.empty() ? 2 : d.small.contains(finding.id()) ? 1 : 0;
  });
}

}  // namespace hotlap
