// docs/reference/metrics.md is made from the collectors' specs. HOTLAP_UPDATE_GOLDEN=1 rewrites it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "collect/registry.h"
#include "record/hook_metrics.h"
#include "support/golden.h"

namespace hotlap {
namespace {

constexpr std::string_view kIntroduction =
    "# Metrics\n"
    "\n"
    "Made from the collectors' descriptions; do not edit. A series is a metric and an instance (a core, disk, "
    "interface, mount\n"
    "or process). Counters are stored as the kernel's own integers; stored integer x scale = value in the unit, and "
    "rates are\n"
    "made on reading: a decrease is a reset, across which the rate is missing, except where a 32-bit counter wrapped "
    "close to\n"
    "its end. Totals (`disk.total.*`, `network.total.*`) begin at 0 with the recording and hold no spike when a device "
    "comes.\n"
    "A value that the source does not have is missing, with its reason, and never 0. At a tick at which a metric is "
    "not due it\n"
    "is not sampled.\n"
    "\n"
    "Instances: `core 3`; disks, interfaces and ports (`mlx5_0/1`) by their names; mounts by their mount points; "
    "processes by\n"
    "their slots (`main`, `rank 2`, `loader 3`), a thread as `main/thread NAME` (the second of a name as `NAME #2`), "
    "the open\n"
    "files of a process as `main/mount /data`; GPUs as `gpu0` (NVIDIA) and `amd0`, a MIG instance as `gpu0/mig1`, a "
    "process on a\n"
    "GPU as `gpu0/rank 0`, a device as the process of the job numbers it as `rank 0/cuda:0`. Where GPU figures come "
    "from "
    "and\n"
    "what they are worth: [GPUs](../gpu.md). Names elsewhere: labels as in Prometheus; one without a value takes the "
    "instance;\n"
    "units may differ.\n";

std::string alias_text(const MetricAliases& aliases) {
  std::string text;
  const auto add = [&](std::string_view system, std::string_view name) {
    if (name.empty()) return;
    if (!text.empty()) text += "<br>";
    text += format("{} `{}`", system, name);
  };
  add("CloudWatch", aliases.cloudwatch);
  add("OTel", aliases.otel);
  add("Prometheus", aliases.prometheus);
  return text;
}

std::string reference() {
  std::string text(kIntroduction);
  std::vector<const CollectorSpec*> specs(all_collectors().begin(), all_collectors().end());
  specs.push_back(&kHookSpec);
  for (const CollectorSpec* spec : specs) {
    text += format("\n## {}\n\n{}", spec->name, spec->summary);
    if (spec->min_period_ns > 0) text += format(" Read at most every {}.", format_duration(spec->min_period_ns));
    if (spec->lane == Lane::kMayBlock) text += " Has a thread of its own, since the source may not answer.";
    if (!spec->on_by_default) text += " Off by default.";
    text += "\n\n| metric | unit | kind | what it is | period | scale | elsewhere |\n|---|---|---|---|---|---|---|\n";
    for (const MetricDesc& metric : spec->metrics) {
      text += format("| `{}` | `{}` | {} | {} | {} | {} | {} |\n", metric.name, metric.unit,
                     metric.kind == MetricKind::kCounter ? "counter" : "gauge", metric.help,
                     metric.min_period_ns > 0 ? format_duration(metric.min_period_ns) : "", metric.scale,
                     alias_text(metric.aliases));
    }
  }
  return text;
}

TEST(MetricsReference, IsWhatTheSpecsSay) {
  test::expect_golden(std::filesystem::path(HOTLAP_SOURCE_DIR) / "docs/reference/metrics.md", reference());
}

}  // namespace
}  // namespace hotlap
