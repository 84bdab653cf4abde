#pragma once
// What the kernel's log says of a machine that trains: errors of the GPU's driver, processes that were killed for want
// of memory or died of a fault of their own, network mounts and disks that do not answer, heat, hardware that reports
// errors. As events and notes (model/log_message.h).
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/event.h"

namespace hotlap {

// The messages of one log. What is told of a kill goes over several lines, so it has a state; bounded. Confined to one
// thread.
class KernelMessages {
 public:
  // `text_untrusted`: of the line, without its time. Nothing: it says none of these. Without a time.
  std::optional<Event> take(std::string_view text_untrusted);

 private:
  std::optional<Event> take_kill(std::string_view text);

  std::string constraint_;  // of the kill that is being told: "group", "host"; empty: not said yet
  std::string group_;
  std::string limit_kb_;
};

// What a line says of the Unix time of its own moment, ns: those of the audit system and of the real-time clock do.
std::optional<std::int64_t> kernel_unix_time(std::string_view text_untrusted);
// A word that kernels print and training scripts do not.
bool is_kernel_text(std::string_view text_untrusted);

}  // namespace hotlap
