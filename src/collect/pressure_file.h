#pragma once
// The format of pressure files, which the machine (/proc/pressure) and cgroups (cpu.pressure …) share.
#include <cstdint>
#include <optional>
#include <string_view>

#include "collect/scan.h"

namespace hotlap {

struct PressureTotals {
  std::optional<std::uint64_t> some_us;  // nothing: no such line
  std::optional<std::uint64_t> full_us;
};

// "some avg10=0.10 avg60=2.00 avg300=3.85 total=15\nfull …": only the totals, of which any average can be made.
inline PressureTotals read_pressure(std::string_view text) {
  PressureTotals totals;
  for (TextCursor line(text); !line.at_end(); line.skip_line()) {
    std::optional<std::uint64_t>* const total = line.accept("some ")   ? &totals.some_us
                                                : line.accept("full ") ? &totals.full_us
                                                                       : nullptr;
    if (total == nullptr) continue;
    for (std::string_view word = line.word(); !word.empty(); word = line.word()) {
      std::uint64_t us = 0;
      TextCursor field(word);
      if (field.accept("total=") && field.number(us)) *total = us;
    }
  }
  return totals;
}

}  // namespace hotlap
