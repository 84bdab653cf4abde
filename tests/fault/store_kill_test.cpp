// kill -9 of a process that writes a recording, at random moments: every file opens, everything that a commit
// promised is there, and the recording can be settled into one file. 20 kills; HOTLAP_KILLS=200 for the proof.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "store/home.h"
#include "store/recording_reader.h"
#include "store/recording_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr MetricDesc kMetric{.name = "test.value", .unit = "1", .kind = MetricKind::kCounter};
constexpr std::uint32_t kSeries = 70;  // two chunks
constexpr std::int64_t kTicksPerCommit = 10;

std::uint64_t value_at(std::int64_t tick, std::uint32_t series) {
  return static_cast<std::uint64_t>(tick) * (series % 5 + 1) + series;
}

// What the writer says it has committed; shared with the process that will be killed.
struct Promised {
  std::atomic<std::int64_t> ticks{0};
};

class StoreKill : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hotlap-kill-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path file() const { return folder_ / "r.hotlap"; }

  // Adds and commits without a pause until `ticks`, or for ever.
  void write(Promised& promised, std::int64_t ticks, bool close) {
    WriterOptions options;
    options.wal_pages_max = 200;  // so that checkpoints are hit too
    auto writer = RecordingWriter::create(file(), {}, options);
    if (!writer.ok()) ::_exit(3);
    for (std::uint32_t s = 0; s < kSeries; ++s) (void)(*writer)->add_series(kMetric, std::to_string(s)).ok();
    std::vector<Sample> samples(kSeries);
    for (std::int64_t tick = 0; tick < ticks; ++tick) {
      for (std::uint32_t s = 0; s < kSeries; ++s) samples[s] = {{s}, Value::of(value_at(tick, s))};
      (*writer)->add_tick(tick * kNsPerS / 10, samples);
      (*writer)->add_span({.start_ns = tick, .duration_ns = 1, .kind = SpanKind::kStep, .step = tick});
      if (tick % kTicksPerCommit == kTicksPerCommit - 1 && (*writer)->commit().ok()) {
        promised.ticks.store(tick + 1, std::memory_order_release);
      }
    }
    if (close && (*writer)->close().ok()) promised.ticks.store(ticks, std::memory_order_release);
  }

  // Ticks and spans that are there: whole, in order, as they were added. -1: there is something wrong.
  std::int64_t count(RecordingReader& reader) {
    std::vector<SeriesHandle> all;
    for (const StoredSeries& series : reader.series()) all.push_back(series.handle);
    std::int64_t ticks = -1;
    bool is_right = true;
    const auto read = reader.read_samples(all, {}, [&](SeriesHandle series, std::span<const SamplePoint> points) {
      if (ticks < 0) ticks = std::ssize(points);
      is_right = is_right && ticks == std::ssize(points);
      for (std::int64_t tick = 0; tick < std::ssize(points); ++tick) {
        const SamplePoint& point = points[static_cast<std::size_t>(tick)];
        is_right =
            is_right && point.t_ns == tick * kNsPerS / 10 && point.value == Value::of(value_at(tick, series.index));
      }
    });
    EXPECT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(is_right);
    return is_right ? std::max<std::int64_t>(ticks, 0) : -1;
  }
  std::int64_t count_spans(RecordingReader& reader) {
    std::int64_t spans = 0;
    bool is_right = true;
    const auto read = reader.read_spans({}, {}, [&](std::span<const Span> some) {
      for (const Span& span : some) is_right = is_right && span.step == spans++;
    });
    EXPECT_TRUE(read.ok() && is_right);
    return is_right ? spans : -1;
  }

  // What a reader finds after the writer is gone; `promised` is the least.
  void check(std::int64_t promised) {
    if (!fs::exists(file()) || fs::file_size(file()) == 0) {
      EXPECT_EQ(promised, 0);
      return;
    }
    auto reader = RecordingReader::open(file());
    if (!reader.ok()) {
      // Killed while the tables were made: nothing was promised.
      EXPECT_EQ(promised, 0) << reader.error().message;
      return;
    }
    const std::int64_t ticks = count(**reader);
    EXPECT_GE(ticks, promised);
    EXPECT_EQ(count_spans(**reader), ticks);
    EXPECT_TRUE((*reader)->read_losses()->empty());
    reader->reset();
    const Result<void> settled = settle_recording(file());
    EXPECT_TRUE(settled.ok()) << settled.error().message;
    EXPECT_FALSE(fs::exists(file().string() + "-wal"));
    reader = RecordingReader::open(file());
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_EQ(count(**reader), ticks);
  }

  fs::path folder_;
};

