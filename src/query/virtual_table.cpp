#include "query/virtual_table.h"

#include <sqlite3.h>

#include <cmath>

#include "base/format.h"
#include "query/registry.h"

namespace hotlap {
namespace {

// SQLite's structs come first, so that its pointers are ours.
struct Table : sqlite3_vtab {
  const TableSpec* spec = nullptr;
  QueriedRun* run = nullptr;
};
struct Cursor : sqlite3_vtab_cursor {
  std::unique_ptr<RowSource> rows;
  bool is_at_end = true;
  sqlite3_int64 number = 0;
};
struct Registered {
  const TableSpec* spec;
  QueriedRun* run;
};

Table& table_of(sqlite3_vtab* raw) { return *static_cast<Table*>(raw); }
Cursor& cursor_of(sqlite3_vtab_cursor* raw) { return *static_cast<Cursor*>(raw); }

int fail(sqlite3_vtab* table, const Error& error) {
  table_of(table).run->set_problem(error);
  sqlite3_free(table->zErrMsg);
  table->zErrMsg = sqlite3_mprintf("%s", error.message.c_str());
  return SQLITE_ERROR;
}

std::string_view type_name(ColumnType type) {
  switch (type) {
    case ColumnType::kInteger: return "INTEGER";
    case ColumnType::kReal: return "REAL";
    case ColumnType::kText: break;
  }
  return "TEXT";
}

int connect(sqlite3* database, void* opaque, int, const char* const*, sqlite3_vtab** out, char** error) {
  const auto* registered = static_cast<const Registered*>(opaque);
  std::string text = "CREATE TABLE x(";
  for (const ColumnDesc& column : registered->spec->columns) {
    text += format("{}\"{}\" {}", text.ends_with('(') ? "" : ",", column.name, type_name(column.type));
  }
  const int code = sqlite3_declare_vtab(database, (text + ")").c_str());
  if (code != SQLITE_OK) {
    *error = sqlite3_mprintf("%s", sqlite3_errmsg(database));
    return code;
  }
  sqlite3_vtab_config(database, SQLITE_VTAB_INNOCUOUS);
  auto* table = new Table;
  table->spec = registered->spec;
  table->run = registered->run;
  *out = table;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* raw) {
  delete static_cast<Table*>(raw);
  return SQLITE_OK;
}

// One letter per argument that filter() gets: what it bounds; and one for the column.
constexpr char kEqual = '=';
constexpr char kAtLeast = 'g';
constexpr char kAbove = 'G';
constexpr char kAtMost = 'l';
constexpr char kBelow = 'L';
constexpr char kAt = '@';
constexpr char kFirstColumn = '0';

// 0: SQLite has to look for itself.
char use_of(const ColumnDesc& column, unsigned char op) {
  if (column.filter == ColumnFilter::kEquals) return op == SQLITE_INDEX_CONSTRAINT_EQ ? kEqual : '\0';
  if (column.filter != ColumnFilter::kTime) return '\0';
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ: return kAt;
    case SQLITE_INDEX_CONSTRAINT_GE: return kAtLeast;
    case SQLITE_INDEX_CONSTRAINT_GT: return kAbove;
    case SQLITE_INDEX_CONSTRAINT_LE: return kAtMost;
    case SQLITE_INDEX_CONSTRAINT_LT: return kBelow;
    default: return '\0';
  }
}

int best_index(sqlite3_vtab* raw, sqlite3_index_info* info) {
  const std::span<const ColumnDesc> columns = table_of(raw).spec->columns;
  std::string plan;
  double cost = 1e6;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    if (constraint.usable == 0 || constraint.iColumn < 0) continue;
    const auto column = static_cast<std::size_t>(constraint.iColumn);
    const char use = use_of(columns[column], constraint.op);
    if (use == '\0') continue;
    if (use == kEqual && std::string_view(sqlite3_vtab_collation(info, i)) != "BINARY") continue;
    plan += {use, static_cast<char>(kFirstColumn + static_cast<char>(column))};
    info->aConstraintUsage[i].argvIndex = static_cast<int>(plan.size() / 2);
    cost /= use == kEqual ? 50 : 4;
  }
  info->estimatedCost = cost;
  info->estimatedRows = static_cast<sqlite3_int64>(cost);
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  return info->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = new Cursor;
  return SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor* raw) {
  delete static_cast<Cursor*>(raw);
  return SQLITE_OK;
}

// Narrows `time`; a bound that is no number of a sensible size is left to SQLite.
void bound_time(char use, sqlite3_value* value, TimeRange& time) {
  const int type = sqlite3_value_type(value);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
  const double number = sqlite3_value_double(value);
  if (!(std::abs(number) < 9.2e18)) return;
  const bool is_whole = type == SQLITE_INTEGER;
  const std::int64_t low = is_whole ? sqlite3_value_int64(value) : static_cast<std::int64_t>(std::floor(number));
  if (use == kAtLeast || use == kAbove || use == kAt) time.from_ns = std::max(time.from_ns, low);
  if ((use == kAtMost || use == kBelow || use == kAt) && low < INT64_MAX - 1) {
    time.to_ns = std::min(time.to_ns, low + (is_whole && use == kBelow ? 0 : 1));
  }
}

