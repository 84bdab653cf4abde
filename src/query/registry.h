#pragma once
// The generated table of src/query/plugins, sorted by file name.
#include <span>

#include "query/table.h"

namespace hotlap {
std::span<const TableSpec* const> all_tables();
}  // namespace hotlap
