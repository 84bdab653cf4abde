#include "view/job_hours.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace hotlap {
namespace {

constexpr double kSecondsPerHour = 3600;

// GPUs that the job used, parts of one (MIG) each by itself; nothing where that is not known of every GPU.
std::optional<double> gpus_of_job(const FactTable& facts) {
  const std::vector<const Fact*> gpus = facts.all("gpu.use");
  std::optional<double> count;
  for (const Fact* gpu : gpus) {
    const auto is_part_of_it = [&](const Fact* other) {
      return other->where.node == gpu->where.node && other->where.device.starts_with(gpu->where.device + "/");
    };
    if (std::ranges::any_of(gpus, is_part_of_it)) continue;
    const auto is_of_job = gpu->number("is_of_job");
    if (!is_of_job) return std::nullopt;
    count = count.value_or(0) + (*is_of_job >= 1 ? 1 : 0);
  }
  return count;
}

}  // namespace

void set_hours(const FactTable& facts, AnalysisDocument& d) {
  if (!d.duration_s) return;
  const double hours = *d.duration_s / kSecondsPerHour;
  for (const Fact* cores : facts.all("core_use.summary")) {  // one of each node
    if (const auto usable = cores->number("usable_cores")) d.cpu_hours = d.cpu_hours.value_or(0) + *usable * hours;
  }
  if (const auto gpus = gpus_of_job(facts)) d.gpu_hours = *gpus * hours;
}

}  // namespace hotlap
