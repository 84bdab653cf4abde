// Every decoder of the store behind its block's checksum. The first byte of the input chooses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "store/block.h"
#include "store/format.h"
#include "store/span_block.h"
#include "store/stretch.h"
#include "store/tier.h"
#include "store/value_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hotlap {
namespace {

void decode_stretch(ByteView bytes) {
  // Its length, the block of ticks, then a chunk that refers to it.
  ByteReader reader(bytes);
  TicksBlock ticks;
  if (!decode_ticks(reader.bytes(reader.varint()), ticks)) return;
  std::vector<ChunkColumn> columns;
  if (!decode_chunk(reader.bytes(reader.remaining()), ticks.classes.size(), columns)) return;
  ColumnData data;
  for (std::size_t place = 0; place < columns.size(); ++place) {
    if (!decode_column(columns, place, ticks, data)) continue;
    for_each_sample(data, [&](std::uint32_t tick, Value) {
      if (tick >= ticks.times_ns.size()) std::abort();
    });
  }
}

void decode_tail_row(ByteView bytes) {
  Tail tail;
  if (!decode_tail(bytes, tail)) return;
  ColumnData data;
  const auto ticks = static_cast<std::uint32_t>(tail.first_tick + tail.times_ns.size());
  for (const TailSeries& entry : tail.series) {
    data.clear();
    if (!decode_stream(entry.part, ticks, data)) continue;
    for_each_sample(data, [&](std::uint32_t tick, Value) {
      if (tick >= ticks) std::abort();
    });
  }
}

// Whatever a decoder takes, an encoder must give back.
void ints_round_trip(ByteView bytes) {
  std::vector<std::uint64_t> values;
  if (!decode_ints(bytes, 100, values)) return;
  Bytes encoded;
  encode_ints(values, encoded);
  std::vector<std::uint64_t> back;
  if (!decode_ints(encoded, values.size(), back) || back != values) std::abort();
}

void decode(std::uint8_t which, ByteView bytes) {
  switch (which % 7) {
    case 0: decode_stretch(bytes); break;
    case 1: decode_tail_row(bytes); break;
    case 2: ints_round_trip(bytes); break;
    case 3: {
      std::vector<double> values;
      (void)decode_floats(bytes, 100, values);
      break;
    }
    case 4: (void)decode_tier(bytes, kMinuteNs, [](std::uint32_t, std::span<const TierPoint>) {}); break;
    case 5: {
      std::vector<Span> spans;
      (void)decode_spans(bytes, spans);
      break;
    }
    default: {
      BlockCodec codec;
      (void)codec.open(BlockKind::kChunk, bytes);
    }
  }
}

}  // namespace
}  // namespace hotlap

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  hotlap::decode(data[0], std::as_bytes(std::span(data + 1, size - 1)));
  return 0;
}
