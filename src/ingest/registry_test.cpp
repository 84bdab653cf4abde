#include "ingest/registry.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace hotlap {
namespace {

TEST(ImporterTable, EverySpecIsCompleteAndPrioritiesDiffer) {
  std::set<int> priorities;
  for (const ImporterSpec* spec : all_importers()) {
    EXPECT_FALSE(spec->summary.empty()) << spec->name;
    EXPECT_NE(spec->sniff, nullptr) << spec->name;
    EXPECT_NE(spec->open_stream == nullptr, spec->open_path == nullptr) << spec->name;
    EXPECT_TRUE(priorities.insert(spec->priority).second) << spec->name;
  }
  EXPECT_FALSE(priorities.empty());
}

// Keeps what an importer says, as text.
class TextSink final : public ImportSink {
 public:
  void clock(const ImportClock&) override {}
  SeriesHandle series(const MetricDesc& metric, std::string_view instance) override {
    names_.push_back(std::string(metric.name) + "/" + std::string(instance));
    return {static_cast<std::uint32_t>(names_.size() - 1)};
  }
  void sample(SeriesHandle handle, std::int64_t t_ns, Value value) override {
    lines.push_back(names_[handle.index] + " " + std::to_string(t_ns) + " " +
                    (value.is_missing() ? "missing" : std::to_string(*value.number())));
  }
  std::uint32_t name(std::string_view) override { return 0; }
  std::uint32_t process(const ProcessInfo&) override { return 0; }
  void span(const Span&) override {}
  void event(const Event&) override {}
  void attribute(std::string_view, std::string_view) override {}
  void count_loss(std::string_view, std::uint64_t count, std::int64_t byte_offset) override {
    losses += count;
    if (first_loss_offset < 0) first_loss_offset = byte_offset;
  }

  std::vector<std::string> lines;
  std::uint64_t losses = 0;
  std::int64_t first_loss_offset = -1;

 private:
  std::vector<std::string> names_;
};

TEST(SeriesCsv, AnyChunkBoundaryGivesTheSameAndABadRowCostsOneRow) {
  const std::string text = "t_s,metric,instance,value\n0.5,a.b,x,1\nbad row\n1,a.b,x,\n1,a.b,x,7";
  for (std::size_t chunk = 1; chunk <= text.size(); ++chunk) {
    TextSink sink;
    const auto importer = all_importers()[0]->open_stream(sink);
    for (std::size_t at = 0; at < text.size(); at += chunk) {
      ASSERT_TRUE(importer->push(as_bytes(std::string_view(text).substr(at, chunk))).ok());
    }
    ASSERT_TRUE(importer->finish().ok());
    EXPECT_EQ(sink.lines, (std::vector<std::string>{"a.b/x 500000000 1.000000", "a.b/x 1000000000 missing",
                                                    "a.b/x 1000000000 7.000000"}));
    EXPECT_EQ(sink.losses, 1U);
    EXPECT_EQ(sink.first_loss_offset, 38);
  }
}

}  // namespace
}  // namespace hotlap
