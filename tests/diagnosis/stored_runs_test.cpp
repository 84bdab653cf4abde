// Recordings of real jobs with a planted cause, kept by real/prove.py: the verdict on each stays right.
// real/runs/runs.txt has a line for each: file, rule that must be found ("nothing": none), and what else may be found.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "base/text.h"
#include "rules/registry.h"
#include "store/recording_reader.h"
#include "support/golden.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

const fs::path kRuns = fs::path(HOTLAP_SOURCE_DIR) / "tests/diagnosis/real/runs";

struct StoredRun {
  std::string file;
  std::string rule;
  std::set<std::string> may;
};

std::vector<StoredRun> stored_runs() {
  std::vector<StoredRun> out;
  const std::string text = test::file_text(kRuns / "runs.txt");
  std::string_view rest(text);
  for (std::string_view line; next_line(rest, line);) {
    std::istringstream words{std::string(line)};
    StoredRun one;
    words >> one.file >> one.rule;
    for (std::string word; words >> word;) one.may.insert(word);
    if (!one.file.empty()) out.push_back(std::move(one));
  }
  return out;
}

class StoredRuns : public testing::TestWithParam<StoredRun> {};

TEST_P(StoredRuns, TheVerdictStaysRight) {
  const StoredRun& stored = GetParam();
  Result<std::unique_ptr<RecordingReader>> reader = RecordingReader::open(kRuns / stored.file);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const RunInfo run;
  RunAnalysis analysis(run, all_analyzers());
  std::vector<RecordingReader*> readers{reader->get()};
  ASSERT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  const RulesOutcome outcome = run_rules(all_rules(), analysis.facts(), {});
  EXPECT_TRUE(outcome.errors.empty());
  std::string first = "nothing";
  for (const Finding& finding : outcome.findings) {
    if (!finding.explained_by.empty() || finding.severity == Severity::kInfo) continue;
    if (stored.may.contains(finding.rule)) continue;
    EXPECT_EQ(finding.rule, stored.rule) << finding.cause;
    first = finding.rule;
  }
  EXPECT_EQ(first, stored.rule);
}

INSTANTIATE_TEST_SUITE_P(Real, StoredRuns, testing::ValuesIn(stored_runs()), [](const auto& info) {
  std::string name = info.param.file.substr(0, info.param.file.find('.'));
  std::ranges::replace(name, '-', '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoredRuns);

}  // namespace
}  // namespace hotlap
