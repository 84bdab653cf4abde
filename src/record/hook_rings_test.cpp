#include "record/hook_rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/format.h"
#include "base/host.h"
#include "base/log.h"
#include "base/text.h"
#include "wire/ring_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

// Start ticks of this process: its rings are those of a process that is alive.
std::uint64_t own_ticks() {
  const std::string stat = system_host().read_text("/proc/self/stat").value_or({});
  std::string_view rest = std::string_view(stat).substr(stat.rfind(')') + 1);
  for (int field = 3; field < 22; ++field) next_word(rest);
  return parse_u64(next_word(rest)).value_or(0);
}

class HookRingsTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    folder_ = fs::temp_directory_path() / format("hotlap-hook-rings-test-{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    start_recorder();
  }
  void TearDown() override {
    set_log_level(LogLevel::kWarning);
    fs::remove_all(folder_);
  }

  // As after the death of the one before: it knows nothing of what was said.
  void start_recorder() {
    tree_.emplace(system_host(), system_clock(), JobTreeOptions{.root_pid = ::getpid()});
    series_ = std::make_unique<SeriesTable>(100);
    rings_ = std::make_unique<HookRings>(folder_, ::geteuid(), *tree_, *series_);
    now_ns_ = system_clock().mono_ns();
  }
  // `source`: ".nvtx" makes it that of a native observer.
  RingWriter make_ring(std::uint64_t ticks = own_ticks(), std::string_view source = {}) const {
    RingIdentity identity{};
    identity.pid = static_cast<std::uint32_t>(::getpid());
    identity.start_ticks = ticks;
    identity.role = static_cast<std::int32_t>(ProcessRole::kMain);
    identity.rank = identity.worker_id = -1;
    Result<RingWriter> made = RingWriter::create(path_of(ticks, source), identity, 64 * 1024);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(made).value();
  }
  std::string path_of(std::uint64_t ticks = own_ticks(), std::string_view source = {}) const {
    return (folder_ / format("{}-{}{}.ring", ::getpid(), ticks, source)).native();
  }
  Batch poll(std::int64_t later_ns = 100 * kNsPerMs) {
    Batch batch;
    now_ns_ += later_ns;
    rings_->poll(now_ns_, batch);
    return batch;
  }
  static std::uint64_t lost(const Batch& batch, std::string_view counter) {
    std::uint64_t sum = 0;
    for (const LossCount& loss : batch.losses) sum += loss.counter == counter ? loss.count : 0;
    return sum;
  }
  // Series that the batch has a sample of, of hotlap.count().
  std::vector<std::string> counted(const Batch& batch) const {
    std::vector<std::string> found;
    const auto entries = series_->since(0);
    for (const Sample& sample : batch.samples) {
      const SeriesTable::Entry& entry = entries[sample.series.index];
      if (entry.metric->name == "hook.user.value") found.push_back(entry.instance);
    }
    return found;
  }
  static Span step(std::int64_t index, std::uint32_t name = 0) {
    return {.start_ns = index * 100, .duration_ns = 100, .kind = SpanKind::kStep, .name = name, .step = index};
  }

  fs::path folder_;
  std::int64_t now_ns_ = 0;
  std::optional<JobTree> tree_;
  std::unique_ptr<SeriesTable> series_;
  std::unique_ptr<HookRings> rings_;
};

TEST_F(HookRingsTest, ARecorderThatWasStartedAgainAsksForNamesAndMixesNothingUntilThen) {
  RingWriter writer = make_ring();
  writer.name(1, "loss");
  writer.name(2, "accuracy");
  writer.count(1, 0, 0.5, 0);
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(counted(poll()), (std::vector<std::string>{"main loss"}));
  EXPECT_EQ(writer.page().command.word, 0U);
  writer.page().live.phase = static_cast<std::int64_t>(Phase::kTraining);

  start_recorder();
  writer.count(1, 0, 0.25, 1);
  writer.count(2, 0, 0.75, 1);
  writer.span(step(1, 1));
  ASSERT_TRUE(writer.flush());
  const Batch first = poll();
  EXPECT_EQ(counted(first), std::vector<std::string>{});
  EXPECT_EQ(lost(first, "hook.names_missing"), 3U);
  ASSERT_EQ(first.spans.size(), 1U);
  EXPECT_EQ(first.spans[0].name, 0U);
  ASSERT_FALSE(first.events.empty());
  EXPECT_EQ(first.events.back().text, to_string(Phase::kTraining));
  EXPECT_EQ(writer.page().command.word & 0xFFFF, static_cast<std::uint64_t>(HookCommand::kSayAgain));

  writer.name(1, "loss");  // as the hook does
  writer.name(2, "accuracy");
  writer.count(1, 0, 0.25, 2);
  writer.count(2, 0, 0.75, 2);
  ASSERT_TRUE(writer.flush());
  const Batch second = poll();
  EXPECT_EQ(counted(second), (std::vector<std::string>{"main loss", "main accuracy"}));
  EXPECT_EQ(lost(second, "hook.names_missing"), 0U);
}