TEST_F(StoreKill, EveryFileOpensAndHoldsWhatWasPromised) {
  void* const shared = ::mmap(nullptr, sizeof(Promised), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  const char* const asked = std::getenv("HOTLAP_KILLS");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::int64_t kills = asked != nullptr ? parse_i64(asked).value_or(20) : 20;
  std::mt19937_64 random(static_cast<std::uint64_t>(::getpid()));
  std::int64_t most = 0;
  for (std::int64_t n = 0; n < kills; ++n) {
    auto& promised = *new (shared) Promised;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      write(promised, 4'000, true);
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(random() % 400'000));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const std::int64_t ticks = promised.ticks.load(std::memory_order_acquire);
    most = std::max(most, ticks);
    SCOPED_TRACE(::testing::Message() << "kill " << n << " after " << ticks << " ticks");
    check(ticks);
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) fs::remove(file().string() + suffix);
    if (HasFatalFailure() || HasNonfatalFailure()) break;
  }
  EXPECT_GT(most, 0);
  ::munmap(shared, sizeof(Promised));
}

TEST_F(StoreKill, ReaderFollowsALiveWriter) {
  Promised promised;
  // Thread-safe: each thread has its own connection.
  std::jthread writer([&] { write(promised, 6'000, false); });
  std::unique_ptr<RecordingReader> reader;
  std::int64_t reads = 0;
  std::int64_t last = 0;
  while (last < 6'000) {
    const std::int64_t least = promised.ticks.load(std::memory_order_acquire);
    if (!reader) {
      if (least == 0) continue;
      auto opened = RecordingReader::open(file());
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      reader = std::move(opened).value();
    }
    const auto refreshed = reader->refresh();
    ASSERT_TRUE(refreshed.ok()) << refreshed.error().message;
    const std::int64_t ticks = count(*reader);
    ASSERT_GE(ticks, std::max(least, last));
    ASSERT_GE(count_spans(*reader), ticks);
    last = ticks;
    ++reads;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(reads, 0);
  EXPECT_TRUE(reader->read_losses()->empty());
}

TEST_F(StoreKill, ALiveRecordingIsCopiedWholeAndMovedWhenClosed) {
  Promised promised;
  auto writer = RecordingWriter::create(file(), {}, {});
  ASSERT_TRUE(writer.ok());
  for (std::uint32_t s = 0; s < kSeries; ++s) ASSERT_TRUE((*writer)->add_series(kMetric, std::to_string(s)).ok());
  std::vector<Sample> samples(kSeries);
  const auto go_on = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t tick = from; tick < to; ++tick) {
      for (std::uint32_t s = 0; s < kSeries; ++s) samples[s] = {{s}, Value::of(value_at(tick, s))};
      (*writer)->add_tick(tick * kNsPerS / 10, samples);
    }
    ASSERT_TRUE((*writer)->commit().ok());
  };
  go_on(0, 30);
  const fs::path away = folder_ / "away";
  fs::create_directory(away);
  const auto count_copy = [&] {
    auto copy = RecordingReader::open(away / "r.hotlap");
    EXPECT_TRUE(copy.ok()) << copy.error().message;
    return copy.ok() ? count(**copy) : -1;
  };
  ASSERT_TRUE(move_recordings(folder_, away).ok());
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_EQ(count_copy(), 30);
  EXPECT_FALSE(fs::exists(away / "r.hotlap-wal"));
  go_on(30, 50);
  ASSERT_TRUE((*writer)->close().ok());
  const auto moved = move_recordings(folder_, away);
  ASSERT_TRUE(moved.ok()) << moved.error().message;
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_EQ(count_copy(), 50);
}

}  // namespace
}  // namespace hotlap
