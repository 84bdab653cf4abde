#include "store/import_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <vector>

#include "support/temp_dir.h"

namespace hotlap {
namespace {

class ImportWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<ImportWriter> writer(ImportWriterOptions options = {}) {
    Result<std::unique_ptr<ImportWriter>> made =
        ImportWriter::create(path(), {.id = "r", .run_id = "run"}, std::move(options));
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }
  std::unique_ptr<RecordingReader> reader() {
    Result<std::unique_ptr<RecordingReader>> opened = RecordingReader::open(path());
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(opened).value();
  }
  std::vector<Span> spans() {
    std::vector<Span> all;
    std::uint64_t cursor = 0;
    EXPECT_TRUE(
        reader()
            ->read_spans_since(cursor, {},
                               [&](std::span<const Span> some) { all.insert(all.end(), some.begin(), some.end()); })
            .ok());
    return all;
  }
  std::filesystem::path path() const { return folder_.path() / "0001.hotlap"; }

  test::TempDir folder_;
};

TEST_F(ImportWriterTest, AnyOrderComesOutByTimeWhetherItFitsInMemoryOrNot) {
  std::vector<Span> pushed;
  std::mt19937_64 random(7);
  for (std::int64_t i = 0; i < 20'000; ++i) {
    const auto start_ns = static_cast<std::int64_t>(random() % 10'000'000'000'000ULL) - 5'000'000;
    pushed.push_back(
        {.start_ns = start_ns / 7 * 7, .duration_ns = i % 50 - 1, .kind = SpanKind::kOperator, .value_a = i});
  }
  std::vector<Span> expected = pushed;
  std::stable_sort(expected.begin(), expected.end(), [](const Span& a, const Span& b) {
    const auto length = [](const Span& s) { return s.duration_ns < 0 ? INT64_MAX : s.duration_ns; };
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : length(a) > length(b);
  });
  for (const std::size_t in_memory : {std::size_t{1} << 20, std::size_t{3000}}) {
    std::filesystem::remove(path());
    const auto out = writer({.spans_in_memory = in_memory});
    for (const Span& span : pushed) out->span(span);
    ASSERT_TRUE(out->close().ok());
    EXPECT_EQ(out->spans_written(), pushed.size());
    const std::vector<Span> found = spans();
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i].start_ns, expected[i].start_ns) << i;
    EXPECT_TRUE(std::is_permutation(found.begin(), found.begin() + 100, expected.begin()));
    // Nothing but the recording stays: the spill file has no name.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
  }
}

TEST_F(ImportWriterTest, WhatHoldsOthersStandsBeforeThem) {
  const auto out = writer();
  out->span({.start_ns = 5, .duration_ns = 1, .value_a = 2});
  out->span({.start_ns = 5, .duration_ns = 9, .value_a = 1});
  out->span({.start_ns = 5, .duration_ns = -1, .value_a = 0});
  ASSERT_TRUE(out->close().ok());
  const std::vector<Span> found = spans();
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(found[static_cast<std::size_t>(i)].value_a, i);
}

TEST_F(ImportWriterTest, TheClockHoldsForWhatCameBefore) {
  const auto out = writer();
  const SeriesHandle series = out->series({.name = "a.b", .unit = "1"}, "x");
  out->span({.start_ns = 5, .duration_ns = 1});
  out->sample(series, 7, Value::of(std::int64_t{1}));
  out->event({.t_ns = 9, .kind = EventKind::kNote, .text = "n"});
  constexpr std::int64_t kBase = 1'700'000'000'000'000'000;
  out->clock({.offset_ns = kBase, .uncertainty_ns = 0, .is_absolute = true});
  ASSERT_TRUE(out->close().ok());
  ASSERT_TRUE(out->extent().has_value());
  EXPECT_EQ(out->extent()->from_ns, kBase + 5);
  EXPECT_EQ(spans()[0].start_ns, kBase + 5);
  const auto in = reader();
  EXPECT_EQ((*in->read_events({}))[0].t_ns, kBase + 9);
  EXPECT_EQ((*in->read_clock())[0].wall_ns, kBase + 5);
  ASSERT_TRUE(in->read_samples(std::vector{series}, {}, [](SeriesHandle, std::span<const SamplePoint> points) {
                  ASSERT_EQ(points.size(), 1U);
                  EXPECT_EQ(points[0].t_ns, kBase + 7);
                }).ok());
}

TEST_F(ImportWriterTest, SamplesAreSortedAndASecondOneAtItsTimeIsCounted) {
  const auto out = writer();
  const SeriesHandle series = out->series({.name = "a.b", .unit = "1"}, "");
  for (const std::int64_t t : {3, 1, 2, 2}) out->sample(series, t, Value::of(t));
  ASSERT_TRUE(out->close().ok());
  std::vector<std::int64_t> times;
  ASSERT_TRUE(reader()
                  ->read_samples(std::vector{series}, {},
                                 [&](SeriesHandle, std::span<const SamplePoint> points) {
                                   for (const SamplePoint& point : points) times.push_back(point.t_ns);
                                 })
                  .ok());
  EXPECT_EQ(times, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ((*reader()->read_losses())[0].counter, "ingest.samples_out_of_order");
}

TEST_F(ImportWriterTest, LossesKeepTheirFirstByte) {
  const auto out = writer();
  out->count_loss("ingest.events_dropped", 2, 900);
  out->count_loss("ingest.events_dropped", 1, 40);
  ASSERT_TRUE(out->close().ok());
  const auto losses = *reader()->read_losses();
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].count, 3U);
  EXPECT_EQ(losses[0].first_offset, 40);
}

TEST_F(ImportWriterTest, BelowTheFloorOfFreeSpaceNothingIsSpilledAndItIsCounted) {
  const auto out = writer({.spans_in_memory = 100, .free_bytes_floor = 0});
  out->span({.start_ns = 1});
  ASSERT_TRUE(out->close().ok());
  std::filesystem::remove(path());
  // The recording itself is made while there is room; then the floor rises above all disks.
  Result<std::unique_ptr<ImportWriter>> refused =
      ImportWriter::create(path(), {}, {.spans_in_memory = 100, .free_bytes_floor = UINT64_MAX});
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
}

TEST_F(ImportWriterTest, AProcessIsDescribedAnewByItsSlot) {
  const auto out = writer({.main_label = "a.json"});
  const std::uint32_t slot = out->process({.pid = 7});
  EXPECT_EQ(out->process({.slot = slot, .pid = 7, .role = ProcessRole::kMain}), slot);
  EXPECT_EQ(out->process({.pid = 8}), slot + 1);
  ASSERT_TRUE(out->close().ok());
  const auto processes = *reader()->read_processes();
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].label, "a.json");
}

}  // namespace
}  // namespace hotlap
