#include "store/recording_writer.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "store/format.h"
#include "store/home.h"
#include "store/span_block.h"
#include "store/sqlite_db.h"
#include "store/stretch_builder.h"

namespace hotlap {
namespace {

constexpr std::size_t kFoldSamplesPerCommit = 32U << 10U;  // about 1 ms
constexpr std::size_t kOpenBytesMax = std::size_t{4} << 20U;
constexpr std::uint32_t kWalHardFactor =
    8;  // over the bound by so much: readers held the log up; wait for them a little
constexpr std::uint64_t kAmpleRoomBytes = std::uint64_t{1} << 30U;  // above the floor: asked at every 10th commit only
constexpr int kCommitsInAmpleRoom = 9;
constexpr std::size_t kNamesMax = 4'000'000;       // name ids; beyond: 0, "no name"
constexpr std::size_t kSpanRowsMax = 600;          // small rows of spans before they are put together
constexpr std::size_t kTextBytesMax = 64U << 10U;  // of one text from outside; longer ones are cut
constexpr std::size_t kFreedPagesPerClose = 1U << 20U;

std::string_view cut(std::string_view text) { return text.substr(0, kTextBytesMax); }

struct PendingMetric {
  std::string name;
  std::string unit;
  MetricKind kind;
  double scale;
  std::int64_t window_ns;
  std::int64_t min_period_ns;
};

struct PendingSeries {
  std::uint32_t metric;
  std::string instance;
};

// A whole block of spans, ready to be written; it replaces the small rows that held its first ones.
struct EncodedSpans {
  std::int64_t first = 0;  // spans recorded before
  std::int64_t count = 0;
  std::int64_t in_rows = 0;
  SpanSummary summary;
  Bytes payload;
};

// Every statement of the writer; prepared at first use, dropped with the connection.
enum class Sql : std::uint8_t {
  kBegin,
  kCommit,
  kMeta,
  kMetric,
  kSeries,
  kName,
  kProcess,
  kEvent,
  kClock,
  kLoss,
  kStretch,
  kBlock,
  kReadBlock,
  kHasDays,
  kDropTails,
  kTail,
  kSpans,
  kDropSpans,
  kCount
};
constexpr std::array<std::string_view, static_cast<std::size_t>(Sql::kCount)> kSql{
    "BEGIN IMMEDIATE",
    "COMMIT",
    "INSERT OR REPLACE INTO meta VALUES(?1,?2)",
    "INSERT INTO metrics VALUES(?1,?2,?3,?4,?5,?6,?7)",
    "INSERT INTO series VALUES(?1,?2,?3)",
    "INSERT INTO names VALUES(?1,?2)",
    "INSERT OR REPLACE INTO processes VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
    "INSERT INTO events VALUES(NULL,?1,?2,?3,?4)",
    "INSERT INTO clock VALUES(NULL,?1,?2,?3)",
    "INSERT OR REPLACE INTO losses VALUES(?1,?2)",
    "INSERT INTO stretches VALUES(?1,?2,?3,?4,?5,?6,?7)",
    "INSERT INTO blocks VALUES(?1,?2,?3,?4)",
    "SELECT payload FROM blocks WHERE id=?1",
    "UPDATE stretches SET has_days=1 WHERE id=?1",
    "DELETE FROM tails WHERE id BETWEEN ?1 AND ?2",
    "INSERT INTO tails VALUES(?1,?2,?3,?4)",
    "INSERT INTO spans VALUES(?1,?2,?3,?4,?5,?6,?7,?8)",
    "DELETE FROM spans WHERE id BETWEEN ?1 AND ?2",
};

class SqliteWriter final : public RecordingWriter {
 public:
  SqliteWriter(std::filesystem::path path, Database database, const WriterOptions& options)
      : path_(std::move(path)), options_(options), database_(std::move(database)), builder_(kOpenBytesMax) {}

