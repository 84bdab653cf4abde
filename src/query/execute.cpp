// SQLite in memory with our tables in it, and nothing that it may do but SELECT.
#include <sqlite3.h>
#include <time.h>

#include <memory>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "query/aggregates.h"
#include "query/query.h"
#include "query/virtual_table.h"

namespace hotlap {
namespace {

constexpr int kSqlBytesMax = 64 << 10;
constexpr int kValueBytesMax = 16 << 20;
constexpr int kProgressSteps = 1'000;  // virtual machine instructions between two looks at the clock

// Of this process: while nobody reads the answer no time passes.
std::int64_t cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * kNsPerS + time.tv_nsec;
}

struct Watch {
  std::int64_t deadline_ns = 0;  // of CPU time
  bool is_over = false;
  std::string denied;  // what the text wanted to do
};

// What a text may do besides SELECT of our tables, by SQLite's numbers for actions.
int authorize(void* opaque, int action, const char* first, const char* second, const char*, const char*) {
  auto* watch = static_cast<Watch*>(opaque);
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION:
      if (second != nullptr && std::string_view(second) != "load_extension") return SQLITE_OK;
      break;
    default: break;
  }
  watch->denied = action == SQLITE_FUNCTION ? format("the function {}", second == nullptr ? "?" : second)
                  : action == SQLITE_PRAGMA ? format("PRAGMA {}", first == nullptr ? "" : first)
                  : action == SQLITE_ATTACH ? std::string("ATTACH")
                                            : std::string("a statement that changes something");
  return SQLITE_DENY;
}

int look_at_clock(void* opaque) {
  auto* watch = static_cast<Watch*>(opaque);
  watch->is_over = cpu_ns() > watch->deadline_ns;
  return watch->is_over ? 1 : 0;
}

struct CloseDatabase {
  void operator()(sqlite3* raw) const { sqlite3_close_v2(raw); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* raw) const { sqlite3_finalize(raw); }
};
using DatabaseHandle = std::unique_ptr<sqlite3, CloseDatabase>;
using StatementHandle = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

class Query {
 public:
  Query(QueriedRun& run, const QueryRequest& request) : run_(run), request_(request) {
    watch_.deadline_ns = cpu_ns() + request.limits.time_ns;
  }

  Result<void> run(QuerySink& out) {
    HOTLAP_TRY(open());
    HOTLAP_TRY(prepare());
    const int columns = sqlite3_column_count(statement_.get());
    std::vector<std::string> names;
    for (int i = 0; i < columns; ++i) names.emplace_back(sqlite3_column_name(statement_.get(), i));
    out.columns(names);
    std::vector<Cell> cells(static_cast<std::size_t>(columns));
    while (true) {
      const int code = sqlite3_step(statement_.get());
      if (code == SQLITE_DONE) return {};
      if (code != SQLITE_ROW) return error(code);
      for (int i = 0; i < columns; ++i) cells[static_cast<std::size_t>(i)] = cell(i);
      HOTLAP_TRY(out.row(cells));
    }
  }

