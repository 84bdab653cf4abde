#pragma once
// Finds work of a device that begins before the call that launched it, in events of any order. Remembers the last
// kEntries correlations or so (16 MiB, of which the system gives what is touched): traces have a launch and its work
// near each other, or are small. Confined to the importing thread.
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace hotlap {

class LaunchOrder {
 public:
  static constexpr std::size_t kEntries = std::size_t{1} << 20;

  // Whether `correlation` has met its other half, and the work (of `is_launch` false) began first.
  bool is_reversed(std::int64_t correlation, std::int64_t start_ns, bool is_launch) {
    if (correlation <= 0 || correlation > INT32_MAX) return false;  // the device's runtimes count from 1
    if (!entries_) entries_.reset(static_cast<Entry*>(std::calloc(kEntries, sizeof(Entry))));
    if (!entries_) return false;
    Entry& entry = entries_.get()[static_cast<std::size_t>(correlation) % kEntries];
    const auto tag = static_cast<std::uint32_t>(correlation) << 1U | (is_launch ? 1U : 0U);
    if ((entry.tag ^ tag) == 1) {
      const std::int64_t launch_ns = is_launch ? start_ns : entry.start_ns;
      const std::int64_t work_ns = is_launch ? entry.start_ns : start_ns;
      // A launch may have several pieces of work: it stays.
      if (is_launch) entry = {start_ns, tag};
      return work_ns < launch_ns;  // rounding keeps the order
    }
    entry = {start_ns, tag};
    return false;
  }

 private:
  struct Entry {
    std::int64_t start_ns;
    std::uint32_t tag;  // correlation and whether it is the launch
  };
  struct Free {
    void operator()(Entry* entries) const { std::free(entries); }
  };
  std::unique_ptr<Entry, Free> entries_;
};

}  // namespace hotlap
