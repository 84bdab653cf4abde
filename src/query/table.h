#pragma once
// The contract of a table of `hotlap sql`: a spec (data: name, help, columns) and a function that opens its rows. A new
// table is one new file in plugins/; docs/reference/sql.md is made from the specs.
//
// Rows are made while the query asks for them. Confined to one thread, in the process that answers the query.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/finding.h"
#include "model/process.h"
#include "model/wall_clock.h"
#include "store/run_reader.h"

namespace hotlap {

enum class ColumnType : std::uint8_t { kInteger, kReal, kText };

// What a comparison with a constant in WHERE spares: rows that cannot match are not made.
enum class ColumnFilter : std::uint8_t { kNone, kEquals, kTime };

struct ColumnDesc {
  std::string_view name;
  ColumnType type = ColumnType::kText;
  std::string_view help;
  ColumnFilter filter = ColumnFilter::kNone;  // kTime: at most one column of a table, in ns on the recording's clock
};

// NULL, or a value. Text is valid until the next row.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string_view>;

// What WHERE says, as far as it is said of columns with a filter. SQLite checks every row all the same.
struct RowFilter {
  std::map<std::size_t, std::string> equals;  // by column
  TimeRange time;                             // of the kTime column
  // Whether a row with this text in that column may be wanted.
  bool wants(std::size_t column, std::string_view text) const {
    const auto found = equals.find(column);
    return found == equals.end() || found->second == text;
  }
};

// One recording of the run, with what rows of every table say of it.
struct QueriedRecording {
  RecordingReader* reader = nullptr;
  std::int64_t number = 0;  // from 1, in the order in which they were begun
  std::string node;
  WallClock clock{{}};
  std::int64_t origin_ns = 0;  // where t_s begins, on this recording's clock
  std::map<std::uint32_t, ProcessInfo> processes;
  double seconds(std::int64_t t_ns) const;
};

// What a query is asked of.
class QueriedRun {
 public:
  using Findings = std::function<Result<std::vector<Finding>>()>;
  // `findings`: makes the answer about the run; called when a query looks at it, once.
  static Result<std::unique_ptr<QueriedRun>> open(RunFolder folder, Findings findings);

  const RunInfo& info() const { return reader_.info(); }
  const std::filesystem::path& folder() const { return reader_.folder().path(); }
  const std::vector<QueriedRecording>& recordings() const { return recordings_; }
  Result<const std::vector<Finding>*> findings();
  // What went wrong with a table, kept past SQLite, which knows texts only.
  void set_problem(Error error) { problem_ = std::move(error); }
  const std::optional<Error>& problem() const { return problem_; }

 private:
  QueriedRun(RunReader reader, Findings findings) : reader_(std::move(reader)), make_findings_(std::move(findings)) {}

  RunReader reader_;
  std::vector<QueriedRecording> recordings_;
  Findings make_findings_;
  std::optional<std::vector<Finding>> findings_;
  std::optional<Error> problem_;
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  // False at the end. After an error it is not called again.
  virtual Result<bool> next() = 0;
  // Of the row that next() went to, in the order of the spec's columns; shorter: NULL.
  virtual std::span<const Cell> row() const = 0;
};

struct TableSpec {
  std::string_view name;
  std::string_view help;
  std::span<const ColumnDesc> columns;
  Result<std::unique_ptr<RowSource>> (*open)(QueriedRun& run, const RowFilter& filter) = nullptr;
};

// A table whose rows are all there at once: small ones.
class ListedRows final : public RowSource {
 public:
  // Owns its texts, unlike a Cell.
  using Value = std::variant<std::monostate, std::int64_t, double, std::string>;
  void add(std::vector<Value> row) { rows_.push_back(std::move(row)); }
  Result<bool> next() override;
  std::span<const Cell> row() const override { return cells_; }

 private:
  std::vector<std::vector<Value>> rows_;
  std::size_t next_ = 0;
  std::vector<Cell> cells_;
};

// NULL where it is absent.
template <class T>
ListedRows::Value value_or_null(const std::optional<T>& value) {
  if (value) return *value;
  return {};
}
inline ListedRows::Value text_or_null(std::string text) {
  if (text.empty()) return {};
  return text;
}
inline ListedRows::Value rank_of(const ProcessInfo& process) {
  if (process.role != ProcessRole::kRank || process.index < 0) return {};
  return std::int64_t{process.index};
}

}  // namespace hotlap
