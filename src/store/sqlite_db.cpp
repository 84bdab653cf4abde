#include "store/sqlite_db.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <limits>

#include "base/check.h"
#include "base/format.h"
#include "store/format.h"

namespace hotlap {
namespace {

constexpr int kCacheKib = 512;                  // of the page cache: the recorder must stay small
constexpr int kBusyMs = 20;                     // a reader that recovers or checkpoints holds its locks for less
constexpr std::int64_t kStepsMin = 20'000'000;  // a second or so
constexpr std::int64_t kStepsPerByte = 4;
constexpr int kProgressSteps = 10'000;       // virtual machine instructions between two looks at the budget
constexpr std::int64_t kSqlBytesMax = 4096;  // our own texts are shorter

// A statement of ours that fails on a file which is only read: the file is not laid out as it should be.
bool is_layout(sqlite3* raw, int sqlite_code) {
  return (sqlite_code & 0xFF) == SQLITE_ERROR && raw != nullptr && sqlite3_db_readonly(raw, "main") == 1;
}

ErrorCode code_of(sqlite3* raw, int sqlite_code) {
  if (is_layout(raw, sqlite_code)) return ErrorCode::kCorrupt;
  switch (sqlite_code & 0xFF) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_INTERRUPT:  // our own budget: the file makes SQLite walk in circles
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG: return ErrorCode::kCorrupt;
    case SQLITE_MISUSE: return ErrorCode::kInternal;
    default: return ErrorCode::kIo;
  }
}

std::string message_of(sqlite3* raw, int code) {
  if (is_layout(raw, code)) return "damaged: it is not laid out as a recording";
  // In words of ours where SQLite speaks of its own insides ("database disk image is malformed").
  switch (code & 0xFF) {
    case SQLITE_INTERRUPT: return "damaged: reading it does not come to an end";
    case SQLITE_CORRUPT: return "damaged: its tables do not fit together";
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG: return "damaged: a value in it is not what was written";
    default: break;
  }
  std::string text = raw != nullptr ? sqlite3_errmsg(raw) : sqlite3_errstr(code);
  // "disk I/O error" alone tells nobody what to do.
  const int system_error = raw != nullptr && (code & 0xFF) == SQLITE_IOERR ? sqlite3_system_errno(raw) : 0;
  return system_error != 0 ? errno_error(text, system_error).message : text;
}

}  // namespace

struct Database::State {
  sqlite3* raw = nullptr;
  std::string path;
  std::uint32_t wal_pages = 0;
  std::int64_t file_bytes = 0;
  std::int64_t steps_left = INT64_MAX;

  ~State() { sqlite3_close_v2(raw); }
};

Database::Database(std::unique_ptr<State> state) : state_(std::move(state)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

sqlite3* Database::raw() const { return state_->raw; }

void Statement::finalize(sqlite3_stmt* raw) noexcept { sqlite3_finalize(raw); }

Statement& Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(raw_.get(), parameter, value);
  return *this;
}
Statement& Statement::bind(int parameter, double value) {
  sqlite3_bind_double(raw_.get(), parameter, value);
  return *this;
}
Statement& Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text64(raw_.get(), parameter, text.data() != nullptr ? text.data() : "", text.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind(int parameter, ByteView blob) {
  sqlite3_bind_blob64(raw_.get(), parameter, blob.data(), blob.size(), SQLITE_STATIC);
  return *this;
}
Statement& Statement::bind_null(int parameter) {
  sqlite3_bind_null(raw_.get(), parameter);
  return *this;
}

Result<bool> Statement::step() {
  HOTLAP_CHECK(raw_ != nullptr);
  const int code = sqlite3_step(raw_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  sqlite3* const database = sqlite3_db_handle(raw_.get());
  Error error{code_of(database, code), message_of(database, code)};
  sqlite3_reset(raw_.get());
  return error;
}

void Statement::reset() { sqlite3_reset(raw_.get()); }

Result<void> Statement::run() {
  for (;;) {
    HOTLAP_TRY_ASSIGN(const bool row, step());
    if (!row) break;
  }
  reset();
  return {};
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(raw_.get(), column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(raw_.get(), column) == SQLITE_NULL; }
double Statement::real(int column) const { return sqlite3_column_double(raw_.get(), column); }

std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(raw_.get(), column);
  const int size = sqlite3_column_bytes(raw_.get(), column);
  if (text == nullptr || size <= 0) return {};
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)};  // SQLite's own type for UTF-8
}

ByteView Statement::blob(int column) const {
  const void* blob = sqlite3_column_blob(raw_.get(), column);
  const int size = sqlite3_column_bytes(raw_.get(), column);
  if (blob == nullptr || size <= 0) return {};
  return {static_cast<const std::byte*>(blob), static_cast<std::size_t>(size)};
}

