#include "store/recording_reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/format.h"
#include "store/block.h"
#include "store/format.h"
#include "store/recording_tables.h"
#include "store/schema.h"
#include "store/span_block.h"
#include "store/sqlite_db.h"
#include "store/stretch.h"
#include "store/wanted_series.h"

namespace hotlap {
namespace {

constexpr std::size_t kSamplesPerBatch = 2'000'000;  // in memory at once (48 MB) while series are gathered
constexpr std::size_t kSeriesPerBatch = 4'096;       // at once

bool overlaps(std::int64_t first_ns, std::int64_t last_ns, TimeRange range) {
  return last_ns >= range.from_ns && first_ns < range.to_ns;
}
bool contains(TimeRange range, std::int64_t t_ns) { return t_ns >= range.from_ns && t_ns < range.to_ns; }

// Rows and samples outside are not looked for.
TimeRange plausible(TimeRange range) {
  return {std::max(range.from_ns, -kTimeNsMax), std::min(range.to_ns, kTimeNsMax)};
}
class SqliteReader final : public RecordingReader {
 public:
  SqliteReader(std::string path, Database database) : path_(std::move(path)), database_(std::move(database)) {}

  const RecordingInfo& info() const override { return meta_.info; }
  bool is_closed() const override { return meta_.is_closed; }
  Result<void> refresh() override;
  const std::vector<StoredSeries>& series() const override { return series_; }
  Result<TimeRange> extent() const override { return extent_; }
  Result<void> read_samples(std::span<const SeriesHandle> wanted, TimeRange range,
                            const std::function<void(SeriesHandle, std::span<const SamplePoint>)>& visit) override;
  Result<void> read_tiers(std::span<const SeriesHandle> wanted, TimeRange range, std::size_t points_max,
                          const std::function<void(SeriesHandle, std::span<const TierPoint>)>& visit) override;
  std::vector<TickStretch> stretches() const override;
  Result<void> read_minutes(std::span<const SeriesHandle> wanted, TimeRange range,
                            const std::function<void(SeriesHandle, std::span<const TierPoint>)>& visit) override;
  Result<void> read_spans(std::span<const SpanKind> kinds, TimeRange range,
                          const std::function<void(std::span<const Span>)>& visit) override;
  Result<void> read_spans_since(std::uint64_t& cursor, std::span<const SpanKind> kinds,
                                const std::function<void(std::span<const Span>)>& visit) override;
  Result<std::vector<Event>> read_events(TimeRange range) override;
  Result<std::vector<Event>> read_events_since(std::uint64_t& cursor) override {
    return named(read_events_after(database_, cursor));
  }
  Result<std::vector<ClockReading>> read_clock() override { return named(read_clock_readings(database_)); }
  Result<std::vector<ProcessInfo>> read_processes() override { return named(read_process_rows(database_)); }
  Result<std::vector<Loss>> read_losses() override { return named(list_losses()); }
  Result<std::map<std::string, std::string>> read_attributes() override;
  std::string name(std::uint32_t id) override { return names_.name(id); }

 private:
  // A row of tails, unsealed. Most belong to the stretch that is being recorded; some to one that could not be
  // written.
  struct TailText {
    std::int64_t stretch;
    Bytes raw;
  };
  Error with_path(Error error) const;
  template <class T>
  Result<T> named(Result<T> outcome) const {
    if (outcome.ok()) return outcome;
    return with_path(std::move(outcome).error());
  }
  Result<std::vector<Loss>> list_losses();
  Result<void> in_transaction(const std::function<Result<void>()>& work);
  Result<void> load_extent();
  // Stretches and tails as one consistent picture; blocks of stretches never change, so they can be read
  // afterwards.
  Result<std::vector<TailText>> snapshot(TimeRange range);
  // use(place among the wanted, t_ns, value) for each sample.
  template <class Use>
  Result<void> read_stretch(const StretchRow& stretch, const WantedSeries& wanted, TimeRange range, const Use& use);
  template <class Use>
  void read_tail(const TailText& text, const WantedSeries& wanted, TimeRange range, const Use& use);
  Result<void> read_tier(std::int64_t width_ns, const WantedSeries& wanted, TimeRange range,
                         std::vector<TierSeries>& into);
  Result<void> read_tier_blocks(const StretchRow& stretch, BlockKind kind, const WantedSeries& wanted, TimeRange range,
                                std::vector<TierSeries>& into);
  // Blocks of one kind and stretch that hold wanted series.
  Result<void> for_each_block(std::int64_t stretch, BlockKind kind, const WantedSeries& wanted,
                              const std::function<void(ByteView)>& use);
  // From the `next`-th span ever recorded on; `next` becomes the number of spans recorded so far.
  Result<void> walk_spans(std::int64_t& next, std::span<const SpanKind> kinds, TimeRange range,
                          const std::function<void(std::span<const Span>)>& visit);
  TimeRange within_extent(TimeRange range) const;

