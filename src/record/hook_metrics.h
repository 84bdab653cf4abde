#pragma once
// The metrics that come through the hooks' rings, and the value of a figure that a hook sent. Plain data.
#include <cstdint>
#include <span>
#include <string_view>

#include "collect/collector.h"
#include "model/value.h"

namespace hotlap {

// Places in hook_metrics(); those after kFirstFigure are sent by name (kCountOfHook of wire/ring_layout.h).
enum HookMetric : std::uint16_t {
  kUserCount,
  kOwnTime,
  kStepsEnded,
  kPartsShed,
  kCollectiveEntered,
  kCollectiveSequence,
  kFirstFigure,
};

std::span<const MetricDesc> hook_metrics();
extern const CollectorSpec kHookSpec;

// The metric that a hook's figure names; null: of a newer hook, or no figure.
const MetricDesc* hook_figure(std::string_view name_untrusted);
// What is stored of it: an integer where the metric is a counter or counts bytes; missing where it is no number, or
// negative where it cannot be.
Value figure_value(const MetricDesc& metric, double value_untrusted);

}  // namespace hotlap
