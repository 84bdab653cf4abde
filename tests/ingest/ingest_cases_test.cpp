// tests/cases/ingest/<importer>/<case>/: a file or folder that starts with "input" and expected.txt, what its importer
// makes of it. The folder's name is the importer that has to recognise it; below "none" nobody may. To add a case, add
// its input; HOTLAP_UPDATE_GOLDEN=1 writes what is expected. A folder "input" holds the folder that is imported.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "ingest/registry.h"
#include "support/golden.h"
#include "support/import_capture.h"

namespace hotlap::test {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = fs::path(HOTLAP_SOURCE_DIR) / "tests/cases/ingest";

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& importer : fs::directory_iterator(kCases)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(importer.path())) {
      names.push_back((importer.path().filename() / entry.path().filename()).string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path input_of(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("input")) continue;
    return entry.is_directory() ? fs::directory_iterator(entry.path())->path() : entry.path();
  }
  return {};
}

class IngestCase : public testing::TestWithParam<std::string> {};

TEST_P(IngestCase, GivesTheGoldenOutputAtEveryChunkSize) {
  const fs::path folder = kCases / GetParam();
  const fs::path input = input_of(folder);
  ASSERT_FALSE(input.empty()) << folder << " holds no input";
  const std::string wanted = folder.parent_path().filename().string();
  const std::string content = fs::is_directory(input) ? std::string{} : file_text(input);
  // Folders are sniffed with an empty head and a slash.
  const ImporterSpec* const spec =
      importer_of(content, input.filename().string() + (fs::is_directory(input) ? "/" : ""));
  ASSERT_EQ(spec == nullptr ? "none" : spec->name, wanted);
  if (spec == nullptr) return;
  if (spec->open_path != nullptr) return expect_golden(folder / "expected.txt", import_path(*spec, input));
  const std::string whole = import_stream(*spec, content, std::max<std::size_t>(content.size(), 1));
  for (const std::size_t chunk_bytes : {std::size_t{1}, std::size_t{7}}) {
    EXPECT_EQ(import_stream(*spec, content, chunk_bytes), whole) << "in chunks of " << chunk_bytes;
  }
  expect_golden(folder / "expected.txt", whole);
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '/' || c == '.'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Cases, IngestCase, testing::ValuesIn(case_names()), test_name);

// Whatever recognises an input that is cut anywhere must take it without an error or say which one in words.
TEST(IngestCases, CutAnywhereEndsInCountsOrInWords) {
  for (const std::string& name : case_names()) {
    const fs::path input = input_of(kCases / name);
    if (fs::is_directory(input)) continue;
    const std::string content = file_text(input);
    const std::string wanted = name.substr(0, name.find('/'));
    for (const ImporterSpec* spec : all_importers()) {
      if (spec->name != wanted || spec->open_stream == nullptr) continue;
      const std::size_t step = std::max<std::size_t>(content.size() / 97, 1);
      for (std::size_t size = 0; size < content.size(); size += step) {
        const std::string text = import_stream(*spec, std::string_view(content).substr(0, size), 4096);
        EXPECT_TRUE(text.find("error \n") == std::string::npos) << name << " cut to " << size;
      }
    }
  }
}

}  // namespace
}  // namespace hotlap::test