int next(sqlite3_vtab_cursor* raw) {
  Cursor& cursor = cursor_of(raw);
  const Result<bool> has_row = cursor.rows->next();
  if (!has_row.ok()) return fail(raw->pVtab, has_row.error());
  cursor.is_at_end = !*has_row;
  ++cursor.number;
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* raw, int, const char* plan, int count, sqlite3_value** values) {
  Cursor& cursor = cursor_of(raw);
  const Table& table = table_of(raw->pVtab);
  RowFilter filter;
  const std::string_view uses = plan == nullptr ? std::string_view() : std::string_view(plan);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count) && 2 * i + 1 < uses.size(); ++i) {
    const char use = uses[2 * i];
    const auto column = static_cast<std::size_t>(uses[2 * i + 1] - kFirstColumn);
    if (use != kEqual) {
      bound_time(use, values[i], filter.time);
      continue;
    }
    if (sqlite3_value_type(values[i]) != SQLITE_TEXT) continue;
    const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[i]));  // SQLite's type for UTF-8
    if (text != nullptr) filter.equals[column].assign(text, static_cast<std::size_t>(sqlite3_value_bytes(values[i])));
  }
  Result<std::unique_ptr<RowSource>> rows = table.spec->open(*table.run, filter);
  if (!rows.ok()) return fail(raw->pVtab, rows.error());
  cursor.rows = std::move(*rows);
  cursor.number = 0;
  return next(raw);
}

int is_at_end(sqlite3_vtab_cursor* raw) { return cursor_of(raw).is_at_end ? 1 : 0; }

int column(sqlite3_vtab_cursor* raw, sqlite3_context* out, int number) {
  const std::span<const Cell> row = cursor_of(raw).rows->row();
  const auto place = static_cast<std::size_t>(number);
  if (place >= row.size()) {
    sqlite3_result_null(out);
    return SQLITE_OK;
  }
  const Cell& cell = row[place];
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    sqlite3_result_int64(out, *whole);
  } else if (const auto* real = std::get_if<double>(&cell)) {
    sqlite3_result_double(out, *real);
  } else if (const auto* text = std::get_if<std::string_view>(&cell)) {
    sqlite3_result_text64(out, text->data() == nullptr ? "" : text->data(), text->size(), SQLITE_TRANSIENT,
                          SQLITE_UTF8);
  } else {
    sqlite3_result_null(out);
  }
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* raw, sqlite3_int64* out) {
  *out = cursor_of(raw).number;
  return SQLITE_OK;
}

// Without xCreate: eponymous only, nobody can make another table of it.
constexpr sqlite3_module kModule{.iVersion = 0,
                                 .xCreate = nullptr,
                                 .xConnect = connect,
                                 .xBestIndex = best_index,
                                 .xDisconnect = disconnect,
                                 .xDestroy = disconnect,
                                 .xOpen = open_cursor,
                                 .xClose = close_cursor,
                                 .xFilter = filter,
                                 .xNext = next,
                                 .xEof = is_at_end,
                                 .xColumn = column,
                                 .xRowid = row_id,
                                 .xUpdate = nullptr,
                                 .xBegin = nullptr,
                                 .xSync = nullptr,
                                 .xCommit = nullptr,
                                 .xRollback = nullptr,
                                 .xFindFunction = nullptr,
                                 .xRename = nullptr,
                                 .xSavepoint = nullptr,
                                 .xRelease = nullptr,
                                 .xRollbackTo = nullptr,
                                 .xShadowName = nullptr};

}  // namespace

Result<void> add_tables(sqlite3* database, QueriedRun& run) {
  for (const TableSpec* spec : all_tables()) {
    const auto destroy = [](void* opaque) { delete static_cast<Registered*>(opaque); };
    const int code = sqlite3_create_module_v2(database, std::string(spec->name).c_str(), &kModule,
                                              new Registered{spec, &run}, destroy);
    if (code != SQLITE_OK) return Error{ErrorCode::kInternal, sqlite3_errmsg(database)};
    // Declares the table now: later the authorizer would refuse it.
    sqlite3_stmt* statement = nullptr;
    const int declared =
        sqlite3_prepare_v3(database, format("SELECT 1 FROM \"{}\"", spec->name).c_str(), -1, 0, &statement, nullptr);
    sqlite3_finalize(statement);
    if (declared != SQLITE_OK) return Error{ErrorCode::kInternal, sqlite3_errmsg(database)};
  }
  return {};
}

}  // namespace hotlap
