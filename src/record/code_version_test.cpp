#include "record/code_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "store/home.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

const std::string kRevision(40, 'a');
const std::string kOther(40, 'b');
// FNV-1a of "print(1)\n".
constexpr const char* kHash = "c36adf2b03cacd3c";

class CodeVersionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hotlap-code-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    top_ = pattern;
    write("project/src/train.py", "print(1)\n");
  }
  void TearDown() override { fs::remove_all(top_); }

  void write(const std::string& name, std::string_view text) {
    fs::create_directories((top_ / name).parent_path());
    ASSERT_TRUE(write_private_file(top_ / name, text).ok());
  }
  std::map<std::string, std::string> version() {
    return code_version(system_host(), (top_ / "project/src/train.py").native(), "/");
  }

  fs::path top_;
};

TEST_F(CodeVersionTest, OfABranch) {
  write("project/.git/HEAD", "ref: refs/heads/more/speed\n");
  write("project/.git/refs/heads/more/speed", kRevision + "\n");
  EXPECT_THAT(version(), UnorderedElementsAre(Pair("code.git.revision", kRevision),
                                              Pair("code.git.branch", "more/speed"), Pair("code.script.hash", kHash)));
}

TEST_F(CodeVersionTest, OfAPackedReference) {
  write("project/.git/HEAD", "ref: refs/heads/main\n");
  write("project/.git/packed-refs",
        "# pack-refs with: peeled\n" + kOther + " refs/heads/main2\n" + kRevision + " refs/heads/main\n");
  EXPECT_EQ(version()["code.git.revision"], kRevision);
}

TEST_F(CodeVersionTest, OfADetachedHead) {
  write("project/.git/HEAD", kRevision + "\n");
  EXPECT_EQ(version()["code.git.revision"], kRevision);
  EXPECT_EQ(version().count("code.git.branch"), 0U);
}

// `git worktree add`: .git is a file, and the references lie in the first work tree's repository.
TEST_F(CodeVersionTest, OfAWorkTree) {
  write("first/.git/worktrees/w/HEAD", "ref: refs/heads/side\n");
  write("first/.git/worktrees/w/commondir", "../..\n");
  write("first/.git/refs/heads/side", kRevision + "\n");
  write("project/.git", "gitdir: " + (top_ / "first/.git/worktrees/w").native() + "\n");
  EXPECT_EQ(version()["code.git.revision"], kRevision);
}

TEST_F(CodeVersionTest, WithoutARepositoryTheScriptAlone) {
  EXPECT_EQ(version()["code.script.hash"], kHash);
  write("project/src/train.py", "print(2)\n");
  EXPECT_NE(version()["code.script.hash"], kHash);
}

TEST_F(CodeVersionTest, ADamagedRepositorySaysNothing) {
  write("project/.git/HEAD", "ref: refs/../../secret\n");
  EXPECT_THAT(version(), UnorderedElementsAre(Pair("code.script.hash", kHash)));
  write("project/.git/HEAD", "ref: refs/heads/main\n");
  write("project/.git/refs/heads/main", "no revision\n");
  EXPECT_EQ(version().count("code.git.revision"), 0U);
}

TEST_F(CodeVersionTest, AModuleCountsByItsWorkingDirectory) {
  write("project/.git/HEAD", kRevision + "\n");
  EXPECT_THAT(code_version(system_host(), "-m train", (top_ / "project/src").native()),
              UnorderedElementsAre(Pair("code.git.revision", kRevision)));
  EXPECT_THAT(code_version(system_host(), "/bin/true", (top_ / "project/src").native()), IsEmpty());
}

}  // namespace
}  // namespace hotlap
