#include "view/run_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "base/json_reader.h"
#include "record/control.h"
#include "record/identity.h"
#include "store/recording_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::int64_t kStartNs = 1'800'000'000 * kNsPerS;
constexpr MetricDesc kUser{.name = "cpu.user.seconds", .unit = "s", .kind = MetricKind::kCounter};
constexpr MetricDesc kLoad{.name = "load.1min", .unit = "1"};

class RunDetailsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hotlap-view-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    home_ = pattern;
    info_.id = make_ulid(kStartNs, 1, 2);
    info_.name = "toy";
    info_.status = RunStatus::kFinished;
    info_.command = {"python", "toy.py"};
    info_.node = "elsewhere";
    info_.start_wall_ns = kStartNs;
    info_.end_wall_ns = kStartNs + 12 * kNsPerS;
    info_.exit_code = 0;
    info_.interval_ns = kNsPerS;
  }
  void TearDown() override { fs::remove_all(home_); }

  RunFolder make_run() {
    Result<RunFolder> run = RunFolder::create(home_, info_);
    EXPECT_TRUE(run.ok()) << (run.ok() ? "" : run.error().message);
    return std::move(run).value();
  }

  void record(const RunFolder& run) {
    auto writer = RecordingWriter::create(run.path() / "a.hotlap",
                                          {.id = "01J00000000000000000000001",
                                           .run_id = info_.id,
                                           .node = "elsewhere",
                                           .hotlap_version = "0.1.0",
                                           .interval_ns = kNsPerS},
                                          {});
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    const SeriesHandle core0 = *(*writer)->add_series(kUser, "core 0");
    const SeriesHandle core1 = *(*writer)->add_series(kUser, "core 1");
    const SeriesHandle load = *(*writer)->add_series(kLoad, "");
    for (std::int64_t i = 0; i < 11; ++i) {
      std::vector<Sample> tick{{core0, Value::of(i)}, {core1, Value::missing(MissingReason::kSourceLost)}};
      if (i % 5 == 0) tick.push_back({load, Value::of(0.5)});
      (*writer)->add_tick(i * kNsPerS, tick);
    }
    (*writer)->add_event({.t_ns = 0, .kind = EventKind::kPhase, .value = 0, .text = "starting"});
    (*writer)->add_event({.t_ns = 2 * kNsPerS, .kind = EventKind::kPhase, .value = 0, .text = "training"});
    (*writer)->put_process({.slot = 1, .pid = 42, .role = ProcessRole::kMain, .hook_absent_reason = "python -I"});
    (*writer)->add_span({.start_ns = 5, .duration_ns = 7, .kind = SpanKind::kStep});
    (*writer)->add_loss("hook.records_dropped", 3);
    ASSERT_TRUE((*writer)->close().ok());
  }

  fs::path home_;
  RunInfo info_;
};

TEST_F(RunDetailsTest, CountsValuesMissingReasonsAndRatesByCollector) {
  const RunFolder run = make_run();
  record(run);
  const RunDetails details = read_run_details(run, kStartNs);
  EXPECT_THAT(details.problems, testing::IsEmpty());
  ASSERT_EQ(details.recordings.size(), 1U);
  const RecordingDetails& recording = details.recordings[0];
  EXPECT_TRUE(recording.is_closed);
  EXPECT_TRUE(recording.is_every_sample_read);
  ASSERT_EQ(recording.groups.size(), 2U);
  EXPECT_EQ(recording.groups[0].collector, "cpu");
  EXPECT_EQ(recording.groups[0].series, 2U);
  EXPECT_EQ(recording.groups[0].values, 11U);
  EXPECT_EQ(recording.groups[0].missing, 11U);
  EXPECT_EQ(recording.groups[0].missing_by_reason.size(), 1U);
  EXPECT_EQ(recording.groups[0].missing_by_reason.begin()->second, 11U);
  EXPECT_NEAR(recording.groups[0].samples_per_s.value_or(0), 1.0, 0.01);
  EXPECT_NEAR(recording.groups[1].samples_per_s.value_or(0), 0.2, 0.01);
  ASSERT_EQ(recording.phases.size(), 2U);
  EXPECT_EQ(recording.phases[0].to_ns, 2 * kNsPerS);
  EXPECT_EQ(recording.phases[1].to_ns, 10 * kNsPerS + 1);  // exclusive
  ASSERT_EQ(recording.spans.size(), 1U);
  EXPECT_EQ(recording.spans[0].count, 1U);
  ASSERT_EQ(recording.losses.size(), 1U);
  EXPECT_EQ(recording.losses[0].count, 3U);
  EXPECT_FALSE(recording.losses[0].help.empty());
  EXPECT_EQ(details.summary.duration_ns, 12 * kNsPerS);
}

