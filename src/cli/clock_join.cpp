#include "cli/clock_join.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/format.h"
#include "ingest/civil_time.h"

namespace hotlap {
namespace {

constexpr std::int64_t kMinuteNs = 60 * kNsPerS;
constexpr std::int64_t kZoneStepNs = 15 * kMinuteNs;  // every time zone is so many of these from UTC
constexpr int kZoneSteps = 14 * 4;                    // either way
constexpr std::int64_t kZoneWithinNs = kNsPerS;       // local times are printed to the second or better
constexpr std::size_t kMatchesMin = 3;

bool is_empty(const TimeRange& range) { return range.from_ns > range.to_ns; }
bool is_of_a_zone(const FileClock& file) { return file.is_absolute && file.uncertainty_ns >= kZoneStepNs; }
bool is_sure(const FileClock& file) {
  return file.is_absolute && !is_of_a_zone(file) && !is_empty(file.extent) && !file.has_only_events;
}

// How far `shift_ns` brings one range into the other: the part of the shorter one that lies in both.
double shared_part(const TimeRange& moved, std::int64_t shift_ns, const TimeRange& fixed) {
  const double from =
      std::max(static_cast<double>(moved.from_ns) + static_cast<double>(shift_ns), static_cast<double>(fixed.from_ns));
  const double to =
      std::min(static_cast<double>(moved.to_ns) + static_cast<double>(shift_ns), static_cast<double>(fixed.to_ns));
  const auto length = [](const TimeRange& range) {
    return std::max(1.0, static_cast<double>(range.to_ns) - static_cast<double>(range.from_ns));
  };
  return (to - from + 1) / std::min(length(moved), length(fixed));
}

bool is_within(const FileClock& file, std::int64_t shift_ns, const TimeRange& others) {
  constexpr double kEnough = 0.5;
  return shared_part(file.extent, shift_ns, others) >= kEnough;
}

// The zone in which a file of local times lies among the others: the one that does, not one of several.
std::optional<JoinedClock> by_zone(const FileClock& file, const FileClock& other, std::size_t other_index) {
  std::optional<JoinedClock> found;
  for (int i = -kZoneSteps; i <= kZoneSteps; ++i) {
    const std::int64_t shift_ns = i * kZoneStepNs;
    if (!is_within(file, shift_ns, other.extent)) continue;
    if (found) return std::nullopt;
    found = JoinedClock{.by = JoinedBy::kTimeZone,
                        .to = other_index,
                        .shift_ns = shift_ns,
                        .uncertainty_ns = kZoneWithinNs,
                        .matches = 0,
                        .is_absolute = true};
  }
  return found;
}

bool is_of_one_zone(const FileClock& a, const FileClock& b) {
  return is_of_a_zone(a) && is_of_a_zone(b) && !a.format.empty() && a.format == b.format;
}

// As the other one, which has its place: at once, or by its zone. Its steps say nothing of where this one lies.
std::optional<JoinedClock> in_the_zone_of(const FileClock& other, const std::optional<JoinedClock>& joined,
                                          std::size_t other_index) {
  if (!joined) {
    return JoinedClock{
        .by = JoinedBy::kUnixTime, .to = other_index, .uncertainty_ns = other.uncertainty_ns, .is_absolute = true};
  }
  return joined->by == JoinedBy::kTimeZone || joined->by == JoinedBy::kUnixTime ? joined : std::nullopt;
}

// Where several zones would do, or none wholly: none at all where that is one of them, else the one in which most of
// the times are shared. The zone stays as uncertain as it was.
JoinedClock by_likely_zone(const FileClock& file, const TimeRange& others, std::size_t other_index) {
  JoinedClock likely{.by = JoinedBy::kTimeZone,
                     .to = other_index,
                     .shift_ns = 0,
                     .uncertainty_ns = file.uncertainty_ns,
                     .matches = 0,
                     .is_absolute = true};
  if (is_within(file, 0, others)) return likely;
  double most = std::max(0.0, shared_part(file.extent, 0, others));
  for (int i = 1; i <= kZoneSteps; ++i) {
    for (const std::int64_t shift_ns : {i * kZoneStepNs, -i * kZoneStepNs}) {
      const double part = shared_part(file.extent, shift_ns, others);
      if (part > most) likely.shift_ns = shift_ns;
      most = std::max(most, part);
    }
  }
  return likely;
}

// The middle of what several matches say, and within what nine in ten of them agree.
struct Offset {
  std::int64_t middle_ns;
  std::int64_t within_ns;
};
std::optional<Offset> offset_of(std::vector<std::int64_t> differences_ns) {
  if (differences_ns.size() < kMatchesMin) return std::nullopt;
  std::ranges::sort(differences_ns);
  const std::int64_t middle_ns = differences_ns[differences_ns.size() / 2];
  std::vector<std::int64_t> away_ns;
  away_ns.reserve(differences_ns.size());
  for (const std::int64_t difference_ns : differences_ns) away_ns.push_back(std::abs(difference_ns - middle_ns));
  std::ranges::sort(away_ns);
  return Offset{middle_ns, away_ns[(away_ns.size() - 1) * 9 / 10]};
}

std::int64_t typical_step_ns(const std::map<std::int64_t, std::int64_t>& ends_ns) {
  std::vector<std::int64_t> gaps_ns;
  for (auto at = ends_ns.begin(); at != ends_ns.end(); ++at) {
    const auto next = std::next(at);
    if (next != ends_ns.end() && next->first == at->first + 1) gaps_ns.push_back(next->second - at->second);
  }
  if (gaps_ns.empty()) return 0;
  std::ranges::sort(gaps_ns);
  return gaps_ns[gaps_ns.size() / 2];
}

std::optional<JoinedClock> by_steps(const FileClock& file, const FileClock& other, std::size_t other_index) {
  std::vector<std::int64_t> differences_ns;
  for (const auto& [number, end_ns] : file.step_ends_ns) {
    const auto found = other.step_ends_ns.find(number);
    if (found != other.step_ends_ns.end()) differences_ns.push_back(found->second - end_ns);
  }
  const std::size_t matches = differences_ns.size();
  const auto offset = offset_of(std::move(differences_ns));
  // Steps that are not the same ones drift apart by more than one of them.
  const std::int64_t step_ns = std::max(typical_step_ns(file.step_ends_ns), typical_step_ns(other.step_ends_ns));
  if (!offset || (step_ns > 0 && offset->within_ns > step_ns / 2)) return std::nullopt;
  return JoinedClock{.by = JoinedBy::kSteps,
                     .to = other_index,
                     .shift_ns = offset->middle_ns,
                     .uncertainty_ns = offset->within_ns,
                     .matches = matches,
                     .is_absolute = other.is_absolute};
}

std::optional<JoinedClock> by_collectives(const FileClock& file, const FileClock& other, std::size_t other_index) {
  std::vector<std::int64_t> differences_ns;
  for (const auto& [name, ends_ns] : file.collective_ends_ns) {
    const auto found = other.collective_ends_ns.find(name);
    // Only where neither side misses any: the first of one would be matched with the second of the other.
    if (found == other.collective_ends_ns.end() || found->second.size() != ends_ns.size()) continue;
    for (std::size_t i = 0; i < ends_ns.size(); ++i) differences_ns.push_back(found->second[i] - ends_ns[i]);
  }
  const std::size_t matches = differences_ns.size();
  const auto offset = offset_of(std::move(differences_ns));
  if (!offset) return std::nullopt;
  return JoinedClock{.by = JoinedBy::kCollectives,
                     .to = other_index,
                     .shift_ns = offset->middle_ns,
                     .uncertainty_ns = offset->within_ns,
                     .matches = matches,
                     .is_absolute = other.is_absolute};
}

FileClock shifted(FileClock file, const JoinedClock& joined) {
  file.extent.from_ns += joined.shift_ns;
  file.extent.to_ns += joined.shift_ns;
  for (auto& [number, end_ns] : file.step_ends_ns) end_ns += joined.shift_ns;
  for (auto& [name, ends_ns] : file.collective_ends_ns) {
    for (std::int64_t& end_ns : ends_ns) end_ns += joined.shift_ns;
  }
  file.is_absolute = joined.is_absolute;
  file.uncertainty_ns = joined.uncertainty_ns;
  return file;
}

// Messages without a zone were written in that of the machine, as the other files of it; without a year in that which
// brings them nearest to the others. Nothing: they stay as they are.
std::optional<JoinedClock> by_the_others(std::span<const FileClock> files,
                                         const std::vector<std::optional<JoinedClock>>& joined, std::size_t i,
                                         const TimeRange& others, std::size_t others_first) {
  const FileClock& file = files[i];
  if (file.is_absolute && !is_of_a_zone(file)) return std::nullopt;
  if (!file.is_absolute && file.has_year) return std::nullopt;
  JoinedClock out{.to = others_first, .uncertainty_ns = kZoneUncertaintyNs, .is_absolute = true};
  for (std::size_t other = 0; other < files.size(); ++other) {
    const bool has_place = joined[other] && (joined[other]->by == JoinedBy::kTimeZone);
    if (!is_of_a_zone(files[other]) || files[other].has_only_events || (joined[other] && !has_place)) continue;
    out.to = other;
    out.by = has_place ? JoinedBy::kTimeZone : JoinedBy::kUnixTime;
    if (has_place) out.shift_ns = joined[other]->shift_ns;
    out.uncertainty_ns = has_place ? joined[other]->uncertainty_ns : files[other].uncertainty_ns;
    break;
  }
  if (file.has_year) return out.to == others_first && out.shift_ns == 0 ? std::nullopt : std::optional(out);
  constexpr std::int64_t kDayNs = 24 * 60 * kMinuteNs;
  constexpr int kYearWritten = 2023;
  constexpr std::int64_t kBeforeMarch = 59;
  const std::int64_t begin_ns = *unix_ns_of(kYearWritten, 1, 1, 0, 0, 0, 0);
  const bool is_behind_february = (file.extent.from_ns - begin_ns) / kDayNs >= kBeforeMarch;
  std::int64_t nearest_ns = INT64_MAX;
  const std::int64_t zone_ns = out.shift_ns;
  for (int year = 2000; year < 2100; ++year) {
    const bool is_leap_year = year % 4 == 0;  // 2000 is one
    const std::int64_t shift_ns =
        *unix_ns_of(year, 1, 1, 0, 0, 0, 0) - begin_ns + (is_leap_year && is_behind_february ? kDayNs : 0) + zone_ns;
    const std::int64_t away_ns = std::max({std::int64_t{0}, others.from_ns - (file.extent.to_ns + shift_ns),
                                           file.extent.from_ns + shift_ns - others.to_ns});
    if (away_ns >= nearest_ns) continue;
    nearest_ns = away_ns;
    out.shift_ns = shift_ns;
  }
  out.by = JoinedBy::kYear;
  return out;
}

// The range of all files that have their place, and the first of those.
struct Placed {
  TimeRange range{.from_ns = INT64_MAX, .to_ns = INT64_MIN};
  std::size_t first = SIZE_MAX;
};
Placed all_placed(const std::vector<FileClock>& files, const std::vector<bool>& is_placed) {
  Placed all;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!is_placed[i] || is_empty(files[i].extent) || files[i].has_only_events) continue;
    if (all.first == SIZE_MAX || files[i].extent.from_ns < all.range.from_ns) all.first = i;
    all.range.from_ns = std::min(all.range.from_ns, files[i].extent.from_ns);
    all.range.to_ns = std::max(all.range.to_ns, files[i].extent.to_ns);
  }
  return all;
}

