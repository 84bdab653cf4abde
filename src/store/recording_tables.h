#pragma once
// The small tables of a .hotlap file (store/schema.h) as rows that were checked: what cannot be read as what our writer
// makes is refused (kCorrupt), or left out and counted where one row costs only itself. Text is made valid UTF-8.
// Errors do not name the file. All of them are called inside a transaction where several have to fit together.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "store/format.h"
#include "store/recording_reader.h"
#include "store/sqlite_db.h"

namespace hotlap {

inline bool is_plausible(std::int64_t t_ns) { return t_ns >= -kTimeNsMax && t_ns <= kTimeNsMax; }

struct RecordingMeta {
  RecordingInfo info;
  bool is_closed = false;
  std::map<std::string, std::int64_t, std::less<>> loss_offsets;  // where counters of an import first counted
};
Result<void> read_meta(Database& database, RecordingMeta& meta);

// Those behind the last of `series`.
Result<void> read_more_series(Database& database, std::vector<StoredSeries>& series);

class NameTable {
 public:
  Result<void> read_more(Database& database);
  // Empty where there is no such name.
  std::string name(std::uint32_t id) const { return id >= 1 && id <= names_.size() ? names_[id - 1] : std::string(); }

 private:
  std::vector<std::string> names_;
  std::size_t bytes_ = 0;
};

struct StretchRow {
  std::int64_t id;
  std::int64_t from_ns;
  std::int64_t to_ns;
  std::uint64_t samples;
  std::optional<std::int64_t> tens_to_ns;
  std::optional<std::int64_t> hours_to_ns;
  bool has_days;
};

class StretchTable {
 public:
  Result<void> read_more(Database& database);
  const std::vector<StretchRow>& rows() const { return rows_; }
  std::uint64_t damaged() const { return damaged_; }  // rows with times that cannot be

 private:
  std::vector<StretchRow> rows_;
  std::int64_t last_id_ = INT64_MIN;  // seen, whole or not
  std::uint64_t damaged_ = 0;
};

struct SpanRow {
  std::int64_t first;  // number of its first span, among all ever recorded
  Bytes payload;
};
inline constexpr std::size_t kSpanRowsAtOnce = 64;
// At most kSpanRowsAtOnce rows from the `next`-th span on; `next` goes on behind them, at the end to the number of
// spans recorded so far. Rows may be put together between two calls; counting spans, not rows, keeps the place.
Result<void> read_span_rows(Database& database, std::int64_t& next, std::uint64_t kinds_mask, TimeRange range,
                            std::vector<SpanRow>& found);

// Those behind `cursor`, which goes on behind them.
Result<std::vector<Event>> read_events_after(Database& database, std::uint64_t& cursor);
Result<std::vector<ClockReading>> read_clock_readings(Database& database);
Result<std::vector<ProcessInfo>> read_process_rows(Database& database);
Result<std::map<std::string, std::uint64_t>> read_loss_counts(Database& database);

}  // namespace hotlap
