#pragma once
// What a job held, by the clock: usable cores and GPUs times its duration, over all nodes.
#include "model/fact.h"
#include "view/analysis_document.h"

namespace hotlap {

// Sets cpu_hours and gpu_hours from the facts and the document's duration; what is not known stays absent.
void set_hours(const FactTable& facts, AnalysisDocument& document);

}  // namespace hotlap
