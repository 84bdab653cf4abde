#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/format.h"
#include "store/recording_reader.h"
#include "store/recording_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

class RecordingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hotlap-store-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<RecordingWriter> make(const WriterOptions& options = {}) {
    auto writer = RecordingWriter::create(file(), info_, options);
    EXPECT_TRUE(writer.ok()) << (writer.ok() ? "" : writer.error().message);
    return std::move(writer).value();
  }
  std::unique_ptr<RecordingReader> open() {
    auto reader = RecordingReader::open(file());
    EXPECT_TRUE(reader.ok()) << (reader.ok() ? "" : reader.error().message);
    return std::move(reader).value();
  }
  fs::path file() const { return folder_ / "r.hotlap"; }

  std::map<std::uint32_t, std::vector<SamplePoint>> samples(RecordingReader& reader, TimeRange range = {}) {
    std::vector<SeriesHandle> all;
    for (const StoredSeries& series : reader.series()) all.push_back(series.handle);
    std::map<std::uint32_t, std::vector<SamplePoint>> found;
    const auto read = reader.read_samples(all, range, [&](SeriesHandle series, std::span<const SamplePoint> points) {
      found[series.index].assign(points.begin(), points.end());
    });
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    return found;
  }

  fs::path folder_;
  RecordingInfo info_{.id = "01J00000000000000000000001",
                      .run_id = "01J00000000000000000000000",
                      .node = "n1",
                      .hotlap_version = "0.1.0",
                      .boot_id = "b",
                      .interval_ns = 500'000'000,
                      .attributes = {{"cpu.model", "abacus"}}};
};

