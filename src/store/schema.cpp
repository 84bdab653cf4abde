#include "store/schema.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/format.h"
#include "store/format.h"

namespace hotlap {
namespace {

constexpr std::int64_t kHeaderBytes = 100;  // of an SQLite file

Error not_a_recording(const std::string& path, std::string_view why) {
  return Error{ErrorCode::kCorrupt, format("{}: not a hotlap recording ({})", path, why)};
}

bool is_empty_or_absent(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) != 0 || found.st_size == 0;
}

Result<void> check_tables(Database& database, const std::string& path) {
  HOTLAP_TRY_ASSIGN(Statement all, database.prepare("SELECT type,name,sql FROM sqlite_schema"));
  std::size_t known = 0;
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, all.step());
    if (!row) break;
    bool expected = false;
    for (const TableText& table : kTables) {
      expected = expected || (all.text(0) == "table" && all.text(1) == table.name && all.text(2) == table.sql);
    }
    if (!expected) {
      return not_a_recording(
          path, format("unexpected {} \"{}\" inside", all.text(0).substr(0, 20), all.text(1).substr(0, 40)));
    }
    ++known;
  }
  if (known != kTables.size()) return not_a_recording(path, "tables are missing");
  return {};
}

// What stat() can tell; the file is not opened here: closing a descriptor of our own would drop the locks that
// SQLite holds on the same file in this process.
Result<void> check_file(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return errno_error(path, errno);
  if (S_ISDIR(found.st_mode)) return Error{ErrorCode::kInvalidInput, format("{}: is a folder, not a recording", path)};
  if (!S_ISREG(found.st_mode)) return Error{ErrorCode::kInvalidInput, format("{}: is not a regular file", path)};
  if (::access(path.c_str(), R_OK) != 0) {
    return Error{ErrorCode::kIo,
                 format("{}: no permission to read it (recordings are private to who made them)", path)};
  }
  // SQLite takes what is too short for its own header for an empty database.
  if (found.st_size < kHeaderBytes && is_empty_or_absent(path + "-wal")) {
    return not_a_recording(path,
                           found.st_size == 0 ? "the file is empty" : "too short to be one: cut, or another thing");
  }
  return {};
}

Result<void> check_format(Database& database, const std::string& path) {
  HOTLAP_TRY(database.execute("BEGIN"));
  HOTLAP_TRY_ASSIGN(const std::int64_t id, database.integer("PRAGMA application_id"));
  HOTLAP_TRY_ASSIGN(const std::int64_t version, database.integer("PRAGMA user_version"));
  if (id != kApplicationId) return not_a_recording(path, "another program's SQLite file");
  if (version > kFormatVersion) {
    return Error{
        ErrorCode::kUnsupported,
        format("{}: recorded in format {}, this hotlap reads formats up to {}: use the hotlap that recorded it, "
               "or a newer one",
               path, version, kFormatVersion)};
  }
  if (version < 1) return not_a_recording(path, format("format {}", version));
  HOTLAP_TRY(check_tables(database, path));
  return database.execute("COMMIT");
}

}  // namespace

Error with_advice(Error error) {
  constexpr std::string_view kAdvice = ": copy it once more from where it was recorded; a backup is the only other way";
  if (error.code == ErrorCode::kCorrupt && error.message.find(": damaged: ") != std::string::npos &&
      !error.message.ends_with(kAdvice)) {
    error.message += kAdvice;
  }
  return error;
}

Result<Database> open_recording(const std::string& path) {
  HOTLAP_TRY(check_file(path));
  int code = SQLITE_OK;
  Result<Database> database = Database::open(path, Database::Access::kRead, nullptr, &code);
  if (database.ok()) {
    Result<void> fits = check_format(*database, path);
    if (fits.ok()) return database;
    code = database->last_code();
    database = std::move(fits).error();
  }
  if (code == SQLITE_NOTADB) return not_a_recording(path, "not an SQLite file, or a damaged one");
  if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY) {
    return database.ok() ? std::move(database) : with_advice(std::move(database).error());
  }
  // The file is in WAL mode and the shared index beside it cannot be made; or the recorder was killed while it left
  // WAL mode, the last thing it does, and that journal cannot be played back here. With an empty log the file alone
  // is complete.
  if (!is_empty_or_absent(path + "-wal")) {
    return Error{
        ErrorCode::kIo,
        format("{}: it is live or its recorder was killed, and {}-shm beside it can be neither opened nor made: "
               "copy {} and {}-wal to a folder where you may write and open the copy",
               path, path, path, path)};
  }
  database = Database::open(path, Database::Access::kImmutable, nullptr);
  if (!database.ok()) return with_advice(std::move(database).error());
  if (Result<void> fits = check_format(*database, path); !fits.ok()) return with_advice(std::move(fits).error());
  return database;
}

}  // namespace hotlap
