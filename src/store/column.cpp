#include "store/column.h"

#include <bit>

#include "base/check.h"

namespace hotlap {
namespace {

std::uint8_t state_of(Value value) {
  switch (value.kind()) {
    case Value::Kind::kI64: return kStateI64;
    case Value::Kind::kU64: return kStateU64;
    case Value::Kind::kF64: return kStateF64;
    case Value::Kind::kMissing: break;
  }
  return static_cast<std::uint8_t>(kStateMissing + static_cast<std::uint8_t>(value.reason()));
}

constexpr std::uint64_t reverse_bytes(std::uint64_t v) { return __builtin_bswap64(v); }

}  // namespace

ValueCounts count_values(const std::vector<StateRun>& runs) {
  ValueCounts counts;
  for (const StateRun& run : runs) {
    counts.samples += run.count;
    if (run.state == kStateI64 || run.state == kStateU64) counts.ints += run.count;
    if (run.state == kStateF64) counts.floats += run.count;
  }
  return counts;
}

bool OpenColumn::add(std::uint32_t tick, std::int64_t t_ns, Value value) {
  if (t_ns <= last_t_ns_ || tick < cursor_ || (run_count_ > 0 && tick < run_first_ + run_count_)) return false;
  const std::uint8_t state = state_of(value);
  if (run_count_ > 0 && (state != run_state_ || tick != run_first_ + run_count_)) end_run();
  if (run_count_ == 0) {
    run_first_ = tick;
    run_state_ = state;
  }
  ++run_count_;
  ++samples_;
  last_t_ns_ = t_ns;
  if (state == kStateI64 || state == kStateU64) {
    const std::uint64_t bits = state == kStateI64 ? static_cast<std::uint64_t>(value.i64()) : value.u64();
    put_varint(ints_, zigzag(static_cast<std::int64_t>(bits - last_int_)));
    last_int_ = bits;
  } else if (state == kStateF64) {
    const auto bits = std::bit_cast<std::uint64_t>(value.f64());
    put_varint(floats_, reverse_bytes(bits ^ last_float_bits_));
    last_float_bits_ = bits;
  }
  return true;
}

void OpenColumn::end_run() {
  if (run_count_ == 0) return;
  put_varint(runs_, run_first_ - cursor_);
  put_varint(runs_, (std::uint64_t{run_count_} << 4U) | run_state_);
  cursor_ = run_first_ + run_count_;
  run_count_ = 0;
}

StreamPart OpenColumn::part() const {
  HOTLAP_CHECK(run_count_ == 0);
  return {.start = written_.start,
          .runs = ByteView(runs_).subspan(written_.runs),
          .ints = ByteView(ints_).subspan(written_.ints),
          .floats = ByteView(floats_).subspan(written_.floats)};
}

void OpenColumn::part_written() {
  HOTLAP_CHECK(run_count_ == 0);
  written_ = {.runs = runs_.size(),
              .ints = ints_.size(),
              .floats = floats_.size(),
              .samples = samples_,
              .start = {.cursor = cursor_, .last_int = last_int_, .last_float_bits = last_float_bits_}};
}

void OpenColumn::clear() {
  runs_.clear();
  ints_.clear();
  floats_.clear();
  written_ = {};
  cursor_ = 0;
  run_count_ = 0;
  samples_ = 0;
  last_int_ = 0;
  last_float_bits_ = 0;
}

bool decode_stream(const StreamPart& part_untrusted, std::uint32_t tick_count, ColumnData& out) {
  ByteReader runs(part_untrusted.runs);
  ByteReader ints(part_untrusted.ints);
  ByteReader floats(part_untrusted.floats);
  std::uint64_t cursor = part_untrusted.start.cursor;
  std::uint64_t last_int = part_untrusted.start.last_int;
  std::uint64_t last_float = part_untrusted.start.last_float_bits;
  while (runs.remaining() > 0) {
    const std::uint64_t skip = runs.varint();
    const std::uint64_t packed = runs.varint();
    const std::uint64_t count = packed >> 4U;
    const auto state = static_cast<std::uint8_t>(packed & 0xFU);
    if (!runs.ok() || cursor > tick_count || state >= kStateCount || count == 0 || skip > tick_count - cursor ||
        count > tick_count - cursor - skip) {
      return false;
    }
    const auto first = static_cast<std::uint32_t>(cursor + skip);
    cursor += skip + count;
    if (skip == 0 && !out.runs.empty() && out.runs.back().state == state &&
        out.runs.back().first_tick + out.runs.back().count == first) {
      out.runs.back().count += static_cast<std::uint32_t>(count);
    } else {
      out.runs.push_back({first, static_cast<std::uint32_t>(count), state});
    }
    if (state == kStateI64 || state == kStateU64) {
      for (std::uint64_t i = 0; i < count; ++i) {
        last_int += static_cast<std::uint64_t>(unzigzag(ints.varint()));
        out.ints.push_back(last_int);
      }
      if (!ints.ok()) return false;
    } else if (state == kStateF64) {
      for (std::uint64_t i = 0; i < count; ++i) {
        last_float ^= reverse_bytes(floats.varint());
        out.floats.push_back(std::bit_cast<double>(last_float));
      }
      if (!floats.ok()) return false;
    }
  }
  return ints.remaining() == 0 && floats.remaining() == 0;
}

}  // namespace hotlap
