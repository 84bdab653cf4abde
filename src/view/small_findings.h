#pragma once
// Which findings are not worth a change: below 3 % of the time, or below a tenth of it and a dollar of the whole job.
// They stay in the answer, behind the others; no verdict recommends them. Thread-safe: nothing here has state.
#include <optional>

#include "model/finding.h"
#include "view/analysis_document.h"

namespace hotlap {

inline constexpr double kSmallPct = 3;    // a smaller share is none to speak of
inline constexpr double kMinorPct = 10;   // below it a change must be worth its money
inline constexpr double kMinorMoney = 1;  // about a dollar, over the whole job

// Time that a finding costs the whole job: so far, and in the time that is left if it goes on like this.
// Nothing: not known.
std::optional<double> whole_loss_s(const AnalysisDocument& document, const Finding& finding);

// Fills in `small` and moves those findings behind the others that nothing explains. Needs nodes, price, duration,
// remaining.
void set_small(AnalysisDocument& document);

}  // namespace hotlap
