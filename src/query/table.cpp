#include "query/table.h"

#include <algorithm>

#include "base/clock.h"

namespace hotlap {

double QueriedRecording::seconds(std::int64_t t_ns) const {
  // In floating point, since what a file says need not fit together.
  return (static_cast<double>(t_ns) - static_cast<double>(origin_ns)) / static_cast<double>(kNsPerS);
}

Result<std::unique_ptr<QueriedRun>> QueriedRun::open(RunFolder folder, Findings findings) {
  HOTLAP_TRY_ASSIGN(RunReader reader, RunReader::open(std::move(folder)));
  std::unique_ptr<QueriedRun> run(new QueriedRun(std::move(reader), std::move(findings)));
  std::optional<std::int64_t> begin_wall_ns;
  for (const auto& recording : run->reader_.recordings()) {
    QueriedRecording one;
    one.reader = recording.get();
    one.number = static_cast<std::int64_t>(run->recordings_.size()) + 1;
    one.node = recording->info().node;
    if (Result<std::vector<ClockReading>> readings = recording->read_clock(); readings.ok()) {
      one.clock = WallClock(std::move(*readings));
    }
    if (const Result<std::vector<ProcessInfo>> processes = recording->read_processes(); processes.ok()) {
      for (const ProcessInfo& process : *processes) one.processes.emplace(process.slot, process);
    }
    const Result<TimeRange> extent = recording->extent();
    if (extent.ok() && extent->from_ns <= extent->to_ns) {
      one.origin_ns = extent->from_ns;
      if (const auto wall_ns = one.clock.wall_ns(extent->from_ns)) {
        begin_wall_ns = std::min(begin_wall_ns.value_or(*wall_ns), *wall_ns);
      }
    }
    run->recordings_.push_back(std::move(one));
  }
  // Recordings of one run begin at the same second 0 where their clocks can be brought together. An import that was
  // ended did not come to it.
  const bool is_whole = run->info().status != RunStatus::kKilled;
  std::optional<std::int64_t> begin_ns;  // of files that were imported together
  for (QueriedRecording& one : run->recordings_) {
    const Result<TimeRange> extent = one.reader->extent();
    if (!is_whole || !has_axis_of_import(one.reader->info()) || !extent.ok() || extent->from_ns > extent->to_ns)
      continue;
    begin_ns = std::min(begin_ns.value_or(extent->from_ns), extent->from_ns);
  }
  for (QueriedRecording& one : run->recordings_) {
    if (is_whole && begin_ns && has_axis_of_import(one.reader->info())) {
      one.origin_ns = *begin_ns;
      continue;
    }
    const auto wall_ns = one.clock.wall_ns(one.origin_ns);
    if (!wall_ns || !begin_wall_ns) continue;
    const std::uint64_t later = static_cast<std::uint64_t>(*wall_ns) - static_cast<std::uint64_t>(*begin_wall_ns);
    one.origin_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(one.origin_ns) - later);
  }
  return run;
}

Result<const std::vector<Finding>*> QueriedRun::findings() {
  if (!findings_) {
    if (!make_findings_) return Error{ErrorCode::kUnsupported, "findings are not known here"};
    HOTLAP_TRY_ASSIGN(findings_, make_findings_());
  }
  return &*findings_;
}

Result<bool> ListedRows::next() {
  if (next_ >= rows_.size()) return false;
  cells_.clear();
  for (const Value& value : rows_[next_]) {
    std::visit(
        [&](const auto& content) {
          if constexpr (std::is_same_v<std::decay_t<decltype(content)>, std::string>) {
            cells_.emplace_back(std::string_view(content));
          } else {
            cells_.emplace_back(content);
          }
        },
        value);
  }
  ++next_;
  return true;
}

}  // namespace hotlap
