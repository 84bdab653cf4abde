#include "ingest/table_columns.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::size_t kTitleMax = 120;

struct Name {
  std::string_view name;
  TableRole role;
};
constexpr std::array kNames{
    Name{"t", TableRole::kTime},
    Name{"time", TableRole::kTime},
    Name{"timestamp", TableRole::kTime},
    Name{"ts", TableRole::kTime},
    Name{"wall", TableRole::kTime},
    Name{"wall_time", TableRole::kTime},
    Name{"unix_time", TableRole::kTime},
    Name{"unix", TableRole::kTime},
    Name{"datetime", TableRole::kTime},
    Name{"date", TableRole::kTime},
    Name{"elapsed", TableRole::kTime},
    Name{"seconds", TableRole::kTime},
    Name{"start", TableRole::kTime},
    Name{"start_time", TableRole::kTime},
    Name{"mono", TableRole::kMono},
    Name{"monotonic", TableRole::kMono},
    Name{"mono_time", TableRole::kMono},
    Name{"uptime", TableRole::kMono},
    Name{"step", TableRole::kStep},
    Name{"global_step", TableRole::kStep},
    Name{"iteration", TableRole::kStep},
    Name{"iter", TableRole::kStep},
    Name{"batch", TableRole::kStep},
    Name{"batch_idx", TableRole::kStep},
    Name{"rank", TableRole::kRank},
    Name{"global_rank", TableRole::kRank},
    Name{"node", TableRole::kNode},
    Name{"host", TableRole::kNode},
    Name{"hostname", TableRole::kNode},
    Name{"gpu", TableRole::kGpu},
    Name{"gpu_index", TableRole::kGpu},
    Name{"gpu_id", TableRole::kGpu},
    Name{"index", TableRole::kGpu},
    Name{"interface", TableRole::kDevice},
    Name{"iface", TableRole::kDevice},
    Name{"nic", TableRole::kDevice},
    Name{"disk", TableRole::kDevice},
    Name{"device", TableRole::kDevice},
    Name{"process", TableRole::kDevice},
    Name{"instance", TableRole::kDevice},
    Name{"step_time", TableRole::kDuration},
    Name{"step_duration", TableRole::kDuration},
    Name{"duration", TableRole::kDuration},
    Name{"iter_time", TableRole::kDuration},
    Name{"iteration_time", TableRole::kDuration},
    Name{"batch_time", TableRole::kDuration},
    Name{"time_per_step", TableRole::kDuration},
    Name{"dt", TableRole::kDuration},
    Name{"iter_duration", TableRole::kDuration},
    Name{"iteration_duration", TableRole::kDuration},
    Name{"time_per_iter", TableRole::kDuration},
    Name{"time_per_iteration", TableRole::kDuration},
    Name{"time_per_batch", TableRole::kDuration},
    Name{"train_step_time", TableRole::kDuration},
    Name{"step_latency", TableRole::kDuration},
    Name{"data_wait", TableRole::kDataWait},
    Name{"data_time", TableRole::kDataWait},
    Name{"data", TableRole::kDataWait},
    Name{"dataloader", TableRole::kDataWait},
    Name{"dataloader_time", TableRole::kDataWait},
    Name{"data_load", TableRole::kDataWait},
    Name{"load_time", TableRole::kDataWait},
    Name{"wait", TableRole::kDataWait},
    Name{"wait_time", TableRole::kDataWait},
    Name{"fetch_time", TableRole::kDataWait},
    Name{"forward", TableRole::kForward},
    Name{"forward_time", TableRole::kForward},
    Name{"fwd", TableRole::kForward},
    Name{"backward", TableRole::kBackward},
    Name{"backward_time", TableRole::kBackward},
    Name{"bwd", TableRole::kBackward},
    Name{"optimizer", TableRole::kOptimizer},
    Name{"optimizer_time", TableRole::kOptimizer},
    Name{"comm", TableRole::kCommunication},
    Name{"comm_time", TableRole::kCommunication},
    Name{"communication", TableRole::kCommunication},
    Name{"allreduce", TableRole::kCommunication},
    Name{"allreduce_time", TableRole::kCommunication},
    Name{"nccl", TableRole::kCommunication},
    Name{"gc", TableRole::kGarbage},
    Name{"gc_time", TableRole::kGarbage},
    Name{"checkpoint", TableRole::kCheckpoint},
    Name{"checkpoint_time", TableRole::kCheckpoint},
    Name{"save_time", TableRole::kCheckpoint},
    Name{"shape", TableRole::kShape},
    Name{"shape_id", TableRole::kShape},
    Name{"input_shape", TableRole::kShape},
    Name{"seq_len", TableRole::kShape},
    Name{"samples", TableRole::kSamples},
    Name{"batch_size", TableRole::kSamples},
    Name{"tokens", TableRole::kTokens},
    Name{"epoch", TableRole::kEpoch},
    Name{"metric", TableRole::kMetric},
    Name{"series", TableRole::kMetric},
    Name{"value", TableRole::kValue},
};

