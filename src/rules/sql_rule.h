#pragma once
// A rule of the user's own: a file with a SELECT whose rows are findings, and a header of comments.
//
//   -- id: SlowTail                         PascalCase; not a rule of hotlap's
//   -- severity: warning                    info, warning (the default) or critical
//   -- needs: steps.summary, cpu.busy.seconds    facts or metrics without which it does not run
//   -- cause: steps have a slow tail        what a row says that has no column cause
//   -- advice: look at what comes every 50th step        may be given several times
//   SELECT … FROM step WHERE start_ns BETWEEN :from AND :to …
//
// Columns of a row that mean something: cause, why, certainty, severity, lost_s, lost_pct, from_ns, to_ns, node, rank,
// device, process, advice, step_ms_low, step_ms_high. Every other one is evidence. The text is foreign: it runs as any
// query does (query/query.h).
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/finding.h"
#include "query/query.h"

namespace hotlap {

inline constexpr std::size_t kSqlRuleBytesMax = std::size_t{64} << 10U;
inline constexpr std::size_t kSqlRuleFindingsMax = 20;  // of one rule

struct SqlRule {
  std::string id;
  std::string file;  // for messages
  Severity severity = Severity::kWarning;
  std::vector<std::string> needs;
  std::string cause;
  std::vector<std::string> advice;
  std::string sql;
};

// kInvalidInput: "slow.sql:2: …", one line.
Result<SqlRule> parse_sql_rule(std::string_view text_untrusted, std::string_view file_name);

// Takes a query's rows in as findings of `rule` within [from_ns, to_ns).
class SqlRuleRows final : public QuerySink {
 public:
  SqlRuleRows(const SqlRule& rule, std::int64_t from_ns, std::int64_t to_ns)
      : rule_(rule), from_ns_(from_ns), to_ns_(to_ns) {}
  void columns(std::span<const std::string> names) override { names_.assign(names.begin(), names.end()); }
  Result<void> row(std::span<const Cell> cells) override;
  std::vector<Finding> take() { return std::move(findings_); }
  std::uint64_t left_out() const { return left_out_; }  // rows beyond kSqlRuleFindingsMax

 private:
  const SqlRule& rule_;
  std::int64_t from_ns_;
  std::int64_t to_ns_;
  std::vector<std::string> names_;
  std::vector<Finding> findings_;
  std::uint64_t left_out_ = 0;
};

}  // namespace hotlap
