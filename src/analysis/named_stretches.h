#pragma once
// Which time of a step the program has named itself (hotlap.span), outside of everything that is measured and each
// moment once: it belongs to the innermost name. Thread-safe: nothing here has state.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/span.h"
#include "model/step.h"

namespace hotlap {

struct TimeStretch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// `named`: spans of one thread, cut to the step. `measured`: where the parts of the step lie. Names without a text, and
// those without any time of their own, are left out.
std::vector<NamedTime> named_times(std::span<const Span> named, std::span<const TimeStretch> measured,
                                   const std::function<std::string(std::uint32_t)>& name_of);

}  // namespace hotlap
