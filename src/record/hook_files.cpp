#include "record/hook_files.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/format.h"
#include "base/host.h"
#include "record/identity.h"
#include "store/home.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

std::string content_hash() {
  std::uint64_t hash = kHashStart;
  for (const EmbeddedFile& file : embedded_hook_files()) {
    hash = hash_on(hash_on(hash, file.path), std::string_view("\0", 1));
    hash = hash_on(hash_on(hash, file.content), std::string_view("\0", 1));
  }
  return format("{:016x}", hash);
}

bool is_complete(const fs::path& folder) {
  for (const EmbeddedFile& file : embedded_hook_files()) {
    const Result<std::string> found = system_host().read_text((folder / file.path).native());
    if (!found.ok() || *found != file.content) return false;
  }
  return true;
}

}  // namespace

Result<fs::path> lay_out_hook(const fs::path& home) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  if (const char* given = std::getenv("HOTLAP_HOOK_PATH"); given != nullptr && *given != '\0') return fs::path(given);
  if (embedded_hook_files().empty()) return Error{ErrorCode::kUnsupported, "this build carries no Python hook"};
  const fs::path folder = home / "hook" / content_hash();
  if (is_complete(folder)) return folder;

  HOTLAP_TRY(make_private_folders(home / "hook"));
  const fs::path making = folder.native() + format(".{}", ::getpid());
  std::error_code failed;
  fs::remove_all(making, failed);
  for (const EmbeddedFile& file : embedded_hook_files()) {
    HOTLAP_TRY(make_private_folders((making / file.path).parent_path()));
    HOTLAP_TRY(write_private_file(making / file.path, file.content));
  }
  fs::rename(making, folder, failed);
  if (failed) {
    // A damaged one is in the way, or another run was faster.
    if (is_complete(folder)) {
      fs::remove_all(making, failed);
      return folder;
    }
    const fs::path away = folder.native() + format(".old.{}", ::getpid());
    fs::rename(folder, away, failed);
    fs::remove_all(away, failed);
    fs::rename(making, folder, failed);
    if (failed) return Error{ErrorCode::kIo, folder.native() + ": " + failed.message()};
  }
  return folder;
}

}  // namespace hotlap