  Result<SeriesHandle> add_series(const MetricDesc& metric, std::string_view instance) override;
  void add_tick(std::int64_t t_ns, std::span<const Sample> samples) override;
  std::uint32_t add_name(std::string_view text) override;
  void add_span(const Span& span) override;
  void add_event(const Event& event) override;
  void add_clock(const ClockReading& reading) override { clock_.push_back(reading); }
  void put_process(const ProcessInfo& process) override { processes_[process.slot] = process; }
  void put_attribute(std::string_view key, std::string_view text) override {
    meta_[format("attribute.{}", cut(key))] = cut(text);
  }
  void put_meta(std::string key, std::string_view text) { meta_[std::move(key)] = cut(text); }
  void add_loss(std::string_view counter, std::uint64_t count) override;
  void put_loss_offset(std::string_view counter, std::int64_t first_offset) override {
    meta_[format("{}{}", kLossOffsetKey, cut(counter))] = format("{}", first_offset);
  }
  Result<void> commit() override;
  Result<void> close() override;
  std::uint64_t bytes_written() const override;

 private:
  Result<Statement*> statement(Sql which);
  Result<void> check_place();
  Result<void> check_room();
  Result<void> write_all();
  Result<void> write_descriptions();
  Result<void> write_happenings();
  Result<void> write_stretches();
  Result<void> write_days();
  Result<void> write_days_of_group(std::span<const std::int64_t> stretches, std::uint32_t group);
  Result<void> write_tail();
  Result<void> write_spans();
  Result<void> write_span_row(std::int64_t first, std::int64_t count, const SpanSummary& summary, const Bytes& payload);
  void written();
  void failed();
  void drop_beyond_bound();
  void fold_spans();
  void bound_wal();

  std::filesystem::path path_;
  WriterOptions options_;
  std::optional<Database> database_;  // nothing between a failure and the next commit, which opens it again
  std::array<Statement, static_cast<std::size_t>(Sql::kCount)> statements_;
  bool closed_ = false;
  bool is_closing_ = false;
  int commits_without_room_check_ = 0;

  std::unordered_map<std::string, std::uint32_t> metric_ids_;
  std::unordered_map<std::string, std::uint32_t> series_ids_;  // by metric id and instance
  std::unordered_map<std::string, std::uint32_t> name_ids_;
  BlockCodec codec_;
  StretchBuilder builder_;

  // What the next commit writes.
  std::vector<PendingMetric> metrics_;
  std::vector<PendingSeries> series_;
  std::uint32_t metrics_written_ = 0;
  std::uint32_t series_written_ = 0;
  std::vector<std::string> names_;
  std::uint32_t names_written_ = 0;
  std::map<std::uint32_t, ProcessInfo> processes_;
  std::map<std::string, std::string> meta_;
  std::deque<Event> events_;
  std::size_t events_bytes_ = 0;
  std::vector<ClockReading> clock_;
  std::map<std::string, std::uint64_t, std::less<>> losses_;
  std::set<std::string, std::less<>> losses_changed_;
  std::deque<EncodedStretch> stretches_;
  std::vector<std::int64_t> hour_stretches_;       // written, with hours that are in no days block
  std::vector<std::int64_t> hour_stretches_used_;  // the same, once the transaction under way is done
  std::deque<EncodedSpans> span_blocks_;
  std::vector<Span> spans_;
  std::int64_t spans_first_ = 0;   // spans recorded before spans_
  std::size_t spans_in_rows_ = 0;  // of spans_: in the file, in rows that their block will replace
  std::size_t span_rows_ = 0;
  Bytes raw_;
  Bytes span_row_;

