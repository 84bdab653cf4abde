#include "store/stretch_builder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/value_codec.h"

namespace hotlap {

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
    while (sealed_.used) encode_group(codec);
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
  const std::int64_t hours_to = bucket_start(sealed_.to_ns, kHourNs) + (end_hours_ ? kHourNs : 0);
  if (hours_to_ns_ == INT64_MIN) hours_to_ns_ = bucket_start(sealed_.from_ns, kHourNs);
  if (hours_to > hours_to_ns_) {
    under_way_.hours_to_ns = hours_to;
    hours_to_ns_ = hours_to;
  }
  open_hours_.resize(sealed_.columns.size());
}

void StretchBuilder::encode_some(BlockCodec& codec, std::size_t groups) {
  if (sealed_.used && sealed_.ticks_written != sealed_.times_ns.size()) groups = SIZE_MAX;
  while (groups-- > 0 && sealed_.used) encode_group(codec);
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

void StretchBuilder::encode_series(std::uint32_t series, TierSeries& minutes, TierSeries& hours) {
  OpenColumn& column = sealed_.columns[series];
  TierPoint& open_hour = open_hours_[series];
  hours.clear();
  if (open_hour.count + open_hour.missing > 0) hours.add(open_hour);
  if (!column.empty()) {
    column.end_run();
    data_.clear();
    HOTLAP_CHECK(decode_stream(column.whole(), static_cast<std::uint32_t>(sealed_.times_ns.size()), data_));
    const std::size_t start = columns_.size();
    encode_ints(data_.ints, columns_);
    const std::size_t after_ints = columns_.size();
    encode_floats(data_.floats, columns_);
    places_.push_back({series, class_of(data_.runs), after_ints - start, columns_.size() - after_ints});
    under_way_.samples += column.samples();
    under_way_.samples_in_tails += column.samples_written();
    minutes.clear();
    for_each_sample(data_, [&](std::uint32_t tick, Value value) { minutes.add(sealed_.times_ns[tick], value); });
    if (minutes_raw_.empty()) minutes_first_ = series;
    append_tier_entry(minutes_before_, series, minutes.points(), kMinuteNs, minutes_raw_);
    for (const TierPoint& point : minutes.points()) hours.add(point);
  }
  if (hours.points().empty()) return;
  std::span<const TierPoint> passed(hours.points());
  open_hour = {};
  if (passed.back().from_ns >= hours_to_ns_) {
    open_hour = passed.back();
    passed = passed.first(passed.size() - 1);
  }
  if (passed.empty()) return;
  if (hours_raw_.empty()) hours_first_ = series;
  append_tier_entry(hours_before_, series, passed, kHourNs, hours_raw_);
}

void StretchBuilder::encode_group(BlockCodec& codec) {
  const auto count = static_cast<std::uint32_t>(sealed_.columns.size());
  const std::uint32_t end = std::min(next_series_ + kSeriesPerChunk, count);
  const std::uint32_t group = next_series_ / kSeriesPerChunk;
  columns_.clear();
  places_.clear();
  TierSeries minutes(kMinuteNs);
  TierSeries hours(kHourNs);
  for (std::uint32_t s = next_series_; s < end; ++s) encode_series(s, minutes, hours);
  next_series_ = end;
  if (!places_.empty()) {
    chunk_.clear();
    ByteReader reader(columns_);
    for (const ColumnPlace& place : places_) {
      const ByteView ints = reader.bytes(place.ints);
      chunk_.push_back({place.series, place.of_class, ints, reader.bytes(place.floats)});
    }
    raw_.clear();
    encode_chunk(chunk_, raw_);
    EncodedBlock& block = under_way_.blocks.emplace_back();
    block = {block_id(sealed_.id, BlockKind::kChunk, group), places_.front().series, places_.back().series, {}};
    codec.seal(BlockKind::kChunk, raw_, true, block.payload);
  }
  if (end == count || end % kSeriesPerTierBlock == 0) flush_tiers(codec);
  if (end == count) finish(codec);
}

void StretchBuilder::flush_tiers(BlockCodec& codec) {
  const std::uint32_t group = (next_series_ - 1) / kSeriesPerTierBlock;
  const auto flush = [&](BlockKind kind, Bytes& raw, std::uint32_t first, std::uint32_t& before) {
    if (raw.empty()) return;
    EncodedBlock& block = under_way_.blocks.emplace_back();
    block = {block_id(sealed_.id, kind, group), first, before, {}};
    codec.seal(kind, raw, true, block.payload);
    raw.clear();
    before = kNoSeriesBefore;
  };
  flush(BlockKind::kMinutes, minutes_raw_, minutes_first_, minutes_before_);
  flush(BlockKind::kHours, hours_raw_, hours_first_, hours_before_);
}

void StretchBuilder::finish(BlockCodec& codec) {
  raw_.clear();
  encode_ticks(ticks_, raw_);
  EncodedBlock& block = under_way_.blocks.emplace_back();
  block = {block_id(sealed_.id, BlockKind::kTicks, 0), 0, 0, {}};
  codec.seal(BlockKind::kTicks, raw_, true, block.payload);
  encoded_.push_back(std::move(under_way_));
  under_way_ = {};
  sealed_.used = false;
}

}  // namespace hotlap
