#include "query/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/clock.h"
#include "base/format.h"
#include "query/registry.h"
#include "store/recording_writer.h"
#include "support/query_rows.h"
#include "support/temp_dir.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kWallNs = 1'800'000'000 * kNsPerS;
constexpr MetricDesc kBusy{.name = "cpu.busy.seconds", .unit = "s", .kind = MetricKind::kCounter, .scale = 0.01};
constexpr MetricDesc kLoad{.name = "load.1min", .unit = "1"};

class QueryTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<RunFolder> folder = RunFolder::create(
        home_.path(), {.id = make_ulid(kWallNs, 1, 2), .name = "toy", .status = RunStatus::kFinished, .node = "n1"});
    ASSERT_TRUE(folder.ok()) << folder.error().message;
    // The second node's clock began elsewhere, and it was started a second later.
    record(folder->path() / "a.hotlap", "n1", 100 * kNsPerS, kWallNs);
    record(folder->path() / "b.hotlap", "n2", 7'000 * kNsPerS, kWallNs + kNsPerS);
    Result<std::unique_ptr<QueriedRun>> run = QueriedRun::open(*folder, [this]() -> Result<std::vector<Finding>> {
      ++analysed_;
      return std::vector<Finding>{{.rule = "InputBound", .cause = "slow", .lost_pct = 50.0}};
    });
    ASSERT_TRUE(run.ok()) << run.error().message;
    run_ = std::move(*run);
  }

  // Four ticks a second apart: a counter that grows by 50 hundredths, and a gauge that is missing once.
  static void record(const fs::path& file, const std::string& node, std::int64_t begin_ns, std::int64_t wall_ns) {
    auto writer = RecordingWriter::create(
        file, {.id = "01J0000000000000000000000" + node.substr(1), .node = node, .interval_ns = kNsPerS}, {});
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    RecordingWriter& w = **writer;
    const SeriesHandle busy = *w.add_series(kBusy, "");
    const SeriesHandle load = *w.add_series(kLoad, "odd 'name'");
    w.add_clock({.mono_ns = begin_ns, .wall_ns = wall_ns, .boot_ns = begin_ns});
    w.put_process(
        {.slot = 1, .pid = 11, .role = ProcessRole::kRank, .index = 3, .label = "rank 3", .command = "python"});
    w.add_name("load image");
    for (std::int64_t i = 0; i < 4; ++i) {
      const Value level = i == 2 ? Value::missing(MissingReason::kTimedOut) : Value::of(0.5 * static_cast<double>(i));
      w.add_tick(begin_ns + i * kNsPerS,
                 std::vector<Sample>{{busy, Value::of(static_cast<std::uint64_t>(100 + 50 * i))}, {load, level}});
      const std::int64_t start_ns = begin_ns + i * kNsPerS;
      w.add_span(
          {.start_ns = start_ns, .duration_ns = kNsPerS / 4, .kind = SpanKind::kDataWait, .process = 1, .step = i});
      w.add_span({.start_ns = start_ns,
                  .duration_ns = kNsPerS * 9 / 10,
                  .kind = SpanKind::kStep,
                  .process = 1,
                  .thread = 11,
                  .step = i,
                  .value_a = 32});
    }
    w.add_span({.start_ns = begin_ns + 2, .duration_ns = -1, .kind = SpanKind::kUser, .process = 1, .name = 1});
    w.add_event({begin_ns, EventKind::kPhase, 0, "training"});
    w.add_loss("hook.records_dropped", 7);
    ASSERT_TRUE(w.close().ok());
  }

  std::vector<std::string> ask(const std::string& sql) {
    test::QueryRows out;
    const Result<void> done = execute_query(
        *run_, {.run_folder = {}, .sql = sql, .parameters = {{":from", 5}, {":to", 9}}, .limits = {}}, out);
    if (!done.ok()) return {"error: " + done.error().message};
    return out.rows();
  }
  Error error_of(const std::string& sql) {
    test::QueryRows out;
    const Result<void> done = execute_query(*run_, {.run_folder = {}, .sql = sql, .parameters = {}, .limits = {}}, out);
    return done.ok() ? Error{ErrorCode::kInternal, "answered"} : done.error();
  }

  test::TempDir home_;
  std::unique_ptr<QueriedRun> run_;
  int analysed_ = 0;
};