  std::string path_;
  Database database_;
  BlockCodec codec_;
  RecordingMeta meta_;
  std::vector<StoredSeries> series_;
  NameTable names_;
  StretchTable stretches_;
  TimeRange extent_{INT64_MAX, INT64_MIN};
  std::uint64_t blocks_damaged_ = 0;
  // Reused between blocks.
  TicksBlock ticks_;
  std::vector<ChunkColumn> columns_;
  ColumnData data_;
  Statement blocks_;
};

Error SqliteReader::with_path(Error error) const {
  if (!error.message.starts_with(path_)) error = std::move(error).with_context(path_);
  return with_advice(std::move(error));
}

Result<void> SqliteReader::in_transaction(const std::function<Result<void>()>& work) {
  Result<void> outcome = database_.execute("BEGIN");
  if (outcome.ok()) outcome = work();
  if (outcome.ok()) outcome = database_.execute("COMMIT");
  if (outcome.ok()) return outcome;
  database_.roll_back();
  return with_path(std::move(outcome).error());
}

Result<void> SqliteReader::refresh() {
  return in_transaction([this]() -> Result<void> {
    HOTLAP_TRY(read_meta(database_, meta_));
    HOTLAP_TRY(read_more_series(database_, series_));
    HOTLAP_TRY(names_.read_more(database_));
    HOTLAP_TRY(stretches_.read_more(database_));
    return load_extent();
  });
}

Result<void> SqliteReader::load_extent() {
  TimeRange extent{INT64_MAX, INT64_MIN};
  const auto include = [&extent](std::int64_t first_ns, std::int64_t last_ns) {
    extent.from_ns = std::min(extent.from_ns, first_ns);
    extent.to_ns = std::max(extent.to_ns, last_ns + 1);
  };
  for (const StretchRow& stretch : stretches_.rows()) include(stretch.from_ns, stretch.to_ns);
  // Rows with times that cannot be are left out, and counted where they are read.
  for (const char* sql :
       {"SELECT min(from_ns),max(to_ns) FROM tails WHERE from_ns>=-?1 AND to_ns<=?1 AND from_ns<=to_ns",
        "SELECT min(from_ns),max(end_ns) FROM spans WHERE from_ns>=-?1 AND end_ns<=?1 AND "
        "from_ns<=to_ns AND to_ns<=end_ns"}) {
    HOTLAP_TRY_ASSIGN(Statement rows, database_.prepare(sql));
    rows.bind(1, kTimeNsMax);
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (row && !rows.is_null(0)) include(rows.integer(0), rows.integer(1));
  }
  extent_ = extent;
  return {};
}

Result<std::vector<SqliteReader::TailText>> SqliteReader::snapshot(TimeRange range) {
  std::vector<TailText> tails;
  const auto take = [&]() -> Result<void> {
    HOTLAP_TRY(stretches_.read_more(database_));
    HOTLAP_TRY(load_extent());
    HOTLAP_TRY_ASSIGN(Statement rows, database_.prepare("SELECT payload FROM tails WHERE to_ns>=?1 AND from_ns<?2 "
                                                        "ORDER BY id"));
    rows.bind(1, range.from_ns).bind(2, range.to_ns);
    for (;;) {
      HOTLAP_TRY_ASSIGN(const bool row, rows.step());
      if (!row) return {};
      const std::optional<ByteView> raw = codec_.open(BlockKind::kTail, rows.blob(0));
      if (!raw) {
        ++blocks_damaged_;
        continue;
      }
      ByteReader head(*raw);
      const std::uint64_t stretch = head.varint();
      tails.push_back(
          {static_cast<std::int64_t>(std::min<std::uint64_t>(stretch, INT64_MAX)), Bytes(raw->begin(), raw->end())});
    }
  };
  HOTLAP_TRY(in_transaction(take));
  return tails;
}

Result<void> SqliteReader::for_each_block(std::int64_t stretch, BlockKind kind, const WantedSeries& wanted,
                                          const std::function<void(ByteView)>& use) {
  if (!blocks_) {
    HOTLAP_TRY_ASSIGN(blocks_, database_.prepare("SELECT first_series,last_series,payload FROM blocks "
                                                 "WHERE id BETWEEN ?1 AND ?2"));
  }
  const auto first_group = static_cast<std::uint32_t>(wanted.lowest() / kSeriesPerChunk) & 0xFFFFU;
  const auto last_group = static_cast<std::uint32_t>(wanted.highest() / kSeriesPerChunk) & 0xFFFFU;
  database_.restart_budget();
  const bool all = kind == BlockKind::kTicks;
  blocks_.bind(1, block_id(stretch, kind, all ? 0 : first_group))
      .bind(2, block_id(stretch, kind, all ? 0 : last_group));
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, blocks_.step());
    if (!row) break;
    if (all || wanted.any_in(blocks_.integer(0), blocks_.integer(1))) use(blocks_.blob(2));
  }
  blocks_.reset();
  return {};
}

