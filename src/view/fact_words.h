#pragma once
// Facts that a rule lacks, in words: what a person would have to record, not what we call it. Thread-safe: nothing here
// has state.
#include <span>
#include <string>
#include <string_view>

namespace hotlap {

// "gpu.use" → "GPU figures", "breakdown.parts or shapes.summary" → "parts of a step or shapes of the input"; what is no
// kind of fact stays as it is.
std::string fact_words(std::string_view missing);
// All that one rule lacks, each once: "steps, GPU figures".
std::string fact_words(std::span<const std::string> missing);

}  // namespace hotlap
