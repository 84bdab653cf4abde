#include "store/stack_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_dir.h"

namespace hotlap {
namespace {

class StackFiles : public testing::Test {
 protected:
  std::string read() const {
    std::string seen;
    const Result<void> done = read_stacks(folder_.path(), [&](const SampledStack& stack) -> Result<void> {
      seen += std::to_string(stack.pid) + "|" + std::string(stack.phase) + "|" + std::string(stack.thread) + "|" +
              std::string(stack.frames) + "|" + std::to_string(stack.samples) + "\n";
      return {};
    });
    EXPECT_TRUE(done.ok());
    return seen;
  }
  void write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(folder_.path() / "profile");
    std::ofstream(folder_.path() / "profile" / name) << text;
  }
  test::TempDir folder_;
};

TEST_F(StackFiles, EachLineIsAStackOfItsProcess) {
  EXPECT_EQ(read(), "");
  write("42-7.folded", "training;MainThread;main (a b.py:1);f (b.py:2) 12\nevaluation;T 1;g (b.py:3) 1\n");
  write("5-7.folded", "training;MainThread;main (a.py:1) 3\n");
  EXPECT_EQ(read(),
            "42|training|MainThread|main (a b.py:1);f (b.py:2)|12\n42|evaluation|T 1|g (b.py:3)|1\n"
            "5|training|MainThread|main (a.py:1)|3\n");
}

TEST_F(StackFiles, WhatIsNoStackIsSkipped) {
  write("42-7.folded",
        "\n;\n;; 0\na;b;c x\na;b 3\nno blank\na;b;c -1\na;b;\x1b[31mred 2\na;b;last 18446744073709551615");
  write("x-7.folded", "a;b;c 1\n");
  write("0-7.folded", "a;b;c 1\n");
  write("9-7.json", "a;b;c 1\n");
  std::filesystem::create_directory(folder_.path() / "profile" / "8-1.folded");
  EXPECT_EQ(read(), "42|a|b|?[31mred|2\n42|a|b|last|18446744073709551615\n");
}

}  // namespace
}  // namespace hotlap
