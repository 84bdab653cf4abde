// The store on a disk that fails: at each operation in turn, for a moment or for long. What a commit promised is
// there, what was lost is counted, nothing crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fault_vfs.h"
#include "store/recording_reader.h"
#include "store/recording_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr MetricDesc kMetric{.name = "test.value", .unit = "1", .kind = MetricKind::kCounter};
constexpr std::uint32_t kSeries = 3;
constexpr std::int64_t kStepNs = 61 * kNsPerS;  // a stretch is full after ten ticks
RecordingInfo make_info() { return {}; }

Value value_at(std::int64_t tick, std::uint32_t series) {
  return tick % 7 == 3 ? Value::missing(MissingReason::kReadFailed)
                       : Value::of(static_cast<std::uint64_t>(tick * 1'000 + series));
}

class StoreFault : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory where that can be: thousands of checkpoints would else wait for a disk.
    const fs::path base = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path();
    std::string pattern = (base / "hotlap-fault-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    (void)FaultVfs::instance();
  }
  void TearDown() override {
    FaultVfs::instance().heal();
    fs::remove_all(folder_);
  }

  WriterOptions options() const {
    WriterOptions options;
    options.vfs = FaultVfs::kName;
    options.wal_pages_max = 24;
    return options;
  }
  fs::path file() const { return folder_ / "r.hotlap"; }

  struct Outcome {
    bool was_created = false;
    bool was_closed = false;
    std::int64_t ticks_promised = 0;  // by the last commit that succeeded
    std::int64_t spans_promised = 0;
  };

  void add(RecordingWriter& writer, std::int64_t tick) {
    std::vector<Sample> samples;
    for (std::uint32_t s = 0; s < kSeries; ++s) samples.push_back({{s}, value_at(tick, s)});
    writer.add_tick(tick * kStepNs, samples);
    writer.add_span({.start_ns = tick, .duration_ns = 1, .kind = SpanKind::kStep, .step = tick});
  }

  // Records `ticks` ticks with a commit each, under whatever plan the VFS has.
  Outcome record(std::int64_t ticks) {
    Outcome outcome;
    auto writer = RecordingWriter::create(file(), make_info(), options());
    if (!writer.ok()) return outcome;
    outcome.was_created = true;
    for (std::uint32_t s = 0; s < kSeries; ++s) {
      EXPECT_EQ((*writer)->add_series(kMetric, std::to_string(s))->index, s);
    }
    for (std::int64_t tick = 0; tick < ticks; ++tick) {
      add(**writer, tick);
      if ((*writer)->commit().ok()) {
        outcome.ticks_promised = tick + 1;
        outcome.spans_promised = tick + 1;
      }
    }
    outcome.was_closed = (*writer)->close().ok();
    if (outcome.was_closed) outcome.ticks_promised = outcome.spans_promised = ticks;
    return outcome;
  }

  // Everything promised is there, in order, and nothing that was never added.
  void check(const Outcome& outcome, std::int64_t ticks) {
    if (!outcome.was_created) {
      EXPECT_FALSE(fs::exists(file()));
      return;
    }
    auto reader = RecordingReader::open(file());
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_EQ((*reader)->is_closed(), outcome.was_closed);
    std::vector<SeriesHandle> all;
    for (const StoredSeries& series : (*reader)->series()) all.push_back(series.handle);
    std::map<std::uint32_t, std::vector<SamplePoint>> found;
    ASSERT_TRUE((*reader)
                    ->read_samples(all, {},
                                   [&](SeriesHandle series, std::span<const SamplePoint> points) {
                                     found[series.index].assign(points.begin(), points.end());
                                   })
                    .ok());
    for (std::uint32_t s = 0; s < kSeries && outcome.ticks_promised > 0; ++s) {
      const std::vector<SamplePoint>& points = found[s];
      ASSERT_GE(std::ssize(points), outcome.ticks_promised);
      ASSERT_LE(std::ssize(points), ticks);
      for (std::int64_t tick = 0; tick < std::ssize(points); ++tick) {
        const SamplePoint& point = points[static_cast<std::size_t>(tick)];
        ASSERT_EQ(point.t_ns, tick * kStepNs);
        ASSERT_EQ(point.value, value_at(tick, s));
      }
    }
    std::int64_t spans = 0;
    ASSERT_TRUE((*reader)
                    ->read_spans({}, {},
                                 [&](std::span<const Span> some) {
                                   for (const Span& span : some) EXPECT_EQ(span.step, spans++);
                                 })
                    .ok());
    EXPECT_GE(spans, outcome.spans_promised);
    const auto losses = (*reader)->read_losses();
    ASSERT_TRUE(losses.ok());
    for (const Loss& loss : *losses) EXPECT_EQ(loss.counter, "store.commits_failed") << loss.count;
  }

  // One operation after the other fails, `length` in a row.
  void fail_each(FaultKind kind, std::uint64_t length) {
    constexpr std::int64_t kTicks = 23;
    FaultVfs::instance().plan(kind, 0, 0);
    ASSERT_TRUE(record(kTicks).was_closed);
    const std::uint64_t operations = FaultVfs::instance().operations();
    ASSERT_GT(operations, 20U);
    fs::remove(file());
    // Every operation in the first hundred, then each third: the same things come again and again.
    for (std::uint64_t n = 1; n <= operations; n += n < 100 ? 1 : 3) {
      SCOPED_TRACE(::testing::Message() << "operation " << n << " of " << operations);
      FaultVfs::instance().plan(kind, n, length);
      const Outcome outcome = record(kTicks);
      FaultVfs::instance().heal();
      check(outcome, kTicks);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
      for (const char* suffix : {"", "-wal", "-shm", "-journal"}) fs::remove(file().string() + suffix);
    }
  }

  fs::path folder_;
};

TEST_F(StoreFault, IoErrorAtEachOperation) { fail_each(FaultKind::kIoError, 1); }
TEST_F(StoreFault, IoErrorsForAWhileFromEachOperation) { fail_each(FaultKind::kIoError, 40); }
TEST_F(StoreFault, FullDiskAtEachWrite) { fail_each(FaultKind::kFull, 1); }
TEST_F(StoreFault, FullDiskForAWhileFromEachWrite) { fail_each(FaultKind::kFull, 30); }
TEST_F(StoreFault, ShortWriteAtEachWrite) { fail_each(FaultKind::kShortWrite, 1); }
TEST_F(StoreFault, ShortWritesForAWhileFromEachWrite) { fail_each(FaultKind::kShortWrite, 30); }
TEST_F(StoreFault, ReadErrorAtEachRead) { fail_each(FaultKind::kReadError, 1); }

TEST_F(StoreFault, LongOutageLosesTheOldestAndCountsThem) {
  WriterOptions small = options();
  small.pending_bytes_max = 16'384;
  auto writer = RecordingWriter::create(file(), make_info(), small);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  for (std::uint32_t s = 0; s < kSeries; ++s) ASSERT_TRUE((*writer)->add_series(kMetric, std::to_string(s)).ok());
  std::int64_t tick = 0;
  const auto go_on = [&](std::int64_t count, bool is_well) {
    for (const std::int64_t end = tick + count; tick < end; ++tick) {
      add(**writer, tick);
      (*writer)->add_event({.t_ns = tick, .kind = EventKind::kNote, .value = tick, .text = std::string(50, 'x')});
      const auto committed = (*writer)->commit();
      ASSERT_EQ(committed.ok(), is_well);
      if (!is_well) {
        EXPECT_THAT(committed.error().message, HasSubstr("full"));
      }
    }
  };
  go_on(25, true);
  FaultVfs::instance().plan(FaultKind::kFull, 1, UINT64_MAX);
  go_on(2'000, false);
  FaultVfs::instance().heal();
  go_on(25, true);
  ASSERT_TRUE((*writer)->close().ok());

  auto reader = RecordingReader::open(file());
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  std::map<std::string, std::uint64_t> lost;
  const std::vector<Loss> losses = *(*reader)->read_losses();
  for (const Loss& loss : losses) lost[loss.counter] = loss.count;
  EXPECT_EQ(lost["store.commits_failed"], 2'000U);
  EXPECT_GT(lost["store.samples_lost"], 0U);
  EXPECT_GT(lost["store.events_lost"], 0U);
  std::uint64_t samples = 0;
  std::map<std::int64_t, int> seen;
  ASSERT_TRUE((*reader)
                  ->read_samples(std::vector<SeriesHandle>{{0}, {1}, {2}}, {},
                                 [&](SeriesHandle series, std::span<const SamplePoint> points) {
                                   samples += points.size();
                                   for (const SamplePoint& point : points) {
                                     EXPECT_EQ(point.value, value_at(point.t_ns / kStepNs, series.index));
                                     ++seen[point.t_ns / kStepNs];
                                   }
                                 })
                  .ok());
  EXPECT_EQ(samples + lost["store.samples_lost"], static_cast<std::uint64_t>(tick) * kSeries);
  for (std::int64_t t = 0; t < 25; ++t) EXPECT_EQ(seen[t], 3) << t;            // was committed before
  for (std::int64_t t = tick - 60; t < tick; ++t) EXPECT_EQ(seen[t], 3) << t;  // the newest were kept
  EXPECT_EQ((*reader)->read_events({})->size() + lost["store.events_lost"], static_cast<std::uint64_t>(tick));
  std::uint64_t spans = 0;
  ASSERT_TRUE((*reader)->read_spans({}, {}, [&](std::span<const Span> some) { spans += some.size(); }).ok());
  EXPECT_EQ(spans + lost["store.spans_lost"], static_cast<std::uint64_t>(tick));
}

TEST_F(StoreFault, BelowTheFloorNothingIsWritten) {
  WriterOptions greedy = options();
  greedy.free_bytes_floor = UINT64_MAX / 2;
  const auto writer = RecordingWriter::create(file(), make_info(), greedy);
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(writer.error().message, HasSubstr("free"));
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(StoreFault, DeletedFolderIsSaidAndNeverMadeAgain) {
  auto writer = RecordingWriter::create(file(), make_info(), options());
  ASSERT_TRUE(writer.ok());
  for (std::uint32_t s = 0; s < kSeries; ++s) ASSERT_TRUE((*writer)->add_series(kMetric, std::to_string(s)).ok());
  add(**writer, 0);
  ASSERT_TRUE((*writer)->commit().ok());
  fs::remove_all(folder_);
  for (std::int64_t tick = 1; tick < 50; ++tick) {
    add(**writer, tick);
    const auto committed = (*writer)->commit();
    ASSERT_FALSE(committed.ok());
    EXPECT_THAT(committed.error().message, HasSubstr(file().string()));
  }
  EXPECT_FALSE((*writer)->close().ok());
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(StoreFault, DeletedFileIsSaidAndNeverMadeAgain) {
  auto writer = RecordingWriter::create(file(), make_info(), options());
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->commit().ok());
  fs::remove(file());
  const auto committed = (*writer)->commit();
  ASSERT_FALSE(committed.ok());
  EXPECT_THAT(committed.error().message, HasSubstr("deleted or moved"));
  EXPECT_FALSE((*writer)->close().ok());
  EXPECT_FALSE(fs::exists(file()));
}

}  // namespace
}  // namespace hotlap
