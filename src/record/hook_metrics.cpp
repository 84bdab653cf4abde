#include "record/hook_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::int64_t kLivePeriodNs = kNsPerS;
constexpr std::int64_t kLookPeriodNs = kNsPerS / 2;  // LOOK_NS of _torch/device.py
constexpr double kExactMax = 9e15;                   // integers below are exact in a double

constexpr MetricDesc figure(std::string_view name, std::string_view unit, MetricKind kind, std::string_view help,
                            std::string_view prometheus = {}) {
  return {.name = name,
          .unit = unit,
          .kind = kind,
          .help = help,
          .min_period_ns = kLookPeriodNs,
          .aliases = {.prometheus = prometheus}};
}

constexpr auto kGauge = MetricKind::kGauge;
constexpr auto kCounter = MetricKind::kCounter;

constexpr std::array kMetrics{
    MetricDesc{.name = "hook.user.value", .unit = "1", .help = "What the program passed to hotlap.count(), by name."},
    MetricDesc{.name = "hook.own_time.ns",
               .unit = "ns",
               .kind = kCounter,
               .help = "Time that the hook itself took in the process.",
               .min_period_ns = kLivePeriodNs},
    MetricDesc{.name = "hook.steps",
               .unit = "{step}",
               .kind = kCounter,
               .help = "Steps that have ended.",
               .min_period_ns = kLivePeriodNs},
    MetricDesc{.name = "hook.parts_shed",
               .unit = "1",
               .help = "Bit set of what the hook no longer measures to stay cheap.",
               .min_period_ns = kLivePeriodNs},
    MetricDesc{.name = "collective.entered",
               .unit = "1",
               .help = "1 + the number of the process group in a call of which the process is (1: the default group); "
                       "0: in none.",
               .min_period_ns = kLivePeriodNs},
    MetricDesc{.name = "collective.sequence",
               .unit = "1",
               .help = "Number, in its group, of the call of torch.distributed that was entered last; of ranks that "
                       "hang, the one with the lowest is late.",
               .min_period_ns = kLivePeriodNs},
    figure("range.calls", "{call}", kCounter,
           "Ranges and marks of this name that have ended (NVTX), also those that are not kept one by one."),
    figure("range.time.ns", "ns", kCounter, "Time in them; ranges inside each other count each."),
    figure("operator.calls", "{call}", kCounter,
           "Calls of a PyTorch operator, estimated: the observer looks at one in a hundred."),
    figure("operator.time.ns", "ns", kCounter,
           "Time in them on the CPU, estimated likewise; what an operator calls counts for both."),
    figure("allocator.allocated.bytes", "By", kGauge, "Device memory that the framework's tensors hold."),
    figure("allocator.allocated_max.bytes", "By", kGauge,
           "The most that they held since the start, or since the program reset it."),
    figure("allocator.reserved.bytes", "By", kGauge,
           "Device memory that the framework's allocator has taken from the driver, free parts of it included."),
    figure("allocator.reserved_max.bytes", "By", kGauge,
           "The most that it had taken since the start, or since the program reset it."),
    figure("allocator.limit.bytes", "By", kGauge, "Device memory that the framework's allocator may take (JAX)."),
    figure("allocator.retries", "{retry}", kCounter,
           "Allocations for which the allocator had to give cached memory back first: it is fragmented or full."),
    figure("allocator.ooms", "{error}", kCounter, "Allocations that failed for want of device memory."),
    figure("gpu_time.forward.ms", "ms", kGauge,
           "Time on the GPU from the start of forward to the start of backward, in one sampled step: the loss too."),
    figure("gpu_time.backward.ms", "ms", kGauge, "Time on the GPU of one backward pass, in one sampled step."),
    figure("gpu_time.optimizer.ms", "ms", kGauge, "Time on the GPU of one optimizer.step(), in one sampled step."),
    figure("transfer.to_device.bytes", "By", kGauge,
           "Bytes of one sampled batch that the loader gave in host memory and the model got on the device."),
    figure("transfer.to_device.pinned.bytes", "By", kGauge, "Those of them that lay in pinned memory."),
    figure(
        "ddp.forward.ms", "ms", kGauge,
        "Forward by the timers of DistributedDataParallel's reducer, which torch turns on in one of 100 iterations."),
    figure("ddp.backward.ms", "ms", kGauge, "Backward by the reducer's timers, waiting for the last bucket included."),
    figure("ddp.communication.ms", "ms", kGauge, "From the first bucket's all-reduce to the end of the last one."),
    figure("ddp.overlap.ms", "ms", kGauge, "The part of it during which backward still computed."),
};

}  // namespace

std::span<const MetricDesc> hook_metrics() { return kMetrics; }

constinit const CollectorSpec kHookSpec{
    .name = "hook", .summary = "What the hooks in the job's Python processes say.", .metrics = kMetrics};

const MetricDesc* hook_figure(std::string_view name) {
  const auto found =
      std::find_if(kMetrics.begin() + kFirstFigure, kMetrics.end(), [&](const auto& m) { return m.name == name; });
  return found == kMetrics.end() ? nullptr : &*found;
}

Value figure_value(const MetricDesc& metric, double value) {
  if (!std::isfinite(value) || value < 0) return Value::missing(MissingReason::kReadFailed);
  if (metric.unit == "ms") return Value::of(value);
  if (value > kExactMax) return Value::missing(MissingReason::kReadFailed);
  return Value::of(static_cast<std::uint64_t>(std::llround(value)));
}

}  // namespace hotlap