  std::int64_t next_tail_id_ = 1;
  // What the transaction under way has written.
  std::int64_t tail_id_used_ = 0;
  bool span_row_used_ = false;
};

Result<SeriesHandle> SqliteWriter::add_series(const MetricDesc& metric, std::string_view instance) {
  const auto [metric_place, is_fresh] =
      metric_ids_.try_emplace(std::string(metric.name), static_cast<std::uint32_t>(metric_ids_.size()));
  if (is_fresh) {
    metrics_.push_back({.name = std::string(metric.name),
                        .unit = std::string(metric.unit),
                        .kind = metric.kind,
                        .scale = metric.scale,
                        .window_ns = metric.window_ns,
                        .min_period_ns = metric.min_period_ns});
  }
  std::string key = format("{} {}", metric_place->second, cut(instance));
  const auto id = static_cast<std::uint32_t>(series_ids_.size());
  if (const auto found = series_ids_.find(key); found != series_ids_.end()) return SeriesHandle{found->second};
  if (id >= options_.series_max || id >= kSeriesMax) {
    return Error{ErrorCode::kResourceLimit,
                 format("more than {} series: {} of \"{}\" is not recorded", id, metric.name, instance)};
  }
  series_ids_.emplace(std::move(key), id);
  series_.push_back({.metric = metric_place->second, .instance = std::string(cut(instance))});
  builder_.set_series_count(id + 1);
  return SeriesHandle{id};
}

void SqliteWriter::add_tick(std::int64_t t_ns, std::span<const Sample> samples) {
  if (t_ns < -kTimeNsMax || t_ns >= kTimeNsMax) return add_loss("collect.duplicates", samples.size());
  const TickCounts counts = builder_.add_tick(t_ns, samples);
  if (counts.duplicates > 0) add_loss("collect.duplicates", counts.duplicates);
  if (counts.refused > 0) add_loss("record.series_refused", counts.refused);
}

std::uint32_t SqliteWriter::add_name(std::string_view text) {
  std::string key(cut(text));
  if (const auto found = name_ids_.find(key); found != name_ids_.end()) return found->second;
  if (name_ids_.size() >= kNamesMax) return 0;
  names_.push_back(key);
  const auto id = static_cast<std::uint32_t>(name_ids_.size() + 1);
  name_ids_.emplace(std::move(key), id);
  return id;
}

void SqliteWriter::add_span(const Span& span) {
  if (span.start_ns < -kTimeNsMax || span.start_ns >= kTimeNsMax || span.duration_ns > kTimeNsMax) {
    return add_loss("store.spans_lost", 1);
  }
  spans_.push_back(span);
  spans_.back().duration_ns = std::max<std::int64_t>(span.duration_ns, -1);
  if (spans_.size() >= kSpansPerBlockMax) {
    fold_spans();
    drop_beyond_bound();
  }
}

void SqliteWriter::fold_spans() {
  if (spans_.empty()) return;
  raw_.clear();
  encode_spans(spans_, raw_);
  EncodedSpans& block = span_blocks_.emplace_back();
  block.first = spans_first_;
  block.count = static_cast<std::int64_t>(spans_.size());
  block.in_rows = static_cast<std::int64_t>(spans_in_rows_);
  block.summary = summarize(spans_);
  codec_.seal(BlockKind::kSpans, raw_, true, block.payload);
  spans_first_ += block.count;
  spans_.clear();
  spans_in_rows_ = 0;
  span_rows_ = 0;
}

void SqliteWriter::add_event(const Event& event) {
  events_.push_back(event);
  if (event.text.size() > kTextBytesMax) events_.back().text.resize(kTextBytesMax);
  events_bytes_ += sizeof(Event) + events_.back().text.size();
  if (events_bytes_ > options_.pending_bytes_max / 4) drop_beyond_bound();
}

void SqliteWriter::add_loss(std::string_view counter, std::uint64_t count) {
  if (count == 0) return;
  auto place = losses_.find(counter);
  if (place == losses_.end()) place = losses_.emplace(std::string(counter), 0).first;
  place->second += count;
  losses_changed_.emplace(counter);
}

Result<Statement*> SqliteWriter::statement(Sql which) {
  const auto index = static_cast<std::size_t>(which);
  if (!statements_[index]) {
    HOTLAP_TRY_ASSIGN(statements_[index], database_->prepare(kSql[index]));
  }
  return &statements_[index];
}

Result<void> SqliteWriter::check_place() {
  HOTLAP_TRY(check_room());
  if (!database_) {
    HOTLAP_TRY_ASSIGN(Database opened, Database::open(path_.string(), Database::Access::kReadWrite, options_.vfs));
    database_ = std::move(opened);
    HOTLAP_TRY(database_->execute("PRAGMA synchronous=NORMAL; PRAGMA secure_delete=0"));
  }
  if (database_->was_moved()) {
    return Error{ErrorCode::kIo, format("{}: was deleted or moved while it is recorded", path_.string())};
  }
  return {};
}

// Asked at each commit only where room is short.
Result<void> SqliteWriter::check_room() {
  if (commits_without_room_check_ > 0) {
    --commits_without_room_check_;
    return {};
  }
  struct statvfs space {};
  if (::statvfs(path_.parent_path().c_str(), &space) != 0) {
    return errno_error(format("{}: the run folder is gone", path_.string()), errno);
  }
  const std::uint64_t free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (free_bytes < options_.free_bytes_floor) {
    return Error{ErrorCode::kIo, format("{}: only {} MiB are free on this disk, nothing more is recorded below {} MiB: "
                                        "make space, or set HOTLAP_HOME to another disk",
                                        path_.string(), free_bytes >> 20U, options_.free_bytes_floor >> 20U)};
  }
  if (free_bytes - options_.free_bytes_floor >= kAmpleRoomBytes) commits_without_room_check_ = kCommitsInAmpleRoom;
  return {};
}

Result<void> SqliteWriter::commit() {
  HOTLAP_CHECK(!closed_);
  builder_.encode_some(codec_, kFoldSamplesPerCommit);
  while (std::optional<EncodedStretch> ready = builder_.take_encoded()) stretches_.push_back(std::move(*ready));
  if (span_rows_ >= kSpanRowsMax) fold_spans();
  Result<void> outcome = check_place();
  if (outcome.ok()) outcome = write_all();
  if (!outcome.ok()) {
    failed();
    builder_.seal_if_due(false);
    return std::move(outcome).error().with_context("not stored");
  }
  written();
  bound_wal();
  builder_.seal_if_due(false);
  return {};
}

Result<void> SqliteWriter::write_all() {
  tail_id_used_ = 0;
  span_row_used_ = false;
  HOTLAP_TRY_ASSIGN(Statement * begin, statement(Sql::kBegin));
  HOTLAP_TRY(begin->run());
  HOTLAP_TRY(write_descriptions());
  HOTLAP_TRY(write_happenings());
  HOTLAP_TRY(write_stretches());
  HOTLAP_TRY(write_days());
  HOTLAP_TRY(write_tail());
  HOTLAP_TRY(write_spans());
  HOTLAP_TRY_ASSIGN(Statement * commit, statement(Sql::kCommit));
  return commit->run();
}

Result<void> SqliteWriter::write_descriptions() {
  for (const auto& [key, text] : meta_) {
    HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kMeta));
    HOTLAP_TRY(put->bind(1, std::string_view(key)).bind(2, std::string_view(text)).run());
  }
  std::int64_t metric_id = metrics_written_;
  for (const PendingMetric& one : metrics_) {
    HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kMetric));
    put->bind(1, metric_id++).bind(2, std::string_view(one.name)).bind(3, std::string_view(one.unit));
    put->bind(4, static_cast<std::int64_t>(one.kind)).bind(5, one.scale);
    HOTLAP_TRY(put->bind(6, one.window_ns).bind(7, one.min_period_ns).run());
  }
  std::int64_t series_id = series_written_;
  for (const PendingSeries& one : series_) {
    HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kSeries));
    put->bind(1, series_id++).bind(2, std::int64_t{one.metric});
    HOTLAP_TRY(put->bind(3, std::string_view(one.instance)).run());
  }
  std::int64_t name_id = names_written_;
  for (const std::string& text : names_) {
    HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kName));
    HOTLAP_TRY(put->bind(1, ++name_id).bind(2, std::string_view(text)).run());
  }
  for (const auto& [slot, process] : processes_) {
    HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kProcess));
    put->bind(1, std::int64_t{slot}).bind(2, std::int64_t{process.pid});
    put->bind(3, static_cast<std::int64_t>(process.role)).bind(4, std::int64_t{process.index});
    put->bind(5, std::int64_t{process.parent}).bind(6, cut(process.label)).bind(7, process.start_ns);
    put->bind(8, process.end_ns).bind(9, cut(process.command)).bind(10, std::int64_t{process.has_hook});
    HOTLAP_TRY(put->bind(11, cut(process.hook_absent_reason)).run());
  }
  return {};
}

