#pragma once
// What analyzers of traces share: rows by name that merge over recordings, the launch of each kernel, and what ran on
// the host a moment ago. Spans of a trace come by start, so that a call is known before what it launched. Bounded.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/hlo_names.h"

namespace hotlap {

// `Row` has add(const Row&). Confined to one thread.
template <class Row>
class NamedRows {
 public:
  static constexpr std::size_t kNamesMax = 1'000'000;
  explicit NamedRows(std::function<std::string(std::uint32_t)> name_of) : name_of_(std::move(name_of)) {}

  Row& at(std::uint32_t name) {
    if (name >= kNamesMax) name = 0;
    if (name >= rows_.size()) rows_.resize(name + 1);
    return rows_[name];
  }
  void merge(const NamedRows& other) {
    for (const auto& [name, row] : other.all()) merged_[name].add(row);
  }
  // Rows that were added to, by name.
  std::map<std::string, Row> all() const {
    std::map<std::string, Row> out = merged_;
    for (std::uint32_t name = 0; name < rows_.size(); ++name) {
      if (!rows_[name].empty()) out[name_of_(name)].add(rows_[name]);
    }
    return out;
  }
  // The first `count` by `weight`, largest first.
  template <class Weight>
  std::vector<std::pair<std::string, Row>> top(std::size_t count, Weight weight) const {
    const std::map<std::string, Row> rows = all();
    std::vector<std::pair<std::string, Row>> out(rows.begin(), rows.end());
    std::ranges::stable_sort(out, [&](const auto& a, const auto& b) { return weight(a.second) > weight(b.second); });
    if (out.size() > count) out.resize(count);
    return out;
  }

 private:
  std::function<std::string(std::uint32_t)> name_of_;
  std::vector<Row> rows_;
  std::map<std::string, Row> merged_;
};

// The last kEntries of something by its id; older ones are forgotten. Takes memory where there are ids.
template <class Content>
class RecentById {
 public:
  static constexpr std::size_t kEntries = std::size_t{1} << 17;
  void put(std::int64_t id, const Content& content) {
    if (id < 0) return;
    const std::size_t place = place_of(id);
    std::unique_ptr<Block>& block = blocks_[place / kBlockEntries];
    if (!block) block = std::make_unique<Block>();
    (*block)[place % kBlockEntries] = {id, content};
  }
  const Content* find(std::int64_t id) const {
    if (id < 0) return nullptr;
    const std::size_t place = place_of(id);
    const std::unique_ptr<Block>& block = blocks_[place / kBlockEntries];
    if (!block) return nullptr;
    const Entry& entry = (*block)[place % kBlockEntries];
    return entry.id == id ? &entry.content : nullptr;
  }

 private:
  struct Entry {
    std::int64_t id = -1;
    Content content{};
  };
  static constexpr std::size_t kBlockEntries = 256;
  using Block = std::array<Entry, kBlockEntries>;
  // Ids of a recording of several processes hold the process in their upper half.
  static std::size_t place_of(std::int64_t id) {
    const auto bits = static_cast<std::uint64_t>(id);
    return (bits ^ (bits >> 32) * 0x9E37'79B9U) & (kEntries - 1);
  }
  std::vector<std::unique_ptr<Block>> blocks_ = std::vector<std::unique_ptr<Block>>(kEntries / kBlockEntries);
};

// Times at which something went on, joined where they touch; the last kEntries of them.
class RecentTimes {
 public:
  static constexpr std::size_t kEntries = 4096;
  void add(std::int64_t start_ns, std::int64_t end_ns) {
    if (end_ns <= start_ns) return;
    if (count_ > 0 && start_ns < last().first) return add_late(start_ns, end_ns);
    if (count_ > 0 && start_ns <= last().second) {
      last().second = std::max(last().second, end_ns);
      return;
    }
    times_[count_++ % kEntries] = {start_ns, end_ns};
  }
  // How much of [from_ns, to_ns) they cover.
  std::int64_t within(std::int64_t from_ns, std::int64_t to_ns) const {
    std::int64_t sum = 0;
    const std::size_t kept = std::min(count_, kEntries);
    for (std::size_t back = 1; back <= kept; ++back) {
      const auto& [start_ns, end_ns] = times_[(count_ - back) % kEntries];
      if (end_ns <= from_ns) break;
      sum += std::max<std::int64_t>(0, std::min(end_ns, to_ns) - std::max(start_ns, from_ns));
    }
    return sum;
  }

