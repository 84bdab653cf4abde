#pragma once
// AnalysisDocument → the verdict in its fixed grammar, at most five parts:
//   cause · loss · how sure / why: the evidence / do: the change / gain: a range, its basis, the money /
//   not: look-alikes that were excluded, or what is not known.
// A part is one line; what does not fit kVerdictColumns goes on below it, indented under its text.
#include <string>
#include <vector>

#include "view/analysis_document.h"

namespace hotlap {

inline constexpr std::size_t kVerdictColumns = 110;

// The verdict alone: `verdict.text` in JSON. Lines are separated by '\n', none at the end.
std::string verdict_text(const AnalysisDocument& document);

// "step 210 -> 104 ms, -50 % (-52 to -48): faster; predicted for …: 98-112 ms, inside". `now_ms`: the later run's mean.
std::string change_words(const PreviousRun& previous, double now_ms);

// What stands below the verdict on a terminal, broken like it: the run against the previous one of the same script,
// where the hook was not at work, what hotlap cost, what was lost. Empty when there is nothing to say.
std::vector<std::string> footer_lines(const AnalysisDocument& document);

// Both, each line ended: what verdict.txt holds and a run says at its end.
std::string full_text(const AnalysisDocument& document);

}  // namespace hotlap
