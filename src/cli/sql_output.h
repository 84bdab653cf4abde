#pragma once
// The rows of a query as a table, JSON, CSV or NumPy's archive. Each is written while rows come, but for what needs the
// whole: the widths of a table (of its first rows), the arrays of an archive.
#include <iosfwd>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "query/query.h"

namespace hotlap {

class SqlOutput : public QuerySink {
 public:
  // After the last row.
  virtual Result<void> finish() = 0;
};

// "table", "json", "csv", "npz"; kInvalidInput names them. `columns`: of the terminal, 0: cells are not cut.
Result<std::unique_ptr<SqlOutput>> make_sql_output(std::string_view format, std::size_t columns, std::ostream& out);

}  // namespace hotlap
