#include "record/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "base/log.h"
#include "collect/registry.h"
#include "store/recording_reader.h"
#include "wire/ring_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::array kMetrics{MetricDesc{.name = "test.ticks", .unit = "1", .help = "Calls so far."}};

class CountingCollector final : public Collector {
 public:
  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    out.add(out.series(0, {}), Value::of(tick.number));
    return Outcome::kSampled;
  }
};
Result<std::unique_ptr<Collector>> open_counting(const Host&) {
  return std::unique_ptr<Collector>(std::make_unique<CountingCollector>());
}

const CollectorSpec kFastSpec{.name = "fast", .summary = "t", .metrics = kMetrics, .open = open_counting};

Result<std::unique_ptr<Collector>> open_throwing(const Host&) { throw std::runtime_error("out of order"); }
const CollectorSpec kThrowingSpec{.name = "thrower", .summary = "t", .metrics = kMetrics, .open = open_throwing};
const CollectorSpec kThrowingSlowSpec{
    .name = "thrower", .summary = "t", .metrics = kMetrics, .lane = Lane::kMayBlock, .open = open_throwing};

std::vector<Event> events_of(RecordingReader& reader) { return reader.read_events({}).value_or({}); }

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    folder_ = fs::temp_directory_path() / ("hotlap-recorder-test-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
  }
  void TearDown() override {
    set_log_level(LogLevel::kWarning);
    fs::remove_all(folder_);
  }

  std::unique_ptr<RecordingWriter> writer(const std::string& name) {
    RecordingInfo info{.id = "01ARZ3NDEKTSV4RRFFQ69G5FAV", .run_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV", .node = "n"};
    return std::move(*RecordingWriter::create(folder_ / name, info, {.free_bytes_floor = 0}));
  }
  RecorderOptions options() {
    RecorderOptions made;
    made.host = &system_host();
    made.clock = &system_clock();
    made.interval_ns = kIntervalNsMin;
    made.owner_uid = ::geteuid();
    made.commit_period_ns = 20 * kNsPerMs;
    return made;
  }
  static void wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 2'000 && !condition(); ++i) {
      system_clock().sleep_until(system_clock().mono_ns() + 5 * kNsPerMs, -1);
    }
    ASSERT_TRUE(condition());
  }

  fs::path folder_;
};

TEST_F(RecorderTest, WritesTicksEventsLossesAndItself) {
  const CollectorSpec* const specs[] = {&kFastSpec};
  RecorderOptions with = options();
  with.collectors = specs;
  Recorder recorder(with, writer("a.hotlap"));
  recorder.start();
  recorder.note({5, EventKind::kNote, 0, "hello"});
  recorder.count_loss("record.restarts", 1);
  wait_for([&] { return recorder.counters().ticks.load() >= 5; });
  recorder.set_interval(20 * kNsPerMs);
  const Recorder::Ending ending = recorder.finish("exit 0");
  ASSERT_TRUE(ending.closed.ok()) << ending.closed.error().message;
  EXPECT_TRUE(ending.stuck_collector.empty());

  auto reader = std::move(*RecordingReader::open(folder_ / "a.hotlap"));
  EXPECT_TRUE(reader->is_closed());
  std::set<std::string> metrics;
  for (const StoredSeries& series : reader->series()) metrics.insert(series.metric);
  EXPECT_TRUE(metrics.contains("test.ticks"));
  EXPECT_TRUE(metrics.contains("self.cpu.ns"));
  bool has_note = false;
  for (const Event& event : events_of(*reader)) has_note |= event.text == "hello";
  EXPECT_TRUE(has_note);
  bool has_loss = false;
  for (const Loss& loss : reader->read_losses().value_or({}))
    has_loss |= loss.counter == "record.restarts" && loss.count == 1;
  EXPECT_TRUE(has_loss);
  EXPECT_GE(reader->read_clock()->size(), 2U);
}

// A recorder that samples nothing any more must not look alive: who started it starts another.
TEST_F(RecorderTest, AnExceptionOnTheThreadOfTheTicksEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [this] {
    const CollectorSpec* const specs[] = {&kThrowingSpec};
    RecorderOptions with = options();
    with.collectors = specs;
    Recorder recorder(with, writer("thrown.hotlap"));
    recorder.start();
    wait_for([] { return false; });
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGABRT), "thread sched ended: out of order");
}

