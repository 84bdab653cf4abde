#pragma once
// SQLite behind a few calls that answer in Results. One connection, confined to one thread.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hotlap {

class Database;

// A prepared statement; must not outlive its Database. Parameters count from 1, columns from 0.
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* raw) : raw_(raw, &finalize) {}

  explicit operator bool() const { return raw_ != nullptr; }
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, double value);
  // Text and blobs are not copied: they must stay as they are until the statement is reset.
  Statement& bind(int parameter, std::string_view text);
  Statement& bind(int parameter, ByteView blob);
  Statement& bind_null(int parameter);
  // True: a row is there. False: done.
  Result<bool> step();
  void reset();
  // Steps to the end, then resets.
  Result<void> run();

  std::int64_t integer(int column) const;
  bool is_null(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  // Valid until the next step or reset.
  ByteView blob(int column) const;

 private:
  static void finalize(sqlite3_stmt* raw) noexcept;
  std::unique_ptr<sqlite3_stmt, void (*)(sqlite3_stmt*) noexcept> raw_{nullptr, &finalize};
};

class Database {
 public:
  enum class Access {
    kReadWrite,  // the file exists
    kRead,       // never changes the file; another process may be writing it
    kImmutable,  // read-only media: nobody changes the file while it is open
  };
  // `vfs`: name of a registered SQLite VFS, null: the default. `code` (or null): SQLite's primary result code.
  static Result<Database> open(const std::string& path, Access access, const char* vfs, int* code = nullptr);

  // A file that makes SQLite walk in circles is given up (kCorrupt) when a statement takes more steps than a file
  // of its size can ask for. The count begins again with execute(), prepare() and here.
  void restart_budget();

  Result<void> execute(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  // The first column of the first row as an integer.
  Result<std::int64_t> integer(std::string_view sql);
  bool in_transaction() const;
  // Undoes what is open; never fails loudly.
  void roll_back();

  // Moves what is in the write-ahead log into the file as far as readers allow.
  enum class Checkpoint { kPassive, kTruncate };
  Result<void> checkpoint(Checkpoint mode);
  std::uint32_t wal_pages() const;  // in the write-ahead log after the last commit
  bool was_moved() const;           // the file was deleted or renamed under us
  void set_busy_timeout(int milliseconds);
  // Every page of `source`, as one consistent picture.
  Result<void> copy_from(Database& source);

  // The primary SQLite result code of the last failed call; for deciding whether a connection is worth keeping.
  int last_code() const;
  // The SQLite error as one of ours: "<path>: <what SQLite says>".
  Error error(int code) const;

  struct State;
  sqlite3* raw() const;

 private:
  explicit Database(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;

 public:
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();
};

}  // namespace hotlap
