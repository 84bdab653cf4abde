#pragma once
// Payloads of a stretch and of a tail: encode and decode, no files. Layouts:
//
//   ticks   varint n, varint bytes, times as a column of integers (store/value_codec.h);
//           varint classes, each: varint runs, each: varint skipped, varint count << 4 | state
//           (a class is a pattern of when and in which state series were sampled; most series share one)
//   chunk   varint series, each: varint id − id before, varint class, varint bytes of ints, varint bytes of floats;
//           then the columns one after the other (store/value_codec.h)
//   minutes, tens, hours, days   store/tier.h
//   tail    varint stretch, varint first tick, varint n, i64 first, zigzag varint differences;
//           varint series, each: varint id − id before, varint first tick − cursor, three parts (store/column.h) each
//           as varint bytes, what it starts from where it is not empty, bytes
//
// "id before" starts at −1 … so that the first entry is id + 1.
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "store/column.h"

namespace hotlap {

struct TicksBlock {
  std::vector<std::int64_t> times_ns;  // in the order of arrival: those of another lane may lie before
  std::vector<std::vector<StateRun>> classes;
};
void encode_ticks(const TicksBlock& ticks, Bytes& out);
bool decode_ticks(ByteView bytes_untrusted, TicksBlock& out);

struct ChunkColumn {
  std::uint32_t series;
  std::uint32_t of_class;
  ByteView ints;    // encoded
  ByteView floats;  // encoded
};
void encode_chunk(std::span<const ChunkColumn> columns, Bytes& out);
// The columns point into `bytes_untrusted`; classes are below `class_count`, series are rising.
bool decode_chunk(ByteView bytes_untrusted, std::size_t class_count, std::vector<ChunkColumn>& out);
// The values of the column at `place`, which may follow another one of the chunk.
bool decode_column(std::span<const ChunkColumn> columns, std::size_t place, const TicksBlock& ticks, ColumnData& out);

struct TailSeries {
  std::uint32_t series;
  StreamPart part;
};
struct Tail {
  std::int64_t stretch = 0;
  std::uint32_t first_tick = 0;
  std::vector<std::int64_t> times_ns;
  std::vector<TailSeries> series;  // rising; parts point into the encoded bytes
};
void encode_tail(const Tail& tail, Bytes& out);
bool decode_tail(ByteView bytes_untrusted, Tail& out);

inline constexpr std::uint32_t kNoSeriesBefore = UINT32_MAX;

}  // namespace hotlap
