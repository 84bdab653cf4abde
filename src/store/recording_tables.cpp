#include "store/recording_tables.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::size_t kNamesBytesMax = std::size_t{512} << 20U;

std::int64_t plausible_or_unknown(std::int64_t t_ns) { return is_plausible(t_ns) ? t_ns : -1; }

}  // namespace

Result<void> read_meta(Database& database, RecordingMeta& meta) {
  HOTLAP_TRY_ASSIGN(Statement rows, database.prepare("SELECT key,text FROM meta"));
  meta.info.attributes.clear();
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) return {};
    const std::string key = rows.text(0);
    std::string text = to_valid_utf8(rows.text(1));
    if (key == "recording.id") {
      meta.info.id = std::move(text);
    } else if (key == "run.id") {
      meta.info.run_id = std::move(text);
    } else if (key == "node") {
      meta.info.node = std::move(text);
    } else if (key == "hotlap.version") {
      meta.info.hotlap_version = std::move(text);
    } else if (key == "boot.id") {
      meta.info.boot_id = std::move(text);
    } else if (key == "interval_ns") {
      meta.info.interval_ns = parse_i64(text).value_or(0);
    } else if (key == "closed") {
      meta.is_closed = text == "1";
    } else if (key.starts_with(kLossOffsetKey)) {
      meta.loss_offsets[key.substr(kLossOffsetKey.size())] = parse_i64(text).value_or(-1);
    } else if (key.starts_with("attribute.")) {
      meta.info.attributes[key.substr(std::string_view("attribute.").size())] = std::move(text);
    }
  }
}

Result<void> read_more_series(Database& database, std::vector<StoredSeries>& series) {
  HOTLAP_TRY_ASSIGN(Statement rows,
                    database.prepare("SELECT s.id,name,unit,instance,kind,scale,window_ns,min_period_ns "
                                     "FROM series s LEFT JOIN metrics m ON m.id=metric WHERE s.id>=?1 ORDER BY s.id"));
  rows.bind(1, static_cast<std::int64_t>(series.size()));
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) return {};
    const std::int64_t id = rows.integer(0);
    // Handles count up without a hole; anything else is not what our writer makes.
    if (id != static_cast<std::int64_t>(series.size()) || id >= std::int64_t{kSeriesMax} || rows.is_null(1)) {
      return Error{ErrorCode::kCorrupt, format("damaged: series {} is out of order", id)};
    }
    series.push_back({.handle = SeriesHandle{static_cast<std::uint32_t>(id)},
                      .metric = to_valid_utf8(rows.text(1)),
                      .unit = to_valid_utf8(rows.text(2)),
                      .instance = to_valid_utf8(rows.text(3)),
                      .kind = rows.integer(4) == 1 ? MetricKind::kCounter : MetricKind::kGauge,
                      .scale = rows.real(5),
                      .window_ns = rows.integer(6),
                      .min_period_ns = rows.integer(7)});
  }
}

Result<void> NameTable::read_more(Database& database) {
  HOTLAP_TRY_ASSIGN(Statement rows, database.prepare("SELECT id,text FROM names WHERE id>?1 ORDER BY id"));
  rows.bind(1, static_cast<std::int64_t>(names_.size()));
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) return {};
    if (rows.integer(0) != static_cast<std::int64_t>(names_.size()) + 1) {
      return Error{ErrorCode::kCorrupt, format("damaged: name {} is out of order", rows.integer(0))};
    }
    names_.push_back(to_valid_utf8(rows.text(1)));
    bytes_ += names_.back().size() + sizeof(std::string);
    if (bytes_ > kNamesBytesMax) return Error{ErrorCode::kResourceLimit, "its table of names is too large to read"};
  }
}

Result<void> StretchTable::read_more(Database& database) {
  HOTLAP_TRY_ASSIGN(Statement rows,
                    database.prepare("SELECT id,from_ns,to_ns,samples,tens_to_ns,hours_to_ns,has_days FROM stretches "
                                     "WHERE id>?1 ORDER BY id"));
  rows.bind(1, last_id_);
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) return {};
    StretchRow stretch{.id = rows.integer(0),
                       .from_ns = rows.integer(1),
                       .to_ns = rows.integer(2),
                       .samples = static_cast<std::uint64_t>(rows.integer(3)),
                       .tens_to_ns = std::nullopt,
                       .hours_to_ns = std::nullopt,
                       .has_days = !rows.is_null(6)};
    if (!rows.is_null(4)) stretch.tens_to_ns = rows.integer(4);
    if (!rows.is_null(5)) stretch.hours_to_ns = rows.integer(5);
    const bool is_whole = is_plausible(stretch.from_ns) && is_plausible(stretch.to_ns) &&
                          stretch.from_ns <= stretch.to_ns && is_plausible(stretch.tens_to_ns.value_or(0)) &&
                          is_plausible(stretch.hours_to_ns.value_or(0));
    if (stretch.id < 0 || stretch.id > kStretchIdMax) return Error{ErrorCode::kCorrupt, "damaged: stretch ids"};
    last_id_ = stretch.id;
    if (is_whole) {
      rows_.push_back(stretch);
    } else {
      ++damaged_;
    }
  }
}

