// A SELECT over the tables of a run. The text runs in a process of its own (cli/commands/query.cpp).
#include <array>
#include <filesystem>
#include <ostream>

#include "base/descriptor_stream.h"
#include "base/format.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/query_process.h"
#include "cli/shown.h"
#include "cli/sql_output.h"
#include "query/query.h"
#include "query/registry.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr double kHourNs = 3.6e12;
constexpr std::array kFlags{FlagSpec{.name = "-f,--format",
                                     .type = FlagType::kText,
                                     .placeholder = "FORMAT",
                                     .help = "table (the default), json, csv or npz"},
                            FlagSpec{.name = "--json", .help = "as --format json"},
                            FlagSpec{.name = "-o,--output",
                                     .type = FlagType::kText,
                                     .placeholder = "FILE",
                                     .help = "write there; its ending may say the format"},
                            FlagSpec{.name = "--timeout",
                                     .type = FlagType::kDuration,
                                     .placeholder = "60s",
                                     .help = "CPU time that the query may take",
                                     .min = 1e6,
                                     .max = kHourNs},
                            FlagSpec{.name = "--tables", .help = "list the tables and their columns"},
                            kConfigFlag};
constexpr std::array kPositionals{
    PositionalSpec{.name = "RUN", .help = "id, start of an id, name, path or last", .names_runs = true},
    PositionalSpec{.name = "QUERY", .help = "one SELECT; - reads it from standard input"},
};

void list_tables(bool is_json, Streams& streams) {
  if (!is_json) {
    for (const TableSpec* table : all_tables()) {
      streams.out << format("{}: {}\n", table->name, table->help);
      for (const ColumnDesc& column : table->columns) {
        streams.out << format("  {:<20}{}\n", column.name, column.help);
      }
    }
    return;
  }
  JsonWriter json(JsonWriter::Style::kPretty);
  json.begin_object().field("schema", 1).key("tables").begin_array();
  for (const TableSpec* table : all_tables()) {
    json.begin_object().field("table", table->name).field("help", table->help).key("columns").begin_array();
    for (const ColumnDesc& column : table->columns) {
      constexpr std::string_view kTypes[] = {"integer", "real", "text"};
      json.begin_object().field("column", column.name);
      json.field("type", kTypes[static_cast<std::size_t>(column.type)]).field("help", column.help).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  streams.out << json.take() << '\n';
}

std::string wanted_format(const Args& args) {
  if (const auto named = args.text("--format")) return *named;
  if (args.has("--json")) return "json";
  const std::string ending = fs::path(args.text("--output").value_or("")).extension().string();
  for (const std::string_view known : {"json", "csv", "npz"}) {
    if (ending == "." + std::string(known)) return std::string(known);
  }
  return "table";
}

Result<int> run(const Args& args, Streams& streams) {
  if (args.has("--tables")) {
    list_tables(args.has("--json"), streams);
    return int{kExitSuccess};
  }
  if (args.positional("RUN").empty() || args.positional("QUERY").empty()) {
    return Error{ErrorCode::kInvalidInput,
                 "a run and a query are needed, as in: hotlap sql last 'SELECT count(*) FROM step'"};
  }
  HOTLAP_TRY_ASSIGN(const fs::path home, hotlap_home());
  std::string sql = args.positional("QUERY")[0];
  if (sql == "-") {
    HOTLAP_TRY_ASSIGN(sql, read_standard_input(kQueryBytesMax));
  }
  const std::optional<std::string> output = args.text("--output");
  const std::string format_wanted = wanted_format(args);
  if (format_wanted == "npz" && !output && streams.out_is_terminal) {
    return Error{ErrorCode::kInvalidInput, "npz is no text: say where to with -o FILE.npz"};
  }
  std::optional<NewFile> file;
  const std::size_t columns = output ? 0 : terminal_columns(streams);
  HOTLAP_TRY_ASSIGN(std::unique_ptr<SqlOutput> checked, make_sql_output(format_wanted, columns, streams.out));
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::find(home, args.positional("RUN")[0]));
  if (output) {
    HOTLAP_TRY_ASSIGN(file, NewFile::create(*output));
    HOTLAP_TRY_ASSIGN(checked, make_sql_output(format_wanted, 0, file->stream()));
  }
  QueryRequest request;
  request.run_folder = query_place(folder);
  request.sql = std::move(sql);
  request.limits.time_ns = args.duration_ns("--timeout").value_or(request.limits.time_ns);
  HOTLAP_TRY(run_query(query_words(request, QueryFindings::kAll, args.text("--config").value_or("")), request.limits,
                       *checked));
  HOTLAP_TRY(checked->finish());
  if (file) {
    HOTLAP_TRY(file->finish());
  }
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_sql{
    .name = "sql",
    .summary = "Ask a run with SQL: samples, spans, steps, findings and more as tables.",
    .example = "hotlap sql last \"SELECT process, count(*), median(ms) FROM step GROUP BY process\"",
    .help =
        "Works on a run that is still going on as well. One SELECT, in a process of its own that may do nothing else, "
        "within a limit of time and memory. Tables, columns and examples: docs/reference/sql.md.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
