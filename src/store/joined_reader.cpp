#include "store/joined_reader.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr unsigned kProcessBits = 16;  // more than an import keeps
constexpr std::uint32_t kPartsMax = 1000;
constexpr std::int64_t kUnixTimeMinNs = 1'000'000'000 * kNsPerS;  // 2001
constexpr std::int64_t kQuarterNs = 900 * kNsPerS;                // zones differ by multiples of it
constexpr int kQuartersMax = 14 * 4;
constexpr std::int64_t kRepeatNs = 5 * kNsPerS;  // so near each other events of two files are one
constexpr double kZoneUncertaintyS = 3600;       // from here on a file's zone was not told

bool is_imported(const RecordingReader& reader) { return reader.info().attributes.contains("source.file"); }
bool is_trace(const RecordingReader& reader) {
  const auto format = reader.info().attributes.find("source.format");
  return format != reader.info().attributes.end() && format->second == "chrome_trace";
}
bool is_of_machine(const StoredSeries& series) {
  return !series.metric.starts_with("train.") && !series.metric.starts_with("eval.");
}

struct FileClock {
  TimeRange extent;
  bool has_extent = false;
  bool is_unix = false;
  bool is_zone_known = true;
};

FileClock clock_of(RecordingReader& reader) {
  FileClock clock;
  const Result<TimeRange> extent = reader.extent();
  clock.has_extent = extent.ok() && extent->from_ns <= extent->to_ns;
  if (clock.has_extent) clock.extent = *extent;
  clock.is_unix = clock.has_extent && clock.extent.from_ns >= kUnixTimeMinNs;
  const auto told = reader.info().attributes.find(std::string(kImportClockAttribute));
  if (told == reader.info().attributes.end()) return clock;
  clock.is_unix = told->second.starts_with("unix");
  std::string_view words = told->second;
  (void)next_word(words);
  const auto uncertainty_s = parse_f64(next_word(words));
  clock.is_zone_known = !uncertainty_s || *uncertainty_s < kZoneUncertaintyS;
  return clock;
}

std::int64_t overlap_ns(const TimeRange& a, const TimeRange& b, std::int64_t shift_ns) {
  return std::min(a.to_ns, b.to_ns + shift_ns) - std::max(a.from_ns, b.from_ns + shift_ns);
}

// By how many hours and quarters the file's zone is off, so that it lies where `all` does; 0 where no zone makes it.
std::int64_t zone_shift(const TimeRange& all, const TimeRange& own) {
  std::int64_t best = 0;
  std::int64_t most_ns = std::max<std::int64_t>(overlap_ns(all, own, 0), 0);
  // What lies half inside already has the right zone.
  if (2 * most_ns >= std::min(all.to_ns - all.from_ns, own.to_ns - own.from_ns) && most_ns > 0) return 0;
  for (int quarters = 1; quarters <= kQuartersMax; ++quarters) {
    for (const std::int64_t shift_ns : {quarters * kQuarterNs, -quarters * kQuarterNs}) {
      const std::int64_t ns = overlap_ns(all, own, shift_ns);
      if (ns > most_ns) best = shift_ns;
      most_ns = std::max(most_ns, ns);
    }
  }
  return best;
}

void extend(TimeRange& all, bool& has_any, const TimeRange& own, std::int64_t shift_ns) {
  const TimeRange moved{own.from_ns + shift_ns, own.to_ns + shift_ns};
  all = has_any ? TimeRange{std::min(all.from_ns, moved.from_ns), std::max(all.to_ns, moved.to_ns)} : moved;
  has_any = true;
}

// Shifts by part: what has Unix time stays; a zone that was not told, and times that count from any moment, follow.
std::vector<std::int64_t> shifts_of(const std::vector<FileClock>& clocks, TimeRange& all, bool& has_any) {
  std::vector<std::int64_t> shifts(clocks.size(), 0);
  const auto pass = [&](auto&& takes, auto&& shift) {
    // Among themselves files of one kind agree: they are shifted by what those before say.
    const TimeRange known = all;
    const bool has_known = has_any;
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      if (!clocks[i].has_extent || !takes(clocks[i])) continue;
      shifts[i] = has_known ? shift(known, clocks[i].extent) : 0;
      extend(all, has_any, clocks[i].extent, shifts[i]);
    }
  };
  pass([](const FileClock& c) { return c.is_unix && c.is_zone_known; },
       [](const TimeRange&, const TimeRange&) { return std::int64_t{0}; });
  pass([](const FileClock& c) { return c.is_unix && !c.is_zone_known; }, zone_shift);
  pass([](const FileClock& c) { return !c.is_unix; },
       [](const TimeRange& known, const TimeRange& own) { return known.from_ns - own.from_ns; });
  return shifts;
}

