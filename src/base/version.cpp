#include "base/version.h"

namespace hotlap {
std::string_view hotlap_version() { return HOTLAP_VERSION; }
}  // namespace hotlap
