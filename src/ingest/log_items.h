#pragma once
// Finds the figures of a line that a training script printed, whatever the framework: "loss: 6.9 (7.0)", "loss=6.9",
// "'loss': 6.9", "time 12.5ms", "iteration 10/ 500 |", "50/500 [00:25<03:45, 2.00it/s". Numbers are looked for, then
// what stands before and behind each.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hotlap {

struct LogItem {
  std::string key;                // lower case, without separators; empty: nothing stands before the number
  double value = 0;               // may be NaN or infinite, as printed
  std::optional<double> average;  // "(7.0)" behind it
  std::optional<double> total;    // "/100" behind it
  std::string unit;               // "ms", "s/it", "img/s"; also when the key ends in it: "time (ms)"
  std::size_t at = 0;             // its place in the line
  bool is_clock = false;          // "1:02:03" or "00:25"; the value is in seconds
  bool begins_bracket = false;    // '[' stands before it: of progress bars the time that has passed
};

inline constexpr std::size_t kLogItemsMax = 256;  // of one line

// "ms", "sec" and their like.
bool is_unit_of_time(std::string_view unit);

// At most kLogItemsMax. `line_untrusted` without its time stamp and colours.
std::vector<LogItem> find_log_items(std::string_view line_untrusted);

// Without terminal escape sequences, and what backspaces took away.
std::string without_escapes(std::string_view line_untrusted);

}  // namespace hotlap