template <class Use>
Result<void> SqliteReader::read_stretch(const StretchRow& stretch, const WantedSeries& wanted, TimeRange range,
                                        const Use& use) {
  bool has_ticks = false;
  HOTLAP_TRY(for_each_block(stretch.id, BlockKind::kTicks, wanted, [&](ByteView sealed) {
    const std::optional<ByteView> raw = codec_.open(BlockKind::kTicks, sealed);
    has_ticks = raw && decode_ticks(*raw, ticks_);
  }));
  if (!has_ticks) {
    ++blocks_damaged_;
    return {};
  }
  return for_each_block(stretch.id, BlockKind::kChunk, wanted, [&](ByteView sealed) {
    const std::optional<ByteView> raw = codec_.open(BlockKind::kChunk, sealed);
    if (!raw || !decode_chunk(*raw, ticks_.classes.size(), columns_)) {
      ++blocks_damaged_;
      return;
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const ChunkColumn& column = columns_[i];
      if (!wanted.has(column.series)) continue;
      if (!decode_column(columns_, i, ticks_, data_)) {
        ++blocks_damaged_;
        continue;
      }
      wanted.for_each(column.series, [&](std::size_t place) {
        for_each_sample(data_, [&](std::uint32_t tick, Value value) {
          if (contains(range, ticks_.times_ns[tick])) use(place, ticks_.times_ns[tick], value);
        });
      });
    }
  });
}

template <class Use>
void SqliteReader::read_tail(const TailText& text, const WantedSeries& wanted, TimeRange range, const Use& use) {
  Tail tail;
  if (!decode_tail(text.raw, tail)) {
    ++blocks_damaged_;
    return;
  }
  const auto tick_count = static_cast<std::uint32_t>(tail.first_tick + tail.times_ns.size());
  for (const TailSeries& entry : tail.series) {
    if (!wanted.has(entry.series)) continue;
    data_.clear();
    if (!decode_stream(entry.part, tick_count, data_) ||
        (!data_.runs.empty() && data_.runs.front().first_tick < tail.first_tick)) {
      ++blocks_damaged_;
      continue;
    }
    wanted.for_each(entry.series, [&](std::size_t place) {
      for_each_sample(data_, [&](std::uint32_t tick, Value value) {
        const std::int64_t t_ns = tail.times_ns[tick - tail.first_tick];
        if (contains(range, t_ns)) use(place, t_ns, value);
      });
    });
  }
}

