#pragma once
// Where runs are kept, and what kind of file system a folder lies on.
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace hotlap {

// $HOTLAP_HOME, else ${XDG_DATA_HOME:-~/.local/share}/hotlap; under sudo the calling user's. Not made here.
Result<std::filesystem::path> hotlap_home();

// An error when the runs of `home` may be there but cannot be listed: a file in its place, no permission. A home
// that is not made yet is fine.
Result<void> check_home(const std::filesystem::path& home);

enum class FilesystemKind : std::uint8_t {
  kLocal,
  kNetwork,  // NFS, Lustre, SMB, FUSE, 9P and alike: SQLite's WAL does not work there
  kMemory,   // tmpfs: gone at the next start of the machine
  kOverlay,  // a container's own layer: gone with the container
};
// Of `path` or, while it does not exist, of its nearest folder that does. What cannot be asked counts as local.
FilesystemKind filesystem_kind(const std::filesystem::path& path);
inline bool is_network_filesystem(const std::filesystem::path& path) {
  return filesystem_kind(path) == FilesystemKind::kNetwork;
}

// Where to record. On a network file system another, local folder stands in for the run's, and what is recorded
// there is moved over by move_recordings().
struct RecordingPlace {
  std::filesystem::path folder;
  bool is_stand_in = false;
  std::string why;  // for the user, when it is a stand-in
};
inline constexpr std::int64_t kStandInCopyPeriodS = 300;  // a machine that dies costs at most this much
// `run_folder` exists; a stand-in is made (0700, owner checked). kIo when no local folder can be written.
Result<RecordingPlace> recording_place(const std::filesystem::path& run_folder, std::string_view run_id);

// Whether `folder` is a stand-in that recording_place() may have made for this run and user. What a run.json says of
// where its recording lies is not believed without it.
bool is_stand_in(const std::filesystem::path& folder, std::string_view run_id);

// One self-contained copy (0600) of a recording, live or closed, as of now; appears at `to` whole or not at all.
Result<void> copy_recording(const std::filesystem::path& from, const std::filesystem::path& to);
// Moves every closed recording of `from` into `to`; live ones are copied and stay. `from` goes with the last of them.
// Goes on after a failure and answers with the first one.
Result<void> move_recordings(const std::filesystem::path& from, const std::filesystem::path& to);

// Makes the folder and those above it that are missing, each 0700 whatever the umask; as root each gets the owner
// of the folder it is made in, or the caller of sudo where `path` lies in that user's home.
Result<void> make_private_folders(const std::filesystem::path& path);
// Replaces a file's whole text, or leaves the old one: never half of it. 0600 whatever the umask.
Result<void> write_private_file(const std::filesystem::path& path, std::string_view text);
// As root: gives a new file or folder the owner of the folder that holds it, so that `sudo hotlap` leaves nothing
// behind that its caller cannot read.
void adopt_owner(const std::filesystem::path& path);

}  // namespace hotlap
