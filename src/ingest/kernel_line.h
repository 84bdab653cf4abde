#pragma once
// A line of the kernel's log, as dmesg, /var/log/kern.log and journalctl -k print it: when, and what it says.
#include <cstdint>
#include <optional>
#include <string_view>

namespace hotlap {

struct KernelLine {
  std::optional<std::int64_t> unix_ns;  // as if its zone were UTC, unless has_zone
  std::optional<std::int64_t> boot_ns;  // since the machine was started
  bool has_zone = false;
  bool has_year = true;   // false: "Dec  1 15:37:49", as if of the year 2023
  std::string_view text;  // what the kernel says; a view into the line
};
inline constexpr int kKernelYearUnknown = 2023;

// Nothing: no line of a kernel's log.
std::optional<KernelLine> read_kernel_line(std::string_view line_untrusted);

}  // namespace hotlap