TEST_F(RecorderTest, AnExceptionOfACollectorThatMayBlockCostsThatCollectorAlone) {
  const CollectorSpec* const specs[] = {&kThrowingSlowSpec, &kFastSpec};
  RecorderOptions with = options();
  with.collectors = specs;
  Recorder recorder(with, writer("slow.hotlap"));
  recorder.start();
  wait_for([&] { return recorder.counters().ticks.load() >= 5; });
  ASSERT_TRUE(recorder.finish("exit 0").closed.ok());
  auto reader = std::move(*RecordingReader::open(folder_ / "slow.hotlap"));
  std::map<std::string, std::uint64_t> losses;
  for (const Loss& loss : reader->read_losses().value_or({})) losses[loss.counter] += loss.count;
  EXPECT_EQ(losses["collect.errors"], 1U);
}

TEST_F(RecorderTest, WhatWasNeverStartedIsNotSaidToBeClosed) {
  Recorder recorder(options(), writer("idle.hotlap"));
  EXPECT_FALSE(recorder.finish("unknown").closed.ok());
}

TEST_F(RecorderTest, StartsAndStopsManyTimesWithEveryCollector) {
  for (int i = 0; i < 100; ++i) {
    RecorderOptions with = options();
    with.collectors = all_collectors();
    with.tree.root_pid = ::getpid();
    Recorder recorder(with, writer(std::to_string(i) + ".hotlap"));
    recorder.start();
    if (i % 3 == 0) wait_for([&] { return recorder.counters().ticks.load() >= 1; });
    const Recorder::Ending ending = recorder.finish("exit 0");
    EXPECT_TRUE(ending.closed.ok());
    EXPECT_EQ(ending.stuck_collector, "");
  }
}

// Says once that it saw this process, and under which slot.
class WitnessCollector final : public Collector {
 public:
  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    for (const JobProcess& process : tick.job.processes) {
      if (process.pid != ::getpid() || is_told_) continue;
      is_told_ = true;
      out.event(EventKind::kNote, 0, std::string("saw ").append(process.slot));
      out.attribute("witness", process.slot);
      has_told.store(true);
    }
    return Outcome::kNoData;
  }
  static inline std::atomic<bool> has_told{false};

 private:
  bool is_told_ = false;
};

// A GPU's process list has to be matched with the job's, on a lane that may block.
TEST_F(RecorderTest, SlowLanesSeeTheJobsProcesses) {
  const CollectorSpec witness{.name = "witness",
                              .summary = "t",
                              .metrics = kMetrics,
                              .lane = Lane::kMayBlock,
                              .open = [](const Host&) -> Result<std::unique_ptr<Collector>> {
                                return std::unique_ptr<Collector>(std::make_unique<WitnessCollector>());
                              }};
  const CollectorSpec* const specs[] = {&witness};
  RecorderOptions with = options();
  with.collectors = specs;
  with.tree.root_pid = ::getpid();
  Recorder recorder(with, writer("w.hotlap"));
  recorder.start();
  wait_for([] { return WitnessCollector::has_told.load(); });
  ASSERT_TRUE(recorder.finish("exit 0").closed.ok());
  auto reader = std::move(*RecordingReader::open(folder_ / "w.hotlap"));
  bool has_note = false;
  for (const Event& event : events_of(*reader)) has_note |= event.text == "saw main";
  EXPECT_TRUE(has_note);
  const auto attributes = reader->read_attributes();
  ASSERT_TRUE(attributes.ok());
  EXPECT_EQ(attributes->at("witness"), "main");
}

std::atomic<bool> is_released{false};

class StuckCollector final : public Collector {
 public:
  Result<Outcome> sample(const TickInfo&, SampleSink&) override {
    has_entered.store(true);
    while (!is_released.load()) system_clock().sleep_until(system_clock().mono_ns() + kNsPerMs, -1);
    has_returned.store(true);
    return Outcome::kNoData;
  }
  static inline std::atomic<bool> has_entered{false};
  static inline std::atomic<bool> has_returned{false};
};

