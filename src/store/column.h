#pragma once
// Samples of one series on their way to disk: the open column, a compact stream that grows as ticks come, and its
// decoded form. The same stream is what tail rows hold.
//
//   runs    varint ticks skipped since the end of the last run, varint (ticks in the run) << 4 | state
//   ints    zigzag varints: difference (mod 2^64) to the value before
//   floats  varints: bits of the double xor the bits of the one before, bytes reversed so that equal ends become zeros
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "model/value.h"
#include "store/format.h"

namespace hotlap {

// State of a series over a run of ticks. Stored in 4 bits: append only.
inline constexpr std::uint8_t kStateI64 = 0;
inline constexpr std::uint8_t kStateU64 = 1;
inline constexpr std::uint8_t kStateF64 = 2;
inline constexpr std::uint8_t kStateMissing = 3;  // plus the MissingReason
inline constexpr std::uint8_t kStateCount = kStateMissing + 9;

struct StateRun {
  std::uint32_t first_tick = 0;
  std::uint32_t count = 0;
  std::uint8_t state = 0;
  friend bool operator==(const StateRun&, const StateRun&) = default;
};

// One series of a stretch, decoded. Values stand in the order of the runs; missing ones take no place.
struct ColumnData {
  std::vector<StateRun> runs;
  std::vector<std::uint64_t> ints;  // bits of i64 and u64 values
  std::vector<double> floats;

  void clear() {
    runs.clear();
    ints.clear();
    floats.clear();
  }
};

// Calls visit(tick, Value) for every sample. `data` must be consistent: as many values as its runs say.
template <class Visit>
void for_each_sample(const ColumnData& data, Visit&& visit) {
  std::size_t next_int = 0;
  std::size_t next_float = 0;
  for (const StateRun& run : data.runs) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::uint32_t tick = run.first_tick + i;
      switch (run.state) {
        case kStateI64: visit(tick, Value::of(static_cast<std::int64_t>(data.ints[next_int++]))); break;
        case kStateU64: visit(tick, Value::of(data.ints[next_int++])); break;
        case kStateF64: visit(tick, Value::of(data.floats[next_float++])); break;
        default: visit(tick, Value::missing(static_cast<MissingReason>(run.state - kStateMissing)));
      }
    }
  }
}

// How many values of each sort the runs ask for.
struct ValueCounts {
  std::uint64_t ints = 0;
  std::uint64_t floats = 0;
  std::uint64_t samples = 0;  // with the missing ones
};
ValueCounts count_values(const std::vector<StateRun>& runs);

// Where a stream goes on: what its first differences refer to.
struct StreamStart {
  std::uint32_t cursor = 0;  // tick after the last run
  std::uint64_t last_int = 0;
  std::uint64_t last_float_bits = 0;
};

// A part of a column's stream that has not been written to a tail yet.
struct StreamPart {
  StreamStart start;
  ByteView runs;
  ByteView ints;
  ByteView floats;
};

// Appends what the part holds to `out`. False when it is not whole or names a tick that is not below `tick_count`;
// `out` is then of no use.
bool decode_stream(const StreamPart& part_untrusted, std::uint32_t tick_count, ColumnData& out);

// Confined to one thread. Keeps its capacity over clear(), so that a steady recorder allocates nothing.
class OpenColumn {
 public:
  // `tick` and `t_ns` must be greater than the ones before: false, and nothing is added, when they are not.
  bool add(std::uint32_t tick, std::int64_t t_ns, Value value);
  // Ends the run that is open, so that part() holds every sample. The stream stays decodable as a whole.
  void end_run();
  bool has_part() const { return runs_.size() > written_.runs || run_count_ > 0; }
  // What was added since part_written(); end_run() first.
  StreamPart part() const;
  void part_written();
  // Everything since clear(); end_run() first.
  StreamPart whole() const { return {{}, runs_, ints_, floats_}; }

  bool empty() const { return samples_ == 0; }
  std::uint32_t samples() const { return samples_; }
  std::uint32_t samples_written() const { return written_.samples; }
  std::size_t bytes() const { return runs_.size() + ints_.size() + floats_.size(); }
  // Forgets the samples, not the time of the last one.
  void clear();
  std::int64_t last_t_ns() const { return last_t_ns_; }
  void set_last_t_ns(std::int64_t t_ns) { last_t_ns_ = t_ns; }

 private:
  struct Written {
    std::size_t runs = 0;
    std::size_t ints = 0;
    std::size_t floats = 0;
    std::uint32_t samples = 0;
    StreamStart start;
  };

  Bytes runs_;
  Bytes ints_;
  Bytes floats_;
  Written written_;
  std::uint32_t cursor_ = 0;  // tick after the last ended run
  std::uint32_t run_first_ = 0;
  std::uint32_t run_count_ = 0;  // 0: no run is open
  std::uint8_t run_state_ = 0;
  std::uint32_t samples_ = 0;
  std::uint64_t last_int_ = 0;
  std::uint64_t last_float_bits_ = 0;
  std::int64_t last_t_ns_ = INT64_MIN;
};

}  // namespace hotlap
