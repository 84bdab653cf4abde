#pragma once
// Lines of a log that say what happened to a job, whatever the training script prints itself: memory that ran out,
// collectives for which ranks wait, the network that NCCL chose, checkpoints. As notes (model/log_message.h).
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/event.h"

namespace hotlap {

// One log's messages. Some go over several lines ("Missing ranks:", then a line for each), so it has a state; bounded.
// Confined to one thread.
class LogMessages {
 public:
  // `line_untrusted` without colours. `rank`: that the line's prefix says, -1: none. True: the line was understood;
  // the events it ends are in `events()`, without a time.
  bool take(std::string_view line_untrusted, std::int32_t rank);
  // Those since the last call.
  std::vector<Event> events();
  // Of the last failure that was told since the last call, a note; nothing: none was.
  std::optional<Event> failure();
  bool has_failure() const { return failure_.has_value(); }
  // Number of ranks of the job, where a line said it.
  std::optional<std::int64_t> world_size() const { return world_size_; }

 private:
  enum class Listing : std::uint8_t { kNone, kStalledOps, kMissingRanks };
  bool take_out_of_memory(std::string_view line, std::int32_t rank);
  bool take_watchdog(std::string_view line, std::int32_t rank);
  bool take_stall(std::string_view line);
  bool take_listing(std::string_view line);
  bool take_transport(std::string_view line);
  bool take_checkpoint(std::string_view line, std::int32_t rank);
  bool take_failure(std::string_view line, std::int32_t rank);
  bool take_evaluation(std::string_view line, std::int32_t rank);
  void take_size(std::string_view line);
  void add(std::string_view what, std::int64_t rank, std::string_view words);

  std::vector<Event> events_;
  std::optional<std::int64_t> world_size_;
  std::optional<Event> failure_;
  bool is_cause_known_ = false;  // of it
  Listing listing_ = Listing::kNone;
  int listing_lines_ = 0;
  std::map<std::string, std::uint64_t> transports_;  // told once each
};

}  // namespace hotlap
