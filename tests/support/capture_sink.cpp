#include "support/capture_sink.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"

namespace hotlap::test {

SeriesHandle CaptureSink::series(std::uint16_t metric, std::string_view instance) {
  HOTLAP_CHECK(spec_ != nullptr && metric < spec_->metrics.size());
  const auto key = std::pair(std::string(spec_->metrics[metric].name), std::string(instance));
  if (const auto found = index_.find(key); found != index_.end()) return {found->second};
  if (series_.size() >= series_max_) return {};
  const auto index = static_cast<std::uint32_t>(series_.size());
  series_.push_back({key.first, key.second, {}});
  index_.emplace(key, index);
  return {index};
}

void CaptureSink::add(SeriesHandle handle, Value value) {
  if (!handle.valid()) return count_loss("record.series_refused", 1);
  HOTLAP_CHECK(handle.index < series_.size());
  std::vector<Value>& values = series_[handle.index].values;
  const auto tick = static_cast<std::size_t>(tick_);
  if (values.size() > tick) return count_loss("collect.duplicates", 1);
  values.resize(tick, Value{});
  values.push_back(value);
}

void CaptureSink::event(EventKind kind, std::int64_t value, std::string_view text) {
  events_.push_back(format("{} {} {}{}{}", tick_, to_string(kind), value, text.empty() ? "" : " ", text));
}

void CaptureSink::count_loss(std::string_view counter, std::uint64_t count) {
  losses_.try_emplace(std::string(counter), 0).first->second += count;
}

void CaptureSink::note_error(std::string_view text) { errors_.push_back(format("{} {}", tick_, text)); }

Value CaptureSink::value(std::string_view metric, std::string_view instance, std::int64_t tick) const {
  const auto found = index_.find({std::string(metric), std::string(instance)});
  if (found == index_.end()) return {};
  const auto at = static_cast<std::size_t>(tick < 0 ? tick_ : tick);
  const std::vector<Value>& values = series_[found->second].values;
  return at < values.size() ? values[at] : Value{};
}

bool CaptureSink::has_series(std::string_view metric, std::string_view instance) const {
  return index_.contains({std::string(metric), std::string(instance)});
}

std::uint64_t CaptureSink::loss(std::string_view counter) const {
  const auto found = losses_.find(counter);
  return found == losses_.end() ? 0 : found->second;
}

std::string CaptureSink::to_text() const {
  std::string text;
  for (const auto& [key, index] : index_) {
    text += key.first;
    if (!key.second.empty()) text += format(" [{}]", key.second);
    const std::vector<Value>& values = series_[index].values;
    for (std::int64_t t = 0; t <= tick_; ++t) {
      const auto at = static_cast<std::size_t>(t);
      text += format("  {}", at < values.size() ? test::to_text(values[at]) : "-");
    }
    text += '\n';
  }
  for (const std::string& event : events_) text += format("event {}\n", event);
  for (const auto& [counter, count] : losses_) text += format("loss {} {}\n", counter, count);
  for (const std::string& error : errors_) text += format("error {}\n", error);
  return text;
}

std::string to_text(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kMissing: {
      if (value.reason() == MissingReason::kNotSampled) return "-";
      std::string reason(to_string(value.reason()));
      std::replace(reason.begin(), reason.end(), ' ', '_');
      return format("({})", reason);
    }
    case Value::Kind::kI64: return format("{}", value.i64());
    case Value::Kind::kU64: return format("{}", value.u64());
    case Value::Kind::kF64: return format("{}f", value.f64());
  }
  return "?";
}

CollectorRun::CollectorRun(const CollectorSpec& spec, const Host& host, CaptureSink& sink) : spec_(spec), sink_(sink) {
  Result<std::unique_ptr<Collector>> opened = spec.open(host);
  if (opened.ok()) {
    collector_ = std::move(opened).value();
    return;
  }
  const ErrorCode code = opened.error().code;
  if (code == ErrorCode::kUnsupported || code == ErrorCode::kNotFound) return;
  sink.note_error(format("{}: cannot be opened: {}", spec.name, to_string(code)));
}

void CollectorRun::tick(const TickInfo& tick) {
  if (collector_ == nullptr || (number_ > 0 && tick.t_ns - last_ns_ < spec_.min_period_ns)) return;
  last_ns_ = tick.t_ns;
  TickInfo own = tick;
  own.number = number_++;
  sink_.set_spec(spec_);
  const Result<Outcome> outcome = collector_->sample(own, sink_);
  // Where a fake machine lies differs from run to run: only the kind of the error is noted.
  if (!outcome.ok()) sink_.note_error(format("{}: {}", spec_.name, to_string(outcome.error().code)));
}

}  // namespace hotlap::test
