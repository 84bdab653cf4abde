#include "query/span_walk.h"

#include <algorithm>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::size_t kFewSpans = 5'000;
constexpr std::size_t kManySpans = 100'000;
constexpr std::int64_t kFirstWindowNs = 10 * kNsPerS;
constexpr std::int64_t kWindowNsMin = 10 * kNsPerMs;
constexpr std::int64_t kWindowNsMax = 86'400 * kNsPerS;

}  // namespace

Result<const Span*> SpanWalk::next() {
  while (at_ >= spans_.size()) {
    HOTLAP_TRY_ASSIGN(const bool has_more, fill());
    if (!has_more) return nullptr;
  }
  return &spans_[at_++];
}

Result<bool> SpanWalk::fill() {
  spans_.clear();
  at_ = 0;
  while (true) {
    if (from_ns_ >= to_ns_) {
      if (!open_next()) return false;
      continue;
    }
    const std::int64_t end_ns = to_ns_ - from_ns_ > window_ns_ ? from_ns_ + window_ns_ : to_ns_;
    HOTLAP_TRY(recording_->reader->read_spans(
        kinds_, {.from_ns = from_ns_, .to_ns = end_ns},
        [&](std::span<const Span> some) { spans_.insert(spans_.end(), some.begin(), some.end()); }));
    from_ns_ = end_ns;
    if (spans_.size() < kFewSpans) window_ns_ = std::min(window_ns_ * 2, kWindowNsMax);
    if (spans_.size() > kManySpans) window_ns_ = std::max(window_ns_ / 2, kWindowNsMin);
    if (!spans_.empty()) return true;
  }
}

bool SpanWalk::open_next() {
  while (next_recording_ < run_.recordings().size()) {
    recording_ = &run_.recordings()[next_recording_++];
    if (!filter_.wants(node_column_, recording_->node)) continue;
    const Result<TimeRange> extent = recording_->reader->extent();
    if (!extent.ok() || extent->from_ns > extent->to_ns) continue;
    from_ns_ = std::max(extent->from_ns, filter_.time.from_ns);
    to_ns_ = std::min(extent->to_ns == INT64_MAX ? INT64_MAX : extent->to_ns + 1, filter_.time.to_ns);
    window_ns_ = kFirstWindowNs;
    return true;
  }
  return false;
}

}  // namespace hotlap
