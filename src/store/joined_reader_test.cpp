#include "store/joined_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "model/run.h"
#include "store/import_writer.h"
#include "support/temp_dir.h"

namespace hotlap {
namespace {

constexpr std::int64_t kUnixNs = 1'700'000'000 * kNsPerS;

// One imported file: a series of ten samples a second apart from `from_ns` on, and a span in each.
struct File {
  std::string name;
  std::int64_t from_ns = 0;
  std::string metric = "gpu.busy.percent";
  std::string format = "series_json";
  std::string node = {};
};

class JoinedReaderTest : public testing::Test {
 protected:
  RecordingReader* make(const File& file) {
    RecordingInfo info{.id = make_ulid(1, 2, static_cast<std::uint64_t>(readers_.size())),
                       .run_id = make_ulid(1, 2, 3),
                       .node = file.node,
                       .hotlap_version = "0",
                       .attributes = {{"source.file", file.name}}};
    const auto path = folder_.path() / (file.name + ".hotlap");
    auto writer = ImportWriter::create(path, info, {});
    EXPECT_TRUE(writer.ok());
    const SeriesHandle series = (*writer)->series(MetricDesc{.name = file.metric, .unit = "%"}, "gpu0");
    const std::uint32_t slot = (*writer)->process({.role = ProcessRole::kMain});
    const std::uint32_t name = (*writer)->name("of " + file.name);
    for (int i = 0; i < 10; ++i) {
      const std::int64_t t_ns = file.from_ns + i * kNsPerS;
      (*writer)->sample(series, t_ns, Value::of(std::int64_t{i}));
      (*writer)->span({.start_ns = t_ns, .duration_ns = 1000, .process = slot, .name = name});
    }
    (*writer)->event({.t_ns = file.from_ns, .kind = EventKind::kNote, .value = 0, .text = file.name});
    (*writer)->event({.t_ns = file.from_ns + 5 * kNsPerS, .kind = EventKind::kClockStep, .value = 7, .text = {}});
    (*writer)->attribute("source.format", file.format);
    EXPECT_TRUE((*writer)->close().ok());
    auto reader = RecordingReader::open(path);
    EXPECT_TRUE(reader.ok());
    readers_.push_back(std::move(reader).value());
    return readers_.back().get();
  }

