#include "store/stretch_builder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/value_codec.h"

namespace hotlap {
namespace {

constexpr std::size_t kLeadersMax = 8;  // 2,048 values each: 128 KiB
constexpr double kFollowBitsMin = 1.5;  // of a sample: below, looking for a column to follow is not worth it

}  // namespace

std::size_t EncodedStretch::bytes() const {
  std::size_t sum = 0;
  for (const EncodedBlock& block : blocks) sum += block.payload.size();
  return sum;
}

void StretchBuilder::set_series_count(std::uint32_t count) {
  series_count_ = count;
  open_.columns.resize(count);
}

TickCounts StretchBuilder::add_tick(std::int64_t t_ns, std::span<const Sample> samples) {
  if (open_.times_ns.size() >= kTicksPerStretchMax) seal();
  if (!open_.used) {
    open_.used = true;
    open_.id = next_id_++;
  }
  const auto tick = static_cast<std::uint32_t>(open_.times_ns.size());
  open_.times_ns.push_back(t_ns);
  open_.from_ns = std::min(open_.from_ns, t_ns);
  open_.to_ns = std::max(open_.to_ns, t_ns);
  samples_added_ += samples.size();
  TickCounts counts;
  for (const Sample& sample : samples) {
    if (sample.series.index >= series_count_) {
      ++counts.refused;
    } else if (!open_.columns[sample.series.index].add(tick, t_ns, sample.value)) {
      ++counts.duplicates;
    }
  }
  return counts;
}

std::optional<StretchBuilder::TailText> StretchBuilder::tail(BlockCodec& codec) {
  if (!open_.used || open_.ticks_written == open_.times_ns.size()) return std::nullopt;
  Tail tail;
  tail.stretch = open_.id;
  tail.first_tick = open_.ticks_written;
  tail.times_ns.assign(open_.times_ns.begin() + open_.ticks_written, open_.times_ns.end());
  for (std::uint32_t s = 0; s < series_count_; ++s) {
    OpenColumn& column = open_.columns[s];
    column.end_run();
    if (column.has_part()) tail.series.push_back({s, column.part()});
  }
  raw_.clear();
  encode_tail(tail, raw_);
  const auto [first, last] = std::minmax_element(tail.times_ns.begin(), tail.times_ns.end());
  TailText text{.from_ns = *first, .to_ns = *last, .payload = {}};
  codec.seal(BlockKind::kTail, raw_, false, text.payload);
  return text;
}

void StretchBuilder::tail_written(std::int64_t row_id) {
  for (OpenColumn& column : open_.columns) {
    if (column.has_part()) column.part_written();
  }
  ticks_last_commit_ = static_cast<std::uint32_t>(open_.times_ns.size()) - open_.ticks_written;
  open_.ticks_written = static_cast<std::uint32_t>(open_.times_ns.size());
  if (open_.tails.first > open_.tails.last) open_.tails.first = row_id;
  open_.tails.last = row_id;
}

void StretchBuilder::seal_if_due(bool force) {
  if (!open_.used) return;
  std::size_t bytes = 0;
  for (const OpenColumn& column : open_.columns) bytes += column.bytes();
  const bool full = open_.times_ns.size() + ticks_last_commit_ > kTicksPerStretchMax;
  const bool old = open_.to_ns - open_.from_ns >= kStretchNsMax;
  if (force || full || old || bytes > open_bytes_max_) seal();
}

void StretchBuilder::seal() {
  // The stretch before is still being encoded: the writer has fallen far behind, so it is finished on the spot.
  if (sealed_.used) {
    BlockCodec codec;
    while (sealed_.used) encode_next(codec);
  }
  std::swap(open_, sealed_);
  open_.used = false;
  open_.times_ns.clear();
  open_.ticks_written = 0;
  open_.from_ns = INT64_MAX;
  open_.to_ns = INT64_MIN;
  open_.tails = {};
  open_.columns.resize(series_count_);
  for (std::uint32_t s = 0; s < series_count_; ++s) {
    open_.columns[s].clear();
    open_.columns[s].set_last_t_ns(sealed_.columns[s].last_t_ns());
  }
  next_series_ = 0;
  under_way_ = {.id = sealed_.id, .from_ns = sealed_.from_ns, .to_ns = sealed_.to_ns, .tails = sealed_.tails};
  ticks_.times_ns = sealed_.times_ns;
  ticks_.classes.clear();
  const auto begin = [this](LongTier& tier) -> std::optional<std::int64_t> {
    tier.open.resize(sealed_.columns.size());
    if (tier.to_ns == INT64_MIN) tier.to_ns = bucket_start(sealed_.from_ns, tier.width_ns);
    const std::int64_t to_ns = bucket_start(sealed_.to_ns, tier.width_ns) + (end_tiers_ ? tier.width_ns : 0);
    if (to_ns <= tier.to_ns) return std::nullopt;
    return tier.to_ns = to_ns;
  };
  under_way_.tens_to_ns = begin(tens_);
  under_way_.hours_to_ns = begin(hours_);
}

void StretchBuilder::encode_some(BlockCodec& codec, std::size_t samples) {
  if (sealed_.used && sealed_.ticks_written != sealed_.times_ns.size()) samples = SIZE_MAX;
  // Twice what came in since the last call, so that many series are not folded more slowly than they arrive.
  samples = std::max(samples, 2 * samples_added_);
  samples_added_ = 0;
  const auto encoded = [this] { return sealed_.used ? under_way_.samples : UINT64_MAX; };
  const std::uint64_t start = encoded();
  while (sealed_.used && encoded() - start < samples) encode_next(codec);
}

std::optional<EncodedStretch> StretchBuilder::take_encoded() {
  if (encoded_.empty()) return std::nullopt;
  EncodedStretch front = std::move(encoded_.front());
  encoded_.pop_front();
  return front;
}

std::uint32_t StretchBuilder::class_of(const std::vector<StateRun>& runs) {
  for (std::size_t i = 0; i < ticks_.classes.size(); ++i) {
    if (ticks_.classes[i] == runs) return static_cast<std::uint32_t>(i);
  }
  ticks_.classes.push_back(runs);
  return static_cast<std::uint32_t>(ticks_.classes.size() - 1);
}

// Writes data_.ints: as they are, or as what is left when they follow a column before.
void StretchBuilder::encode_column_ints(std::uint32_t of_class) {
  const double own_bits = estimate_bits(data_.ints);
  if (own_bits < kFollowBitsMin * static_cast<double>(data_.ints.size())) {
    encode_ints(data_.ints, columns_);
    return;
  }
  const Leader* best = nullptr;
  bool is_added = false;
  double best_bits = own_bits * 0.95;
  for (const Leader& leader : leaders_) {
    if (leader.of_class != of_class) continue;
    for (const bool added : {true, false}) {
      left_.clear();
      for (std::size_t i = 0; i < leader.ints.size(); ++i) {
        left_.push_back(added ? data_.ints[i] - leader.ints[i] : data_.ints[i] + leader.ints[i]);
      }
      const double bits = estimate_bits(left_);
      if (bits >= best_bits) continue;
      best_bits = bits;
      best = &leader;
      is_added = added;
    }
  }
  const std::size_t start = columns_.size();
  encode_ints(data_.ints, columns_);
  if (best != nullptr) {
    left_.clear();
    for (std::size_t i = 0; i < best->ints.size(); ++i) {
      left_.push_back(is_added ? data_.ints[i] - best->ints[i] : data_.ints[i] + best->ints[i]);
    }
    raw_.clear();
    begin_reference(static_cast<std::uint32_t>(places_.size() - best->place), is_added, raw_);
    encode_ints(left_, raw_);
    if (raw_.size() < columns_.size() - start) {
      columns_.resize(start);
      put_bytes(columns_, raw_);
      return;
    }
  }
  if (leaders_.size() >= kLeadersMax) leaders_.pop_front();
  leaders_.push_back({.place = places_.size(), .of_class = of_class, .ints = data_.ints});
}

void StretchBuilder::encode_series(std::uint32_t series) {
  OpenColumn& column = sealed_.columns[series];
  TierSeries minutes(kMinuteNs);
  if (!column.empty()) {
    column.end_run();
    data_.clear();
    HOTLAP_CHECK(decode_stream(column.whole(), static_cast<std::uint32_t>(sealed_.times_ns.size()), data_));
    const std::size_t start = columns_.size();
    const std::uint32_t of_class = class_of(data_.runs);
    encode_column_ints(of_class);
    const std::size_t after_ints = columns_.size();
    encode_floats(data_.floats, columns_);
    places_.push_back({series, of_class, after_ints - start, columns_.size() - after_ints});
    under_way_.samples += column.samples();
    under_way_.samples_in_tails += column.samples_written();
    for_each_sample(data_, [&](std::uint32_t tick, Value value) { minutes.add(sealed_.times_ns[tick], value); });
    minutes_.push_back({series, minutes.points()});
  }
  pass(tens_, series, minutes.points());
  pass(hours_, series, minutes.points());
}

void StretchBuilder::pass(LongTier& tier, std::uint32_t series, std::span<const TierPoint> minutes) {
  TierPoint& open = tier.open[series];
  TierSeries buckets(tier.width_ns);
  if (open.count + open.missing > 0) buckets.add(open);
  for (const TierPoint& point : minutes) buckets.add(point);
  open = {};
  std::span<const TierPoint> passed(buckets.points());
  if (!passed.empty() && passed.back().from_ns >= tier.to_ns) {
    open = passed.back();
    passed = passed.first(passed.size() - 1);
  }
  if (!passed.empty()) tier.entries.push_back({series, {passed.begin(), passed.end()}});
}

void StretchBuilder::encode_next(BlockCodec& codec) {
  const auto count = static_cast<std::uint32_t>(sealed_.columns.size());
  if (next_series_ < count) encode_series(next_series_++);
  if (next_series_ != count && next_series_ % kSeriesPerChunk != 0) return;
  if (!places_.empty()) {
    chunk_.clear();
    ByteReader reader(columns_);
    for (const ColumnPlace& place : places_) {
      const ByteView ints = reader.bytes(place.ints);
      chunk_.push_back({place.series, place.of_class, ints, reader.bytes(place.floats)});
    }
    raw_.clear();
    encode_chunk(chunk_, raw_);
    add_block(codec, BlockKind::kChunk, places_.front().series, places_.back().series);
    columns_.clear();
    places_.clear();
    leaders_.clear();
  }
  add_tier(codec, BlockKind::kMinutes, kMinuteNs, minutes_);
  for (LongTier* tier : {&tens_, &hours_}) add_tier(codec, tier->kind, tier->width_ns, tier->entries);
  if (next_series_ == count) finish(codec);
}

// Seals what is in raw_ as the block of the group that `first` belongs to.
void StretchBuilder::add_block(BlockCodec& codec, BlockKind kind, std::uint32_t first, std::uint32_t last) {
  EncodedBlock& block = under_way_.blocks.emplace_back();
  block = {block_id(sealed_.id, kind, first / kSeriesPerChunk), first, last, {}};
  // Tiers come out of the range coder: there is nothing left to pack.
  codec.seal(kind, raw_, kind == BlockKind::kChunk || kind == BlockKind::kTicks, block.payload);
}

void StretchBuilder::add_tier(BlockCodec& codec, BlockKind kind, std::int64_t width_ns,
                              std::vector<TierEntry>& entries) {
  if (entries.empty()) return;
  raw_.clear();
  encode_tier(entries, width_ns, raw_);
  add_block(codec, kind, entries.front().series, entries.back().series);
  entries.clear();
}

void StretchBuilder::finish(BlockCodec& codec) {
  raw_.clear();
  encode_ticks(ticks_, raw_);
  add_block(codec, BlockKind::kTicks, 0, 0);
  encoded_.push_back(std::move(under_way_));
  under_way_ = {};
  sealed_.used = false;
}

}  // namespace hotlap
