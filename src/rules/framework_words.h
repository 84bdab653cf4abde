#pragma once
// How a change is written in the words of the job's framework, as meta.json names it.
#include <string>

#include "model/fact.h"

namespace hotlap {

// "DataLoader(num_workers=5)", "TrainingArguments(dataloader_num_workers=5)"; of a framework that is not known
// "num_workers=5".
std::string workers_change(const FactTable& facts, long workers);

}  // namespace hotlap
