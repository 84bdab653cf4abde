// The run itself: one row.
#include <array>
#include <map>
#include <set>

#include "base/clock.h"
#include "cost/machine_price.h"
#include "query/table.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"id", ColumnType::kText, ""},
    ColumnDesc{"name", ColumnType::kText, ""},
    ColumnDesc{"status", ColumnType::kText, "'running', 'finished', 'failed', 'killed', 'unknown'"},
    ColumnDesc{"script", ColumnType::kText, ""},
    ColumnDesc{"command", ColumnType::kText, "its words with blanks between them, secrets taken out"},
    ColumnDesc{"working_directory", ColumnType::kText, ""},
    ColumnDesc{"node", ColumnType::kText, "that started it"},
    ColumnDesc{"nodes", ColumnType::kInteger, "that recorded"},
    ColumnDesc{"recordings", ColumnType::kInteger, ""},
    ColumnDesc{"start_unix_ns", ColumnType::kInteger, ""},
    ColumnDesc{"end_unix_ns", ColumnType::kInteger, "NULL: it runs, or its end was not seen"},
    ColumnDesc{"duration_s", ColumnType::kReal, "NULL: it runs, or its end was not seen"},
    ColumnDesc{"interval_s", ColumnType::kReal, "between samples"},
    ColumnDesc{"exit_code", ColumnType::kInteger, "of the job"},
    ColumnDesc{"exit_signal", ColumnType::kInteger, "of the job"},
    ColumnDesc{"price_per_hour", ColumnType::kReal, "of one machine, as given or by meta.json; NULL: not known"},
    ColumnDesc{"currency", ColumnType::kText, ""},
    ColumnDesc{"git_revision", ColumnType::kText, "NULL: not known"},
    ColumnDesc{"hotlap_version", ColumnType::kText, "that recorded it"},
};

ListedRows::Value known_ns(std::int64_t ns) { return value_or_null(ns >= 0 ? std::optional(ns) : std::nullopt); }
ListedRows::Value wide(const std::optional<std::int32_t>& number) {
  return value_or_null(number ? std::optional(std::int64_t{*number}) : std::nullopt);
}

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter&) {
  auto rows = std::make_unique<ListedRows>();
  const RunInfo& info = run.info();
  std::string command;
  for (const std::string& word : info.command) command += (command.empty() ? "" : " ") + word;
  std::set<std::string> nodes;
  for (const QueriedRecording& recording : run.recordings()) nodes.insert(recording.node);
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); };
  const bool has_ended = info.start_wall_ns >= 0 && info.end_wall_ns >= info.start_wall_ns;
  std::string revision;
  std::map<std::string, std::string> all_attributes;
  for (const QueriedRecording& recording : run.recordings()) {
    HOTLAP_TRY_ASSIGN(auto attributes, recording.reader->read_attributes());
    const auto found = attributes.find("code.git.revision");
    if (found != attributes.end() && revision.empty()) revision = found->second;
    all_attributes.merge(attributes);
  }
  const std::optional<Price> price = machine_price(info, all_attributes);
  rows->add({info.id, info.name, std::string(to_string(info.status)), info.script, command, info.working_directory,
             info.node, static_cast<std::int64_t>(nodes.size()), static_cast<std::int64_t>(run.recordings().size()),
             known_ns(info.start_wall_ns), known_ns(info.end_wall_ns),
             value_or_null(has_ended ? std::optional(seconds(info.end_wall_ns - info.start_wall_ns)) : std::nullopt),
             seconds(info.interval_ns), wide(info.exit_code), wide(info.exit_signal),
             value_or_null(price ? std::optional(price->per_hour) : std::nullopt),
             text_or_null(price ? price->currency : std::string()), text_or_null(revision), info.hotlap_version});
  return std::unique_ptr<RowSource>(std::move(rows));
}

}  // namespace

extern constinit const TableSpec table_run{
    .name = "run", .help = "the run itself: one row", .columns = kColumns, .open = open};

}  // namespace hotlap