bool overlaps(const FileClock& a, const FileClock& b) {
  return a.has_extent && b.has_extent && overlap_ns(a.extent, b.extent, 0) > 0;
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
  const auto traces = std::ranges::count_if(recordings, [](const RecordingReader* one) { return is_trace(*one); });
  std::vector<std::vector<RecordingReader*>> groups;
  for (RecordingReader* recording : recordings) {
    const bool joins = is_imported(*recording) && (!is_trace(*recording) || traces == 1);
    const auto fits = [&](const std::vector<RecordingReader*>& group) {
      if (!is_imported(*group.front()) || group.size() >= kPartsMax) return false;
      if (is_trace(*group.front()) && traces > 1) return false;
      if (group.front()->info().node != recording->info().node) return false;
      const FileClock own = clock_of(*recording);
      return std::ranges::none_of(group, [&](RecordingReader* other) {
        return overlaps(clock_of(*other), own) && conflict(*other, *recording);
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
  std::vector<FileClock> clocks;
  clocks.reserve(recordings.size());
  for (RecordingReader* reader : recordings) clocks.push_back(clock_of(*reader));
  TimeRange all{0, -1};
  bool has_any = false;
  const std::vector<std::int64_t> shifts = shifts_of(clocks, all, has_any);
  extent_ = all;
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    parts_.push_back(
        {.reader = recordings[i], .number = static_cast<std::uint32_t>(i), .shift_ns = shifts[i], .first_series = 0});
  }
  // In time, so that of a series that goes on in another file samples come in order.
  std::vector<std::int64_t> begins;
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    begins.push_back(clocks[i].has_extent ? clocks[i].extent.from_ns + shifts[i] : INT64_MIN);
  }
  std::ranges::stable_sort(parts_, {}, [&](const Part& part) { return begins[part.number]; });
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
    if (part.shift_ns != 0) {
      const auto file = part.reader->info().attributes.find("source.file");
      const std::string name = file == part.reader->info().attributes.end() ? std::string("a file") : file->second;
      info_.attributes["import.shift." + name] =
          format("{} s, so that it lies where the other files do: its clock is not told",
                 static_cast<double>(part.shift_ns) / static_cast<double>(kNsPerS));
    }
  }
  const bool has_trace = std::ranges::any_of(recordings, [](const RecordingReader* one) { return is_trace(*one); });
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
  std::vector<SamplePoint> moved;
  for (const Part& part : parts_) {
    const std::vector<SeriesHandle> of_part = wanted_of(part, wanted);
    if (of_part.empty()) continue;
    std::map<std::uint32_t, std::uint32_t> numbers;  // the part's own handle to ours
    const std::vector<StoredSeries>& own = part.reader->series();
    for (std::size_t i = 0; i < own.size(); ++i) {
      numbers.emplace(own[i].handle.index, static_cast<std::uint32_t>(part.first_series + i));
    }
    const TimeRange own_range{range.from_ns - part.shift_ns, range.to_ns - part.shift_ns};
    HOTLAP_TRY(
        part.reader->read_samples(of_part, own_range, [&](SeriesHandle handle, std::span<const SamplePoint> points) {
          const auto number = numbers.find(handle.index);
          if (number == numbers.end()) return;
          if (part.shift_ns == 0) return visit({number->second}, points);
          moved.assign(points.begin(), points.end());
          for (SamplePoint& point : moved) point.t_ns += part.shift_ns;
          visit({number->second}, moved);
        }));
  }
  return {};
}

Result<void> JoinedReader::read_tiers(std::span<const SeriesHandle> wanted, TimeRange range, std::size_t points_max,
                                      const std::function<void(SeriesHandle, std::span<const TierPoint>)>& visit) {
  std::vector<TierPoint> moved;
  for (const Part& part : parts_) {
    const std::vector<SeriesHandle> of_part = wanted_of(part, wanted);
    if (of_part.empty()) continue;
    const std::vector<StoredSeries>& own = part.reader->series();
    const TimeRange own_range{range.from_ns - part.shift_ns, range.to_ns - part.shift_ns};
    HOTLAP_TRY(part.reader->read_tiers(of_part, own_range, points_max,
                                       [&](SeriesHandle handle, std::span<const TierPoint> points) {
                                         moved.assign(points.begin(), points.end());
                                         for (TierPoint& point : moved) {
                                           point.from_ns += part.shift_ns;
                                           point.to_ns += part.shift_ns;
                                         }
                                         for (std::size_t i = 0; i < own.size(); ++i) {
                                           if (own[i].handle.index != handle.index) continue;
                                           return visit({static_cast<std::uint32_t>(part.first_series + i)}, moved);
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
  span.start_ns += part.shift_ns;
  if (span.process != 0) span.process |= part.number << kProcessBits;
  span.name = joined_name(part, span.name);
  return span;
}

Result<void> JoinedReader::read_spans(std::span<const SpanKind> kinds, TimeRange range,
                                      const std::function<void(std::span<const Span>)>& visit) {
  std::vector<Span> moved;
  for (const Part& part : parts_) {
    const TimeRange own_range{range.from_ns == INT64_MIN ? INT64_MIN : range.from_ns - part.shift_ns,
                              range.to_ns == INT64_MAX ? INT64_MAX : range.to_ns - part.shift_ns};
    HOTLAP_TRY(part.reader->read_spans(kinds, own_range, [&](std::span<const Span> spans) {
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
    HOTLAP_TRY_ASSIGN(std::vector<Event> events, part.reader->read_events({}));
    for (Event& event : events) {
      event.t_ns += part.shift_ns;
      const bool has_slot = event.kind == EventKind::kProcessStart || event.kind == EventKind::kProcessEnd;
      if (has_slot && event.value != 0) event.value |= std::int64_t{part.number} << kProcessBits;
      if (event.t_ns >= range.from_ns && event.t_ns < range.to_ns) out.push_back(std::move(event));
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
    if (part.shift_ns != 0) continue;
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
      if (process.start_ns >= 0) process.start_ns += part.shift_ns;
      if (process.end_ns >= 0) process.end_ns += part.shift_ns;
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
