// Python stacks that were counted in the job's processes.
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "query/table.h"
#include "store/stack_files.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"process", ColumnType::kText, "'main', 'rank 2'; NULL: not known by its pid"},
    ColumnDesc{"pid", ColumnType::kInteger, ""},
    ColumnDesc{"phase", ColumnType::kText, "'initialisation', 'training', 'evaluation' …"},
    ColumnDesc{"thread", ColumnType::kText, "its Python name"},
    ColumnDesc{"samples", ColumnType::kInteger, "how often it was seen"},
    ColumnDesc{"share_pct", ColumnType::kReal, "of the samples of its process, phase and thread"},
    ColumnDesc{"function", ColumnType::kText, "the innermost: 'step (train.py:41)'"},
    ColumnDesc{"stack", ColumnType::kText, "outermost first, ';' between"},
};
constexpr std::size_t kRowsMax = 500'000;

struct Row {
  std::int32_t pid;
  std::string phase;
  std::string thread;
  std::string frames;
  std::uint64_t samples;
};

ListedRows::Value label_of(const QueriedRun& run, std::int32_t pid) {
  for (const QueriedRecording& recording : run.recordings()) {
    if (is_profile_window(recording.reader->info())) continue;
    for (const auto& [slot, process] : recording.processes) {
      if (process.pid == pid) return slot_label(process);
    }
  }
  return {};
}

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter&) {
  std::vector<Row> found;
  std::map<std::tuple<std::int32_t, std::string, std::string>, std::uint64_t> sums;
  HOTLAP_TRY(read_stacks(run.folder(), [&](const SampledStack& stack) -> Result<void> {
    if (found.size() >= kRowsMax) return Error{ErrorCode::kResourceLimit, "too many different stacks"};
    found.push_back(
        {stack.pid, std::string(stack.phase), std::string(stack.thread), std::string(stack.frames), stack.samples});
    sums[{stack.pid, found.back().phase, found.back().thread}] += stack.samples;
    return {};
  }));
  auto rows = std::make_unique<ListedRows>();
  for (Row& row : found) {
    const auto sum = static_cast<double>(sums.at({row.pid, row.phase, row.thread}));
    std::string function = row.frames.substr(row.frames.rfind(';') + 1);
    rows->add({label_of(run, row.pid), std::int64_t{row.pid}, std::move(row.phase), std::move(row.thread),
               static_cast<std::int64_t>(row.samples), 100 * static_cast<double>(row.samples) / sum,
               std::move(function), std::move(row.frames)});
  }
  return std::unique_ptr<RowSource>(std::move(rows));
}

}  // namespace

extern constinit const TableSpec table_stack{.name = "stack",
                                             .help = "Python stacks, counted while `--profile functions=20hz` was on",
                                             .columns = kColumns,
                                             .open = open};

}  // namespace hotlap
