#pragma once
// The generated table of src/ingest/plugins, sorted by file name.
#include <span>

#include "ingest/importer.h"

namespace hotlap {
std::span<const ImporterSpec* const> all_importers();
}  // namespace hotlap