 private:
  using Time = std::pair<std::int64_t, std::int64_t>;
  // Told after what came later, by another source: what is later is put aside. What is older than all is forgotten.
  void add_late(std::int64_t start_ns, std::int64_t end_ns) {
    std::vector<Time> later;
    while (count_ > 0 && later.size() < kEntries && last().second >= start_ns) {
      const Time one = last();
      --count_;
      if (one.first > end_ns) {
        later.push_back(one);
      } else {
        start_ns = std::min(start_ns, one.first);
        end_ns = std::max(end_ns, one.second);
      }
    }
    if (later.size() < kEntries) times_[count_++ % kEntries] = {start_ns, end_ns};
    for (; !later.empty(); later.pop_back()) times_[count_++ % kEntries] = later.back();
  }
  Time& last() { return times_[(count_ - 1) % kEntries]; }
  std::vector<Time> times_ = std::vector<Time>(kEntries);
  std::size_t count_ = 0;
};

// What runs inside what on one thread, from spans by start.
class NestingStack {
 public:
  static constexpr std::size_t kDepthMax = 512;
  struct Frame {
    std::uint32_t name;
    std::int64_t end_ns;
    std::int64_t duration_ns;
    std::int64_t inside_ns = 0;  // of what ran inside it
    std::uint32_t detail = 0;    // of its arguments
  };
  // Calls `done(frame)` for what has ended at `start_ns`, innermost first.
  template <class Done>
  void advance(std::int64_t start_ns, Done&& done) {
    while (!frames_.empty() && frames_.back().end_ns <= start_ns) {
      done(frames_.back());
      frames_.pop_back();
    }
  }
  void push(std::uint32_t name, std::int64_t start_ns, std::int64_t duration_ns, std::uint32_t detail = 0) {
    if (frames_.size() >= kDepthMax) return;
    const std::int64_t end_ns = start_ns + duration_ns;
    // One that outlives what holds it (clocks differ by less than a microsecond) counts there as far as it is inside.
    if (!frames_.empty()) frames_.back().inside_ns += std::min(end_ns, frames_.back().end_ns) - start_ns;
    frames_.push_back({name, end_ns, duration_ns, 0, detail});
  }
  bool holds(std::uint32_t name) const {
    return std::ranges::any_of(frames_, [&](const Frame& frame) { return frame.name == name; });
  }
  const std::vector<Frame>& frames() const { return frames_; }

 private:
  std::vector<Frame> frames_;
};

// Kernels of NCCL, RCCL and the all-reduces of inference engines; collectives of XLA.
inline bool names_communication(std::string_view kernel) {
  for (const std::string_view part : {"nccl", "rccl", "mscclpp", "cross_device_reduce", "one_shot_all_reduce",
                                      "two_shot_all_reduce", "multimem_all"}) {
    if (kernel.find(part) != std::string_view::npos) return true;
  }
  return names_hlo_collective(kernel);
}

// Calls of the runtime that wait for the device.
inline bool names_synchronisation(std::string_view call) {
  return call.find("Synchronize") != std::string_view::npos || call == "cudaMemcpy" || call == "hipMemcpy" ||
         call == "cudaMemcpyDtoH" || call == "hipMemcpyWithStream";
}

// Calls of the runtime or driver that give the device work.
inline bool names_launch(std::string_view call) {
  return call.find("Launch") != std::string_view::npos || call.find("Memcpy") != std::string_view::npos ||
         call.find("Memset") != std::string_view::npos;
}

// A call of the runtime that only launches takes microseconds: one of so long allocates, loads code or makes a context.
// Copies from memory that is not pinned take their time themselves, and waits are waits.
inline constexpr std::int64_t kSetupNs = 1'000'000;
inline bool may_set_up(std::string_view call) {
  return !names_synchronisation(call) && call.find("Memcpy") == std::string_view::npos &&
         call.find("Memset") == std::string_view::npos;
}

// Answers of one of these about names, each asked once.
class NameTest {
 public:
  NameTest(std::function<std::string(std::uint32_t)> name_of, bool (*test)(std::string_view))
      : name_of_(std::move(name_of)), test_(test) {}
  bool operator()(std::uint32_t name) {
    if (name >= kNamesMax) return false;
    if (name >= known_.size()) known_.resize(name + 1, 0);
    if (known_[name] == 0) known_[name] = test_(name_of_(name)) ? 2 : 1;
    return known_[name] == 2;
  }

 private:
  static constexpr std::size_t kNamesMax = 1'000'000;
  std::function<std::string(std::uint32_t)> name_of_;
  bool (*test_)(std::string_view);
  std::vector<std::uint8_t> known_;
};

}  // namespace hotlap
