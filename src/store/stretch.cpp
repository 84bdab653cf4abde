#include "store/stretch.h"

#include "store/value_codec.h"

namespace hotlap {
namespace {

// Rising numbers as gaps; wraps on purpose from "none before".
void put_series(Bytes& out, std::uint32_t before, std::uint32_t series) {
  put_varint(out, std::uint32_t{series - before});
}

bool read_series(ByteReader& reader, std::uint32_t before, std::uint32_t& series) {
  const std::uint64_t gap = reader.varint();
  if (!reader.ok() || gap == 0 || gap > kSeriesMax) return false;
  const std::uint64_t next = (before == kNoSeriesBefore ? 0 : std::uint64_t{before} + 1) + (gap - 1);
  if (next >= kSeriesMax) return false;
  series = static_cast<std::uint32_t>(next);
  return true;
}

// Wrapping, so that hostile files cannot make signed overflow.
std::int64_t add_wrapped(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t subtract_wrapped(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

}  // namespace

void encode_ticks(const TicksBlock& ticks, Bytes& out) {
  put_varint(out, ticks.times_ns.size());
  std::vector<std::uint64_t> times;
  for (const std::int64_t t : ticks.times_ns) times.push_back(static_cast<std::uint64_t>(t));
  Bytes encoded;
  encode_ints(times, encoded);
  put_varint(out, encoded.size());
  put_bytes(out, encoded);
  put_varint(out, ticks.classes.size());
  for (const std::vector<StateRun>& runs : ticks.classes) {
    put_varint(out, runs.size());
    std::uint32_t cursor = 0;
    for (const StateRun& run : runs) {
      put_varint(out, run.first_tick - cursor);
      put_varint(out, (std::uint64_t{run.count} << 4U) | run.state);
      cursor = run.first_tick + run.count;
    }
  }
}

bool decode_ticks(ByteView bytes_untrusted, TicksBlock& out) {
  out.times_ns.clear();
  out.classes.clear();
  ByteReader reader(bytes_untrusted);
  const std::uint64_t count = reader.varint();
  if (!reader.ok() || count == 0 || count > kTicksPerStretchMax) return false;
  std::vector<std::uint64_t> times;
  if (!decode_ints(reader.bytes(reader.varint()), count, times)) return false;
  for (const std::uint64_t t : times) out.times_ns.push_back(static_cast<std::int64_t>(t));
  const std::uint64_t classes = reader.varint();
  if (!reader.ok() || classes > reader.remaining()) return false;
  for (std::uint64_t c = 0; c < classes; ++c) {
    const std::uint64_t runs = reader.varint();
    if (!reader.ok() || runs > count) return false;
    std::vector<StateRun>& into = out.classes.emplace_back();
    std::uint64_t cursor = 0;
    for (std::uint64_t r = 0; r < runs; ++r) {
      const std::uint64_t skip = reader.varint();
      const std::uint64_t packed = reader.varint();
      const std::uint64_t length = packed >> 4U;
      const auto state = static_cast<std::uint8_t>(packed & 0xFU);
      if (!reader.ok() || state >= kStateCount || length == 0 || skip > count - cursor ||
          length > count - cursor - skip) {
        return false;
      }
      into.push_back({static_cast<std::uint32_t>(cursor + skip), static_cast<std::uint32_t>(length), state});
      cursor += skip + length;
    }
  }
  return reader.ok() && reader.remaining() == 0;
}

void encode_chunk(std::span<const ChunkColumn> columns, Bytes& out) {
  put_varint(out, columns.size());
  std::uint32_t before = kNoSeriesBefore;
  for (const ChunkColumn& column : columns) {
    put_series(out, before, column.series);
    before = column.series;
    put_varint(out, column.of_class);
    put_varint(out, column.ints.size());
    put_varint(out, column.floats.size());
  }
  for (const ChunkColumn& column : columns) {
    put_bytes(out, column.ints);
    put_bytes(out, column.floats);
  }
}

bool decode_chunk(ByteView bytes_untrusted, std::size_t class_count, std::vector<ChunkColumn>& out) {
  out.clear();
  ByteReader reader(bytes_untrusted);
  const std::uint64_t count = reader.varint();
  if (!reader.ok() || count > reader.remaining() || count > kSeriesPerChunk) return false;
  struct Sizes {
    std::uint64_t ints;
    std::uint64_t floats;
  };
  std::vector<Sizes> sizes;
  std::uint32_t before = kNoSeriesBefore;
  for (std::uint64_t i = 0; i < count; ++i) {
    ChunkColumn column{};
    if (!read_series(reader, before, column.series)) return false;
    before = column.series;
    const std::uint64_t of_class = reader.varint();
    const std::uint64_t ints = reader.varint();
    const std::uint64_t floats = reader.varint();
    if (!reader.ok() || of_class >= class_count) return false;
    column.of_class = static_cast<std::uint32_t>(of_class);
    sizes.push_back({ints, floats});
    out.push_back(column);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].ints = reader.bytes(sizes[i].ints);
    out[i].floats = reader.bytes(sizes[i].floats);
  }
  return reader.ok() && reader.remaining() == 0;
}

bool decode_column(std::span<const ChunkColumn> columns, std::size_t place, const TicksBlock& ticks, ColumnData& out) {
  const ChunkColumn& column = columns[place];
  out.clear();
  out.runs = ticks.classes[column.of_class];
  const ValueCounts counts = count_values(out.runs);
  if (!decode_floats(column.floats, counts.floats, out.floats)) return false;
  if (!is_reference(column.ints)) return decode_ints(column.ints, counts.ints, out.ints);
  const std::optional<ColumnReference> reference = read_reference(column.ints);
  if (!reference || reference->back > place || counts.ints == 0) return false;
  const ChunkColumn& other = columns[place - reference->back];
  if (other.of_class != column.of_class || is_reference(other.ints)) return false;
  std::vector<std::uint64_t> of_other;
  if (!decode_ints(other.ints, counts.ints, of_other) || !decode_ints(reference->left, counts.ints, out.ints))
    return false;
  for (std::size_t i = 0; i < of_other.size(); ++i) {
    out.ints[i] = reference->is_added ? out.ints[i] + of_other[i] : out.ints[i] - of_other[i];
  }
  return true;
}

void encode_tail(const Tail& tail, Bytes& out) {
  put_varint(out, static_cast<std::uint64_t>(tail.stretch));
  put_varint(out, tail.first_tick);
  put_varint(out, tail.times_ns.size());
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tail.times_ns.size(); ++i) {
    if (i == 0) {
      put_fixed(out, tail.times_ns[i]);
    } else {
      put_varint(out, zigzag(subtract_wrapped(tail.times_ns[i], last)));
    }
    last = tail.times_ns[i];
  }
  put_varint(out, tail.series.size());
  std::uint32_t before = kNoSeriesBefore;
  for (const TailSeries& entry : tail.series) {
    put_series(out, before, entry.series);
    before = entry.series;
    put_varint(out, tail.first_tick - entry.part.start.cursor);
    put_varint(out, entry.part.runs.size());
    put_bytes(out, entry.part.runs);
    put_varint(out, entry.part.ints.size());
    if (!entry.part.ints.empty()) put_varint(out, zigzag(static_cast<std::int64_t>(entry.part.start.last_int)));
    put_bytes(out, entry.part.ints);
    put_varint(out, entry.part.floats.size());
    if (!entry.part.floats.empty()) put_fixed(out, entry.part.start.last_float_bits);
    put_bytes(out, entry.part.floats);
  }
}

bool decode_tail(ByteView bytes_untrusted, Tail& out) {
  out = Tail{};
  ByteReader reader(bytes_untrusted);
  const std::uint64_t stretch = reader.varint();
  const std::uint64_t first_tick = reader.varint();
  const std::uint64_t ticks = reader.varint();
  if (!reader.ok() || stretch > static_cast<std::uint64_t>(kStretchIdMax) || first_tick > kTicksPerStretchMax ||
      ticks == 0 || ticks > kTicksPerStretchMax - first_tick) {
    return false;
  }
  out.stretch = static_cast<std::int64_t>(stretch);
  out.first_tick = static_cast<std::uint32_t>(first_tick);
  std::int64_t t = reader.fixed<std::int64_t>();
  out.times_ns.push_back(t);
  for (std::uint64_t i = 1; i < ticks; ++i) {
    t = add_wrapped(t, unzigzag(reader.varint()));
    out.times_ns.push_back(t);
  }
  const std::uint64_t series = reader.varint();
  if (!reader.ok() || series > reader.remaining()) return false;
  std::uint32_t before = kNoSeriesBefore;
  for (std::uint64_t i = 0; i < series; ++i) {
    TailSeries entry{};
    if (!read_series(reader, before, entry.series)) return false;
    before = entry.series;
    const std::uint64_t back = reader.varint();
    if (!reader.ok() || back > first_tick) return false;
    entry.part.start.cursor = static_cast<std::uint32_t>(first_tick - back);
    entry.part.runs = reader.bytes(reader.varint());
    const std::uint64_t ints = reader.varint();
    if (ints > 0) entry.part.start.last_int = static_cast<std::uint64_t>(unzigzag(reader.varint()));
    entry.part.ints = reader.bytes(ints);
    const std::uint64_t floats = reader.varint();
    if (floats > 0) entry.part.start.last_float_bits = reader.fixed<std::uint64_t>();
    entry.part.floats = reader.bytes(floats);
    if (!reader.ok()) return false;
    out.series.push_back(entry);
  }
  return reader.remaining() == 0;
}

}  // namespace hotlap
