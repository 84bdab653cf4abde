#pragma once
// What a query answers, as text.
#include <string>
#include <variant>
#include <vector>

#include "base/format.h"
#include "query/query.h"

namespace hotlap::test {

// Each row's cells, separated by '|'.
class QueryRows final : public QuerySink {
 public:
  void columns(std::span<const std::string> names) override { names_.assign(names.begin(), names.end()); }
  Result<void> row(std::span<const Cell> cells) override {
    std::string line;
    for (const Cell& cell : cells) {
      if (!line.empty()) line += '|';
      if (const auto* whole = std::get_if<std::int64_t>(&cell)) line += format("{}", *whole);
      if (const auto* real = std::get_if<double>(&cell)) line += format("{:g}", *real);
      if (const auto* text = std::get_if<std::string_view>(&cell)) line += *text;
      if (std::holds_alternative<std::monostate>(cell)) line += "NULL";
    }
    rows_.push_back(std::move(line));
    return {};
  }

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& rows() const { return rows_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::string> rows_;
};

}  // namespace hotlap::test