TEST_F(HookRingsTest, WhatTheHookLostIsToldOnceAlsoByTheNextRecorder) {
  RingWriter writer = make_ring();
  writer.span(step(0));
  ASSERT_TRUE(writer.flush());
  RingLive& live = writer.page().live;
  live.records_dropped = 7;
  live.errors = 2;
  live.names_refused = 3;
  Batch batch = poll();
  EXPECT_EQ(lost(batch, "hook.records_dropped"), 7U);
  EXPECT_EQ(lost(batch, "hook.errors"), 2U);
  EXPECT_EQ(lost(batch, "hook.names_missing"), 3U);
  EXPECT_TRUE(poll().losses.empty());

  live.records_dropped = 9;  // while there is no recorder
  start_recorder();
  batch = poll();
  EXPECT_EQ(lost(batch, "hook.records_dropped"), 2U);
  EXPECT_EQ(lost(batch, "hook.errors"), 0U);
}

TEST_F(HookRingsTest, ACountWithoutANameGoesNowhere) {
  RingWriter writer = make_ring();
  writer.count(0, 0, 0.5, 0);
  writer.count(70'000, 0, 0.5, 0);
  ASSERT_TRUE(writer.flush());
  const Batch batch = poll();
  EXPECT_EQ(counted(batch), std::vector<std::string>{});
  EXPECT_EQ(lost(batch, "hook.names_missing"), 2U);
}

TEST_F(HookRingsTest, AProgramThatReplacedItselfGoesOnInAnotherRing) {
  RingWriter before = make_ring();
  before.span(step(0));
  ASSERT_TRUE(before.flush());
  EXPECT_EQ(poll().spans.size(), 1U);
  before.span(step(1));
  ASSERT_TRUE(before.flush());
  RingWriter after = make_ring();  // the same pid and start: renamed over the old one
  after.name(1, "second");
  after.span(step(0, 1));
  ASSERT_TRUE(after.flush());
  const Batch batch = poll();
  ASSERT_EQ(batch.spans.size(), 2U);
  EXPECT_EQ(batch.spans[0].step, 1);
  EXPECT_EQ(batch.spans[1].step, 0);
  EXPECT_EQ(batch.names, (std::vector<std::string>{"second"}));
  after.span(step(1, 1));
  ASSERT_TRUE(after.flush());
  EXPECT_EQ(poll(2 * kNsPerS).spans.size(), 1U);
  EXPECT_TRUE(fs::exists(path_of()));
}

TEST_F(HookRingsTest, ARingThatCannotBeReadIsToldOnceWithTheReason) {
  { const RingWriter writer = make_ring(); }
  std::fstream file(path_of(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(8).put(9);  // the layout's version
  file.close();
  const auto reasons = [&](const Batch& batch) {
    std::vector<std::string> found;
    for (const ProcessInfo& process : batch.processes) {
      if (!process.hook_absent_reason.empty()) found.push_back(process.hook_absent_reason);
    }
    return found;
  };
  const auto first = reasons(poll());
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0], "its ring cannot be read: ring layout 9 is newer than this program's 1; update hotlap");
  for (int tick = 0; tick < 3; ++tick) {
    std::ofstream(path_of(), std::ios::app).close();  // as good as a listing: it is looked at again
    EXPECT_EQ(reasons(poll()), std::vector<std::string>{});
  }
  fs::remove(path_of());
  RingWriter writer = make_ring();
  writer.span(step(0));
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(poll().spans.size(), 1U);
  fs::resize_file(path_of(), 100);
  EXPECT_EQ(reasons(poll()), (std::vector<std::string>{"its ring cannot be read: the ring was cut short"}));
}

TEST_F(HookRingsTest, ARingOfAProcessThatWasNeverSeenStaysWhileItIsWrittenTo) {
  constexpr std::uint64_t kElsewhere = 77;  // no process has this start: it lives in another PID namespace
  RingWriter writer = make_ring(kElsewhere);
  for (int i = 0; i < 3; ++i) {
    writer.span(step(i));
    ASSERT_TRUE(writer.flush());
    EXPECT_EQ(poll(50 * kNsPerS).spans.size(), 1U);
    EXPECT_TRUE(fs::exists(path_of(kElsewhere)));
  }
  writer.span(step(3));
  ASSERT_TRUE(writer.flush());
  writer.page().live.closed = 1;
  EXPECT_EQ(poll().spans.size(), 1U);
  poll();
  EXPECT_FALSE(fs::exists(path_of(kElsewhere)));
  EXPECT_EQ(rings_->rings_open(), 0U);
}

TEST_F(HookRingsTest, ARingThatNobodyWritesToIsGivenUp) {
  const RingWriter writer = make_ring(77);
  poll();
  poll(50 * kNsPerS);
  EXPECT_EQ(rings_->rings_open(), 1U);
  EXPECT_FALSE(rings_->has_live_rank());
  poll(20 * kNsPerS);
  EXPECT_EQ(rings_->rings_open(), 0U);
}

TEST_F(HookRingsTest, ARequestToLookIntoStepsReachesTheOneThatTrainsAndItsAnswerIsNoted) {
  Batch nobody;
  rings_->ask_profile(5, now_ns_, nobody);
  ASSERT_EQ(nobody.events.size(), 1U);
  EXPECT_EQ(nobody.events[0].text, "profile: no process with a hook is there to ask");

  RingWriter writer = make_ring();
  writer.span(step(0));
  ASSERT_TRUE(writer.flush());
  poll();
  Batch asked;
  rings_->ask_profile(5, now_ns_, asked);
  EXPECT_TRUE(asked.events.empty());
  const std::uint64_t word = writer.page().command.word;
  EXPECT_EQ(word & 0xFFFF, static_cast<std::uint64_t>(HookCommand::kProfile));
  EXPECT_EQ(writer.page().command.argument, 5U);
  EXPECT_TRUE(poll().events.empty());
  for (const auto& [result, said] :
       {std::pair{HookAnswer::kDone, "profile: main will do as asked"},
        std::pair{HookAnswer::kUnsupported, "profile: main cannot: no framework whose profiler is known"}}) {
    rings_->ask_profile(5, now_ns_, asked);
    writer.page().answer = {writer.page().command.word, static_cast<std::uint64_t>(result)};
    const Batch answered = poll();
    ASSERT_EQ(answered.events.size(), 1U);
    EXPECT_EQ(answered.events[0].text, said);
    EXPECT_TRUE(poll().events.empty());
  }
  rings_->ask_profile(5, now_ns_, asked);
  EXPECT_EQ(poll(200 * kNsPerS).events.back().text, "profile: main has not answered: no step has ended since");
}

TEST_F(HookRingsTest, ANativeObserversRingIsReadBesideTheHooksAndLeadsNothing) {
  RingWriter hook = make_ring();
  hook.span(step(0));
  ASSERT_TRUE(hook.flush());
  hook.page().live.step = 0;
  RingWriter native = make_ring(own_ticks(), ".nvtx");
  native.name(1, "load");
  native.name(2, "range.calls load");
  native.info(5, "observer.nvtx", "\"on\"");
  native.span({.start_ns = 10, .duration_ns = 20, .kind = SpanKind::kUser, .name = 1});
  native.count(2, 30, 1, -1, kCountOfHook);
  native.phase(5, static_cast<std::uint32_t>(Phase::kUploading), -1);
  ASSERT_TRUE(native.flush());
  native.page().live.own_time_ns = 77;
  native.page().live.records_dropped = 3;
  native.page().live.spans_left_out = 4;

  const Batch batch = poll();
  EXPECT_EQ(rings_->rings_open(), 2U);
  EXPECT_NE(rings_->progress().phase, Phase::kUploading);
  ASSERT_EQ(batch.spans.size(), 2U);
  EXPECT_EQ(batch.spans[0].process, batch.spans[1].process) << "one process, whoever speaks of it";
  EXPECT_EQ(lost(batch, "observe.records_dropped"), 3U);
  EXPECT_EQ(lost(batch, "observe.spans_left_out"), 4U);
  EXPECT_EQ(lost(batch, "hook.records_dropped"), 0U);
  std::map<std::string, Value> sampled;
  const auto entries = series_->since(0);
  for (const Sample& sample : batch.samples) {
    const SeriesTable::Entry& entry = entries[sample.series.index];
    sampled.emplace(format("{} {}", entry.metric->name, entry.instance), sample.value);
  }
  EXPECT_EQ(sampled.at("range.calls main/load"), Value::of(std::uint64_t{1}));
  EXPECT_EQ(sampled.at("hook.own_time.ns main nvtx"), Value::of(std::uint64_t{77}));
  EXPECT_TRUE(sampled.contains("hook.own_time.ns main"));
  const std::pair<std::string, std::string> on{"process.main.observer.nvtx", "\"on\""};
  EXPECT_THAT(batch.attributes, testing::Contains(on));
  EXPECT_EQ(lost(poll(), "observe.spans_left_out"), 0U) << "told once";
}

TEST_F(HookRingsTest, WorkOnADeviceIsOfTheDeviceAndItsLaunchOfTheProcess) {
  RingWriter native = make_ring(own_ticks(), ".kernels");
  native.name(1, "sgemm");
  native.info(5, "device.1", "\"gpu3\"");
  native.info(5, "device.2", "\"a name of the job's\"");
  native.info(5, "device.999", "\"gpu4\"");
  native.span({.start_ns = 10, .duration_ns = 90, .kind = SpanKind::kDeviceWindow, .value_a = 0}, 1);
  native.span({.start_ns = 15, .duration_ns = 2, .kind = SpanKind::kRuntime, .name = 1, .value_a = 17});
  native.span({.start_ns = 20, .duration_ns = 5, .kind = SpanKind::kKernel, .name = 1, .value_a = 17}, 1);
  native.span({.start_ns = 30, .duration_ns = 5, .kind = SpanKind::kTransfer, .value_a = -1}, 2);
  ASSERT_TRUE(native.flush());
  const Batch batch = poll();
  ASSERT_EQ(batch.spans.size(), 4U);
  const ProcessInfo& device = batch.processes.back();
  EXPECT_EQ(device.label, "gpu3");
  EXPECT_EQ(batch.spans[0].process, device.slot);
  EXPECT_EQ(batch.spans[2].process, device.slot);
  const std::uint32_t process = batch.spans[1].process;
  EXPECT_EQ(tree_->label_of(process), "main");
  EXPECT_EQ(device.parent, process);
  EXPECT_EQ(batch.spans[1].value_a, (std::int64_t{process} << 32) | 17);
  EXPECT_EQ(batch.spans[2].value_a, batch.spans[1].value_a);
  EXPECT_EQ(batch.spans[3].process, 0U) << "which device it is was not told";
  EXPECT_EQ(batch.spans[3].value_a, -1);
  for (const auto& [key, text] : batch.attributes) EXPECT_FALSE(key.find("device.") != std::string::npos) << key;
}

TEST_F(HookRingsTest, AnObserverAloneMakesNoHookAndTellsTheRank) {
  RingWriter native = make_ring(own_ticks(), ".nvtx");
  native.page().identity.role = static_cast<std::int32_t>(ProcessRole::kRank);
  native.page().identity.rank = 3;
  const Batch batch = poll();
  ASSERT_FALSE(batch.processes.empty());
  EXPECT_EQ(batch.processes.back().label, "rank 3");
  EXPECT_FALSE(batch.processes.back().has_hook);
}

TEST_F(HookRingsTest, AnObserverThatIsOffSaysWhy) {
  std::ofstream(folder_ / format("{}-{}.nvtx.off", ::getpid(), own_ticks())) << "ring-allocation: File too large\n";
  const Batch batch = poll();
  const std::pair<std::string, std::string> off{"process.main.observer.nvtx", "off: ring-allocation: File too large"};
  EXPECT_THAT(batch.attributes, testing::Contains(off));
  EXPECT_TRUE(fs::is_empty(folder_));
  for (const ProcessInfo& process : batch.processes) EXPECT_EQ(process.hook_absent_reason, "");
}

}  // namespace
}  // namespace hotlap
