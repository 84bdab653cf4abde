#pragma once
// What rules on memory that fills up share: how long it still takes, in words, and how urgent that is.
#include <string>

#include "model/finding.h"
#include "rules/rule.h"
#include "rules/words.h"

namespace hotlap {

inline constexpr ParamDesc kTimeToLimitParam{.name = "time_to_limit",
                                             .type = ParamType::kDuration,
                                             .default_text = "24h",
                                             .min = 60e9,
                                             .max = 3.6e15,
                                             .unit = "ns",
                                             .help = "growth that fills the memory later than this is not spoken of"};

// "90 s", "45 min", "7.5 h".
inline std::string time_words(double seconds) {
  if (seconds < 120) return format("{} s", figure(seconds));
  if (seconds < 7200) return format("{} min", figure(seconds / 60));
  return format("{} h", figure(seconds / 3600));
}

// What is full within `soon_s` ends the job before anybody looks again.
inline Severity severity_of_limit(double to_limit_s, double soon_s) {
  return to_limit_s <= soon_s ? Severity::kCritical : Severity::kWarning;
}

}  // namespace hotlap