constexpr MetricDesc kTicks{.name = "cpu.user.ticks", .unit = "s", .kind = MetricKind::kCounter, .scale = 0.01};
constexpr MetricDesc kLoad{.name = "load.1min", .unit = "1", .window_ns = 60'000'000'000, .min_period_ns = 5};

TEST_F(RecordingTest, WhatIsCommittedIsReadLiveAndAfterClose) {
  auto writer = make();
  const SeriesHandle a = *writer->add_series(kTicks, "core 0");
  const SeriesHandle b = *writer->add_series(kLoad, "");
  EXPECT_EQ(writer->add_series(kTicks, "core 0")->index, a.index);
  writer->add_tick(1'000, std::vector<Sample>{{a, Value::of(std::uint64_t{5})}, {b, Value::of(0.5)}});
  writer->add_tick(2'000, std::vector<Sample>{{a, Value::missing(MissingReason::kReadFailed)}});
  ASSERT_TRUE(writer->commit().ok());
  writer->add_tick(3'000, std::vector<Sample>{{a, Value::of(std::uint64_t{UINT64_MAX})}, {b, Value::of(-0.5)}});

  auto reader = open();
  EXPECT_EQ(reader->info(), info_);
  EXPECT_FALSE(reader->is_closed());
  ASSERT_EQ(reader->series().size(), 2U);
  EXPECT_EQ(reader->series()[1].metric, "load.1min");
  EXPECT_EQ(reader->series()[1].window_ns, 60'000'000'000);
  EXPECT_EQ(reader->series()[0].kind, MetricKind::kCounter);
  auto found = samples(*reader);
  ASSERT_EQ(found[a.index].size(), 2U);
  EXPECT_EQ(found[a.index][1].value, Value::missing(MissingReason::kReadFailed));
  EXPECT_EQ(found[b.index].size(), 1U);

  ASSERT_TRUE(writer->commit().ok());
  ASSERT_TRUE(writer->close().ok());
  ASSERT_TRUE(reader->refresh().ok());
  EXPECT_TRUE(reader->is_closed());
  found = samples(*reader);
  ASSERT_EQ(found[a.index].size(), 3U);
  EXPECT_EQ(found[a.index][2].t_ns, 3'000);
  EXPECT_EQ(found[a.index][2].value, Value::of(std::uint64_t{UINT64_MAX}));
  EXPECT_EQ(found[b.index][1].value, Value::of(-0.5));
  EXPECT_EQ(reader->extent()->from_ns, 1'000);
  EXPECT_EQ(reader->extent()->to_ns, 3'001);
}

TEST_F(RecordingTest, ManyTicksAreFoldedAndComeBackInOrder) {
  auto writer = make();
  std::vector<SeriesHandle> handles;
  for (int i = 0; i < 150; ++i) handles.push_back(*writer->add_series(kTicks, "core " + std::to_string(i)));
  std::vector<Sample> tick;
  constexpr int kCount = 5'000;
  for (int i = 0; i < kCount; ++i) {
    tick.clear();
    for (const SeriesHandle h : handles) tick.push_back({h, Value::of(static_cast<std::uint64_t>(i * (h.index + 1)))});
    writer->add_tick(i * kNsPerS / 2, tick);
    if (i % 2 == 1) {
      ASSERT_TRUE(writer->commit().ok());
    }
  }
  const auto check = [&](RecordingReader& reader) {
    auto found = samples(reader);
    ASSERT_EQ(found.size(), handles.size());
    for (const auto& [series, points] : found) {
      ASSERT_EQ(points.size(), static_cast<std::size_t>(kCount));
      for (int i = 0; i < kCount; ++i) {
        const SamplePoint& point = points[static_cast<std::size_t>(i)];
        ASSERT_EQ(point.t_ns, i * kNsPerS / 2);
        ASSERT_EQ(point.value, Value::of(static_cast<std::uint64_t>(i) * (series + 1)));
      }
    }
  };
  auto reader = open();
  check(*reader);
  ASSERT_TRUE(writer->close().ok());
  ASSERT_TRUE(reader->refresh().ok());
  check(*reader);
  EXPECT_TRUE(reader->read_losses()->empty());

  const auto part = samples(*reader, {100 * kNsPerS, 101 * kNsPerS});
  ASSERT_EQ(part.at(0).size(), 2U);
  EXPECT_EQ(part.at(0)[0].t_ns, 100 * kNsPerS);
  reader.reset();
  EXPECT_TRUE(open()->is_closed());
}

TEST_F(RecordingTest, TiersGiveMinMeanMaxFirstLast) {
  auto writer = make();
  const SeriesHandle a = *writer->add_series(kLoad, "");
  for (int i = 0; i < 3 * 7'200; ++i) {  // three hours
    const Value value =
        i % 10 == 9 ? Value::missing(MissingReason::kTimedOut) : Value::of(static_cast<double>(i % 120));
    writer->add_tick(i * kNsPerS / 2, std::vector<Sample>{{a, value}});
    if (i % 2 == 1) {
      ASSERT_TRUE(writer->commit().ok());
    }
  }
  auto reader = open();
  for (const bool closed : {false, true}) {
    if (closed) {
      ASSERT_TRUE(writer->close().ok());
      ASSERT_TRUE(reader->refresh().ok());
    }
    for (const std::size_t points_max : {3U, 180U, 30'000U}) {
      std::vector<TierPoint> points;
      ASSERT_TRUE(
          reader
              ->read_tiers(std::vector{a}, {}, points_max,
                           [&](SeriesHandle, std::span<const TierPoint> got) { points.assign(got.begin(), got.end()); })
              .ok());
      ASSERT_FALSE(points.empty());
      EXPECT_LE(points.size(), points_max + 1);
      std::uint64_t values = 0;
      std::uint64_t missing = 0;
      double sum = 0;
      for (const TierPoint& point : points) {
        values += point.count;
        missing += point.missing;
        if (point.count > 0) sum += point.mean * static_cast<double>(point.count);
      }
      EXPECT_EQ(values, 19'440U);
      EXPECT_EQ(missing, 2'160U);
      EXPECT_NEAR(sum / 19'440.0, 59.0, 0.1);
      if (points_max == 180) {
        EXPECT_EQ(points[5].min, 0);
        EXPECT_EQ(points[5].max, 118);
        EXPECT_EQ(points[5].first, 0);
        EXPECT_EQ(points[5].last, 118);
      }
    }
  }
}

// Minutes, tens, hours and days are put together from blocks of several kinds and from what is not folded yet; in
// every state of the file they must say what the samples say.
TEST_F(RecordingTest, TiersOfDaysAgreeWithTheSamples) {
  auto writer = make();
  std::vector<SeriesHandle> handles;
  for (int i = 0; i < 66; ++i) handles.push_back(*writer->add_series(kLoad, std::to_string(i)));  // two groups
  std::mt19937_64 random(12);
  std::vector<std::pair<std::int64_t, Value>> added;
  std::int64_t t = 7 * kMinuteNs + 5;
  const auto add_until = [&](std::int64_t end) {
    for (; t < end; t += random() % 500 == 0 ? 2 * kHourNs : static_cast<std::int64_t>(random() % 40 + 1) * kNsPerS) {
      const Value value = random() % 9 == 0 ? Value::missing(MissingReason::kTimedOut)
                                            : Value::of(static_cast<double>(random() % 1'000));
      added.emplace_back(t, value);
      std::vector<Sample> samples{{handles[0], value}, {handles[65], value}};
      // A series of a slow lane: its tick comes later, with an earlier time.
      writer->add_tick(t, samples);
      if (added.size() % 30 == 0) {
        samples.assign(1, {handles[7], value});
        writer->add_tick(t - kNsPerS, samples);
      }
      if (added.size() % 20 == 0) {
        ASSERT_TRUE(writer->commit().ok());
      }
    }
    ASSERT_TRUE(writer->commit().ok());
  };
  auto reader = open();
  const auto check = [&] {
    ASSERT_TRUE(reader->refresh().ok());
    for (const std::size_t points_max : {1U, 40U, 90U, 500U, 5'000U, 1'000'000U}) {
      for (const SeriesHandle handle : {handles[0], handles[65]}) {
        std::vector<TierPoint> got;
        ASSERT_TRUE(reader
                        ->read_tiers(std::vector{handle}, {}, points_max,
                                     [&](SeriesHandle, std::span<const TierPoint> points) {
                                       got.assign(points.begin(), points.end());
                                     })
                        .ok());
        ASSERT_FALSE(got.empty());
        ASSERT_LE(got.size(), points_max + 1);
        TierSeries want(got[0].to_ns - got[0].from_ns);
        for (const auto& [at, value] : added) want.add(at, value);
        ASSERT_EQ(got.size(), want.points().size()) << points_max;
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(got[i].mean, want.points()[i].mean, 1.0);
          got[i].mean = want.points()[i].mean;
          ASSERT_EQ(got[i], want.points()[i]) << points_max << " points, bucket " << i;
        }
      }
    }
  };
  for (const int hours : {1, 2, 13, 50, 51}) {
    add_until(hours * kHourNs);
    check();
  }
  ASSERT_TRUE(writer->close().ok());
  check();
  EXPECT_TRUE(reader->read_losses()->empty());
}

TEST_F(RecordingTest, SpansEventsAndTheRestComeBack) {
  auto writer = make();
  std::vector<Span> spans;
  const std::uint32_t name = writer->add_name("load");
  EXPECT_EQ(writer->add_name("load"), name);
  for (int i = 0; i < 10'000; ++i) {
    spans.push_back({.start_ns = i * 1'000,
                     .duration_ns = i % 7 == 0 ? -1 : i,
                     .kind = i % 2 == 0 ? SpanKind::kStep : SpanKind::kDataWait,
                     .process = 1,
                     .thread = 77,
                     .name = name,
                     .step = i / 2,
                     .value_a = i % 3 - 1,
                     .value_b = INT64_MAX});
    writer->add_span(spans.back());
    if (i % 30 == 0) {
      ASSERT_TRUE(writer->commit().ok());
    }
  }
  const Event event{.t_ns = 5, .kind = EventKind::kPhase, .value = -3, .text = "training"};
  writer->add_event(event);
  writer->add_clock({1, 2, 3});
  const ProcessInfo process{.slot = 1,
                            .pid = 42,
                            .role = ProcessRole::kLoader,
                            .index = 3,
                            .parent = 2,
                            .label = "rank 1 loader 3",
                            .start_ns = 9,
                            .command = "python"};
  writer->put_process(process);
  writer->put_attribute("gpu", "none");
  writer->add_loss("record.ticks_late", 2);
  writer->add_loss("record.ticks_late", 3);
  ASSERT_TRUE(writer->commit().ok());

  auto reader = open();
  for (const bool closed : {false, true}) {
    if (closed) {
      ASSERT_TRUE(writer->close().ok());
      ASSERT_TRUE(reader->refresh().ok());
    }
    std::vector<Span> found;
    const auto collect = [&](std::span<const Span> some) { found.insert(found.end(), some.begin(), some.end()); };
    ASSERT_TRUE(reader->read_spans({}, {}, collect).ok());
    EXPECT_EQ(found, spans);
    found.clear();
    ASSERT_TRUE(reader->read_spans(std::vector{SpanKind::kStep}, {2'000, 5'000}, collect).ok());
    EXPECT_EQ(found, (std::vector{spans[2], spans[4]}));
    found.clear();
    std::uint64_t cursor = 4'321;
    ASSERT_TRUE(reader->read_spans_since(cursor, {}, collect).ok());
    EXPECT_EQ(found, std::vector(spans.begin() + 4'321, spans.end()));
    EXPECT_EQ(cursor, spans.size());
    std::uint64_t event_cursor = 0;
    EXPECT_EQ(*reader->read_events_since(event_cursor), std::vector{event});
    EXPECT_TRUE(reader->read_events_since(event_cursor)->empty());
    EXPECT_EQ(reader->name(name), "load");
    EXPECT_EQ(reader->name(99), "");
    EXPECT_EQ(*reader->read_events({}), std::vector{event});
    EXPECT_EQ(reader->read_clock()->at(0).wall_ns, 2);
    EXPECT_EQ(*reader->read_processes(), std::vector{process});
    EXPECT_EQ(reader->read_attributes()->at("gpu"), "none");
    ASSERT_EQ(reader->read_losses()->size(), 1U);
    EXPECT_EQ(reader->read_losses()->at(0).count, 5U);
    EXPECT_FALSE(reader->read_losses()->at(0).help.empty());
  }
}

TEST_F(RecordingTest, FollowerSeesEverySpanOnceWhileRowsArePutTogether) {
  auto writer = make();
  ASSERT_TRUE(writer->commit().ok());
  auto reader = open();
  std::uint64_t cursor = 0;
  std::int64_t seen = 0;
  for (std::int64_t i = 0; i < 9'000; ++i) {
    writer->add_span(
        {.start_ns = 9'000 - i, .duration_ns = 1, .kind = i % 3 == 0 ? SpanKind::kStep : SpanKind::kUser, .step = i});
    if (i % 11 == 0) {
      ASSERT_TRUE(writer->commit().ok());
    }
    if (i % 700 != 0) continue;
    ASSERT_TRUE(reader
                    ->read_spans_since(cursor, std::vector{SpanKind::kStep},
                                       [&](std::span<const Span> spans) {
                                         for (const Span& span : spans) {
                                           EXPECT_EQ(span.step, seen);
                                           seen += 3;
                                         }
                                       })
                    .ok());
  }
  EXPECT_GT(seen, 8'000);
}

TEST_F(RecordingTest, FileIsPrivateWhateverTheUmask) {
  const mode_t before = ::umask(0);
  auto writer = make();
  ASSERT_TRUE(writer->commit().ok());
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat found {};
    ASSERT_EQ(::stat((file().string() + suffix).c_str(), &found), 0) << suffix;
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << suffix;
  }
  ::umask(before);
}

TEST_F(RecordingTest, ClosedFileIsOneFile) {
  auto writer = make();
  ASSERT_TRUE(writer->close().ok());
  EXPECT_FALSE(fs::exists(file().string() + "-wal"));
  EXPECT_FALSE(fs::exists(file().string() + "-shm"));
  EXPECT_FALSE(RecordingWriter::create(file(), info_, {}).ok());
}

}  // namespace
}  // namespace hotlap
