#include "cli/child.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace hotlap {
namespace {

const std::vector<std::string> kEnvironment{"PATH=/usr/bin:/bin", "NAME=value"};

TEST(AskChild, TakesItsOutputAndCode) {
  const Result<ChildAnswer> answer =
      ask_child({"sh", "-c", "echo $NAME; echo bad >&2; exit 3"}, kEnvironment, 10 * kNsPerS);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->output, "value\nbad\n");
  EXPECT_EQ(answer->exit_code, 3);
  EXPECT_FALSE(answer->ok());
  EXPECT_FALSE(answer->is_timed_out);
}

TEST(AskChild, WhatCannotBeStartedIsAnError) {
  EXPECT_EQ(ask_child({"no-such-program-at-all"}, kEnvironment, kNsPerS).error().code, ErrorCode::kNotFound);
}

// Its own children hold the output open, too.
TEST(AskChild, IsKilledWithItsChildrenAtTheDeadline) {
  const Result<ChildAnswer> answer =
      ask_child({"sh", "-c", "echo begun; sleep 1000 & sleep 1000"}, kEnvironment, 300 * kNsPerMs);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->is_timed_out);
  EXPECT_EQ(answer->signal, 9);
  EXPECT_EQ(answer->output, "begun\n");
}

TEST(AskChild, OutputIsBounded) {
  const Result<ChildAnswer> answer = ask_child({"sh", "-c", "head -c 1000000 /dev/zero"}, kEnvironment, 10 * kNsPerS);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->ok());
  EXPECT_EQ(answer->output.size(), 65'536U);
}

}  // namespace
}  // namespace hotlap
