#pragma once
// Training waits for data, and nothing is known of what a batch costs: a log or a trace told the wait. What the machine
// did meanwhile still says much. Thread-safe: nothing here has state.
#include "model/finding.h"
#include "rules/rule.h"

namespace hotlap {

struct UnknownLoad {
  double step_ms = 0;
  double wait_ms = 0;
  bool has_loader = false;  // one was seen to wait for; else time passes before the forward pass
  bool is_gap = false;      // the hook saw no loader, only the gap before forward
};

// Cause, evidence and advice, by what is known: all cores full, one core full, few workers told, data far away.
void describe_unknown_loader(const FactTable& facts, const Where& where, const UnknownLoad& load, Finding& finding);

}  // namespace hotlap