TEST_F(RecorderTest, ACollectorThatHangsStopsNeitherTheOthersNorTheEnd) {
  const CollectorSpec stuck{.name = "stuck",
                            .summary = "t",
                            .metrics = kMetrics,
                            .lane = Lane::kMayBlock,
                            .open = [](const Host&) -> Result<std::unique_ptr<Collector>> {
                              return std::unique_ptr<Collector>(std::make_unique<StuckCollector>());
                            }};
  const CollectorSpec* const specs[] = {&kFastSpec, &stuck};
  RecorderOptions with = options();
  with.collectors = specs;
  with.stuck_after_ns = 50 * kNsPerMs;
  // Never destroyed, as in the process that leaves by _Exit: the hanging thread still uses it.
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): static, so that it does not count as a leak
  static auto* const recorder = new Recorder(with, writer("a.hotlap"));
  recorder->start();
  wait_for([&] { return recorder->counters().ticks.load() >= 3 && StuckCollector::has_entered.load(); });
  const Recorder::Ending ending = recorder->finish("exit 0");
  EXPECT_TRUE(ending.closed.ok());
  EXPECT_EQ(ending.stuck_collector, "stuck");
  is_released.store(true);
  wait_for([] { return StuckCollector::has_returned.load(); });
}

// Commits only while the gate is open, as on a disk that does not answer.
class GatedWriter final : public RecordingWriter {
 public:
  GatedWriter(std::unique_ptr<RecordingWriter> inner, const std::atomic<bool>& is_open)
      : inner_(std::move(inner)), is_open_(is_open) {}
  Result<SeriesHandle> add_series(const MetricDesc& metric, std::string_view instance) override {
    return inner_->add_series(metric, instance);
  }
  void add_tick(std::int64_t t_ns, std::span<const Sample> samples) override { inner_->add_tick(t_ns, samples); }
  std::uint32_t add_name(std::string_view text) override { return inner_->add_name(text); }
  void add_span(const Span& span) override { inner_->add_span(span); }
  void add_event(const Event& event) override { inner_->add_event(event); }
  void add_clock(const ClockReading& reading) override { inner_->add_clock(reading); }
  void put_process(const ProcessInfo& process) override { inner_->put_process(process); }
  void put_attribute(std::string_view key, std::string_view text) override { inner_->put_attribute(key, text); }
  void add_loss(std::string_view counter, std::uint64_t count) override { inner_->add_loss(counter, count); }
  void put_loss_offset(std::string_view counter, std::int64_t first_offset) override {
    inner_->put_loss_offset(counter, first_offset);
  }
  Result<void> commit() override {
    while (!is_open_.load()) system_clock().sleep_until(system_clock().mono_ns() + kNsPerMs, -1);
    return inner_->commit();
  }
  Result<void> close() override { return inner_->close(); }
  std::uint64_t bytes_written() const override { return inner_->bytes_written(); }

 private:
  std::unique_ptr<RecordingWriter> inner_;
  const std::atomic<bool>& is_open_;
};

// Samples give way, counted; what happens once (events, losses) waits, and the ticks go on.
TEST_F(RecorderTest, AWriterThatHangsCostsCountedSamplesOnly) {
  const CollectorSpec* const specs[] = {&kFastSpec};
  RecorderOptions with = options();
  with.collectors = specs;
  std::atomic<bool> is_open{false};
  Recorder recorder(with, std::make_unique<GatedWriter>(writer("a.hotlap"), is_open));
  recorder.start();
  wait_for([&] { return recorder.counters().samples_dropped.load() > 0; });
  recorder.note({5, EventKind::kNote, 0, "while it hung"});
  const std::uint64_t ticks = recorder.counters().ticks.load();
  wait_for([&] { return recorder.counters().ticks.load() > ticks + 10; });
  is_open.store(true);
  ASSERT_TRUE(recorder.finish("exit 0").closed.ok());

  auto reader = std::move(*RecordingReader::open(folder_ / "a.hotlap"));
  std::uint64_t dropped = 0;
  for (const Loss& loss : reader->read_losses().value_or({})) {
    if (loss.counter == "record.samples_dropped") dropped = loss.count;
  }
  EXPECT_EQ(dropped, recorder.counters().samples_dropped.load());
  bool has_note = false;
  for (const Event& event : events_of(*reader)) has_note |= event.text == "while it hung";
  EXPECT_TRUE(has_note);
}