  test::TempDir folder_;
  std::vector<std::unique_ptr<RecordingReader>> readers_;
};

std::vector<std::int64_t> times_of(JoinedReader& joined, std::string_view metric) {
  std::vector<SeriesHandle> wanted;
  for (const StoredSeries& series : joined.series()) {
    if (series.metric == metric) wanted.push_back(series.handle);
  }
  std::vector<std::int64_t> times;
  EXPECT_TRUE(joined
                  .read_samples(wanted, {0, INT64_MAX / 2},
                                [&](SeriesHandle, std::span<const SamplePoint> points) {
                                  for (const SamplePoint& point : points) times.push_back(point.t_ns);
                                })
                  .ok());
  return times;
}

TEST_F(JoinedReaderTest, FilesOfOneMachineAreOneGroup) {
  RecordingReader* const log = make({.name = "train.log", .from_ns = kUnixNs, .metric = "train.loss"});
  RecordingReader* const smi = make({.name = "smi.csv", .from_ns = kUnixNs});
  const std::vector<RecordingReader*> all{log, smi};
  ASSERT_EQ(JoinedReader::group(all).size(), 1U);
}

TEST_F(JoinedReaderTest, TwoMachinesAreTwoGroups) {
  RecordingReader* const one = make({.name = "a.csv", .from_ns = kUnixNs});
  RecordingReader* const two = make({.name = "b.csv", .from_ns = kUnixNs});
  const std::vector<RecordingReader*> all{one, two};
  EXPECT_EQ(JoinedReader::group(all).size(), 2U);
  // The same series, later: the next file of the same machine.
  RecordingReader* const later = make({.name = "c.csv", .from_ns = kUnixNs + 100 * kNsPerS});
  const std::vector<RecordingReader*> in_turn{one, later};
  EXPECT_EQ(JoinedReader::group(in_turn).size(), 1U);
}

TEST_F(JoinedReaderTest, OneTraceJoinsAndTwoDoNot) {
  RecordingReader* const smi = make({.name = "smi.csv", .from_ns = kUnixNs});
  RecordingReader* const trace = make({.name = "t.json", .from_ns = kUnixNs, .metric = "x", .format = "chrome_trace"});
  const std::vector<RecordingReader*> one{smi, trace};
  EXPECT_EQ(JoinedReader::group(one).size(), 1U);
  RecordingReader* const other = make({.name = "u.json", .from_ns = kUnixNs, .metric = "y", .format = "chrome_trace"});
  const std::vector<RecordingReader*> two{smi, trace, other};
  EXPECT_EQ(JoinedReader::group(two).size(), 3U);
}

TEST_F(JoinedReaderTest, TimesAreThoseThatTheImportStored) {
  RecordingReader* const proc = make({.name = "proc.txt", .from_ns = kUnixNs, .metric = "cpu.runnable"});
  RecordingReader* const smi = make({.name = "smi.csv", .from_ns = kUnixNs + 3 * kNsPerS});
  JoinedReader joined({smi, proc});
  EXPECT_EQ(times_of(joined, "gpu.busy.percent").front(), kUnixNs + 3 * kNsPerS);
  EXPECT_EQ(times_of(joined, "cpu.runnable").front(), kUnixNs);
  const auto extent = joined.extent();
  ASSERT_TRUE(extent.ok());
  EXPECT_EQ(extent->from_ns, kUnixNs);
  EXPECT_GE(extent->to_ns, kUnixNs + 12 * kNsPerS);
}

TEST_F(JoinedReaderTest, ProcessesAndNamesStayApart) {
  RecordingReader* const one = make({.name = "one", .from_ns = kUnixNs, .metric = "a"});
  RecordingReader* const two = make({.name = "two", .from_ns = kUnixNs, .metric = "b"});
  JoinedReader joined({one, two});
  const auto processes = joined.read_processes();
  ASSERT_TRUE(processes.ok());
  ASSERT_EQ(processes->size(), 2U);
  EXPECT_NE((*processes)[0].slot, (*processes)[1].slot);
  std::uint64_t cursor = 0;
  std::vector<std::pair<std::uint32_t, std::string>> spans;
  const auto visit = [&](std::span<const Span> part) {
    for (const Span& span : part) spans.emplace_back(span.process, joined.name(span.name));
  };
  ASSERT_TRUE(joined.read_spans_since(cursor, {}, visit).ok());
  ASSERT_EQ(spans.size(), 20U);
  EXPECT_EQ(spans.front(), std::pair((*processes)[0].slot, std::string("of one")));
  EXPECT_EQ(spans.back(), std::pair((*processes)[1].slot, std::string("of two")));
  ASSERT_TRUE(joined.read_spans_since(cursor, {}, visit).ok());
  EXPECT_EQ(spans.size(), 20U) << "nothing is new";
}

// Analyzers keep tables by name's id, up to a million.
TEST_F(JoinedReaderTest, IdsOfNamesAreDense) {
  std::vector<RecordingReader*> parts;
  for (const char* name : {"one", "two", "three"}) {
    parts.push_back(make({.name = name, .from_ns = kUnixNs, .metric = name}));
  }
  JoinedReader joined(parts);
  std::set<std::string> names;
  const auto visit = [&](std::span<const Span> spans) {
    for (const Span& span : spans) {
      EXPECT_LE(span.name, 3U);
      names.insert(joined.name(span.name));
    }
  };
  for (int again = 0; again < 2; ++again) ASSERT_TRUE(joined.read_spans({}, {}, visit).ok());
  EXPECT_EQ(names, (std::set<std::string>{"of one", "of two", "of three"}));
  EXPECT_EQ(joined.name(0), "");
  EXPECT_EQ(joined.name(4), "");
}

TEST_F(JoinedReaderTest, AJumpThatTwoFilesTellIsOne) {
  RecordingReader* const one = make({.name = "one", .from_ns = kUnixNs, .metric = "a"});
  RecordingReader* const two = make({.name = "two", .from_ns = kUnixNs, .metric = "b"});
  JoinedReader joined({one, two});
  const auto events = joined.read_events({});
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(std::ranges::count(*events, EventKind::kClockStep, &Event::kind), 1);
  EXPECT_EQ(std::ranges::count(*events, EventKind::kNote, &Event::kind), 2);
}

}  // namespace
}  // namespace hotlap
