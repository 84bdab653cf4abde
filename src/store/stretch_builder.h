#pragma once
// Collects ticks into the open stretch, gives out tails at each commit, seals the stretch when it is full and
// encodes it series by series, so that no commit pays for a whole fold. No files: the writer puts what comes out
// into the database.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "model/sink.h"
#include "model/value.h"
#include "store/block.h"
#include "store/column.h"
#include "store/recording_writer.h"
#include "store/stretch.h"
#include "store/tier.h"

namespace hotlap {

// Tail rows that hold parts of a stretch; none when first > last.
struct TailRows {
  std::int64_t first = 1;
  std::int64_t last = 0;
};

struct EncodedBlock {
  std::int64_t id;
  std::uint32_t first_series;
  std::uint32_t last_series;
  Bytes payload;  // sealed
};

// A stretch that is ready to be written.
struct EncodedStretch {
  std::int64_t id = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::uint64_t samples = 0;
  std::uint64_t samples_in_tails = 0;
  std::optional<std::int64_t> tens_to_ns;
  std::optional<std::int64_t> hours_to_ns;
  std::vector<EncodedBlock> blocks;
  TailRows tails;
  std::size_t bytes() const;
};

struct TickCounts {
  std::uint64_t duplicates = 0;  // twice in a tick, or not later than the series' last sample
  std::uint64_t refused = 0;     // series that are unknown
};

// Confined to one thread.
class StretchBuilder {
 public:
  // Samples beyond this in memory make a stretch end early: 20,000 series would else hold 50 MB.
  explicit StretchBuilder(std::size_t open_bytes_max) : open_bytes_max_(open_bytes_max) {}

  void set_series_count(std::uint32_t count);
  TickCounts add_tick(std::int64_t t_ns, std::span<const Sample> samples);

  struct TailText {
    std::int64_t from_ns;
    std::int64_t to_ns;
    Bytes payload;  // sealed
  };
  // What came since the last tail_written(), as a tail row; nothing when nothing came.
  std::optional<TailText> tail(BlockCodec& codec);
  void tail_written(std::int64_t row_id);

  // Seals the open stretch when it is full or old; `force` when it holds anything.
  void seal_if_due(bool force);
  // Encodes about `samples` samples of the sealed stretch, series by series; what is ready afterwards comes from
  // take_encoded(). A stretch whose samples are not all in tails is encoded whole, because only its blocks make
  // them safe.
  void encode_some(BlockCodec& codec, std::size_t samples);
  std::optional<EncodedStretch> take_encoded();
  bool has_sealed() const { return sealed_.used; }
  // At the end of the recording: the buckets that are open are written with the last stretch.
  void end_tiers() { end_tiers_ = true; }

 private:
  struct Half {
    bool used = false;
    std::int64_t id = 0;
    std::vector<std::int64_t> times_ns;
    std::vector<OpenColumn> columns;
    std::uint32_t ticks_written = 0;
    std::int64_t from_ns = INT64_MAX;
    std::int64_t to_ns = INT64_MIN;
    TailRows tails;
  };

  void seal();
  void encode_next(BlockCodec& codec);
  void encode_series(std::uint32_t series);
  void add_block(BlockCodec& codec, BlockKind kind, std::uint32_t first, std::uint32_t last);
  void add_tier(BlockCodec& codec, BlockKind kind, std::int64_t width_ns, std::vector<TierEntry>& entries);
  void finish(BlockCodec& codec);
  void encode_column_ints(std::uint32_t of_class);
  std::uint32_t class_of(const std::vector<StateRun>& runs);

  std::size_t open_bytes_max_;
  std::uint32_t series_count_ = 0;
  std::int64_t next_id_ = 1;
  Half open_;
  Half sealed_;
  std::uint32_t ticks_last_commit_ = 0;
  std::size_t samples_added_ = 0;  // since the last encode_some()

  // The encoding that is under way.
  std::uint32_t next_series_ = 0;
  EncodedStretch under_way_;
  TicksBlock ticks_;
  std::deque<EncodedStretch> encoded_;
  ColumnData data_;
  Bytes raw_;
  Bytes columns_;
  struct ColumnPlace {
    std::uint32_t series;
    std::uint32_t of_class;
    std::size_t ints;
    std::size_t floats;
  };
  std::vector<ColumnPlace> places_;
  std::vector<ChunkColumn> chunk_;
  // The last columns of the chunk that another one could follow: they move, and follow none themselves.
  struct Leader {
    std::size_t place;
    std::uint32_t of_class;
    std::vector<std::uint64_t> ints;
  };
  std::deque<Leader> leaders_;
  std::vector<std::uint64_t> left_;
  std::vector<TierEntry> minutes_;
  // A tier whose buckets are longer than a stretch may be: each series' bucket stays open until its time has
  // passed.
  struct LongTier {
    BlockKind kind;
    std::int64_t width_ns;
    std::int64_t to_ns = INT64_MIN;  // buckets up to here are written
    std::vector<TierPoint> open;     // by series; count + missing = 0: none
    std::vector<TierEntry> entries;
  };
  void pass(LongTier& tier, std::uint32_t series, std::span<const TierPoint> minutes);
  LongTier tens_{.kind = BlockKind::kTens, .width_ns = kTenMinutesNs};
  LongTier hours_{.kind = BlockKind::kHours, .width_ns = kHourNs};
  bool end_tiers_ = false;
};

}  // namespace hotlap
