#include "record/messages.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hotlap {
namespace {

class Messages : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(make_channel(ours_, theirs_).ok()); }
  void TearDown() override {
    ::close(ours_);
    if (theirs_ >= 0) ::close(theirs_);
  }
  void end_theirs() {
    ::close(theirs_);
    theirs_ = -1;
  }
  int ours_ = -1;
  int theirs_ = -1;
};

TEST_F(Messages, ArriveWholeAndInOrder) {
  bool is_closed = true;
  EXPECT_FALSE(receive_message(theirs_, is_closed).has_value());
  EXPECT_FALSE(is_closed);
  ASSERT_TRUE(send_message(ours_, {"job", 42, {}}));
  ASSERT_TRUE(send_message(ours_, {"end", 0, "exit 7"}));
  const auto job = receive_message(theirs_, is_closed);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->word, "job");
  EXPECT_EQ(job->number, 42);
  const auto end = receive_message(theirs_, is_closed);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->text, "exit 7");
}

TEST_F(Messages, TheLastWordsOfASideThatReadNothingArrive) {
  ASSERT_TRUE(send_message(ours_, {"job", 42, {}}));
  ASSERT_TRUE(send_message(theirs_, {"refused", 0, "no room"}));
  end_theirs();
  bool is_closed = false;
  const auto last = receive_message(ours_, is_closed);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->text, "no room");
  EXPECT_FALSE(receive_message(ours_, is_closed).has_value());
  EXPECT_TRUE(is_closed);
}

TEST_F(Messages, NobodyAtTheOtherEndRaisesNoSignal) {
  end_theirs();
  EXPECT_FALSE(send_message(ours_, {"job", 42, {}}));
  EXPECT_FALSE(send_message(-1, {"job", 42, {}}));
}

}  // namespace
}  // namespace hotlap
