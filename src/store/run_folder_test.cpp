#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "store/recording_writer.h"
#include "store/run_folder.h"
#include "store/run_reader.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hotlap-run-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    home_ = fs::path(pattern) / "home";
  }
  void TearDown() override { fs::remove_all(home_.parent_path()); }

  RunInfo info(std::int64_t wall_ms, std::string name) {
    RunInfo run;
    run.id = make_ulid(wall_ms * 1'000'000, 7, 9 + static_cast<std::uint64_t>(wall_ms));
    run.name = std::move(name);
    run.status = RunStatus::kRunning;
    run.command = {"python", "train.py", "--x=\"1\""};
    run.start_wall_ns = wall_ms * 1'000'000;
    return run;
  }

  fs::path home_;
};

TEST_F(RunFolderTest, JsonRoundTrip) {
  RunInfo run = info(1'000, "näme");
  run.script = "/x/train.py";
  run.working_directory = "/x";
  run.node = "n";
  run.hotlap_version = "0.1.0";
  run.end_wall_ns = 9'007'199'254'740'993;  // not a double
  run.interval_ns = 500'000'000;
  run.exit_code = 3;
  run.exit_signal = 9;
  run.job_pid = 12;
  run.job_start_ticks = 4'711;
  run.boot_id = "b";
  run.attempt = 2;
  run.join_keys = {{"run_id", "a"}};
  run.environment = {{"OMP_NUM_THREADS", "4"}};
  run.price = Price{.per_hour = 1.5, .currency = "EUR", .source = "--price"};
  const auto back = run_info_from_json(run_info_to_json(run));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, run);
}

TEST_F(RunFolderTest, JsonFromOthersTimes) {
  const std::string id = info(1, "").id;
  const auto newer =
      run_info_from_json(R"({"id":")" + id + R"(","future":{"a":[1]},"exit_code":"x","attempt":99999999999})");
  ASSERT_TRUE(newer.ok()) << newer.error().message;
  EXPECT_EQ(newer->exit_code, std::nullopt);
  EXPECT_EQ(newer->attempt, 1);
  EXPECT_EQ(newer->status, RunStatus::kUnknown);
  EXPECT_EQ(run_info_from_json(R"({"schema":2,"id":")" + id + R"("})").error().code, ErrorCode::kUnsupported);
  for (const char* bad : {"", "{", "[]", "7", R"({"id":"../../etc"})", R"({"id":5})"}) {
    EXPECT_EQ(run_info_from_json(bad).error().code, ErrorCode::kCorrupt) << bad;
  }
}