Result<void> SqliteWriter::write_happenings() {
  for (const Event& event : events_) {
    HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kEvent));
    put->bind(1, event.t_ns).bind(2, static_cast<std::int64_t>(event.kind)).bind(3, event.value);
    HOTLAP_TRY(put->bind(4, std::string_view(event.text)).run());
  }
  for (const ClockReading& reading : clock_) {
    HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kClock));
    HOTLAP_TRY(put->bind(1, reading.mono_ns).bind(2, reading.wall_ns).bind(3, reading.boot_ns).run());
  }
  for (const std::string& counter : losses_changed_) {
    HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kLoss));
    HOTLAP_TRY(put->bind(1, std::string_view(counter)).bind(2, static_cast<std::int64_t>(losses_[counter])).run());
  }
  return {};
}

Result<void> SqliteWriter::write_stretches() {
  for (const EncodedStretch& stretch : stretches_) {
    HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kStretch));
    put->bind(1, stretch.id).bind(2, stretch.from_ns).bind(3, stretch.to_ns);
    put->bind(4, static_cast<std::int64_t>(stretch.samples));
    const auto bind_maybe = [put](int parameter, std::optional<std::int64_t> value) {
      value ? put->bind(parameter, *value) : put->bind_null(parameter);
    };
    bind_maybe(5, stretch.tens_to_ns);
    bind_maybe(6, stretch.hours_to_ns);
    bind_maybe(7, std::nullopt);
    HOTLAP_TRY(put->run());
    for (const EncodedBlock& block : stretch.blocks) {
      HOTLAP_TRY_ASSIGN(Statement * add, statement(Sql::kBlock));
      add->bind(1, block.id).bind(2, std::int64_t{block.first_series}).bind(3, std::int64_t{block.last_series});
      HOTLAP_TRY(add->bind(4, ByteView(block.payload)).run());
    }
    if (stretch.tails.first > stretch.tails.last) continue;
    HOTLAP_TRY_ASSIGN(Statement * drop, statement(Sql::kDropTails));
    HOTLAP_TRY(drop->bind(1, stretch.tails.first).bind(2, stretch.tails.last).run());
  }
  return {};
}

