#pragma once
// What supervisor and recorder tell each other, over a socket pair that keeps message boundaries. Text, one word first:
//
//   to the recorder   job <pid> · phase <number> · transfer <bytes> <command> · signal <number> · stopped · continued
//                     exit <code> · killed <signal> · end
//   to the supervisor ready · say <line for the user>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hotlap {

struct Message {
  std::string word;
  std::int64_t number = 0;
  std::string text;
};

// Both ends close on exec. Fails where the system has no descriptors left or permits no socket pairs.
Result<void> make_channel(int& supervisor_end, int& recorder_end);
// Never blocks and never raises a signal; false when the other side is gone or does not read.
bool send_message(int fd, const Message& message);
// The next message that is there; nothing when there is none. `is_closed` when the other side is gone.
std::optional<Message> receive_message(int fd, bool& is_closed);

}  // namespace hotlap
