#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hotlap::detail {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "hotlap: internal error: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace hotlap::detail
