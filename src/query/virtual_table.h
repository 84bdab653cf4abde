#pragma once
// Tables of ours as eponymous virtual tables of SQLite.
#include "base/result.h"
#include "query/table.h"

struct sqlite3;

namespace hotlap {

// Before an authorizer is set. `run` outlives the connection.
Result<void> add_tables(sqlite3* database, QueriedRun& run);

}  // namespace hotlap