TEST_F(RunFolderTest, IsPrivateWhateverTheUmask) {
  const mode_t before = ::umask(0);
  const auto run = RunFolder::create(home_, info(1'000, "a"));
  ::umask(before);
  ASSERT_TRUE(run.ok()) << run.error().message;
  ASSERT_TRUE(run->write_text("verdict.txt", "fine").ok());
  struct stat found {};
  for (const fs::path& folder : {home_, home_ / "runs", run->path()}) {
    ASSERT_EQ(::stat(folder.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0700U) << folder;
  }
  for (const char* name : {"run.json", "verdict.txt"}) {
    ASSERT_EQ(::stat((run->path() / name).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << name;
  }
}

TEST_F(RunFolderTest, FindsByIdPrefixNamePathAndLast) {
  const auto none = RunFolder::find(home_, "last");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("hotlap run"));

  const auto old = RunFolder::create(home_, info(1'000, "train"));
  const auto mid = RunFolder::create(home_, info(2'000'000'000, "eval"));
  const auto fresh = RunFolder::create(home_, info(3'000'000'000, "train"));
  ASSERT_TRUE(old.ok() && mid.ok() && fresh.ok());
  const auto id = [&](std::string_view asked) {
    const auto run = RunFolder::find(home_, asked);
    return run.ok() ? run->info().id : run.error().message;
  };
  EXPECT_EQ(id("last"), fresh->info().id);
  EXPECT_EQ(id("train"), fresh->info().id);
  EXPECT_EQ(id("eval"), mid->info().id);
  EXPECT_EQ(id(old->info().id), old->info().id);
  EXPECT_EQ(id(old->path().string()), old->info().id);
  std::size_t common = 0;
  while (old->info().id[common] == mid->info().id[common]) ++common;
  std::string prefix = old->info().id.substr(0, common + 1);
  for (char& c : prefix) c = static_cast<char>(std::tolower(c));
  EXPECT_EQ(id(prefix), old->info().id);
  const auto ambiguous = RunFolder::find(home_, "0");
  EXPECT_EQ(ambiguous.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(ambiguous.error().message, HasSubstr("3 runs"));
  const auto wrong = RunFolder::find(home_, "tarin\x1b[2J");
  EXPECT_EQ(wrong.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(wrong.error().message, HasSubstr("eval"));
  EXPECT_EQ(wrong.error().message.find('\x1b'), std::string::npos);
  EXPECT_FALSE(RunFolder::find(home_, "").ok());
}

TEST_F(RunFolderTest, DamagedRunIsSkippedInListsAndNamedWhenAsked) {
  const auto good = RunFolder::create(home_, info(1'000, "a"));
  const auto bad = RunFolder::create(home_, info(2'000, "b"));
  ASSERT_TRUE(good.ok() && bad.ok());
  std::ofstream(bad->path() / "run.json") << "{\"id\": 1";
  std::size_t unreadable = 0;
  EXPECT_EQ(RunFolder::list(home_, &unreadable).size(), 1U);
  EXPECT_EQ(unreadable, 1U);
  const auto found = RunFolder::find(home_, bad->info().id);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("run.json"));
}

TEST_F(RunFolderTest, ReaderSeesEveryRecording) {
  auto run = RunFolder::create(home_, info(1'000, "a"));
  ASSERT_TRUE(run.ok());
  auto reader = RunReader::open(*run);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader->recordings().empty());
  const RecordingInfo what{.id = "01J00000000000000000000001", .run_id = run->info().id, .node = "n1"};
  auto writer = RecordingWriter::create(run->path() / "b.hotlap", what, {});
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  ASSERT_TRUE(RecordingWriter::create(run->path() / "a.hotlap", what, {}).ok());
  std::ofstream(run->path() / "c.hotlap") << "nonsense";
  RunInfo ended = run->info();
  ended.status = RunStatus::kFinished;
  ASSERT_TRUE(run->update(ended).ok());
  ASSERT_TRUE(reader->refresh().ok());
  EXPECT_EQ(reader->recordings().size(), 2U);
  EXPECT_EQ(reader->info().status, RunStatus::kFinished);
  ASSERT_EQ(reader->problems().size(), 1U);
  EXPECT_THAT(reader->problems()[0].message, HasSubstr("c.hotlap"));
}

TEST_F(RunFolderTest, RecordingAloneIsARun) {
  fs::create_directories(home_);
  const RecordingInfo what{.id = "01J00000000000000000000001", .run_id = "01J00000000000000000000000", .node = "n1"};
  {
    auto writer = RecordingWriter::create(home_ / "alone.hotlap", what, {});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->close().ok());
  }
  const auto run = RunFolder::find(home_, (home_ / "alone.hotlap").string());
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->info().name, "alone");
  EXPECT_EQ(run->info().node, "n1");
  EXPECT_EQ(RunReader::open(*run)->recordings().size(), 1U);
}

// A recorder that was killed leaves its file where it was made.
TEST_F(RunFolderTest, RemovesTheStandInToo) {
  RunInfo run = info(1'000, "a");
  const fs::path ours = home_.parent_path() / ("hotlap-" + std::to_string(::geteuid()));
  const fs::path elsewhere = home_.parent_path() / "elsewhere" / run.id;
  for (const fs::path& folder : {ours / run.id, elsewhere}) {
    ASSERT_TRUE(make_private_folders(folder).ok());
    std::ofstream(folder / "r.hotlap") << "x";
  }
  run.recording_folder = elsewhere;  // not one that hotlap would have made: left alone
  const auto wrong = RunFolder::create(home_, run);
  ASSERT_TRUE(wrong.ok() && wrong->remove().ok());
  EXPECT_TRUE(fs::exists(elsewhere / "r.hotlap"));
  run.recording_folder = ours / run.id;
  const auto right = RunFolder::create(home_, run);
  ASSERT_TRUE(right.ok());
  ASSERT_EQ(right->recordings().size(), 1U);
  ASSERT_TRUE(right->remove().ok());
  EXPECT_FALSE(fs::exists(ours / run.id));
  EXPECT_FALSE(fs::exists(right->path()));
}

class HomeTest : public RunFolderTest {
 protected:
  void SetUp() override {
    RunFolderTest::SetUp();
    for (const char* name : {"HOTLAP_HOME", "XDG_DATA_HOME", "HOME", "SUDO_UID", "SUDO_USER"}) {
      const char* text = std::getenv(name);
      before_.emplace_back(name, text != nullptr ? std::optional<std::string>(text) : std::nullopt);
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto& [name, text] : before_) text ? ::setenv(name.c_str(), text->c_str(), 1) : ::unsetenv(name.c_str());
    RunFolderTest::TearDown();
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST_F(HomeTest, OrderOfPlaces) {
  ::setenv("HOME", "/h", 1);
  EXPECT_EQ(*hotlap_home(), "/h/.local/share/hotlap");
  ::setenv("XDG_DATA_HOME", "relative", 1);
  EXPECT_EQ(*hotlap_home(), "/h/.local/share/hotlap");
  ::setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(*hotlap_home(), "/data/hotlap");
  ::setenv("HOTLAP_HOME", "/mine", 1);
  EXPECT_EQ(*hotlap_home(), "/mine");
}

TEST_F(HomeTest, UnwritableHomeSaysWhatToDo) {
  const auto run = RunFolder::create("/proc/nowhere", info(1'000, "a"));
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().message, HasSubstr("HOTLAP_HOME"));
}

TEST_F(HomeTest, KindsOfFilesystem) {
  EXPECT_EQ(filesystem_kind("/dev/shm/not/there"), FilesystemKind::kMemory);
  EXPECT_FALSE(is_network_filesystem("/proc"));
  const auto place = recording_place(home_.parent_path(), "x");
  ASSERT_TRUE(place.ok());
  EXPECT_FALSE(place->is_stand_in);
}

}  // namespace
}  // namespace hotlap
