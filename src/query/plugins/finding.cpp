// What the rules found. The answer about the run is made when a query looks at this table.
#include <array>

#include "query/table.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"id", ColumnType::kText, "rule and place; the same in every answer about the run"},
    ColumnDesc{"rule", ColumnType::kText, ""},
    ColumnDesc{"severity", ColumnType::kText, "'info', 'warning', 'critical'"},
    ColumnDesc{"certainty", ColumnType::kText, "'possible', 'likely', 'certain'"},
    ColumnDesc{"state", ColumnType::kText, "'open', 'updated', 'closed'"},
    ColumnDesc{"cause", ColumnType::kText, ""},
    ColumnDesc{"why", ColumnType::kText, "the evidence in words, separated by '; '"},
    ColumnDesc{"lost_s", ColumnType::kReal, "NULL: not known, or another finding has the loss"},
    ColumnDesc{"lost_pct", ColumnType::kReal, "of what lost_of says"},
    ColumnDesc{"lost_of", ColumnType::kText,
               "'steps': of step time; 'run': of all time from the first step to the last"},
    ColumnDesc{"explained_by", ColumnType::kText, "id of the finding that has the loss; NULL: this one is the cause"},
    ColumnDesc{"advice", ColumnType::kText, "the first change; NULL: none is known"},
    ColumnDesc{"step_ms_low", ColumnType::kReal, "predicted with the change; NULL: it cannot be predicted"},
    ColumnDesc{"step_ms_high", ColumnType::kReal, ""},
    ColumnDesc{"basis", ColumnType::kText, "of the prediction"},
    ColumnDesc{"node", ColumnType::kText, "NULL here and below: everywhere"},
    ColumnDesc{"rank", ColumnType::kInteger, ""},
    ColumnDesc{"device", ColumnType::kText, ""},
    ColumnDesc{"process", ColumnType::kText, ""},
    ColumnDesc{"from_ns", ColumnType::kInteger, ""},
    ColumnDesc{"to_ns", ColumnType::kInteger, ""},
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter&) {
  HOTLAP_TRY_ASSIGN(const std::vector<Finding>* findings, run.findings());
  auto rows = std::make_unique<ListedRows>();
  for (const Finding& finding : *findings) {
    std::string why;
    for (const std::string& one : finding.why) why += (why.empty() ? "" : "; ") + one;
    const bool has_advice = !finding.advice.empty();
    const Advice advice = has_advice ? finding.advice.front() : Advice();
    std::optional<std::int64_t> rank;
    if (finding.where.rank) rank = *finding.where.rank;
    rows->add({finding.id(),
               finding.rule,
               std::string(to_string(finding.severity)),
               std::string(to_string(finding.certainty)),
               std::string(to_string(finding.state)),
               finding.cause,
               text_or_null(why),
               value_or_null(finding.lost_s),
               value_or_null(finding.lost_pct),
               text_or_null(std::string(finding.lost_pct ? to_string(finding.lost_of) : "")),
               text_or_null(finding.explained_by),
               text_or_null(advice.change),
               value_or_null(advice.step_ms_low),
               value_or_null(advice.step_ms_high),
               text_or_null(std::string(has_advice ? to_string(advice.basis) : "")),
               text_or_null(finding.where.node),
               value_or_null(rank),
               text_or_null(finding.where.device),
               text_or_null(finding.where.process),
               finding.from_ns,
               finding.to_ns});
  }
  return std::unique_ptr<RowSource>(std::move(rows));
}

}  // namespace

extern constinit const TableSpec table_finding{
    .name = "finding", .help = "what the rules found", .columns = kColumns, .open = open};

}  // namespace hotlap
