#include "support/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace hotlap::test {
namespace {

namespace fs = std::filesystem;

class Golden : public testing::Test {
 protected:
  Golden() {
    std::string name = (fs::temp_directory_path() / "hotlap-golden-XXXXXX").native();
    folder_ = ::mkdtemp(name.data());
  }
  ~Golden() override { fs::remove_all(folder_); }

  fs::path stored(std::string_view text) const {
    std::ofstream(folder_ / "a.txt", std::ios::binary) << text;
    return folder_ / "a.txt";
  }
  fs::path folder_;
};

TEST_F(Golden, EqualBytesAreNoDifference) {
  EXPECT_EQ(golden_difference(stored("one\ntwo\n"), "one\ntwo\n"), "");
  EXPECT_EQ(golden_difference(stored(""), ""), "");
}

TEST_F(Golden, AMissingFileIsOneEvenWhenNothingIsExpected) {
  EXPECT_EQ(golden_difference(folder_ / "none", ""), "there is no such file");
}

TEST_F(Golden, NamesTheFirstLineThatDiffers) {
  EXPECT_EQ(golden_difference(stored("one\ntwo\nthree\n"), "one\ntoo\nthree\n"),
            "line 2: stored: two\n           now: too");
  EXPECT_EQ(golden_difference(stored("xyz"), "abc"), "line 1: stored: xyz\n           now: abc");
}

TEST_F(Golden, ShorterLongerAndUnprintable) {
  EXPECT_EQ(golden_difference(stored("one\n"), "one\ntwo\n"), "line 2: stored: <end of file>\n           now: two");
  EXPECT_EQ(golden_difference(stored("one\ntwo"), "one\n"), "line 2: stored: two\n           now: <end of file>");
  EXPECT_EQ(golden_difference(stored("a\x01"), "a\x02"), "line 1: stored: a\\x01\n           now: a\\x02");
}

}  // namespace
}  // namespace hotlap::test
