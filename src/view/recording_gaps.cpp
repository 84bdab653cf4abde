#include "view/recording_gaps.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace hotlap {
namespace {

constexpr std::int64_t kKillsMax = 1'000'000;  // in one event: more is damage

}  // namespace

std::string_view why_no_recording(RunStatus status) {
  return status == RunStatus::kRunning ? "nothing is recorded yet"
                                       : "there is no recording (deleted since, or it could not be made)";
}

std::int64_t oom_kills_of(std::span<RecordingReader* const> recordings) {
  std::int64_t kills = 0;
  for (RecordingReader* recording : recordings) {
    const Result<std::vector<Event>> events = recording->read_events({});
    if (!events.ok()) continue;
    for (const Event& event : *events) {
      if (event.kind == EventKind::kOomKill && event.value > 0) kills += std::min<std::int64_t>(event.value, kKillsMax);
    }
  }
  return kills;
}

bool lacks_unix_time(RecordingReader& recording) {
  if (recording.series().empty()) return false;
  const Result<std::vector<ClockReading>> readings = recording.read_clock();
  return readings.ok() && readings->empty();
}

std::vector<Loss> losses_of_clock(RecordingReader& recording) {
  const bool is_imported = recording.info().boot_id.empty();
  if (is_imported || !lacks_unix_time(recording)) return {};
  const auto* const found = std::ranges::find(kLosses, "store.clock_unknown", &LossDesc::counter);
  HOTLAP_CHECK(found != kLosses.end());
  return {{.counter = std::string(found->counter), .count = 1, .help = std::string(found->help)}};
}

}  // namespace hotlap
