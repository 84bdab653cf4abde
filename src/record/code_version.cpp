#include "record/code_version.h"

#include <filesystem>

#include "base/format.h"
#include "base/text.h"
#include "record/identity.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr int kFoldersMax = 40;                                 // upwards from the script
constexpr std::size_t kScriptBytesMax = std::size_t{4} << 20U;  // a larger one is no script
constexpr std::size_t kPackedRefsMax = std::size_t{16} << 20U;
constexpr std::size_t kReferenceBytesMax = 200;

bool is_revision(std::string_view text) {
  if (text.size() != 40 && text.size() != 64) return false;
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "refs/heads/main". Read from a file of the repository: nothing that leads out of it.
bool is_reference(std::string_view text) {
  return text.starts_with("refs/") && text.size() <= kReferenceBytesMax && text.find("..") == std::string_view::npos;
}

// The repository's folder, where `work_tree` is the top of one; empty: it is not. A work tree of its own (git worktree,
// a submodule) has a file that names it.
fs::path repository_of(const Host& host, const fs::path& work_tree) {
  const fs::path git = work_tree / ".git";
  if (host.exists((git / "HEAD").native())) return git;
  const Result<std::string> text = host.read_text(git.native(), 4096);
  if (!text.ok() || !text->starts_with("gitdir:")) return {};
  const fs::path named(std::string(trim(std::string_view(*text).substr(7))));
  return named.is_absolute() ? named : (work_tree / named).lexically_normal();
}

std::string revision_of(const Host& host, const fs::path& repository, const std::string& reference) {
  fs::path common = repository;
  if (const Result<std::string> text = host.read_text((repository / "commondir").native(), 4096); text.ok()) {
    const fs::path named{std::string(trim(*text))};
    common = named.is_absolute() ? named : (repository / named).lexically_normal();
  }
  for (const fs::path& folder : {repository, common}) {
    const Result<std::string> text = host.read_text((folder / reference).native(), 4096);
    if (text.ok() && is_revision(trim(*text))) return std::string(trim(*text));
  }
  const Result<std::string> packed = host.read_text((common / "packed-refs").native(), kPackedRefsMax);
  if (!packed.ok()) return {};
  std::string_view rest(*packed);
  for (std::string_view line; next_line(rest, line);) {
    const std::string_view revision = next_word(line);
    if (is_revision(revision) && trim(line) == reference) return std::string(revision);
  }
  return {};
}

void add_revision(const Host& host, fs::path folder, std::map<std::string, std::string>& out) {
  for (int i = 0; i < kFoldersMax && !folder.empty(); ++i) {
    const fs::path repository = repository_of(host, folder);
    if (!repository.empty()) {
      const Result<std::string> head = host.read_text((repository / "HEAD").native(), 4096);
      if (!head.ok()) return;
      std::string_view text = trim(*head);
      if (is_revision(text)) out["code.git.revision"] = std::string(text);
      if (!text.starts_with("ref:")) return;
      text = trim(text.substr(4));
      if (!is_reference(text)) return;
      const std::string revision = revision_of(host, repository, std::string(text));
      if (!revision.empty()) out["code.git.revision"] = revision;
      constexpr std::string_view kHeads = "refs/heads/";
      if (text.starts_with(kHeads)) out["code.git.branch"] = strip_control(to_valid_utf8(text.substr(kHeads.size())));
      return;
    }
    if (folder == folder.parent_path()) return;
    folder = folder.parent_path();
  }
}

}  // namespace

std::map<std::string, std::string> code_version(const Host& host, std::string_view script,
                                                std::string_view working_directory) {
  std::map<std::string, std::string> out;
  const fs::path path{std::string(script)};
  if (!path.is_absolute()) {
    add_revision(host, fs::path(std::string(working_directory)), out);
    return out;
  }
  // A program of the machine's own is no script, and its folder no repository of the job's.
  if (path.extension() != ".py" && path.extension() != ".sh") return out;
  add_revision(host, path.parent_path(), out);
  const Result<std::string> text = host.read_text(path.native(), kScriptBytesMax);
  if (text.ok()) out["code.script.hash"] = format("{:016x}", hash_on(kHashStart, *text));
  return out;
}

}  // namespace hotlap
