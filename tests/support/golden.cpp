#include "support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/format.h"

namespace hotlap::test {
namespace {

constexpr std::size_t kShownMax = 300;  // bytes of a line

std::string line_at(std::string_view text, std::size_t begin) {
  if (begin >= text.size()) return "<end of file>";
  std::string shown;
  for (const char c : text.substr(begin, std::min(text.find('\n', begin) - begin, kShownMax))) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7f ? format("\\x{:02x}", byte) : std::string(1, c);
  }
  return shown;
}

}  // namespace

std::string file_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string golden_difference(const std::filesystem::path& path, std::string_view text) {
  if (!std::filesystem::exists(path)) return "there is no such file";
  const std::string stored = file_text(path);
  if (stored == text) return {};
  // Up to the first difference both are the same, so both have this line, or end where it would begin.
  const std::string_view same(stored.begin(), std::ranges::mismatch(stored, text).in1);
  const std::size_t begin = same.find_last_of('\n') + 1;
  const std::string title = format("line {}: ", 1 + std::ranges::count(same, '\n'));
  return format("{}stored: {}\n{:{}}now: {}", title, line_at(stored, begin), "", title.size() + 3,
                line_at(text, begin));
}

void expect_golden(const std::filesystem::path& path, std::string_view text) {
  if (std::getenv("HOTLAP_UPDATE_GOLDEN") != nullptr) {  // NOLINT(concurrency-mt-unsafe): one thread
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  const std::string difference = golden_difference(path, text);
  EXPECT_TRUE(difference.empty()) << path << " is not what this build makes:\n"
                                  << difference << "\nHOTLAP_UPDATE_GOLDEN=1 ctest --preset dev -L fast -R "
                                  << testing::UnitTest::GetInstance()->current_test_info()->test_suite_name()
                                  << " rewrites it; read the change before it is kept";
}

}  // namespace hotlap::test
