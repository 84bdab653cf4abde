#pragma once
// What the titles of somebody's own table mean: "step_time_ms", "data_wait (s)", "gpu_util_%", "mem_used_mb".
// Thread-safe: nothing here has state.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/metric.h"

namespace hotlap {

enum class TableRole : std::uint8_t {
  kTime,  // Unix time, seconds from any moment, or a date
  kMono,  // of a clock that does not jump
  kStep,  // number of a step
  kRank,
  kNode,
  kGpu,       // number of a GPU
  kDevice,    // an interface, a disk, a process
  kDuration,  // of a step
  kDataWait,
  kForward,
  kBackward,
  kOptimizer,
  kCommunication,
  kGarbage,
  kCheckpoint,
  kShape,  // of the step's input
  kSamples,
  kTokens,
  kEpoch,
  kMetric,  // of a long table: the name of what the row has
  kValue,   // of a long table
  kGauge,   // a level
  kRate,    // an amount per second: added up to a counter
  kOther,   // a number of its own name
};

struct TableColumn {
  TableRole role = TableRole::kOther;
  double factor = 1;          // to seconds, bytes, percent
  MetricDesc metric;          // of kGauge and kRate
  std::string_view instance;  // of a gauge or rate: "gpu", "process", "network", "disk"; empty: the machine
  std::string device;         // that the title itself names: "gpu0" of "gpu0_util"
  std::string name;           // the title, in lower case
};

// `title_untrusted` as it stands. Never fails: a title that means nothing is a number of its own name.
TableColumn read_table_title(std::string_view title_untrusted);

// Titles that a table of one's own may have, for whoever has others.
constexpr std::string_view kTableTitlesHelp =
    "step,step_time_ms,data_wait_ms,rank or time,gpu,gpu_util_percent,gpu_mem_used_mb,rss_gb";

}  // namespace hotlap
