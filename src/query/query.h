#pragma once
// A user's SELECT over the tables of a run. The text is foreign: it runs in a process of its own that holds nothing but
// the run it reads, may do nothing but SELECT (SQLite's authorizer, defensive mode), and is ended at a limit of time or
// memory.
//
//   hotlap sql ─ run_query ── pipe ── hotlap _query: serve_query ── execute_query ── SQLite in memory ── tables ── run
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "query/table.h"

namespace hotlap {

struct QueryLimits {
  std::int64_t time_ns = 60'000'000'000;
  std::size_t memory_bytes = std::size_t{512} << 20U;
};

struct QueryRequest {
  std::filesystem::path run_folder;
  std::string sql;
  std::map<std::string, std::int64_t> parameters;  // ":from" → value; those that the text has
  QueryLimits limits;
};

class QuerySink {
 public:
  virtual ~QuerySink() = default;
  virtual void columns(std::span<const std::string> names) = 0;
  // An error ends the query and is what it answers with. Text is valid during the call.
  virtual Result<void> row(std::span<const Cell> cells) = 0;
};

// Here and now, without a process of its own: for the child, and for tests. kInvalidInput: the text is no query that
// may be asked, in words of SQLite's or ours; kResourceLimit: the time is over; kCancelled and others: what `out` or
// the run say.
Result<void> execute_query(QueriedRun& run, const QueryRequest& request, QuerySink& out);

// The child's side: takes the limits of time and memory upon itself, for good, and writes the answer to `fd`.
void serve_query(QueriedRun& run, const QueryRequest& request, int fd);
// Writes `error` as the answer.
void serve_error(const Error& error, int fd);

// Where the query's process finds the run: its folder, or the one recording that lies alone in somebody's.
std::filesystem::path query_place(const RunFolder& folder);

// Which findings the table `finding` has. A rule in SQL sees those of hotlap's own rules: it cannot ask for itself.
enum class QueryFindings : std::uint8_t { kAll, kOfOwnRules };

// The command line of the query's process: this program once more, as `hotlap _query`. `config`: a configuration file
// for the rules; empty: the usual ones.
std::vector<std::string> query_words(const QueryRequest& request, QueryFindings findings,
                                     const std::filesystem::path& config = {});

// The asker's side: starts `words` (found on no PATH: a path) with the answer expected on its standard output.
// kResourceLimit when it takes longer than `limits.time_ns` and some seconds, or is ended by its memory limit.
Result<void> run_query(const std::vector<std::string>& words, const QueryLimits& limits, QuerySink& out);

}  // namespace hotlap