// The hours of a day lie all over the file; put together, a month of them is read in a few pieces.
Result<void> SqliteWriter::write_days() {
  std::vector<std::int64_t> stretches = hour_stretches_;
  for (const EncodedStretch& stretch : stretches_) {
    if (stretch.hours_to_ns) stretches.push_back(stretch.id);
  }
  hour_stretches_used_ = stretches;
  if (stretches.size() < (is_closing_ ? 2 : kHoursPerDaysBlock)) return {};
  hour_stretches_used_.clear();
  const auto groups = static_cast<std::uint32_t>((series_ids_.size() + kSeriesPerChunk - 1) / kSeriesPerChunk);
  for (std::uint32_t group = 0; group < groups; ++group) HOTLAP_TRY(write_days_of_group(stretches, group));
  HOTLAP_TRY_ASSIGN(Statement * mark, statement(Sql::kHasDays));
  return mark->bind(1, stretches.back()).run();
}

Result<void> SqliteWriter::write_days_of_group(std::span<const std::int64_t> stretches, std::uint32_t group) {
  std::map<std::uint32_t, TierSeries> all;
  const auto add = [&all](std::uint32_t series, std::span<const TierPoint> points) {
    TierSeries& into = all.try_emplace(series, kHourNs).first->second;
    for (const TierPoint& point : points) into.add(point);
  };
  for (const std::int64_t stretch : stretches) {
    HOTLAP_TRY_ASSIGN(Statement * read, statement(Sql::kReadBlock));
    read->bind(1, block_id(stretch, BlockKind::kHours, group));
    HOTLAP_TRY_ASSIGN(const bool row, read->step());
    const std::optional<ByteView> raw = row ? codec_.open(BlockKind::kHours, read->blob(0)) : std::nullopt;
    // A block that cannot be read is missing from the days as it is from the hours.
    if (raw) (void)decode_tier(*raw, kHourNs, add);
    read->reset();
  }
  if (all.empty()) return {};
  std::vector<TierEntry> entries;
  for (const auto& [series, points] : all) entries.push_back({series, points.points()});
  raw_.clear();
  encode_tier(entries, kHourNs, raw_);
  Bytes payload;
  codec_.seal(BlockKind::kDays, raw_, false, payload);
  HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kBlock));
  put->bind(1, block_id(stretches.back(), BlockKind::kDays, group)).bind(2, std::int64_t{entries.front().series});
  return put->bind(3, std::int64_t{entries.back().series}).bind(4, ByteView(payload)).run();
}