Result<void> SqliteReader::read_samples(std::span<const SeriesHandle> wanted, TimeRange range,
                                        const std::function<void(SeriesHandle, std::span<const SamplePoint>)>& visit) {
  range = plausible(range);
  HOTLAP_TRY_ASSIGN(const std::vector<TailText> tails, snapshot(range));
  std::size_t ticks = tails.size() * 2;
  for (const StretchRow& stretch : stretches_.rows()) {
    if (overlaps(stretch.from_ns, stretch.to_ns, range)) ticks += kTicksPerStretchMax;
  }
  const std::size_t at_once =
      std::clamp<std::size_t>(kSamplesPerBatch / std::max<std::size_t>(ticks, 1), 1, kSeriesPerBatch);
  std::vector<std::vector<SamplePoint>> gathered(std::min(at_once, wanted.size()));
  while (!wanted.empty()) {
    const std::span<const SeriesHandle> batch = wanted.first(std::min(at_once, wanted.size()));
    wanted = wanted.subspan(batch.size());
    for (std::vector<SamplePoint>& one : gathered) one.clear();
    const WantedSeries by_handle(batch);
    bool disorder = false;
    const auto use = [&](std::size_t place, std::int64_t t_ns, Value value) {
      std::vector<SamplePoint>& into = gathered[place];
      if (!into.empty() && into.back().t_ns >= t_ns) {
        disorder = true;
      } else {
        into.push_back({t_ns, value});
      }
    };
    auto tail = tails.begin();
    for (const StretchRow& stretch : stretches_.rows()) {
      for (; tail != tails.end() && tail->stretch < stretch.id; ++tail) read_tail(*tail, by_handle, range, use);
      if (!overlaps(stretch.from_ns, stretch.to_ns, range)) continue;
      if (Result<void> read = read_stretch(stretch, by_handle, range, use); !read.ok()) {
        return with_path(std::move(read).error());
      }
    }
    for (; tail != tails.end(); ++tail) read_tail(*tail, by_handle, range, use);
    if (disorder) ++blocks_damaged_;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!gathered[i].empty()) visit(batch[i], gathered[i]);
    }
  }
  return {};
}

TimeRange SqliteReader::within_extent(TimeRange range) const {
  return {std::max(range.from_ns, extent_.from_ns), std::min(range.to_ns, extent_.to_ns)};
}

Result<void> SqliteReader::read_tier_blocks(const StretchRow& stretch, BlockKind kind, const WantedSeries& wanted,
                                            TimeRange range, std::vector<TierSeries>& into) {
  const std::int64_t width = kind == BlockKind::kMinutes ? kMinuteNs
                             : kind == BlockKind::kTens  ? kTenMinutesNs
                                                         : kHourNs;
  return for_each_block(stretch.id, kind, wanted, [&](ByteView sealed) {
    const std::optional<ByteView> raw = codec_.open(kind, sealed);
    const bool whole = raw && decode_tier(*raw, width, [&](std::uint32_t series, std::span<const TierPoint> points) {
                         wanted.for_each(series, [&](std::size_t place) {
                           for (const TierPoint& point : points) {
                             if (overlaps(point.from_ns, point.to_ns - 1, range)) into[place].add(point);
                           }
                         });
                       });
    if (!whole) ++blocks_damaged_;
  });
}

Result<void> SqliteReader::read_tiers(std::span<const SeriesHandle> wanted, TimeRange range, std::size_t points_max,
                                      const std::function<void(SeriesHandle, std::span<const TierPoint>)>& visit) {
  if (wanted.empty()) return {};
  range = plausible(range);
  HOTLAP_TRY_ASSIGN(const std::vector<TailText> tails, snapshot(range));
  const TimeRange shown = within_extent(range);
  if (shown.from_ns >= shown.to_ns) return {};
  const auto length = static_cast<std::uint64_t>(shown.to_ns) - static_cast<std::uint64_t>(shown.from_ns);
  const std::uint64_t per_point = std::max<std::uint64_t>(length / std::max<std::size_t>(points_max, 1), 1);
  // A tier suffices while it gives at least a third of the points that may be shown.
  std::int64_t tier = 1;
  for (const std::int64_t width_ns : {kMinuteNs, kTenMinutesNs, kHourNs}) {
    if (static_cast<std::uint64_t>(width_ns) <= 3 * per_point) tier = width_ns;
  }
  const std::uint64_t width = (per_point + static_cast<std::uint64_t>(tier) - 1) / static_cast<std::uint64_t>(tier) *
                              static_cast<std::uint64_t>(tier);
  std::vector<TierSeries> gathered(wanted.size(),
                                   TierSeries(static_cast<std::int64_t>(std::min<std::uint64_t>(width, INT64_MAX))));
  const WantedSeries by_handle(wanted);
  const auto use = [&](std::size_t place, std::int64_t t_ns, Value value) { gathered[place].add(t_ns, value); };
  Result<void> read;
  if (tier > 1) {
    read = read_tier(tier, by_handle, range, gathered);
  } else {
    for (const StretchRow& stretch : stretches_.rows()) {
      if (read.ok() && overlaps(stretch.from_ns, stretch.to_ns, range)) {
        read = read_stretch(stretch, by_handle, range, use);
      }
    }
  }
  if (!read.ok()) return with_path(std::move(read).error());
  for (const TailText& tail : tails) read_tail(tail, by_handle, range, use);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!gathered[i].points().empty()) visit(wanted[i], gathered[i].points());
  }
  return {};
}