struct Level {
  std::string_view name;
  std::string_view metric;
  std::string_view unit;
  std::string_view instance;
  bool is_rate = false;
  double factor = 1;
};
constexpr std::array kLevels{
    Level{"gpu_util", "gpu.busy.percent", "%", "gpu"},
    Level{"gpu_utilization", "gpu.busy.percent", "%", "gpu"},
    Level{"gpu_busy", "gpu.busy.percent", "%", "gpu"},
    Level{"gpu_usage", "gpu.busy.percent", "%", "gpu"},
    Level{"util", "gpu.busy.percent", "%", "gpu"},
    Level{"utilization", "gpu.busy.percent", "%", "gpu"},
    Level{"utilization_gpu", "gpu.busy.percent", "%", "gpu"},
    Level{"gpu_mem", "gpu.memory.used.bytes", "By", "gpu"},
    Level{"gpu_mem_used", "gpu.memory.used.bytes", "By", "gpu"},
    Level{"gpu_memory", "gpu.memory.used.bytes", "By", "gpu"},
    Level{"gpu_memory_used", "gpu.memory.used.bytes", "By", "gpu"},
    Level{"vram", "gpu.memory.used.bytes", "By", "gpu"},
    Level{"vram_used", "gpu.memory.used.bytes", "By", "gpu"},
    Level{"gpu_mem_total", "gpu.memory.total.bytes", "By", "gpu"},
    Level{"gpu_memory_total", "gpu.memory.total.bytes", "By", "gpu"},
    Level{"vram_total", "gpu.memory.total.bytes", "By", "gpu"},
    Level{"power", "gpu.power.watts", "W", "gpu"},
    Level{"gpu_power", "gpu.power.watts", "W", "gpu"},
    Level{"power_draw", "gpu.power.watts", "W", "gpu"},
    Level{"power_limit", "gpu.power.limit.watts", "W", "gpu"},
    Level{"temp", "gpu.temperature.celsius", "Cel", "gpu"},
    Level{"gpu_temp", "gpu.temperature.celsius", "Cel", "gpu"},
    Level{"temperature", "gpu.temperature.celsius", "Cel", "gpu"},
    Level{"sm_clock", "gpu.clock.sm.mhz", "MHz", "gpu"},
    Level{"clock", "gpu.clock.sm.mhz", "MHz", "gpu"},
    Level{"gpu_clock", "gpu.clock.sm.mhz", "MHz", "gpu"},
    Level{"clock_max", "gpu.clock.sm_max.mhz", "MHz", "gpu"},
    Level{"sm_active", "gpu.sm_active.percent", "%", "gpu"},
    Level{"sm_occupancy", "gpu.sm_occupancy.percent", "%", "gpu"},
    Level{"tensor_active", "gpu.tensor_active.percent", "%", "gpu"},
    Level{"dram_active", "gpu.dram_active.percent", "%", "gpu"},
    Level{"allocated", "allocator.allocated.bytes", "By", "allocator"},
    Level{"memory_allocated", "allocator.allocated.bytes", "By", "allocator"},
    Level{"torch_allocated", "allocator.allocated.bytes", "By", "allocator"},
    Level{"mem_allocated", "allocator.allocated.bytes", "By", "allocator"},
    Level{"gpu_mem_allocated", "allocator.allocated.bytes", "By", "allocator"},
    Level{"gpu_memory_allocated", "allocator.allocated.bytes", "By", "allocator"},
    Level{"cuda_mem_allocated", "allocator.allocated.bytes", "By", "allocator"},
    Level{"cuda_memory_allocated", "allocator.allocated.bytes", "By", "allocator"},
    Level{"mem_reserved", "allocator.reserved.bytes", "By", "allocator"},
    Level{"gpu_mem_reserved", "allocator.reserved.bytes", "By", "allocator"},
    Level{"gpu_memory_reserved", "allocator.reserved.bytes", "By", "allocator"},
    Level{"cuda_mem_reserved", "allocator.reserved.bytes", "By", "allocator"},
    Level{"cuda_memory_reserved", "allocator.reserved.bytes", "By", "allocator"},
    Level{"reserved", "allocator.reserved.bytes", "By", "allocator"},
    Level{"memory_reserved", "allocator.reserved.bytes", "By", "allocator"},
    Level{"torch_reserved", "allocator.reserved.bytes", "By", "allocator"},
    Level{"rss", "process.memory.rss.bytes", "By", "process"},
    Level{"pss", "process.memory.pss.bytes", "By", "process"},
    Level{"threads", "process.threads", "{thread}", "process"},
    Level{"num_threads", "process.threads", "{thread}", "process"},
    Level{"shm_used", "shm.used.bytes", "By", ""},
    Level{"shm_total", "shm.total.bytes", "By", ""},
    Level{"shm_size", "shm.total.bytes", "By", ""},
    Level{"mem_total", "memory.total.bytes", "By", ""},
    Level{"runnable", "cpu.runnable", "{task}", ""},
    Level{"procs_running", "cpu.runnable", "{task}", ""},
    Level{"cores", "cpu.count", "{core}", ""},
    Level{"num_cores", "cpu.count", "{core}", ""},
    Level{"net_rx", "network.receive.bytes", "By", "network", true},
    Level{"nic_rx", "network.receive.bytes", "By", "network", true},
    Level{"rx", "network.receive.bytes", "By", "network", true},
    Level{"net_tx", "network.transmit.bytes", "By", "network", true},
    Level{"nic_tx", "network.transmit.bytes", "By", "network", true},
    Level{"tx", "network.transmit.bytes", "By", "network", true},
    Level{"disk_read", "disk.read.bytes", "By", "disk", true},
    Level{"disk_write", "disk.write.bytes", "By", "disk", true},
    Level{"disk_reads", "disk.reads", "{operation}", "disk", true},
    Level{"read_iops", "disk.reads", "{operation}", "disk", true},
    Level{"disk_busy", "disk.busy.seconds", "s", "disk", true, 0.01},
    Level{"disk_util", "disk.busy.seconds", "s", "disk", true, 0.01},
    Level{"ctxt", "cpu.context_switches", "{switch}", "", true},
    Level{"context_switches", "cpu.context_switches", "{switch}", "", true},
};

