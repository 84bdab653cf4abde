#pragma once
// What is known of the page cache, for findings that blame storage: a cold cache is over with the first epoch, data
// that does not fit is read anew by each. Thread-safe: nothing here has state.
#include "rules/step_findings.h"

namespace hotlap {

// Adds to what is said why, or to what is not known, of a finding about the place of `where`.
void add_page_cache(const FactTable& facts, const Where& where, Finding& finding);

}  // namespace hotlap
