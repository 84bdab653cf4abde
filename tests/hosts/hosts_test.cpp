// Every collector over every fake machine: the whole output is golden. HOTLAP_UPDATE_GOLDEN=1 rewrites expected.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/format.h"
#include "collect/registry.h"
#include "support/capture_sink.h"
#include "support/fake_host.h"

namespace hotlap::test {
namespace {

namespace fs = std::filesystem;

const fs::path kHosts = fs::path(HOTLAP_SOURCE_DIR) / "tests/hosts";

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool updates_golden() { return std::getenv("HOTLAP_UPDATE_GOLDEN") != nullptr; }  // NOLINT(concurrency-mt-unsafe)

void expect_golden(const fs::path& path, const std::string& text) {
  if (updates_golden()) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  EXPECT_EQ(read_file(path), text) << path
                                   << " differs; HOTLAP_UPDATE_GOLDEN=1 rewrites it: read the change before it is kept";
}

std::vector<std::string> host_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kHosts)) {
    if (fs::exists(entry.path() / "host.txt")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class EveryHost : public testing::TestWithParam<std::string> {};

TEST_P(EveryHost, GivesTheGoldenOutput) {
  const fs::path folder = kHosts / GetParam();
  const auto host = FakeHost::load(folder / "host.txt");
  ASSERT_TRUE(host.ok()) << host.error().message;
  CaptureSink sink;
  std::vector<std::unique_ptr<CollectorRun>> runs;
  std::string absent;
  for (std::size_t t = 0; t < (*host)->tick_count(); ++t) {
    const Result<void> advanced = (*host)->advance();
    ASSERT_TRUE(advanced.ok()) << advanced.error().message;
    sink.begin_tick();
    if (t == 0) {
      for (const CollectorSpec* spec : all_collectors()) {
        runs.push_back(std::make_unique<CollectorRun>(*spec, **host, sink));
        if (!runs.back()->absent().empty()) absent += format("absent {}\n", runs.back()->absent());
      }
    }
    for (const auto& run : runs) run->tick((*host)->tick());
  }
  runs.clear();
  const std::string text = sink.to_text() + absent;
  EXPECT_NE(text, absent);
  expect_golden(folder / "expected.txt", text);
}

std::string test_name(const testing::TestParamInfo<std::string>& host) {
  std::string name = host.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Hosts, EveryHost, testing::ValuesIn(host_names()), test_name);

}  // namespace
}  // namespace hotlap::test
