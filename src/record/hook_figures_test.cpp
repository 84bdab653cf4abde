#include "record/hook_rings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>

#include "base/format.h"
#include "base/log.h"
#include "base/text.h"
#include "record/hook_metrics.h"
#include "wire/ring_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

// Field 22 of /proc/self/stat, by which a ring's file and its process are held together.
std::uint64_t start_ticks() {
  const std::string stat = system_host().read_text("/proc/self/stat").value_or("");
  const std::vector<std::string_view> fields = split(std::string_view(stat).substr(stat.rfind(')') + 2), ' ');
  return fields.size() > 19 ? parse_u64(fields[19]).value_or(0) : 0;
}

// The ring of this very process, as a hook would make it, and what the recorder makes of it.
class HookFiguresTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    folder_ = fs::temp_directory_path() / format("hotlap-figures-test-{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
    RingIdentity identity{};
    identity.uid = ::geteuid();
    identity.pid = static_cast<std::uint32_t>(::getpid());
    identity.role = static_cast<std::int32_t>(ProcessRole::kRank);
    identity.rank = 2;
    auto writer =
        RingWriter::create((folder_ / format("{}-{}.ring", ::getpid(), start_ticks())).native(), identity, 64 << 10);
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    writer_.emplace(std::move(*writer));
    writer_->page().live.step = -1;
    writer_->page().live.collective_group = -1;
    writer_->page().live.collective_sequence = -1;
  }
  void TearDown() override {
    set_log_level(LogLevel::kWarning);
    fs::remove_all(folder_);
  }

  // One tick; "metric instance" -> value.
  std::map<std::string, Value> poll() {
    out_.clear();
    (void)writer_->flush();
    rings_.poll(t_ns_ += 2 * kNsPerS, out_);
    std::map<std::string, Value> values;
    const std::vector<SeriesTable::Entry> known = series_.since(0);
    for (const Sample& sample : out_.samples) {
      const SeriesTable::Entry& entry = known[sample.series.index];
      const bool is_new = values.emplace(format("{} {}", entry.metric->name, entry.instance), sample.value).second;
      EXPECT_TRUE(is_new) << entry.metric->name << ": sampled twice in a tick";
    }
    return values;
  }

  fs::path folder_;
  std::optional<RingWriter> writer_;
  JobTree tree_{system_host(), system_clock(), {.root_pid = ::getpid()}};
  SeriesTable series_{1000};
  Batch out_;
  HookRings rings_{fs::temp_directory_path() / format("hotlap-figures-test-{}", ::getpid()), ::geteuid(), tree_,
                   series_};
  std::int64_t t_ns_ = 0;
};

TEST_F(HookFiguresTest, FiguresOfTheHookBecomeSeriesOfTheirMetric) {
  writer_->name(1, "allocator.allocated.bytes cuda:0");
  writer_->name(2, "gpu_time.forward.ms cuda:0");
  writer_->name(3, "ddp.overlap.ms");
  writer_->count(1, 10, 5, -1, kCountOfHook);
  writer_->count(1, 20, 17'179'869'184.0, -1, kCountOfHook);  // the last of a tick counts
  writer_->count(2, 10, 12.5, -1, kCountOfHook);
  writer_->count(3, 10, 1.25, -1, kCountOfHook);
  auto values = poll();
  EXPECT_EQ(values.at("allocator.allocated.bytes rank 2/cuda:0"), Value::of(std::uint64_t{17'179'869'184}));
  EXPECT_EQ(values.at("gpu_time.forward.ms rank 2/cuda:0"), Value::of(12.5));
  EXPECT_EQ(values.at("ddp.overlap.ms rank 2"), Value::of(1.25));
  EXPECT_FALSE(poll().contains("allocator.allocated.bytes rank 2/cuda:0")) << "nothing new was sent";
}

TEST_F(HookFiguresTest, ANameOfTheProgramIsNeverAMetricOfOurs) {
  writer_->name(1, "allocator.allocated.bytes cuda:0");
  writer_->count(1, 10, 5, -1);
  const auto values = poll();
  EXPECT_EQ(values.at("hook.user.value rank 2 allocator.allocated.bytes cuda:0"), Value::of(5.0));
  EXPECT_FALSE(values.contains("allocator.allocated.bytes rank 2/cuda:0"));
}

TEST_F(HookFiguresTest, WhatIsNoFigureIsMissingAndWhatIsUnknownIsCounted) {
  writer_->name(1, "allocator.retries cuda:0");
  writer_->name(2, "of.a.newer.hook cuda:0");
  writer_->name(3, "hook.steps");  // page 0 has it
  writer_->count(1, 10, -1, -1, kCountOfHook);
  writer_->count(2, 10, 1, -1, kCountOfHook);
  writer_->count(3, 10, 1, -1, kCountOfHook);
  const auto values = poll();
  EXPECT_EQ(values.at("allocator.retries rank 2/cuda:0"), Value::missing(MissingReason::kReadFailed));
  std::uint64_t unknown = 0;
  for (const LossCount& loss : out_.losses) unknown += loss.counter == "hook.records_unknown" ? loss.count : 0;
  EXPECT_EQ(unknown, 2U);
}

TEST_F(HookFiguresTest, ThePageTellsTheCollectiveThatARankIsIn) {
  EXPECT_FALSE(poll().contains("collective.entered rank 2")) << "most jobs have none";
  writer_->page().live.collective_group = 0;
  writer_->page().live.collective_sequence = 41;
  auto values = poll();
  EXPECT_EQ(values.at("collective.entered rank 2"), Value::of(std::uint64_t{1}));
  EXPECT_EQ(values.at("collective.sequence rank 2"), Value::of(std::uint64_t{41}));
  writer_->page().live.collective_group = -1;
  values = poll();
  EXPECT_EQ(values.at("collective.entered rank 2"), Value::of(std::uint64_t{0}));
  EXPECT_EQ(values.at("collective.sequence rank 2"), Value::of(std::uint64_t{41}));
}

TEST_F(HookFiguresTest, RunningOutOfDeviceMemoryIsAnEventAndAnAttribute) {
  writer_->info(55, "oom", R"({"step": 3, "text": "CUDA out of memory. Tried to allocate 2.00 GiB\nmore"})");
  writer_->info(56, "oom", "no JSON");
  poll();
  std::vector<std::string> notes;
  for (const Event& event : out_.events) {
    if (event.kind == EventKind::kNote) notes.push_back(format("{} {}", event.t_ns, event.text));
  }
  EXPECT_EQ(notes, (std::vector<std::string>{"55 rank 2: CUDA out of memory. Tried to allocate 2.00 GiB",
                                             "56 rank 2: out of device memory"}));
}

TEST(HookMetrics, FiguresAreFoundByNameAndNothingElseIs) {
  for (const MetricDesc& metric : hook_metrics().subspan(kFirstFigure)) EXPECT_EQ(hook_figure(metric.name), &metric);
  for (const MetricDesc& metric : hook_metrics().first(kFirstFigure)) EXPECT_EQ(hook_figure(metric.name), nullptr);
  EXPECT_EQ(figure_value(*hook_figure("allocator.ooms"), 1e300), Value::missing(MissingReason::kReadFailed));
  EXPECT_EQ(figure_value(*hook_figure("ddp.overlap.ms"), 0.0), Value::of(0.0));
}

}  // namespace
}  // namespace hotlap
