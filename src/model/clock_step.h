#pragma once
// What is said beside a jump of the wall clock.
#include <string_view>

namespace hotlap {

// Text of an event kClockStep that may as well be a sleep of the machine: nothing tells them apart.
inline constexpr std::string_view kMayBeSleep = "or the machine slept";

}  // namespace hotlap