std::string shown_ns(std::int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns >= kMinuteNs) return format("{:.0f} min", value / static_cast<double>(kMinuteNs));
  if (ns >= kNsPerS) return format("{:.1f} s", value / static_cast<double>(kNsPerS));
  if (ns >= kNsPerMs) return format("{:.1f} ms", value / static_cast<double>(kNsPerMs));
  return format("{:.0f} us", std::ceil(value / 1e3));
}

}  // namespace

std::vector<std::optional<JoinedClock>> join_clocks(std::span<const FileClock> files) {
  std::vector<std::optional<JoinedClock>> joined(files.size());
  std::vector<FileClock> placed(files.begin(), files.end());
  std::vector<bool> is_placed(files.size(), false);
  bool has_reference = false;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!is_sure(files[i])) continue;
    joined[i] = JoinedClock{.uncertainty_ns = files[i].uncertainty_ns, .is_absolute = true};
    is_placed[i] = true;
    has_reference = true;
  }
  // Without Unix time the file with most to match is what the others are brought to.
  if (!has_reference && !files.empty()) {
    const auto marks = [&](std::size_t i) {
      std::size_t sum = files[i].step_ends_ns.size();
      for (const auto& [name, ends_ns] : files[i].collective_ends_ns) sum += ends_ns.size();
      return sum;
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < files.size(); ++i) {
      if (marks(i) > marks(best) || files[best].has_only_events) best = i;
    }
    is_placed[best] = true;
  }
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (is_placed[i] || is_empty(files[i].extent) || files[i].has_only_events) continue;
      std::optional<JoinedClock> best;
      for (std::size_t other = 0; other < files.size(); ++other) {
        if (!is_placed[other]) continue;
        // Collectives end together on all ranks; a step's end is each rank's own.
        auto found = by_collectives(files[i], placed[other], other);
        if (!found) found = by_steps(files[i], placed[other], other);
        if (!found && is_of_a_zone(files[i]) && placed[other].is_absolute) {
          found = is_of_one_zone(files[i], files[other]) ? in_the_zone_of(files[other], joined[other], other)
                                                         : by_zone(files[i], placed[other], other);
        }
        if (found && (!best || found->matches > best->matches)) best = found;
      }
      if (!best) continue;
      joined[i] = best;
      placed[i] = shifted(files[i], *best);
      is_placed[i] = true;
      has_changed = true;
    }
  }
  // What is left tells nothing that another one tells, too. Among themselves such files agree.
  const Placed all = all_placed(placed, is_placed);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (is_placed[i] || is_empty(files[i].extent) || all.first == SIZE_MAX) continue;
    if (files[i].has_only_events) continue;
    if (is_of_a_zone(files[i]) && placed[all.first].is_absolute) {
      std::optional<JoinedClock> as_another;
      for (std::size_t other = 0; other < i && !as_another; ++other) {
        if (joined[other] && is_of_one_zone(files[i], files[other]))
          as_another = in_the_zone_of(files[other], joined[other], other);
      }
      joined[i] = as_another ? as_another : by_likely_zone(files[i], all.range, all.first);
    } else {
      joined[i] = JoinedClock{.by = JoinedBy::kBegin, .to = all.first};
      joined[i]->shift_ns = all.range.from_ns - files[i].extent.from_ns;
    }
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool has_measure = all.first != SIZE_MAX && placed[all.first].is_absolute;
    if (files[i].has_only_events && has_measure && !is_empty(files[i].extent))
      joined[i] = by_the_others(files, joined, i, all.range, all.first);
  }
  return joined;
}

std::string describe(const JoinedClock& joined, const std::string& other_name) {
  const std::string within =
      joined.uncertainty_ns < 0 ? "with unknown uncertainty" : "within " + shown_ns(joined.uncertainty_ns);
  switch (joined.by) {
    case JoinedBy::kUnixTime: return "by Unix time, " + within;
    case JoinedBy::kBegin:
      return format("to begin where {} does, {}: no certain Unix time, and no steps or collectives in common",
                    other_name, within);
    case JoinedBy::kTimeZone: {
      const auto hours = -static_cast<double>(joined.shift_ns) / static_cast<double>(60 * kMinuteNs);
      return format("local time of UTC{:+g}, where it falls among the times of {}, {}", hours, other_name, within);
    }
    case JoinedBy::kYear: return format("in the year in which it falls next to {}, {}", other_name, within);
    case JoinedBy::kSteps:
      return format("by {} steps of the same number in {}, {}", joined.matches, other_name, within);
    case JoinedBy::kCollectives: return format("by {} collectives with {}, {}", joined.matches, other_name, within);
  }
  return {};
}

}  // namespace hotlap