Result<void> SqliteWriter::write_tail() {
  const std::optional<StretchBuilder::TailText> tail = builder_.tail(codec_);
  if (!tail) return {};
  HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kTail));
  HOTLAP_TRY(
      put->bind(1, next_tail_id_).bind(2, tail->from_ns).bind(3, tail->to_ns).bind(4, ByteView(tail->payload)).run());
  tail_id_used_ = next_tail_id_;
  return {};
}

Result<void> SqliteWriter::write_span_row(std::int64_t first, std::int64_t count, const SpanSummary& summary,
                                          const Bytes& payload) {
  HOTLAP_TRY_ASSIGN(Statement * put, statement(Sql::kSpans));
  put->bind(1, first).bind(2, count).bind(3, summary.from_ns).bind(4, summary.to_ns).bind(5, summary.end_ns);
  put->bind(6, static_cast<std::int64_t>(summary.kinds)).bind(7, static_cast<std::int64_t>(summary.names));
  return put->bind(8, ByteView(payload)).run();
}

Result<void> SqliteWriter::write_spans() {
  for (const EncodedSpans& block : span_blocks_) {
    HOTLAP_TRY_ASSIGN(Statement * drop, statement(Sql::kDropSpans));
    HOTLAP_TRY(drop->bind(1, block.first).bind(2, block.first + block.count - 1).run());
    HOTLAP_TRY(write_span_row(block.first, block.count, block.summary, block.payload));
  }
  if (spans_.size() == spans_in_rows_) return {};
  const std::span<const Span> fresh = std::span(spans_).subspan(spans_in_rows_);
  raw_.clear();
  encode_spans(fresh, raw_);
  span_row_.clear();
  codec_.seal(BlockKind::kSpans, raw_, false, span_row_);
  span_row_used_ = true;
  return write_span_row(spans_first_ + static_cast<std::int64_t>(spans_in_rows_),
                        static_cast<std::int64_t>(fresh.size()), summarize(fresh), span_row_);
}