TEST_F(RunDetailsTest, JsonIsOneDocumentWithNullForWhatIsNotKnown) {
  info_.exit_code.reset();
  info_.end_wall_ns = -1;
  const RunFolder run = make_run();
  record(run);
  const std::string json = run_details_json(read_run_details(run, kStartNs));
  const Result<JsonDocument> parsed = JsonDocument::parse(json);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const JsonValue root = parsed->root();
  EXPECT_EQ(root["schema"].integer(), 1);
  EXPECT_TRUE(root["verdict"].is_null());
  EXPECT_TRUE(root["run"]["exit_code"].is_null());
  EXPECT_TRUE(root["run"]["end_unix_ns"].is_null());
  EXPECT_EQ(root["run"]["start_unix_ns"].text(), std::to_string(kStartNs));
  const JsonValue recording = root["recordings"].items().at(0);
  EXPECT_EQ(recording["processes"].items().at(0)["hook_absent_reason"].text(), "python -I");
  EXPECT_EQ(recording["series"].items().at(0)["missing"].integer(), 11);
  EXPECT_EQ(recording["spans"]["step"].integer(), 1);
}

TEST_F(RunDetailsTest, ADamagedRecordingIsAProblemAndTheRestIsThere) {
  const RunFolder run = make_run();
  ASSERT_TRUE(run.write_text("b.hotlap", "this is no database").ok());
  RunDetails details = read_run_details(run, kStartNs);
  EXPECT_EQ(details.summary.info.name, "toy");
  ASSERT_EQ(details.problems.size(), 1U);
  EXPECT_THAT(details.problems[0], HasSubstr("b.hotlap"));
  record(run);
  details = read_run_details(run, kStartNs);
  EXPECT_EQ(details.recordings.size(), 1U);
  EXPECT_EQ(details.problems.size(), 1U);
}

TEST_F(RunDetailsTest, TheVerdictComesFromVerdictJson) {
  const RunFolder run = make_run();
  EXPECT_EQ(summarize_run(run, kStartNs).verdict_line, std::nullopt);
  ASSERT_TRUE(
      run.write_text("verdict.json",
                     R"({"schema":1,"verdict":{"kind":"finding","text":"first\nsecond"},"steps":{"count":900}})")
          .ok());
  const RunSummary summary = summarize_run(run, kStartNs);
  EXPECT_EQ(summary.verdict_line, "first");
  EXPECT_EQ(summary.verdict_kind, "finding");
  EXPECT_EQ(summary.steps, 900);
  ASSERT_TRUE(run.write_text("verdict.json", "{").ok());
  EXPECT_EQ(summarize_run(run, kStartNs).steps, std::nullopt);
}

// Killed with its recorder, a run says "running" for ever; lists must not.
TEST_F(RunDetailsTest, ARunWhoseRecorderIsGoneIsNotRunning) {
  info_.status = RunStatus::kRunning;
  info_.end_wall_ns = -1;
  const RunFolder run = make_run();
  const std::int64_t now_ns = system_clock().read().wall_ns;
  EXPECT_TRUE(is_live_run(run, now_ns));
  EXPECT_EQ(summarize_run(run, now_ns).status, RunStatus::kRunning);
  EXPECT_FALSE(is_live_run(run, now_ns + 3'600 * kNsPerS));
  EXPECT_EQ(summarize_run(run, now_ns + 3'600 * kNsPerS).status, RunStatus::kUnknown);
}

// On the machine that recorded it there is no need to wait until its files look old.
TEST_F(RunDetailsTest, ARecorderIsKnownByTheFifoThatItReads) {
  info_.status = RunStatus::kRunning;
  info_.end_wall_ns = -1;
  info_.node = node_name(system_host());
  info_.boot_id = boot_id(system_host());
  const RunFolder run = make_run();
  const std::int64_t now_ns = system_clock().read().wall_ns;
  const int fd = open_control(run.path());
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(is_live_run(run, now_ns + 3'600 * kNsPerS));
  ::close(fd);
  EXPECT_FALSE(is_live_run(run, now_ns));
  info_.boot_id = "of another machine with the same name";
  EXPECT_TRUE(is_live_run(make_run(), now_ns));
}

// The node's name may be HOTLAP_NODE or an instance's id: not the host's. A job that is alive keeps its run running.
TEST_F(RunDetailsTest, AJobThatLivesOnThisNodeKeepsItsRunRunning) {
  info_.status = RunStatus::kRunning;
  info_.end_wall_ns = -1;
  info_.node = "node-of-a-test";
  info_.job_pid = ::getpid();
  const RunFolder run = make_run();
  const std::int64_t later_ns = system_clock().read().wall_ns + 3'600 * kNsPerS;
  EXPECT_FALSE(is_live_run(run, later_ns));
  ASSERT_EQ(::setenv("HOTLAP_NODE", "node-of-a-test", 1), 0);
  EXPECT_TRUE(is_live_run(run, later_ns));
  ::unsetenv("HOTLAP_NODE");
}

TEST_F(RunDetailsTest, ListsAreOneDocument) {
  const std::vector<RunSummary> runs{summarize_run(make_run(), kStartNs)};
  const Result<JsonDocument> parsed = JsonDocument::parse(run_list_json(runs, 2));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->root()["unreadable"].integer(), 2);
  EXPECT_EQ(parsed->root()["runs"].items().at(0)["name"].text(), "toy");
  EXPECT_EQ(parsed->root()["runs"].items().at(0)["duration_s"].number(), 12.0);
}

}  // namespace
}  // namespace hotlap
