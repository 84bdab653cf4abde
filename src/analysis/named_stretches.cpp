#include "analysis/named_stretches.h"

#include <algorithm>

namespace hotlap {
namespace {

TimeStretch stretch_of(const Span& span) { return {span.start_ns, span.start_ns + span.duration_ns}; }

// Of `whole`, what none of `taken` covers.
std::int64_t left_ns(const TimeStretch& whole, std::vector<TimeStretch>& taken) {
  std::ranges::sort(taken, {}, &TimeStretch::start_ns);
  std::int64_t left = 0;
  std::int64_t at_ns = whole.start_ns;
  for (const TimeStretch& one : taken) {
    if (one.start_ns >= whole.end_ns) break;
    left += std::max<std::int64_t>(one.start_ns - at_ns, 0);
    at_ns = std::max(at_ns, one.end_ns);
  }
  return left + std::max<std::int64_t>(whole.end_ns - at_ns, 0);
}

}  // namespace

std::vector<NamedTime> named_times(std::span<const Span> named, std::span<const TimeStretch> measured,
                                   const std::function<std::string(std::uint32_t)>& name_of) {
  std::vector<NamedTime> out;
  std::vector<TimeStretch> taken;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const TimeStretch whole = stretch_of(named[i]);
    taken.assign(measured.begin(), measured.end());
    for (std::size_t j = 0; j < named.size(); ++j) {
      const TimeStretch other = stretch_of(named[j]);
      const bool is_inside = other.start_ns >= whole.start_ns && other.end_ns <= whole.end_ns;
      const bool is_same = other.start_ns == whole.start_ns && other.end_ns == whole.end_ns;
      // An inner span ends first, and what ends is recorded.
      if (i != j && is_inside && (!is_same || j < i)) taken.push_back(other);
    }
    const std::int64_t own_ns = left_ns(whole, taken);
    std::string name = own_ns > 0 ? name_of(named[i].name) : std::string();
    if (name.empty()) continue;
    const auto known = std::ranges::find(out, name, &NamedTime::name);
    if (known != out.end()) {
      known->ns += own_ns;
    } else {
      out.push_back({std::move(name), own_ns});
    }
  }
  return out;
}

}  // namespace hotlap
