#pragma once
// A series of the machine that moved along, in words.
#include <string>
#include <string_view>

#include "model/fact.h"

namespace hotlap {

// "disk writes 0.2 -> 290 MB/s": of the fields that name the series, its mean then and its mean now; empty: none.
std::string series_words(const Fact& fact, std::string_view name, std::string_view before, std::string_view after);

// "2nd", "8th", "21st".
std::string ordinal(double number);

}  // namespace hotlap
