#pragma once
// The generated table of src/report/plugins, sorted by file name.
#include <span>

#include "report/exporter.h"

namespace hotlap {
std::span<const ExporterSpec* const> all_exporters();
}  // namespace hotlap
