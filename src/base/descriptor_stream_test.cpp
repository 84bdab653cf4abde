#include "base/descriptor_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hotlap-base-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(NewFileTest, AppearsWholeAndPrivateOnceFinished) {
  const fs::path path = folder_ / "a.csv";
  Result<NewFile> file = NewFile::create(path);
  ASSERT_TRUE(file.ok());
  const std::string text(100'000, 'x');
  file->stream() << text;
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(file->finish().ok());
  EXPECT_EQ(*read_regular_file(path, 1U << 20U), text);
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, GivenUpItLeavesWhatWasThere) {
  const fs::path path = folder_ / "a.csv";
  {
    NewFile first = *NewFile::create(path);
    first.stream() << "old";
    ASSERT_TRUE(first.finish().ok());
    NewFile second = *NewFile::create(path);
    second.stream() << "half";
  }
  EXPECT_EQ(*read_regular_file(path, 100), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, ALinkIsWrittenThrough) {
  fs::create_symlink("there.csv", folder_ / "link.csv");
  for (const char* const text : {"made", "replaced"}) {
    NewFile file = *NewFile::create(folder_ / "link.csv");
    file.stream() << text;
    ASSERT_TRUE(file.finish().ok());
    EXPECT_TRUE(fs::is_symlink(folder_ / "link.csv"));
    EXPECT_EQ(*read_regular_file(folder_ / "there.csv", 100), text);
  }
  EXPECT_EQ(files(), 2U);
}

TEST_F(NewFileTest, ADeviceIsNeverReplaced) {
  const fs::path path = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  NewFile file = *NewFile::create(path);
  file.stream() << "text";
  ASSERT_TRUE(file.finish().ok());
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 4);
  EXPECT_STREQ(got, "text");
  ::close(reader);
  EXPECT_EQ(fs::status(path).type(), fs::file_type::fifo);
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(NewFile::create("/dev/full")->finish().ok(), true);  // nothing written, nothing lost
  NewFile full = *NewFile::create("/dev/full");
  full.stream() << "text";
  EXPECT_FALSE(full.finish().ok());
  EXPECT_EQ(fs::status("/dev/full").type(), fs::file_type::character);
}

TEST_F(NewFileTest, WhereNothingCanBeWrittenIsNamed) {
  EXPECT_EQ(NewFile::create(folder_).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(NewFile::create(folder_ / "no" / "such").error().code, ErrorCode::kNotFound);
}

TEST(DescriptorBuffer, KeepsTheReasonOfTheFirstFailure) {
  const int fd = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  DescriptorBuffer buffer(fd);
  std::ostream out(&buffer);
  out << std::string(50'000, 'x');
  out.flush();
  EXPECT_EQ(buffer.error_number(), ENOSPC);
  ::close(fd);
}

}  // namespace
}  // namespace hotlap