TEST_F(QueryTest, SamplesWithRatesAndReasons) {
  EXPECT_THAT(ask("SELECT t_s, t_ns, unix_ns - 1800000000000000000, value, rate, missing FROM sample "
                  "WHERE metric = 'cpu.busy.seconds' AND node = 'n1'"),
              ElementsAre("0|100000000000|0|1|NULL|NULL", "1|101000000000|1000000000|1.5|0.5|NULL",
                          "2|102000000000|2000000000|2|0.5|NULL", "3|103000000000|3000000000|2.5|0.5|NULL"));
  EXPECT_THAT(ask("SELECT value, missing FROM sample WHERE instance = 'odd ''name''' AND node = 'n2'"),
              ElementsAre("0|NULL", "0.5|NULL", "NULL|timed out", "1.5|NULL"));
}

// Recordings of two clocks begin at one second 0.
TEST_F(QueryTest, SecondsAreThoseOfTheRun) {
  EXPECT_THAT(ask("SELECT node, min(t_s), max(t_s), recording FROM sample GROUP BY node"),
              ElementsAre("n1|0|3|1", "n2|1|4|2"));
}

// What WHERE spares changes no answer.
TEST_F(QueryTest, FiltersGiveWhatTheWholeTableGives) {
  for (const char* where :
       {"t_ns >= 101000000000 AND t_ns < 103000000000", "t_ns > 101000000000", "t_ns <= 101000000000",
        "t_ns = 102000000000", "t_ns BETWEEN 101000000000 AND 102000000000", "t_ns > 101000000000.5", "t_ns < 1e30",
        "t_ns > -1e300", "metric = 'load.1min'", "metric = 'nothing'", "metric LIKE 'load%'",
        "metric = 'LOAD.1MIN' COLLATE NOCASE", "node = 'n2'", "instance = ''", "metric = NULL", "t_ns > 'text'",
        "t_ns IN (101000000000, 103000000000)", "metric IN ('load.1min', 'cpu.busy.seconds')"}) {
    const std::string hidden = std::string(where);
    const auto filtered = ask("SELECT count(*), sum(t_ns) FROM sample WHERE " + hidden);
    const auto whole =
        ask("WITH all_of_it AS MATERIALIZED (SELECT t_ns, metric, instance, node FROM sample) SELECT count(*), "
            "sum(t_ns) FROM "
            "all_of_it WHERE " +
            hidden);
    EXPECT_EQ(filtered, whole) << where;
  }
}

TEST_F(QueryTest, SpansStepsAndTheRest) {
  EXPECT_THAT(ask("SELECT process, rank, pid, name, duration_ms, thread FROM span WHERE kind = 'user' AND node = 'n1'"),
              ElementsAre("rank 3|3|11|load image|NULL|NULL"));
  EXPECT_THAT(ask("SELECT kind, count(*) FROM span GROUP BY kind ORDER BY kind"),
              ElementsAre("data_wait|8", "step|8", "user|2"));
  EXPECT_THAT(ask("SELECT count(*), count(DISTINCT node) FROM span WHERE start_ns >= 101000000000"),
              ElementsAre("15|2"));
  EXPECT_THAT(ask("SELECT step, rank, ms, data_wait_ms, forward_ms, samples FROM step WHERE node = 'n1' AND step < 2"),
              ElementsAre("0|3|900|250|NULL|32", "1|3|900|250|NULL|32"));
  EXPECT_THAT(ask("SELECT name, status, nodes, recordings, exit_code FROM run"), ElementsAre("toy|finished|2|2|NULL"));
  EXPECT_THAT(ask("SELECT counter, sum(count) FROM counter WHERE count > 0 GROUP BY counter"),
              ElementsAre("hook.records_dropped|14"));
  EXPECT_THAT(ask("SELECT kind, text, t_s FROM event WHERE node = 'n2'"), ElementsAre("phase|training|1"));
  EXPECT_THAT(ask("SELECT metric, kind, unit FROM series WHERE node = 'n1'"),
              ElementsAre("cpu.busy.seconds|counter|s", "load.1min|gauge|1"));
  EXPECT_THAT(ask("SELECT process, role, rank, end_s FROM process WHERE node = 'n1'"),
              ElementsAre("rank 3|rank|3|NULL"));
}

// A run without a trace has nothing inside its steps.
TEST_F(QueryTest, WithoutATraceTablesOfWhatIsInsideTheStepAreEmpty) {
  for (const char* table : {"operator", "kernel", "copy", "collective"}) {
    EXPECT_THAT(ask(format("SELECT count(*) FROM {}", table)), ElementsAre("0"));
  }
}

