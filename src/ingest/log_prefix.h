#pragma once
// What stands before the text of a log's line and says when and by whom it was printed.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hotlap {

struct LogPrefix {
  std::optional<std::int64_t> unix_ns;
  bool has_zone = false;
  bool has_year = true;    // false: "10/09 08:53:20", as if of the year 2023
  std::int32_t rank = -1;  // -1: not said
  std::size_t length = 0;  // characters of the prefix
};
LogPrefix read_log_prefix(std::string_view line_untrusted);

}  // namespace hotlap
