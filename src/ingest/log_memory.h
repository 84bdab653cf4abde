#pragma once
// Figures of GPU memory in a log: "gpu_mem=4000MiB", "max mem: 3456", "reserved 12.1 GiB". Thread-safe: nothing here
// has state.
#include <optional>
#include <utility>

#include "ingest/log_items.h"
#include "ingest/log_line.h"

namespace hotlap {

// In bytes; nothing: the figure is none of memory. Without a unit small ones are GB and large ones MB, as frameworks
// print them.
std::optional<std::pair<LogMemory, double>> read_log_memory(const LogItem& item);

}  // namespace hotlap