// The analysis costs seconds on a long run: who does not ask for findings does not pay for it.
TEST_F(QueryTest, FindingsAreMadeWhenTheyAreAskedFor) {
  ask("SELECT count(*) FROM step");
  EXPECT_EQ(analysed_, 0);
  EXPECT_THAT(ask("SELECT a.rule, b.lost_pct, a.advice FROM finding a, finding b"), ElementsAre("InputBound|50|NULL"));
  EXPECT_EQ(analysed_, 1);
}

TEST_F(QueryTest, Aggregates) {
  EXPECT_THAT(ask("SELECT median(x), percentile(x, 25), percentile(x, 100), stddev(x) FROM "
                  "(SELECT 1 AS x UNION ALL SELECT 2 UNION ALL SELECT 4 UNION ALL SELECT NULL UNION ALL SELECT 'x')"),
              ElementsAre("2|1.5|4|1.52753"));
  EXPECT_THAT(ask("SELECT median(value), stddev(value) FROM sample WHERE metric = 'no'"), ElementsAre("NULL|NULL"));
  EXPECT_THAT(ask("SELECT percentile(t_s, 101) FROM sample").front(), HasSubstr("p is from 0 to 100"));
}

TEST_F(QueryTest, Parameters) {
  EXPECT_THAT(ask("SELECT :from, :to"), ElementsAre("5|9"));
  EXPECT_THAT(ask("SELECT :other").front(), HasSubstr("the parameter :other has no value"));
  EXPECT_THAT(ask("SELECT ?").front(), HasSubstr("has no value"));
}

TEST_F(QueryTest, NothingButSelect) {
  for (const char* sql : {"CREATE TABLE x(a)",
                          "CREATE TEMP TABLE x(a)",
                          "INSERT INTO sample VALUES(1)",
                          "DELETE FROM span",
                          "UPDATE step SET ms = 0",
                          "ATTACH '/tmp/x' AS y",
                          "PRAGMA user_version",
                          "PRAGMA table_info(step)",
                          "DROP TABLE step",
                          "BEGIN",
                          "VACUUM",
                          "VACUUM INTO '/tmp/x'",
                          "ANALYZE",
                          "REINDEX",
                          "SAVEPOINT a",
                          "CREATE VIEW v AS SELECT 1",
                          "CREATE VIRTUAL TABLE v USING sample",
                          "SELECT load_extension('x')",
                          "SELECT * FROM pragma_database_list",
                          "DETACH main"}) {
    const Error error = error_of(sql);
    EXPECT_EQ(error.code, ErrorCode::kInvalidInput) << sql << ": " << error.message;
  }
  EXPECT_THAT(error_of("PRAGMA user_version").message, HasSubstr("only SELECT is answered, not PRAGMA"));
}

// A capture with a month between two samples, then more rows than are held at once.
TEST(QuerySamples, AreReadOnceWhereFewFollowLongSilenceAndManyFollowThose) {
  constexpr std::int64_t kDense = 250'000;
  const test::TempDir home;
  Result<RunFolder> folder = RunFolder::create(
      home.path(), {.id = make_ulid(kWallNs, 1, 2), .name = "t", .status = RunStatus::kFinished, .node = "n1"});
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  auto writer = RecordingWriter::create(
      folder->path() / "a.hotlap", {.id = "01J00000000000000000000001", .node = "n1", .interval_ns = kNsPerMs}, {});
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  const SeriesHandle busy = *(*writer)->add_series(kBusy, "");
  std::uint64_t total = 0;
  const auto add = [&](std::int64_t t_ns) {
    (*writer)->add_tick(t_ns, std::vector<Sample>{{busy, Value::of(total++)}});
  };
  add(0);
  const std::int64_t month_ns = 30LL * 24 * 3600 * kNsPerS;
  for (std::int64_t i = 0; i < kDense; ++i) add(month_ns + i * kNsPerMs);
  ASSERT_TRUE((*writer)->close().ok());
  auto run = QueriedRun::open(*folder, [] { return Result<std::vector<Finding>>(std::vector<Finding>()); });
  ASSERT_TRUE(run.ok()) << run.error().message;
  test::QueryRows out;
  const auto done = execute_query(**run,
                                  {.run_folder = {},
                                   .sql = "SELECT count(*), count(DISTINCT t_ns), count(rate), max(rate) FROM sample",
                                   .parameters = {},
                                   .limits = {}},
                                  out);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_THAT(out.rows(), ElementsAre("250001|250001|250000|10"));
}