 private:
  Result<void> open() {
    sqlite3* raw = nullptr;
    const int code =
        sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, nullptr);
    database_.reset(raw);
    if (code != SQLITE_OK) return Error{ErrorCode::kResourceLimit, sqlite3_errstr(code)};
    sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
    sqlite3_exec(raw, "PRAGMA temp_store=MEMORY", nullptr, nullptr, nullptr);
    HOTLAP_TRY(add_tables(raw, run_));
    if (add_aggregates(raw) != SQLITE_OK) return Error{ErrorCode::kInternal, sqlite3_errmsg(raw)};
    sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kValueBytesMax);
    sqlite3_limit(raw, SQLITE_LIMIT_SQL_LENGTH, kSqlBytesMax);
    sqlite3_limit(raw, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(raw, SQLITE_LIMIT_COLUMN, 200);
    sqlite3_limit(raw, SQLITE_LIMIT_EXPR_DEPTH, 100);
    sqlite3_limit(raw, SQLITE_LIMIT_COMPOUND_SELECT, 50);
    sqlite3_limit(raw, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
    sqlite3_limit(raw, SQLITE_LIMIT_VARIABLE_NUMBER, 16);
    sqlite3_limit(raw, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_progress_handler(raw, kProgressSteps, look_at_clock, &watch_);
    sqlite3_set_authorizer(raw, authorize, &watch_);  // last: what is above is not SELECT
    return {};
  }

  Result<void> prepare() {
    if (request_.sql.size() > static_cast<std::size_t>(kSqlBytesMax)) {
      return Error{ErrorCode::kInvalidInput, format("the query is longer than {} bytes", kSqlBytesMax)};
    }
    // SQLite ends the text at a zero byte, as if there were nothing behind it.
    if (request_.sql.find('\0') != std::string::npos) {
      return Error{ErrorCode::kInvalidInput, "the query has a zero byte in it"};
    }
    sqlite3_stmt* raw = nullptr;
    const char* rest = nullptr;
    const int code = sqlite3_prepare_v3(database_.get(), request_.sql.c_str(),
                                        static_cast<int>(request_.sql.size() + 1), 0, &raw, &rest);
    statement_.reset(raw);
    if (code != SQLITE_OK) return error(code);
    if (!statement_) return Error{ErrorCode::kInvalidInput, "the query is empty: SELECT … FROM …"};
    // The authorizer is not asked of a statement that finds nothing to do.
    if (sqlite3_column_count(statement_.get()) == 0) {
      return Error{ErrorCode::kInvalidInput, "only SELECT is answered"};
    }
    // What follows must be nothing but blanks and comments, which SQLite takes for no statement.
    sqlite3_stmt* second = nullptr;
    const int second_code = sqlite3_prepare_v3(database_.get(), rest, -1, 0, &second, nullptr);
    const StatementHandle more(second);
    if (second_code != SQLITE_OK || more) {
      return Error{ErrorCode::kInvalidInput, "there is more than one statement: one SELECT is answered at a time"};
    }
    return bind();
  }

  Result<void> bind() {
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement_.get()); ++i) {
      const char* name = sqlite3_bind_parameter_name(statement_.get(), i);
      const auto found = name == nullptr ? request_.parameters.end() : request_.parameters.find(name);
      if (found == request_.parameters.end()) {
        return Error{ErrorCode::kInvalidInput,
                     format("the parameter {} has no value; there are :from and :to", name == nullptr ? "?" : name)};
      }
      sqlite3_bind_int64(statement_.get(), i, found->second);
    }
    return {};
  }

  Cell cell(int column) {
    sqlite3_stmt* const statement = statement_.get();
    switch (sqlite3_column_type(statement, column)) {
      case SQLITE_INTEGER: return std::int64_t{sqlite3_column_int64(statement, column)};
      case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
      case SQLITE_NULL: return {};
      default: break;
    }
    // A blob is shown by its bytes.
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
    const int size = sqlite3_column_bytes(statement, column);
    if (text == nullptr || size <= 0) return std::string_view("");
    return std::string_view(text, static_cast<std::size_t>(size));
  }

  Error error(int code) const {
    const int primary = code & 0xFF;
    if (run_.problem()) return *run_.problem();
    if (watch_.is_over) {
      return {ErrorCode::kResourceLimit,
              format("took more than {}: ask for less (a range of time, one metric), or give "
                     "it --timeout",
                     format_duration(request_.limits.time_ns))};
    }
    if (primary == SQLITE_NOMEM) {
      return {ErrorCode::kResourceLimit, format("needs more than {} of memory: ask for less",
                                                format_bytes(static_cast<double>(request_.limits.memory_bytes)))};
    }
    if ((primary == SQLITE_AUTH || primary == SQLITE_ERROR) && !watch_.denied.empty()) {
      return {ErrorCode::kInvalidInput, format("only SELECT is answered, not {}", strip_control(watch_.denied))};
    }
    const std::string text = strip_control(to_valid_utf8(sqlite3_errmsg(database_.get())));
    return {primary == SQLITE_ERROR || primary == SQLITE_TOOBIG || primary == SQLITE_MISMATCH || primary == SQLITE_RANGE
                ? ErrorCode::kInvalidInput
                : ErrorCode::kResourceLimit,
            text};
  }

  QueriedRun& run_;
  const QueryRequest& request_;
  Watch watch_;
  DatabaseHandle database_;
  StatementHandle statement_;  // goes first
};

}  // namespace

Result<void> execute_query(QueriedRun& run, const QueryRequest& request, QuerySink& out) {
  return Query(run, request).run(out);
}

}  // namespace hotlap