TEST_F(RecorderTest, TakesWhatTheRingsHoldEvenAfterTheLastTick) {
  const fs::path rings = folder_ / "rings";
  fs::create_directories(rings);
  RecorderOptions with = options();
  with.interval_ns = kIntervalNsMax;  // one tick at the start, then none
  with.ring_folder = rings;
  with.tree.root_pid = ::getpid();
  Recorder recorder(with, writer("a.hotlap"));
  recorder.start();
  wait_for([&] { return recorder.counters().ticks.load() >= 1; });

  RingIdentity identity{};
  identity.pid = static_cast<std::uint32_t>(::getpid());
  identity.start_ticks = 77;
  identity.role = static_cast<std::int32_t>(ProcessRole::kMain);
  identity.rank = identity.worker_id = -1;
  auto ring =
      std::move(*RingWriter::create((rings / (std::to_string(::getpid()) + "-77.ring")).native(), identity, 64 * 1024));
  ring.name(1, "resnet");
  for (int i = 0; i < 3; ++i) {
    ring.span({.start_ns = i * 100, .duration_ns = 100, .kind = SpanKind::kStep, .name = 1, .step = i},
              kStepByOptimizer);
  }
  ring.phase(0, static_cast<std::uint32_t>(Phase::kTraining), 0);
  ASSERT_TRUE(ring.flush());
  ring.page().live.step = 2;

  ASSERT_TRUE(recorder.finish("signal 9").closed.ok());
  EXPECT_EQ(recorder.steps(), 3);
  auto reader = std::move(*RecordingReader::open(folder_ / "a.hotlap"));
  std::size_t steps = 0;
  std::string name;
  ASSERT_TRUE(reader
                  ->read_spans({}, {},
                               [&](std::span<const Span> spans) {
                                 steps += spans.size();
                                 name = reader->name(spans[0].name);
                               })
                  .ok());
  EXPECT_EQ(steps, 3U);
  EXPECT_EQ(name, "resnet");
  std::vector<std::string> phases;
  for (const Event& event : events_of(*reader)) {
    if (event.kind == EventKind::kPhase) phases.push_back(event.text);
  }
  EXPECT_EQ(phases, (std::vector<std::string>{"training", "finalisation"}));
}

TEST(SelfMetrics, LatenessClassesBracketWhatWasAdded) {
  LatenessHistogram lateness;
  EXPECT_EQ(lateness.quantile_ns(0.5), -1);
  for (int i = 0; i < 99; ++i) lateness.add(60 * kNsPerUs);
  lateness.add(5 * kNsPerMs);
  EXPECT_GE(lateness.quantile_ns(0.5), 60 * kNsPerUs);
  EXPECT_LE(lateness.quantile_ns(0.5), 75 * kNsPerUs);
  EXPECT_GE(lateness.quantile_ns(0.999), 5 * kNsPerMs);
  EXPECT_LE(lateness.quantile_ns(0.999), 7 * kNsPerMs);
}

TEST(ClockWatch, NoticesJumpsAndSuspendButNotSlewing) {
  ClockWatch watch;
  Batch batch;
  const std::int64_t wall = 1'700'000'000 * kNsPerS;
  watch.look({100 * kNsPerS, wall, 100 * kNsPerS}, batch);
  EXPECT_EQ(batch.clock.size(), 1U);
  watch.look({101 * kNsPerS, wall + kNsPerS + 400 * kNsPerUs, 101 * kNsPerS}, batch);
  EXPECT_TRUE(batch.events.empty());
  watch.look({102 * kNsPerS, wall + 2 * kNsPerS + 100 * kNsPerMs, 102 * kNsPerS}, batch);
  ASSERT_EQ(batch.events.size(), 1U);
  EXPECT_EQ(batch.events[0].kind, EventKind::kClockStep);
  watch.look({103 * kNsPerS, wall + 3'603 * kNsPerS + 100 * kNsPerMs, 3'703 * kNsPerS}, batch);
  ASSERT_EQ(batch.events.size(), 2U);
  EXPECT_EQ(batch.events[1].kind, EventKind::kSuspend);
  EXPECT_EQ(batch.events[1].value, 3'600 * kNsPerS);
  EXPECT_EQ(batch.clock.size(), 3U);
}

}  // namespace
}  // namespace hotlap