Result<Database> Database::open(const std::string& path, Access access, const char* vfs, int* code_out) {
  auto state = std::make_unique<State>();
  state->path = path;
  // A URI, because "immutable" can be said in no other way; the characters that mean something there are escaped.
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '?' || c == '#' || c == '%') {
      uri += format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      uri += c;
    }
  }
  if (access == Access::kImmutable) uri += "?immutable=1";
  const int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (access == Access::kReadWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
  const int code = sqlite3_open_v2(uri.c_str(), &state->raw, flags, vfs);
  Database database(std::move(state));
  if (code_out != nullptr) *code_out = code & 0xFF;
  if (code != SQLITE_OK) return database.error(code);
  sqlite3* raw = database.raw();
  sqlite3_busy_timeout(raw, kBusyMs);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // Sealed blocks may be a little larger than what is inside.
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, static_cast<int>(kBlockBytesMax + (std::size_t{1} << 20U)));
  sqlite3_limit(raw, SQLITE_LIMIT_SQL_LENGTH, static_cast<int>(kSqlBytesMax));
  sqlite3_limit(raw, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(raw, SQLITE_LIMIT_COLUMN, 32);
  sqlite3_limit(raw, SQLITE_LIMIT_EXPR_DEPTH, 20);
  sqlite3_limit(raw, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
  sqlite3_limit(raw, SQLITE_LIMIT_WORKER_THREADS, 0);
  if (access != Access::kReadWrite) {
    struct stat found {};
    for (const char* suffix : {"", "-wal"}) {
      if (::stat((path + suffix).c_str(), &found) == 0) database.state_->file_bytes += found.st_size;
    }
    sqlite3_progress_handler(
        raw, kProgressSteps,
        [](void* opaque) { return (static_cast<State*>(opaque)->steps_left -= kProgressSteps) < 0 ? 1 : 0; },
        database.state_.get());
  }
  // Takes the place of SQLite's own hook, which checkpoints: PRAGMA wal_autocheckpoint would put that back.
  sqlite3_wal_hook(
      raw,
      [](void* opaque, sqlite3*, const char*, int pages) {
        static_cast<State*>(opaque)->wal_pages = static_cast<std::uint32_t>(pages);
        return SQLITE_OK;
      },
      database.state_.get());
  for (const std::string& pragma :
       {std::string("PRAGMA cell_size_check=1"), std::string("PRAGMA mmap_size=0"),
        std::string("PRAGMA temp_store=MEMORY"), format("PRAGMA cache_size=-{}", kCacheKib)}) {
    if (Result<void> set = database.execute(pragma.c_str()); !set.ok()) {
      if (code_out != nullptr) *code_out = database.last_code();
      return std::move(set).error();
    }
  }
  return database;
}

void Database::restart_budget() { state_->steps_left = kStepsMin + state_->file_bytes * kStepsPerByte; }

Result<void> Database::execute(const char* sql) {
  restart_budget();
  const int code = sqlite3_exec(raw(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error(code);
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  restart_budget();
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(raw(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement, nullptr);
  if (code != SQLITE_OK) return error(code);
  return Statement(statement);
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  HOTLAP_TRY_ASSIGN(Statement statement, prepare(sql));
  HOTLAP_TRY_ASSIGN(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(raw()) == 0; }

void Database::roll_back() {
  if (in_transaction()) (void)sqlite3_exec(raw(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<void> Database::checkpoint(Checkpoint mode) {
  int log_pages = 0;
  int moved_pages = 0;
  const int code = sqlite3_wal_checkpoint_v2(
      raw(), nullptr, mode == Checkpoint::kPassive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE, &log_pages,
      &moved_pages);
  if (code != SQLITE_OK) return error(code);
  return {};
}

std::uint32_t Database::wal_pages() const { return state_->wal_pages; }

bool Database::was_moved() const {
  int moved = 0;
  return sqlite3_file_control(raw(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

void Database::set_busy_timeout(int milliseconds) { sqlite3_busy_timeout(raw(), milliseconds); }

Result<void> Database::copy_from(Database& source) {
  sqlite3_backup* backup = sqlite3_backup_init(raw(), "main", source.raw(), "main");
  if (backup == nullptr) return error(sqlite3_errcode(raw()));
  sqlite3_backup_step(backup, -1);
  const int code = sqlite3_backup_finish(backup);
  if (code != SQLITE_OK) return error(code);
  return {};
}

int Database::last_code() const { return sqlite3_errcode(raw()) & 0xFF; }

Error Database::error(int code) const {
  return Error{code_of(raw(), code), format("{}: {}", state_->path, message_of(raw(), code))};
}

}  // namespace hotlap
