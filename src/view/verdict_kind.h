#pragma once
// Which of the four answers a run gets: a finding, healthy, too short, can't tell. Thread-safe: nothing here has state.
#include "model/fact.h"
#include "rules/engine.h"
#include "view/analysis_document.h"

namespace hotlap {

// Sets verdict, cannot_tell, seen and what is left to win. The findings are there already, sorted, with what is small.
void decide_verdict(const FactTable& facts, const RulesOutcome& outcome, AnalysisDocument& d);

}  // namespace hotlap
