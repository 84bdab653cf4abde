#pragma once
// Figures and words that findings share, so that they read alike.
#include <cmath>
#include <string>
#include <string_view>

#include "base/format.h"

namespace hotlap {

// Two or three significant digits, never an exponent: "420", "98", "4.2", "0.37", "0.004".
inline std::string figure(double value) {
  const double size = std::fabs(value);
  if (size >= 9.95) return format("{:.0f}", value);
  if (size >= 0.995) return format("{:.1f}", value);
  if (size >= 0.0995) return format("{:.2f}", value);
  return size >= 0.0005 ? format("{:.3f}", value) : "0";
}

// Of things that are counted: "5" and not "5.0", but "2.4" as a mean of several.
inline std::string count_figure(double count) {
  const double whole = std::round(count);
  return std::fabs(count - whole) < 0.005 ? format("{:.0f}", std::fabs(whole)) : figure(count);
}

// Cores: "2", "3.5", "0".
inline std::string cores_figure(double cores) {
  const double whole = std::round(cores);
  return std::fabs(cores - whole) < 0.05 ? format("{:.0f}", std::fabs(whole)) : format("{:.1f}", cores);
}

// "1 worker", "2 workers".
inline std::string counted(long number, std::string_view noun) {
  return format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

// The same of a mean: "1 copy", "2.4 copies".
inline std::string counted(double number, std::string_view one, std::string_view many) {
  const std::string figure = count_figure(number);
  return format("{} {}", figure, figure == "1" ? one : many);
}

}  // namespace hotlap