struct Unit {
  std::string_view suffix;
  double factor;
  bool is_time = false;
};
// Longer ones first: "mb_per_s" ends in "s".
constexpr std::array kUnits{
    Unit{"mib_per_s", 1048576},
    Unit{"mb_per_s", 1e6},
    Unit{"gb_per_s", 1e9},
    Unit{"kb_per_s", 1e3},
    Unit{"bytes_per_s", 1},
    Unit{"mib_s", 1048576},
    Unit{"mb_s", 1e6},
    Unit{"gb_s", 1e9},
    Unit{"kb_s", 1e3},
    Unit{"mbps", 125e3},
    Unit{"mbit_s", 125e3},
    Unit{"gbit_s", 125e6},
    Unit{"gbps", 125e6},
    Unit{"per_s", 1},
    Unit{"percent", 1},
    Unit{"pct", 1},
    Unit{"mib", 1048576},
    Unit{"gib", 1073741824},
    Unit{"kib", 1024},
    Unit{"mb", 1e6},
    Unit{"gb", 1e9},
    Unit{"kb", 1e3},
    Unit{"bytes", 1},
    Unit{"mhz", 1},
    Unit{"watts", 1},
    Unit{"celsius", 1},
    Unit{"seconds", 1, true},
    Unit{"sec", 1, true},
    Unit{"ms", 1e-3, true},
    Unit{"us", 1e-6, true},
    Unit{"ns", 1e-9, true},
    Unit{"s", 1, true},
    Unit{"w", 1},
    Unit{"c", 1},
};