TEST_F(QueryTest, WrongTextsAreSaidInOneLine) {
  for (const char* sql : {"", "  -- nothing", "SELECT", "SELECT nope FROM step", "SELECT * FROM nope",
                          "SELECT 1; SELECT 2", "SELECT 1; x", "SELEC 1", "SELECT '\xff", "SELECT max(1, 2, 3"}) {
    const Error error = error_of(sql);
    EXPECT_EQ(error.code, ErrorCode::kInvalidInput) << sql << ": " << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos) << sql;
  }
  EXPECT_EQ(error_of(std::string("SELECT 1\0 FROM step", 19)).code, ErrorCode::kInvalidInput);
  EXPECT_EQ(error_of("SELECT 1 -- " + std::string(70'000, 'x')).code, ErrorCode::kInvalidInput);
  EXPECT_THAT(ask("SELECT 1; -- and no more\n"), ElementsAre("1"));
}

TEST_F(QueryTest, WhatDoesNotEndIsEnded) {
  test::QueryRows out;
  const Result<void> done =
      execute_query(*run_,
                    {.run_folder = {},
                     .sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
                     .parameters = {},
                     .limits = {.time_ns = 50 * kNsPerMs, .memory_bytes = 1U << 20U}},
                    out);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kResourceLimit);
  EXPECT_THAT(done.error().message, HasSubstr("took more than 50 ms"));
}

TEST_F(QueryTest, DeepAndHugeTextsAreRefused) {
  EXPECT_NE(error_of("SELECT " + std::string(5'000, '(') + "1" + std::string(5'000, ')')).message, "answered");
  EXPECT_NE(error_of("SELECT zeroblob(1000000000)").message, "answered");
  EXPECT_THAT(ask("SELECT printf('%1000000000d', 1)"), ElementsAre("NULL"));  // too long to be made
}

// The answer's way through a pipe, with a shell in the place of the query's process.
TEST(QueryProcess, WhatIsNoAnswerIsSaid) {
  const auto answer_of = [](const std::string& script) {
    test::QueryRows out;
    return run_query({"/bin/sh", "-c", script}, {.time_ns = kNsPerS, .memory_bytes = 1U << 20U}, out);
  };
  for (const char* script : {"true", "exit 3", "kill -9 $$", "printf ''", "printf '\\005\\000'"}) {
    const Result<void> answered = answer_of(script);
    ASSERT_FALSE(answered.ok()) << script;
    EXPECT_THAT(answered.error().message, HasSubstr("without an answer")) << script;
  }
  for (const char* script : {"echo this is no answer of ours", "printf '\\001\\000\\000\\000X'",
                             "printf '\\002\\000\\000\\000C\\377'", "printf '\\003\\000\\000\\000E\\377\\000'"}) {
    const Result<void> answered = answer_of(script);
    ASSERT_FALSE(answered.ok()) << script;
    EXPECT_THAT(answered.error().message, HasSubstr("cannot be read")) << script;
  }
  EXPECT_TRUE(answer_of("printf '\\001\\000\\000\\000D'").ok());
  test::QueryRows out;
  EXPECT_FALSE(run_query({"/nowhere/hotlap"}, {}, out).ok());
}

TEST(TableTable, EverySpecIsCompleteAndUnique) {
  std::set<std::string_view> names;
  for (const TableSpec* spec : all_tables()) {
    EXPECT_TRUE(names.insert(spec->name).second) << spec->name;
    EXPECT_FALSE(spec->help.empty()) << spec->name;
    EXPECT_LT(spec->columns.size(), 60U) << spec->name;  // a letter each in a query's plan
    std::set<std::string_view> columns;
    int times = 0;
    for (const ColumnDesc& column : spec->columns) {
      EXPECT_TRUE(columns.insert(column.name).second) << spec->name << "." << column.name;
      times += column.filter == ColumnFilter::kTime ? 1 : 0;
    }
    EXPECT_LE(times, 1) << spec->name;
  }
  for (const std::string_view name :
       {"sample", "span", "step", "operator", "kernel", "copy", "collective", "finding", "counter", "run"}) {
    EXPECT_EQ(names.count(name), 1U) << name;
  }
}

}  // namespace
}  // namespace hotlap
