#include "record/write_lane.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace hotlap {
namespace {

constexpr std::uint64_t kCommitsPerSizeLook = 5;  // it is shown every 5 s

// Adds the time until it goes out of scope.
class TimeKeeper {
 public:
  explicit TimeKeeper(std::atomic<std::uint64_t>& total_ns) : total_ns_(total_ns) {}
  ~TimeKeeper() {
    total_ns_.fetch_add(static_cast<std::uint64_t>(system_clock().mono_ns() - from_ns_), std::memory_order_relaxed);
  }
  TimeKeeper(const TimeKeeper&) = delete;
  TimeKeeper& operator=(const TimeKeeper&) = delete;

 private:
  std::atomic<std::uint64_t>& total_ns_;
  std::int64_t from_ns_ = system_clock().mono_ns();
};

}  // namespace

WriteLane::WriteLane(std::unique_ptr<RecordingWriter> writer, const SeriesTable& series)
    : writer_(std::move(writer)), series_(series) {}

void WriteLane::learn_series() {
  for (const SeriesTable::Entry& entry : series_.since(written_as_.size())) {
    Result<SeriesHandle> handle = writer_->add_series(*entry.metric, entry.instance);
    if (!handle.ok()) writer_->add_loss("record.series_refused", 1);
    written_as_.push_back(std::move(handle).value_or(SeriesHandle{}));
  }
}

void WriteLane::apply(const Batch& batch) {
  HOTLAP_DCHECK(thread_.calls_on_owner());
  const TimeKeeper keeper(time_ns_);
  for (const ClockReading& reading : batch.clock) writer_->add_clock(reading);
  for (const auto& [key, text] : batch.attributes) writer_->put_attribute(key, text);
  for (const ProcessInfo& process : batch.processes) writer_->put_process(process);
  tick_.clear();
  for (const Sample& sample : batch.samples) {
    if (sample.series.index >= written_as_.size()) learn_series();
    const SeriesHandle handle = written_as_[sample.series.index];
    if (handle.valid()) tick_.push_back({handle, sample.value});
  }
  if (!tick_.empty()) writer_->add_tick(batch.t_ns, tick_);
  for (const std::string& name : batch.names) names_.push_back(writer_->add_name(name));
  for (Span span : batch.spans) {
    span.name = span.name < names_.size() ? names_[span.name] : 0;
    writer_->add_span(span);
  }
  for (const Event& event : batch.events) writer_->add_event(event);
  for (const LossCount& loss : batch.losses) writer_->add_loss(loss.counter, loss.count);
}

void WriteLane::commit() {
  const TimeKeeper keeper(time_ns_);
  const Result<void> done = writer_->commit();
  if (commits_++ % kCommitsPerSizeLook == 0) {
    bytes_written_.store(writer_->bytes_written(), std::memory_order_relaxed);
  }
  if (done.ok()) {
    is_failing_ = false;
    return;
  }
  commits_failed_.fetch_add(1, std::memory_order_relaxed);
  if (!std::exchange(is_failing_, true)) HOTLAP_LOG_ERROR("the recording cannot be written: {}", done.error().message);
}

Result<void> WriteLane::close() {
  const TimeKeeper keeper(time_ns_);
  Result<void> done = writer_->close();
  bytes_written_.store(writer_->bytes_written(), std::memory_order_relaxed);
  return done;
}

}  // namespace hotlap