Result<void> read_span_rows(Database& database, std::int64_t& next, std::uint64_t kinds_mask, TimeRange range,
                            std::vector<SpanRow>& found) {
  found.clear();
  HOTLAP_TRY_ASSIGN(Statement rows,
                    database.prepare("SELECT id,count,payload FROM spans WHERE "
                                     "id>=coalesce((SELECT max(id) FROM spans WHERE id<=?1),0) AND id+count>?1 AND "
                                     "to_ns>=?2 AND from_ns<?3 AND (kinds&?4)!=0 ORDER BY id LIMIT ?5"));
  rows.bind(1, next).bind(2, range.from_ns).bind(3, range.to_ns).bind(4, static_cast<std::int64_t>(kinds_mask));
  rows.bind(5, static_cast<std::int64_t>(kSpanRowsAtOnce));
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) break;
    const std::int64_t first = rows.integer(0);
    const std::int64_t count = rows.integer(1);
    if (first < 0 || count <= 0 || count > static_cast<std::int64_t>(kSpansPerBlockMax) || first > INT64_MAX - count) {
      return Error{ErrorCode::kCorrupt, "damaged: rows of spans"};
    }
    const ByteView payload = rows.blob(2);
    found.push_back({.first = first, .payload = Bytes(payload.begin(), payload.end())});
    next = first + count;
  }
  if (found.size() == kSpanRowsAtOnce) return {};
  HOTLAP_TRY_ASSIGN(const std::int64_t end, database.integer("SELECT id+count FROM spans ORDER BY id DESC LIMIT 1"));
  next = std::max(next, end);
  return {};
}

Result<std::vector<Event>> read_events_after(Database& database, std::uint64_t& cursor) {
  std::vector<Event> events;
  HOTLAP_TRY_ASSIGN(Statement rows,
                    database.prepare("SELECT id,t_ns,kind,value,text FROM events WHERE id>?1 ORDER BY id"));
  rows.bind(1, static_cast<std::int64_t>(std::min<std::uint64_t>(cursor, INT64_MAX)));
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) return events;
    cursor = static_cast<std::uint64_t>(std::max<std::int64_t>(rows.integer(0), 0));
    const std::int64_t kind = rows.integer(2);
    if (kind < 0 || kind > UINT8_MAX || !is_plausible(rows.integer(1))) continue;
    events.push_back({.t_ns = rows.integer(1),
                      .kind = static_cast<EventKind>(kind),
                      .value = rows.integer(3),
                      .text = to_valid_utf8(rows.text(4))});
  }
}

Result<std::vector<ClockReading>> read_clock_readings(Database& database) {
  std::vector<ClockReading> readings;
  HOTLAP_TRY_ASSIGN(Statement rows, database.prepare("SELECT mono_ns,wall_ns,boot_ns FROM clock ORDER BY id"));
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) return readings;
    if (!is_plausible(rows.integer(0)) || !is_plausible(rows.integer(1)) || !is_plausible(rows.integer(2))) continue;
    readings.push_back({.mono_ns = rows.integer(0), .wall_ns = rows.integer(1), .boot_ns = rows.integer(2)});
  }
}

Result<std::vector<ProcessInfo>> read_process_rows(Database& database) {
  std::vector<ProcessInfo> processes;
  HOTLAP_TRY_ASSIGN(Statement rows, database.prepare("SELECT slot,pid,role,number,parent,label,start_ns,end_ns,command,"
                                                     "has_hook,hook_absent_reason FROM processes ORDER BY slot"));
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) return processes;
    const std::int64_t role = rows.integer(2);
    processes.push_back({.slot = static_cast<std::uint32_t>(rows.integer(0)),
                         .pid = static_cast<std::int32_t>(rows.integer(1)),
                         .role = role >= 0 && role <= static_cast<std::int64_t>(ProcessRole::kSupervisor)
                                     ? static_cast<ProcessRole>(role)
                                     : ProcessRole::kOther,
                         .index = static_cast<std::int32_t>(rows.integer(3)),
                         .parent = static_cast<std::uint32_t>(rows.integer(4)),
                         .label = to_valid_utf8(rows.text(5)),
                         .start_ns = plausible_or_unknown(rows.integer(6)),
                         .end_ns = plausible_or_unknown(rows.integer(7)),
                         .command = to_valid_utf8(rows.text(8)),
                         .has_hook = rows.integer(9) != 0,
                         .hook_absent_reason = to_valid_utf8(rows.text(10))});
  }
}

Result<std::map<std::string, std::uint64_t>> read_loss_counts(Database& database) {
  std::map<std::string, std::uint64_t> counts;
  HOTLAP_TRY_ASSIGN(Statement rows, database.prepare("SELECT counter,count FROM losses"));
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) break;
    counts[to_valid_utf8(rows.text(0))] += static_cast<std::uint64_t>(std::max<std::int64_t>(rows.integer(1), 0));
  }
  return counts;
}

}  // namespace hotlap