// Lower case, one '_' for whatever is no letter and no digit: "GPU util [%]" as "gpu_util_percent".
std::string plain_title(std::string_view title) {
  std::string out;
  for (const char c : title.substr(0, kTitleMax)) {
    const char low = to_lower(c);
    const bool is_word = (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9');
    if (c == '%') {
      out += out.empty() || out.back() == '_' ? "percent" : "_percent";
    } else if (is_word) {
      out += low;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

// What a name means with a unit of time behind it: "step_ms" is no number of a step, "epoch_s" no epoch.
std::optional<TableRole> role_with_time(TableRole role) {
  switch (role) {
    case TableRole::kStep: return TableRole::kDuration;
    case TableRole::kRank:
    case TableRole::kNode:
    case TableRole::kGpu:
    case TableRole::kDevice:
    case TableRole::kSamples:
    case TableRole::kTokens:
    case TableRole::kEpoch: return std::nullopt;
    default: return role;
  }
}

bool apply(std::string_view base, const Unit* unit, TableColumn& column) {
  const double factor = unit == nullptr ? 1 : unit->factor;
  if (const auto* const known = std::ranges::find(kNames, base, &Name::name); known != kNames.end()) {
    // Times without a unit are seconds; "data_mb" is no time.
    if (unit != nullptr && !unit->is_time && known->role != TableRole::kShape) return false;
    const auto role = unit != nullptr && unit->is_time ? role_with_time(known->role) : std::optional(known->role);
    if (!role) return false;
    column.role = *role;
    column.factor = factor;
    return true;
  }
  const auto* const level = std::ranges::find(kLevels, base, &Level::name);
  if (level == kLevels.end() || (unit != nullptr && unit->is_time)) return false;
  // Memory in nobody knows which unit means nothing.
  if (level->unit == "By" && unit == nullptr) return false;
  column.role = level->is_rate ? TableRole::kRate : TableRole::kGauge;
  column.factor = level->factor * (level->unit == "By" ? factor : 1);
  column.metric = {
      .name = level->metric, .unit = level->unit, .kind = level->is_rate ? MetricKind::kCounter : MetricKind::kGauge};
  column.instance = level->instance;
  return true;
}

bool apply_with_unit(std::string_view name, TableColumn& column) {
  if (apply(name, nullptr, column)) return true;
  for (const Unit& unit : kUnits) {
    if (name.size() <= unit.suffix.size() + 1 || !name.ends_with(unit.suffix)) continue;
    const std::size_t end = name.size() - unit.suffix.size() - 1;
    if (name[end] == '_' && apply(name.substr(0, end), &unit, column)) return true;
  }
  return false;
}

// "ms_per_step", "sec_per_iteration".
bool apply_time_per_step(std::string_view name, TableColumn& column) {
  const std::size_t per = name.find("_per_");
  if (per == std::string_view::npos) return false;
  const std::string_view of = name.substr(per + 5);
  if (of != "step" && of != "iter" && of != "iteration" && of != "batch" && of != "it") return false;
  const auto* const unit = std::ranges::find(kUnits, name.substr(0, per), &Unit::suffix);
  return unit != kUnits.end() && unit->is_time && apply("step", unit, column);
}

// "gpu0_util", "gpu_3_mem_used_mb": a column a GPU.
bool apply_of_one_gpu(std::string_view name, TableColumn& column) {
  if (!name.starts_with("gpu")) return false;
  std::string_view rest = name.substr(3);
  if (rest.starts_with('_')) rest.remove_prefix(1);
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits > 4 || digits == rest.size() || rest[digits] != '_') return false;
  const std::string general = "gpu" + std::string(rest.substr(digits));
  const bool is_known = apply_with_unit(general, column) || apply_with_unit(rest.substr(digits + 1), column);
  if (!is_known || (column.instance != "gpu" && column.instance != "allocator")) {
    column = TableColumn{.name = std::move(column.name)};
    return false;
  }
  column.device = "gpu" + std::string(rest.substr(0, digits));
  return true;
}

}  // namespace

TableColumn read_table_title(std::string_view title_untrusted) {
  TableColumn column;
  column.name = plain_title(title_untrusted);
  const std::string name = column.name;
  if (apply_with_unit(name, column) || apply_time_per_step(name, column)) return column;
  apply_of_one_gpu(name, column);
  return column;
}

}  // namespace hotlap