std::vector<TickStretch> SqliteReader::stretches() const {
  std::vector<TickStretch> out;
  out.reserve(stretches_.rows().size());
  for (const StretchRow& stretch : stretches_.rows()) out.push_back({stretch.from_ns, stretch.to_ns, stretch.samples});
  return out;
}

Result<void> SqliteReader::read_minutes(std::span<const SeriesHandle> wanted, TimeRange range,
                                        const std::function<void(SeriesHandle, std::span<const TierPoint>)>& visit) {
  if (wanted.empty()) return {};
  const WantedSeries by_handle(wanted);
  std::vector<std::vector<TierPoint>> gathered(wanted.size());
  for (const StretchRow& stretch : stretches_.rows()) {
    if (!contains(range, stretch.from_ns)) continue;
    std::vector<TierSeries> minutes(wanted.size(), TierSeries(kMinuteNs));
    if (Result<void> read = read_tier_blocks(stretch, BlockKind::kMinutes, by_handle, {}, minutes); !read.ok()) {
      return with_path(std::move(read).error());
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      for (TierPoint point : minutes[i].points()) {
        point.from_ns = std::max(point.from_ns, stretch.from_ns);
        point.to_ns = std::min(point.to_ns, stretch.to_ns);
        gathered[i].push_back(point);
      }
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!gathered[i].empty()) visit(wanted[i], gathered[i]);
  }
  return {};
}

// The points of a tier from the blocks that hold them together; what came after the last of these from minutes.
Result<void> SqliteReader::read_tier(std::int64_t width_ns, const WantedSeries& wanted, TimeRange range,
                                     std::vector<TierSeries>& into) {
  const bool is_long = width_ns > kMinuteNs;
  const auto to_of = [&](const StretchRow& stretch) {
    return width_ns == kHourNs ? stretch.hours_to_ns : is_long ? stretch.tens_to_ns : std::nullopt;
  };
  std::int64_t minutes_from = INT64_MIN;
  std::int64_t last_with_days = INT64_MIN;
  for (const StretchRow& stretch : stretches_.rows()) {
    minutes_from = std::max(minutes_from, to_of(stretch).value_or(INT64_MIN));
    if (width_ns == kHourNs && stretch.has_days) last_with_days = stretch.id;
  }
  const TimeRange rest{std::max(range.from_ns, minutes_from), range.to_ns};
  std::int64_t written_to = INT64_MIN;  // by the stretches before, one bucket less: points may be late
  std::int64_t days_to = INT64_MIN;
  for (const StretchRow& stretch : stretches_.rows()) {
    if (const std::optional<std::int64_t> to_ns = to_of(stretch)) {
      const bool is_in_days = stretch.id <= last_with_days;
      if (!is_in_days && overlaps(written_to, *to_ns, range)) {
        const BlockKind kind = width_ns == kHourNs ? BlockKind::kHours : BlockKind::kTens;
        HOTLAP_TRY(read_tier_blocks(stretch, kind, wanted, range, into));
      }
      if (is_in_days && stretch.has_days) {
        if (overlaps(days_to, *to_ns, range))
          HOTLAP_TRY(read_tier_blocks(stretch, BlockKind::kDays, wanted, range, into));
        days_to = bucket_start(stretch.from_ns, width_ns);
      }
      written_to = bucket_start(stretch.from_ns, width_ns);
    }
    if (rest.from_ns < rest.to_ns && overlaps(stretch.from_ns, stretch.to_ns, rest)) {
      HOTLAP_TRY(read_tier_blocks(stretch, BlockKind::kMinutes, wanted, rest, into));
    }
  }
  return {};
}

