#include "store/joined_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "model/trace_source.h"

namespace hotlap {
namespace {

constexpr unsigned kProcessBits = 16;  // more than an import keeps
constexpr std::uint32_t kPartsMax = 1000;
constexpr std::int64_t kRepeatNs = 5 * kNsPerS;  // so near each other events of two files are one

bool is_imported(const RecordingReader& reader) { return reader.info().attributes.contains("source.file"); }
bool is_of_machine(const StoredSeries& series) {
  return !series.metric.starts_with("train.") && !series.metric.starts_with("eval.");
}

// Nothing: it has no times.
std::optional<TimeRange> range_of(RecordingReader& reader) {
  const Result<TimeRange> extent = reader.extent();
  if (!extent.ok() || extent->from_ns > extent->to_ns) return std::nullopt;
  return *extent;
}

bool overlaps(const std::optional<TimeRange>& a, const std::optional<TimeRange>& b) {
  return a && b && std::min(a->to_ns, b->to_ns) > std::max(a->from_ns, b->from_ns);
}

// Two files that tell the same series of the same time are of two machines.
bool conflict(const RecordingReader& a, const RecordingReader& b) {
  std::set<std::pair<std::string_view, std::string_view>> known;
  for (const StoredSeries& series : a.series()) {
    if (is_of_machine(series)) known.emplace(series.metric, series.instance);
  }
  return std::ranges::any_of(b.series(), [&](const StoredSeries& series) {
    return known.contains({series.metric, series.instance});
  });
}

// One jump of the machine's clock, and one sleep, show in each of its files.
std::vector<Event> without_repeats(std::vector<Event> events) {
  std::map<EventKind, std::int64_t> last;
  std::erase_if(events, [&](const Event& event) {
    if (event.kind != EventKind::kClockStep && event.kind != EventKind::kSuspend) return false;
    const auto known = last.find(event.kind);
    if (known != last.end() && event.t_ns - known->second <= kRepeatNs) return true;
    last[event.kind] = event.t_ns;
    return false;
  });
  return events;
}

}  // namespace

std::vector<std::vector<RecordingReader*>> JoinedReader::group(std::span<RecordingReader* const> recordings) {
  const auto traces =
      std::ranges::count_if(recordings, [](const RecordingReader* one) { return is_of_trace(one->info()); });
  std::vector<std::vector<RecordingReader*>> groups;
  for (RecordingReader* recording : recordings) {
    const bool joins = is_imported(*recording) && (!is_of_trace(recording->info()) || traces == 1);
    const auto fits = [&](const std::vector<RecordingReader*>& group) {
      if (!is_imported(*group.front()) || group.size() >= kPartsMax) return false;
      if (is_of_trace(group.front()->info()) && traces > 1) return false;
      if (group.front()->info().node != recording->info().node) return false;
      const std::optional<TimeRange> own = range_of(*recording);
      return std::ranges::none_of(group, [&](RecordingReader* other) {
        return overlaps(range_of(*other), own) && conflict(*other, *recording);
      });
    };
    const auto place = joins ? std::ranges::find_if(groups, fits) : groups.end();
    if (place != groups.end()) {
      place->push_back(recording);
    } else {
      groups.push_back({recording});
    }
  }
  return groups;
}

JoinedReader::JoinedReader(std::vector<RecordingReader*> recordings) {
  std::vector<std::int64_t> begins_ns;
  extent_ = {0, -1};
  for (RecordingReader* reader : recordings) {
    parts_.push_back({.reader = reader, .number = static_cast<std::uint32_t>(parts_.size()), .first_series = 0});
    const std::optional<TimeRange> range = range_of(*reader);
    begins_ns.push_back(range ? range->from_ns : INT64_MIN);
    if (!range) continue;
    const bool is_first = extent_.from_ns > extent_.to_ns;
    extent_ =
        is_first ? *range : TimeRange{std::min(extent_.from_ns, range->from_ns), std::max(extent_.to_ns, range->to_ns)};
  }
  // In time, so that of a series that goes on in another file samples come in order.
  std::ranges::stable_sort(parts_, {}, [&](const Part& part) { return begins_ns[part.number]; });
  info_ = recordings.front()->info();
  for (Part& part : parts_) {
    part.first_series = series_.size();
    for (StoredSeries series : part.reader->series()) {
      series.handle.index = static_cast<std::uint32_t>(series_.size());
      series_.push_back(std::move(series));
    }
    const Result<std::map<std::string, std::string>> attributes = part.reader->read_attributes();
    for (const auto& [key, text] : attributes.ok() ? *attributes : part.reader->info().attributes) {
      info_.attributes.insert_or_assign(key, text);
    }
  }
  const bool has_trace =
      std::ranges::any_of(recordings, [](const RecordingReader* one) { return is_of_trace(one->info()); });
  info_.attributes["source.format"] = has_trace ? "chrome_trace" : "joined";
}

std::vector<SeriesHandle> JoinedReader::wanted_of(const Part& part, std::span<const SeriesHandle> wanted) {
  const std::vector<StoredSeries>& own = part.reader->series();
  std::vector<SeriesHandle> out;
  for (const SeriesHandle handle : wanted) {
    if (handle.index >= part.first_series && handle.index - part.first_series < own.size()) {
      out.push_back(own[handle.index - part.first_series].handle);
    }
  }
  return out;
}

Result<void> JoinedReader::read_samples(std::span<const SeriesHandle> wanted, TimeRange range,
                                        const std::function<void(SeriesHandle, std::span<const SamplePoint>)>& visit) {
  for (const Part& part : parts_) {
    const std::vector<SeriesHandle> of_part = wanted_of(part, wanted);
    if (of_part.empty()) continue;
    std::map<std::uint32_t, std::uint32_t> numbers;  // the part's own handle to ours
    const std::vector<StoredSeries>& own = part.reader->series();
    for (std::size_t i = 0; i < own.size(); ++i) {
      numbers.emplace(own[i].handle.index, static_cast<std::uint32_t>(part.first_series + i));
    }
    HOTLAP_TRY(part.reader->read_samples(of_part, range, [&](SeriesHandle handle, std::span<const SamplePoint> points) {
      const auto number = numbers.find(handle.index);
      if (number != numbers.end()) visit({number->second}, points);
    }));
  }
  return {};
}

Result<void> JoinedReader::read_tiers(std::span<const SeriesHandle> wanted, TimeRange range, std::size_t points_max,
                                      const std::function<void(SeriesHandle, std::span<const TierPoint>)>& visit) {
  for (const Part& part : parts_) {
    const std::vector<SeriesHandle> of_part = wanted_of(part, wanted);
    if (of_part.empty()) continue;
    const std::vector<StoredSeries>& own = part.reader->series();
    HOTLAP_TRY(part.reader->read_tiers(of_part, range, points_max,
                                       [&](SeriesHandle handle, std::span<const TierPoint> points) {
                                         for (std::size_t i = 0; i < own.size(); ++i) {
                                           if (own[i].handle.index != handle.index) continue;
                                           return visit({static_cast<std::uint32_t>(part.first_series + i)}, points);
                                         }
                                       }));
  }
  return {};
}

// Dense, so that tables by name stay small.
std::uint32_t JoinedReader::joined_name(const Part& part, std::uint32_t own) {
  if (own == 0) return 0;
  const auto [known, is_new] = name_ids_.try_emplace(std::pair(part.number, own), 0);
  if (is_new) {
    names_.emplace_back(part.reader, own);
    known->second = static_cast<std::uint32_t>(names_.size());
  }
  return known->second;
}

Span JoinedReader::joined(const Part& part, Span span) {
  if (span.process != 0) span.process |= part.number << kProcessBits;
  span.name = joined_name(part, span.name);
  span.detail = joined_name(part, span.detail);
  return span;
}

Result<void> JoinedReader::read_spans(std::span<const SpanKind> kinds, TimeRange range,
                                      const std::function<void(std::span<const Span>)>& visit) {
  std::vector<Span> moved;
  for (const Part& part : parts_) {
    HOTLAP_TRY(part.reader->read_spans(kinds, range, [&](std::span<const Span> spans) {
      moved.clear();
      for (const Span& span : spans) moved.push_back(joined(part, span));
      visit(moved);
    }));
  }
  return {};
}

Result<void> JoinedReader::read_spans_since(std::uint64_t& cursor, std::span<const SpanKind> kinds,
                                            const std::function<void(std::span<const Span>)>& visit) {
  if (std::exchange(cursor, 1) != 0) return {};  // imported files do not grow
  return read_spans(kinds, {}, visit);
}

Result<std::vector<Event>> JoinedReader::read_events(TimeRange range) {
  std::vector<Event> out;
  for (const Part& part : parts_) {
    HOTLAP_TRY_ASSIGN(std::vector<Event> events, part.reader->read_events(range));
    for (Event& event : events) {
      const bool has_slot = event.kind == EventKind::kProcessStart || event.kind == EventKind::kProcessEnd;
      if (has_slot && event.value != 0) event.value |= std::int64_t{part.number} << kProcessBits;
      out.push_back(std::move(event));
    }
  }
  std::ranges::stable_sort(out, {}, &Event::t_ns);
  return without_repeats(std::move(out));
}

Result<std::vector<Event>> JoinedReader::read_events_since(std::uint64_t& cursor) {
  if (std::exchange(cursor, 1) != 0) return std::vector<Event>{};
  return read_events({});
}

Result<std::vector<ClockReading>> JoinedReader::read_clock() {
  for (const Part& part : parts_) {
    HOTLAP_TRY_ASSIGN(std::vector<ClockReading> readings, part.reader->read_clock());
    if (!readings.empty()) return readings;
  }
  return std::vector<ClockReading>{};
}

Result<std::vector<ProcessInfo>> JoinedReader::read_processes() {
  std::vector<ProcessInfo> out;
  for (const Part& part : parts_) {
    HOTLAP_TRY_ASSIGN(std::vector<ProcessInfo> processes, part.reader->read_processes());
    for (ProcessInfo& process : processes) {
      process.slot |= part.number << kProcessBits;
      if (process.parent != 0) process.parent |= part.number << kProcessBits;
      out.push_back(std::move(process));
    }
  }
  return out;
}

Result<std::vector<Loss>> JoinedReader::read_losses() {
  std::vector<Loss> out;
  for (const Part& part : parts_) {
    HOTLAP_TRY_ASSIGN(const std::vector<Loss> losses, part.reader->read_losses());
    out.insert(out.end(), losses.begin(), losses.end());
  }
  return out;
}

std::string JoinedReader::name(std::uint32_t id) {
  if (id == 0 || id > names_.size()) return {};
  const auto& [reader, own] = names_[id - 1];
  return reader->name(own);
}

}  // namespace hotlap
