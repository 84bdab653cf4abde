#pragma once
// A field of a fact that may not be there.
#include <optional>
#include <string_view>

#include "model/fact.h"

namespace hotlap {

// Nothing: there is no such fact, or its field is unknown.
std::optional<double> number_in(const Fact* fact, std::string_view field);

}  // namespace hotlap
