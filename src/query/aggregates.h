#pragma once
// Aggregates that SQLite lacks: median(x), percentile(x, p) with p from 0 to 100, stddev(x). NULL and text are left
// out; of nothing they are NULL.
struct sqlite3;

namespace hotlap {

// SQLite's result code.
int add_aggregates(sqlite3* database);

}  // namespace hotlap