Result<void> SqliteReader::read_spans(std::span<const SpanKind> kinds, TimeRange range,
                                      const std::function<void(std::span<const Span>)>& visit) {
  std::int64_t next = 0;
  return walk_spans(next, kinds, range, visit);
}

Result<void> SqliteReader::read_spans_since(std::uint64_t& cursor, std::span<const SpanKind> kinds,
                                            const std::function<void(std::span<const Span>)>& visit) {
  auto next = static_cast<std::int64_t>(std::min<std::uint64_t>(cursor, INT64_MAX));
  Result<void> walked = walk_spans(next, kinds, {}, visit);
  cursor = static_cast<std::uint64_t>(next);
  return walked;
}

Result<void> SqliteReader::walk_spans(std::int64_t& next, std::span<const SpanKind> kinds, TimeRange range,
                                      const std::function<void(std::span<const Span>)>& visit) {
  range = plausible(range);
  std::uint64_t kinds_mask = kinds.empty() ? UINT64_MAX : 0;
  for (const SpanKind kind : kinds) kinds_mask |= kind_bit(kind);
  const auto is_wanted = [&](const Span& span) {
    return contains(range, span.start_ns) &&
           (kinds.empty() || std::find(kinds.begin(), kinds.end(), span.kind) != kinds.end());
  };
  std::vector<SpanRow> rows;
  std::vector<Span> spans;
  const auto take = [&]() -> Result<void> { return read_span_rows(database_, next, kinds_mask, range, rows); };
  do {
    const std::int64_t from = next;
    HOTLAP_TRY(in_transaction(take));
    for (const SpanRow& row : rows) {
      const std::optional<ByteView> raw = codec_.open(BlockKind::kSpans, row.payload);
      if (!raw || !decode_spans(*raw, spans)) {
        ++blocks_damaged_;
        continue;
      }
      // A row that was read in part before: its first spans are known already.
      if (row.first < from)
        spans.erase(spans.begin(), spans.begin() + std::min<std::ptrdiff_t>(from - row.first, std::ssize(spans)));
      if (std::any_of(spans.begin(), spans.end(), [](const Span& span) {
            return !is_plausible(span.start_ns) || span.duration_ns < -1 || span.duration_ns > kTimeNsMax;
          })) {
        ++blocks_damaged_;
        continue;
      }
      std::erase_if(spans, [&](const Span& span) { return !is_wanted(span); });
      if (!spans.empty()) visit(spans);
    }
  } while (rows.size() == kSpanRowsAtOnce);
  return {};
}

Result<std::vector<Event>> SqliteReader::read_events(TimeRange range) {
  std::uint64_t cursor = 0;
  HOTLAP_TRY_ASSIGN(std::vector<Event> events, read_events_since(cursor));
  std::erase_if(events, [&](const Event& event) { return !contains(range, event.t_ns); });
  return events;
}

Result<std::vector<Loss>> SqliteReader::list_losses() {
  HOTLAP_TRY_ASSIGN(auto counts, read_loss_counts(database_));
  if (const std::uint64_t damaged = blocks_damaged_ + stretches_.damaged(); damaged > 0) {
    counts["store.blocks_damaged"] += damaged;
  }
  std::vector<Loss> losses;
  for (const auto& [counter, count] : counts) {
    if (count == 0) continue;
    Loss& loss = losses.emplace_back(Loss{.counter = counter, .count = count});
    if (const auto offset = meta_.loss_offsets.find(counter); offset != meta_.loss_offsets.end())
      loss.first_offset = offset->second;
    for (const LossDesc& known : kLosses) {
      if (known.counter == counter) loss.help = known.help;
    }
  }
  return losses;
}

Result<std::map<std::string, std::string>> SqliteReader::read_attributes() {
  HOTLAP_TRY(in_transaction([this] { return read_meta(database_, meta_); }));
  return meta_.info.attributes;
}

}  // namespace

Result<std::unique_ptr<RecordingReader>> RecordingReader::open(const std::filesystem::path& path) {
  HOTLAP_TRY_ASSIGN(Database database, open_recording(path.string()));
  auto reader = std::make_unique<SqliteReader>(path.string(), std::move(database));
  HOTLAP_TRY(reader->refresh());
  return std::unique_ptr<RecordingReader>(std::move(reader));
}

}  // namespace hotlap
