#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "base/json_reader.h"
#include "report/registry.h"
#include "store/recording_writer.h"
#include "view/recording_gaps.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr MetricDesc kTicks{.name = "cpu.user.seconds", .unit = "s", .kind = MetricKind::kCounter, .scale = 0.01};
constexpr MetricDesc kBytes{.name = "net.bytes", .unit = "By", .kind = MetricKind::kCounter};
constexpr std::int64_t kWallNs = 1'800'000'000 * kNsPerS;

class ReportTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hotlap-report-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    home_ = pattern;
    Result<RunFolder> folder = RunFolder::create(home_, {.id = make_ulid(kWallNs, 1, 2), .name = "toy"});
    ASSERT_TRUE(folder.ok()) << folder.error().message;
    record(*folder);
    Result<RunReader> run = RunReader::open(*folder);
    ASSERT_TRUE(run.ok()) << run.error().message;
    run_.emplace(std::move(run).value());
  }
  void TearDown() override { fs::remove_all(home_); }

  void record(const RunFolder& run) {
    auto writer = RecordingWriter::create(run.path() / "a.hotlap",
                                          {.id = "01J00000000000000000000001", .interval_ns = kNsPerS}, {});
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    const SeriesHandle ticks = *(*writer)->add_series(kTicks, "core 0");
    const SeriesHandle bytes = *(*writer)->add_series(kBytes, "odd, \"name\"");
    if (has_clock_) (*writer)->add_clock({.mono_ns = 0, .wall_ns = kWallNs, .boot_ns = 0});
    (*writer)->add_tick(kNsPerS, std::vector<Sample>{{ticks, Value::of(std::uint64_t{150})},
                                                     {bytes, Value::of(std::uint64_t{UINT64_MAX})}});
    (*writer)->add_tick(kNsPerS * 3 / 2, std::vector<Sample>{{ticks, Value::missing(MissingReason::kReadFailed)}});
    ASSERT_TRUE((*writer)->close().ok());
  }

  std::string exported(std::string_view name) {
    for (const ExporterSpec* spec : all_exporters()) {
      if (spec->name != name) continue;
      std::ostringstream out;
      const AnalysisDocument analysis{.run_id = "x", .run_name = "toy"};
      EXPECT_TRUE(spec->write({.run = *run_, .analysis = analysis}, out).ok());
      return out.str();
    }
    return "no such exporter";
  }

  bool has_clock_ = true;
  fs::path home_;
  std::optional<RunReader> run_;
};

TEST_F(ReportTest, CsvHasEverySampleInItsUnitAndNothingWhereItIsMissing) {
  EXPECT_EQ(exported("csv"),
            "t_s,metric,instance,value\n"
            "1800000001.000000000,cpu.user.seconds,core 0,1.5\n"
            "1800000001.000000000,net.bytes,\"odd, \"\"name\"\"\",18446744073709551615\n"
            "1800000001.500000000,cpu.user.seconds,core 0,\n");
}

// Monotonic time is no Unix time: a reader would see the year 1970.
TEST_F(ReportTest, CsvHasNoTimeWhereTheClockIsNotKnown) {
  has_clock_ = false;
  TearDown();
  SetUp();
  EXPECT_EQ(exported("csv"),
            "t_s,metric,instance,value\n"
            ",cpu.user.seconds,core 0,1.5\n"
            ",net.bytes,\"odd, \"\"name\"\"\",18446744073709551615\n"
            ",cpu.user.seconds,core 0,\n");
  EXPECT_TRUE(lacks_unix_time(*run_->recordings()[0]));
}

TEST_F(ReportTest, JsonHasTheAnalysisAndWhatWasRecorded) {
  const Result<JsonDocument> document = JsonDocument::parse(exported("json"));
  ASSERT_TRUE(document.ok()) << document.error().message;
  EXPECT_EQ(document->root()["analysis"]["run"]["name"].text(), "toy");
  EXPECT_EQ(document->root()["recorded"]["recordings"].items().size(), 1U);
}

TEST(ExporterTable, EverySpecIsCompleteAndUnique) {
  std::set<std::string_view> names;
  for (const ExporterSpec* spec : all_exporters()) {
    EXPECT_TRUE(names.insert(spec->name).second) << spec->name;
    EXPECT_NE(spec->name, "hotlap");  // the copy of the run itself
    EXPECT_FALSE(spec->summary.empty()) << spec->name;
    EXPECT_FALSE(spec->media_type.empty()) << spec->name;
    EXPECT_TRUE(spec->extension.starts_with('.')) << spec->name;
    EXPECT_NE(spec->write, nullptr) << spec->name;
  }
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace hotlap
