#include "record/runtime_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "model/run.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

std::string id_of(std::uint64_t number) { return make_ulid(1'000'000'000, 1, number); }

class RuntimeFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hotlap-runtime-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    home_ = pattern;
  }
  void TearDown() override { fs::remove_all(home_); }
  bool is_empty() const { return fs::is_empty(home_); }
  static std::uint64_t inode_of(const fs::path& path) {
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
  }

  fs::path home_;
};

TEST_F(RuntimeFolderTest, TheFirstLeadsAndTheOthersJoinItsRun) {
  auto first = RuntimeFolder::claim(home_, "job-1", id_of(1));
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_TRUE(first->leads());
  const auto second = RuntimeFolder::claim(home_, "job-1", id_of(2));
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_FALSE(second->leads());
  EXPECT_EQ(second->run_id(), id_of(1));
  sweep_runtime_home(home_);
  EXPECT_TRUE(fs::is_directory(first->rings()));
  first->remove();
  EXPECT_TRUE(is_empty());
}

TEST_F(RuntimeFolderTest, WhatTheKilledLeaveIsSweptAndNoRunIdOfTheirsIsTaken) {
  { const auto killed = RuntimeFolder::claim(home_, "job-1", id_of(1)); }
  ASSERT_TRUE(fs::exists(home_ / "job-1/run-id"));
  {
    const auto next = RuntimeFolder::claim(home_, "job-1", id_of(2));
    ASSERT_TRUE(next.ok()) << next.error().message;
    EXPECT_TRUE(next->leads());
    EXPECT_EQ(next->run_id(), id_of(2));
  }
  fs::create_directories(home_ / "run-x.gone/rings");  // of a sweep that was killed
  sweep_runtime_home(home_);
  EXPECT_TRUE(is_empty());
}

TEST_F(RuntimeFolderTest, NobodyWaitsWithoutEndForATurn) {
  const int fd = ::open(home_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX | LOCK_NB), 0);
  const auto refused = RuntimeFolder::claim(home_, "run-1", id_of(1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  fs::create_directories(home_ / "run-x.gone");
  sweep_runtime_home(home_);
  EXPECT_TRUE(fs::exists(home_ / "run-x.gone"));
  ::close(fd);
  EXPECT_TRUE(RuntimeFolder::claim(home_, "run-1", id_of(1)).ok());
}

// Runs that start and end in the same moments: each folder has one leader, which holds the lock that others find, and
// who joins does not join a run that had ended before.
TEST_F(RuntimeFolderTest, ManyAtOnce) {
  constexpr int kThreads = 6;
  constexpr int kTurns = 150;
  std::atomic<std::uint64_t> next{0};
  std::vector<std::atomic<bool>> has_ended(kThreads * kTurns + 1);
  std::atomic<int> wrong{0};
  std::atomic<int> led{0};
  const auto hold_once = [&](std::uint64_t number) {
    std::vector<bool> before;
    for (const auto& ended : has_ended) before.push_back(ended.load());
    auto folder = RuntimeFolder::claim(home_, "job-1", id_of(number));
    if (!folder.ok()) {
      if (folder.error().code != ErrorCode::kIo) ++wrong;  // that one had no turn: this machine is busy
    } else if (folder->leads()) {
      ++led;
      struct stat held {};
      ::fstat(folder->lock_fd(), &held);
      for (int look = 0; look < 2; ++look) {
        if (inode_of(folder->path() / "lock") != held.st_ino || !fs::is_directory(folder->rings())) ++wrong;
        std::this_thread::yield();
      }
      if (number % 2 == 0) folder->remove();
    } else {
      for (std::uint64_t other = 1; other < before.size(); ++other) {
        if (before[other] && folder->run_id() == id_of(other)) ++wrong;
      }
    }
  };
  const auto work = [&] {
    for (int turn = 0; turn < kTurns; ++turn) {
      const std::uint64_t number = ++next;
      sweep_runtime_home(home_);
      hold_once(number);
      has_ended[number] = true;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  threads.clear();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(led.load(), 0);
}

}  // namespace
}  // namespace hotlap
