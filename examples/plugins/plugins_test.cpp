// The skeletons do what they say: whoever copies one starts from something that works.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/analyzer.h"
#include "cli/command.h"
#include "collect/collector.h"
#include "ingest/importer.h"
#include "report/exporter.h"

namespace hotlap {
extern const CollectorSpec collector_entropy;
extern const ImporterSpec importer_two_columns;
extern const AnalyzerSpec analyzer_longest_step;
extern const ExporterSpec exporter_findings_tsv;
extern const CommandSpec command_greet;

namespace {

class FakeHost final : public Host {
 public:
  explicit FakeHost(std::filesystem::path root) : root_(std::move(root)) {}
  std::string resolve(std::string_view absolute) const override { return root_.string() + std::string(absolute); }
  bool reopens() const override { return true; }

 private:
  std::filesystem::path root_;
};

class Samples final : public SampleSink {
 public:
  SeriesHandle series(std::uint16_t, std::string_view) override { return {.index = 0}; }
  void add(SeriesHandle, Value value) override { values.push_back(value); }
  void event(EventKind, std::int64_t, std::string_view) override {}
  void count_loss(std::string_view, std::uint64_t) override {}

  std::vector<Value> values;
};

TEST(PluginSkeleton, CollectorSamplesAndSaysWhatItCouldNotRead) {
  std::string folder = ::testing::TempDir() + "hotlap-skeleton-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::filesystem::path root = folder;
  const auto file = root / "proc/sys/kernel/random/entropy_avail";
  std::filesystem::create_directories(file.parent_path());
  const FakeHost host(root);
  std::ofstream(file) << "256\n";
  auto collector = collector_entropy.open(host);
  ASSERT_TRUE(collector.ok()) << collector.error().message;
  Samples out;
  ASSERT_TRUE((*collector)->sample({}, out).ok());
  std::ofstream(file, std::ios::trunc) << "garbage\n";
  ASSERT_TRUE((*collector)->sample({}, out).ok());
  EXPECT_EQ(out.values, (std::vector{Value::of(std::uint64_t{256}), Value::missing(MissingReason::kReadFailed)}));
  std::filesystem::remove_all(root);
  EXPECT_FALSE(collector_entropy.open(host).ok());
}

class Imported final : public ImportSink {
 public:
  void clock(const ImportClock&) override {}
  SeriesHandle series(const MetricDesc&, std::string_view) override { return {.index = 0}; }
  void sample(SeriesHandle, std::int64_t t_ns, Value value) override {
    text += std::to_string(t_ns) + "=" + std::to_string(value.f64()) + " ";
  }
  std::uint32_t name(std::string_view) override { return 0; }
  std::uint32_t process(const ProcessInfo&) override { return 0; }
  void span(const Span&) override {}
  void event(const Event&) override {}
  void attribute(std::string_view, std::string_view) override {}
  void count_loss(std::string_view counter, std::uint64_t, std::int64_t) override {
    text += std::string(counter) + " ";
  }

  std::string text;
};

TEST(PluginSkeleton, ImporterTakesAnyChunksAndCountsABadLine) {
  const std::string file = "# two columns\n1 5\nnonsense\n2 6";
  for (std::size_t chunk_bytes = 1; chunk_bytes <= file.size(); ++chunk_bytes) {
    Imported out;
    const auto importer = importer_two_columns.open_stream(out);
    for (std::size_t at = 0; at < file.size(); at += chunk_bytes) {
      ASSERT_TRUE(importer->push(as_bytes(std::string_view(file).substr(at, chunk_bytes))).ok());
    }
    const auto stats = importer->finish();
    ASSERT_TRUE(stats.ok());
    EXPECT_EQ(stats->events, 2U);
    EXPECT_EQ(stats->bytes, file.size());
    EXPECT_EQ(out.text, "1000000000=5.000000 ingest.events_dropped 2000000000=6.000000 ") << chunk_bytes;
  }
}

TEST(PluginSkeleton, AnalyzerMergesAndDoesNotInventASteplessRun) {
  const auto one = analyzer_longest_step.open({});
  const auto two = analyzer_longest_step.open({});
  FactTable nothing;
  one->snapshot(nothing);
  EXPECT_EQ(nothing.facts()[0].number("longest_ms"), std::nullopt);
  one->on_step({.duration_ns = 2'000'000});
  two->on_step({.duration_ns = 7'000'000});
  one->merge(*two);
  FactTable facts;
  one->snapshot(facts);
  EXPECT_EQ(facts.facts()[0].number("longest_ms"), 7.0);
  EXPECT_EQ(facts.facts()[0].number("steps"), 2.0);
}

TEST(PluginSkeleton, ExporterLeavesEmptyWhatIsNotKnown) {
  std::string home = ::testing::TempDir() + "hotlap-skeleton-XXXXXX";
  ASSERT_NE(::mkdtemp(home.data()), nullptr);
  const auto folder = RunFolder::create(home, {.id = make_ulid(1, 2, 3), .name = "toy"});
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  auto run = RunReader::open(*folder);
  ASSERT_TRUE(run.ok()) << run.error().message;
  AnalysisDocument analysis;
  analysis.findings.push_back({.rule = "LongStep", .cause = "one\tstep", .lost_s = 1.5});
  analysis.findings.push_back({.rule = "HotCore", .cause = "a core"});
  std::ostringstream out;
  ASSERT_TRUE(exporter_findings_tsv.write({.run = *run, .analysis = analysis}, out).ok());
  EXPECT_EQ(out.str(), "rule\tlost_s\tcause\nLongStep\t1.500\tone step\nHotCore\t\ta core\n");
  std::filesystem::remove_all(home);
}

TEST(PluginSkeleton, CommandWritesToItsStreams) {
  std::ostringstream out;
  std::ostringstream err;
  Streams streams{.out = out, .err = err};
  Args args;
  args.values["NAME"] = {"Ada"};
  args.values["--loud"] = {"true"};
  const auto code = command_greet.run(args, streams);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, kExitSuccess);
  EXPECT_EQ(out.str(), "hello Ada!\n");
}

}  // namespace
}  // namespace hotlap