// The transaction is in the file: forgets what it held.
void SqliteWriter::written() {
  meta_.clear();
  metrics_written_ += static_cast<std::uint32_t>(metrics_.size());
  metrics_.clear();
  series_written_ += static_cast<std::uint32_t>(series_.size());
  series_.clear();
  names_written_ += static_cast<std::uint32_t>(names_.size());
  names_.clear();
  processes_.clear();
  events_.clear();
  events_bytes_ = 0;
  clock_.clear();
  losses_changed_.clear();
  hour_stretches_ = hour_stretches_used_;
  stretches_.clear();
  span_blocks_.clear();
  if (tail_id_used_ != 0) {
    builder_.tail_written(tail_id_used_);
    next_tail_id_ = tail_id_used_ + 1;
  }
  if (span_row_used_) {
    spans_in_rows_ = spans_.size();
    ++span_rows_;
  }
}

void SqliteWriter::failed() {
  add_loss("store.commits_failed", 1);
  if (database_) {
    const int code = database_->last_code();
    for (Statement& one : statements_) {
      if (one) one.reset();
    }
    database_->roll_back();
    // A full disk or a busy file passes by itself; after anything else the connection is made anew.
    if (code != SQLITE_FULL && code != SQLITE_BUSY && code != SQLITE_OK) {
      for (Statement& one : statements_) one = Statement();
      database_.reset();
    }
  }
  drop_beyond_bound();
}

// Half of the bound for samples, a quarter each for spans and events: a flood of one does not push out the others.
void SqliteWriter::drop_beyond_bound() {
  std::size_t bytes = 0;
  for (const EncodedStretch& stretch : stretches_) bytes += stretch.bytes();
  while (bytes > options_.pending_bytes_max / 2) {
    // Its rows in tails stay: what was committed stays readable.
    const EncodedStretch& oldest = stretches_.front();
    add_loss("store.samples_lost", oldest.samples - oldest.samples_in_tails);
    bytes -= oldest.bytes();
    stretches_.pop_front();
  }
  bytes = 0;
  for (const EncodedSpans& block : span_blocks_) bytes += block.payload.size();
  while (bytes > options_.pending_bytes_max / 4) {
    const EncodedSpans& oldest = span_blocks_.front();
    add_loss("store.spans_lost", static_cast<std::uint64_t>(oldest.count - oldest.in_rows));
    bytes -= oldest.payload.size();
    span_blocks_.pop_front();
  }
  while (events_bytes_ > options_.pending_bytes_max / 4) {
    events_bytes_ -= sizeof(Event) + events_.front().text.size();
    events_.pop_front();
    add_loss("store.events_lost", 1);
  }
}

void SqliteWriter::bound_wal() {
  if (database_->wal_pages() < options_.wal_pages_max) return;
  const auto mode = database_->wal_pages() / kWalHardFactor < options_.wal_pages_max ? Database::Checkpoint::kPassive
                                                                                     : Database::Checkpoint::kTruncate;
  if (const Result<void> moved = database_->checkpoint(mode); !moved.ok()) {
    HOTLAP_LOG_DEBUG("checkpoint: {}", moved.error().message);  // the log keeps the data; the next commit tries again
  }
}

Result<void> SqliteWriter::close() {
  HOTLAP_CHECK(!closed_);
  builder_.end_tiers();
  is_closing_ = true;
  builder_.encode_some(codec_, SIZE_MAX);
  builder_.seal_if_due(true);
  builder_.encode_some(codec_, SIZE_MAX);
  fold_spans();
  meta_["closed"] = "1";
  Result<void> outcome = commit();
  closed_ = true;
  if (!outcome.ok()) return outcome;
  // Everything is in the file. What follows makes it small and self-contained; where that fails (a reader has it
  // open, the disk is full), it is as readable.
  for (Statement& one : statements_) one = Statement();
  for (const std::string& sql :
       {format("PRAGMA incremental_vacuum({})", kFreedPagesPerClose), std::string("PRAGMA wal_checkpoint(TRUNCATE)"),
        std::string("PRAGMA journal_mode=DELETE")}) {
    if (const Result<void> done = database_->execute(sql.c_str()); !done.ok()) {
      HOTLAP_LOG_DEBUG("{}: {}", sql, done.error().message);
    }
  }
  database_.reset();
  return {};
}

