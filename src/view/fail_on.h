#pragma once
// Conditions for scripts: `hotlap compare --fail-on 'step_ms>+5%'`.
//
//   condition  = figure op limit { "," figure op limit }
//   figure     = a name of figure_descriptions()
//   op         = ">" | ">=" | "<" | "<="
//   limit      = sign number "%"    the change, in percent of before; for a share, in points
//              | sign number        the change, in the figure's unit
//              | number             the figure of AFTER itself, in its unit
//   sign       = "+" | "-"
//
// Blanks do not matter. A condition on a change holds when the change is beyond the limit and more than the
// measurements differ by chance: a step that seems 6 % slower within an interval of 10 % fails nobody's build.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hotlap {

struct FailCondition {
  enum class Limit : std::uint8_t { kChangePct, kChange, kValue };
  std::string text;        // as it was given, trimmed
  std::size_t figure = 0;  // its place in figure_descriptions()
  bool is_greater = true;  // > or >=
  bool is_or_equal = false;
  Limit limit_kind = Limit::kValue;
  double limit = 0;
};

// kInvalidInput: one line with what is wrong and what it takes.
Result<std::vector<FailCondition>> parse_fail_on(std::string_view text_untrusted);

}  // namespace hotlap
