// What was dropped, repaired or skipped, by the counters of docs/reference/losses.md.
#include <array>

#include "model/losses.h"
#include "query/table.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"counter", ColumnType::kText, "its name (losses.md)"},
    ColumnDesc{"count", ColumnType::kInteger, "0: nothing was lost of that kind"},
    ColumnDesc{"help", ColumnType::kText, "what it means, and what to do"},
    ColumnDesc{"node", ColumnType::kText, ""},
    ColumnDesc{"recording", ColumnType::kInteger, "number of the recording, from 1"},
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter&) {
  auto rows = std::make_unique<ListedRows>();
  for (const QueriedRecording& recording : run.recordings()) {
    HOTLAP_TRY_ASSIGN(const std::vector<Loss> losses, recording.reader->read_losses());
    std::map<std::string, std::uint64_t> counts;
    for (const Loss& loss : losses) counts[loss.counter] += loss.count;
    for (const LossDesc& desc : kLosses) {
      const auto found = counts.find(std::string(desc.counter));
      const std::uint64_t count = found == counts.end() ? 0 : found->second;
      rows->add({std::string(desc.counter), static_cast<std::int64_t>(count), std::string(desc.help), recording.node,
                 recording.number});
      if (found != counts.end()) counts.erase(found);
    }
    for (const auto& [name, count] : counts) {  // of a newer hotlap
      rows->add({name, static_cast<std::int64_t>(count), {}, recording.node, recording.number});
    }
  }
  return std::unique_ptr<RowSource>(std::move(rows));
}

}  // namespace

extern constinit const TableSpec table_counter{
    .name = "counter", .help = "what was dropped, repaired or skipped", .columns = kColumns, .open = open};

}  // namespace hotlap