std::uint64_t SqliteWriter::bytes_written() const {
  std::uint64_t sum = 0;
  for (const char* suffix : {"", "-wal"}) {
    struct stat found {};
    if (::stat((path_.string() + suffix).c_str(), &found) == 0) sum += static_cast<std::uint64_t>(found.st_size);
  }
  return sum;
}

// The file is there and empty: gives it its pages and tables.
Result<Database> make_database(const std::string& path, const WriterOptions& options) {
  HOTLAP_TRY_ASSIGN(Database database, Database::open(path, Database::Access::kReadWrite, options.vfs));
  // Nothing of worth can be lost until the first commit, so making the tables waits for no disk.
  HOTLAP_TRY(database.execute("PRAGMA page_size=1024; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA synchronous=OFF"));
  HOTLAP_TRY(database.execute(format("PRAGMA application_id={}", kApplicationId).c_str()));
  HOTLAP_TRY(database.execute(format("PRAGMA user_version={}", kFormatVersion).c_str()));
  HOTLAP_TRY(database.execute("BEGIN"));
  for (const TableText& table : kTables) HOTLAP_TRY(database.execute(std::string(table.sql).c_str()));
  HOTLAP_TRY(database.execute("COMMIT"));
  HOTLAP_TRY(database.execute("PRAGMA journal_mode=WAL"));
  HOTLAP_TRY(
      database.execute("PRAGMA synchronous=NORMAL; PRAGMA secure_delete=0; "
                       "PRAGMA journal_size_limit=4194304"));
  return database;
}

}  // namespace

Result<std::unique_ptr<RecordingWriter>> RecordingWriter::create(const std::filesystem::path& path,
                                                                 const RecordingInfo& info,
                                                                 const WriterOptions& options) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno_error(format("cannot make the recording {}", path.string()), errno);
  ::fchmod(fd, 0600);
  ::close(fd);
  adopt_owner(path);  // SQLite gives its -wal and -shm the same owner
  Result<Database> database = make_database(path.string(), options);
  if (!database.ok()) {
    for (const char* suffix : {"", "-journal", "-wal", "-shm"}) ::unlink((path.string() + suffix).c_str());
    return std::move(database).error().with_context("cannot make the recording");
  }
  auto writer = std::make_unique<SqliteWriter>(std::filesystem::absolute(path), std::move(database).value(), options);
  writer->put_meta("recording.id", info.id);
  writer->put_meta("run.id", info.run_id);
  writer->put_meta("node", info.node);
  writer->put_meta("hotlap.version", info.hotlap_version);
  writer->put_meta("boot.id", info.boot_id);
  writer->put_meta("interval_ns", format("{}", info.interval_ns));
  for (const auto& [key, text] : info.attributes) writer->put_attribute(key, text);
  if (Result<void> first = writer->commit(); !first.ok()) {
    writer.reset();
    for (const char* suffix : {"", "-journal", "-wal", "-shm"}) ::unlink((path.string() + suffix).c_str());
    return std::move(first).error();
  }
  return std::unique_ptr<RecordingWriter>(std::move(writer));
}

Result<void> settle_recording(const std::filesystem::path& path) {
  HOTLAP_TRY_ASSIGN(Database database, Database::open(path.string(), Database::Access::kReadWrite, nullptr));
  HOTLAP_TRY_ASSIGN(const std::int64_t id, database.integer("PRAGMA application_id"));
  if (id != kApplicationId) return Error{ErrorCode::kCorrupt, format("{}: not a hotlap recording", path.string())};
  if (const Result<void> alone = database.execute("PRAGMA journal_mode=DELETE"); !alone.ok()) {
    if (database.last_code() != SQLITE_BUSY) return alone.error();
    return Error{ErrorCode::kCancelled,
                 format("{}: is open in another process; try again when it has ended", path.string())};
  }
  return {};
}

}  // namespace hotlap
