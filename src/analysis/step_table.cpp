#include "analysis/step_table.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "model/trace_source.h"

namespace hotlap {

StepTable::StepTable(const RecordingInfo& recording) : node_(recording.node), is_trace_(is_of_trace(recording)) {}

void StepTable::on_processes(std::span<const ProcessInfo> processes) {
  for (const ProcessInfo& process : processes) labels_[process.slot] = slot_label(process);
  for (Row& row : rows_) {
    if (const auto found = labels_.find(row.slot); row.node == node_ && found != labels_.end())
      row.process = found->second;
  }
}

void StepTable::on_step(const Step& step) {
  auto found =
      std::ranges::find_if(rows_, [&](const Row& row) { return row.slot == step.process && row.node == node_; });
  if (found == rows_.end()) {
    const auto label = labels_.find(step.process);
    rows_.push_back({node_, step.process, label == labels_.end() ? std::string{} : label->second, {}});
    found = rows_.end() - 1;
    // Where no step is marked the profiler was told of none: its first ones may be the program's first ones.
    if (is_trace_) found->steps.set_chosen(step.is_inferred);
  }
  found->steps.add(step);
}

void StepTable::merge(const StepTable& other) {
  for (const Row& row : other.rows_) {
    // Its recorder was started again: the same process goes on.
    const auto before = std::ranges::find_if(rows_, [&](const Row& own) {
      return own.node == row.node && own.process == row.process && own.steps.rank() == row.steps.rank() &&
             own.steps.end_ns() <= row.steps.begin_ns();
    });
    if (before == rows_.end()) {
      rows_.push_back(row);
    } else {
      before->steps.append(row.steps);
    }
  }
}

std::vector<StepTable::Entry> StepTable::entries() const {
  // Two that cannot be told apart and do not follow each other: the longer one speaks.
  std::map<std::tuple<std::string, std::int32_t, std::string>, const Row*> best;
  std::set<std::string> nodes;
  std::set<std::int32_t> ranks;
  std::uint64_t most = 0;
  for (const Row& row : rows_) {
    nodes.insert(row.node);
    ranks.insert(row.steps.rank());
    most = std::max(most, row.steps.count());
    const Row*& kept = best[{row.node, row.steps.rank(), row.process}];
    if (kept == nullptr || kept->steps.count() < row.steps.count()) kept = &row;
  }
  std::vector<Entry> out;
  for (const auto& [key, row] : best) {
    Entry entry{.where = {}, .slot = row->slot, .process = row->process, .steps = &row->steps};
    if (nodes.size() > 1) entry.where.node = row->node;
    if (ranks.size() > 1 && row->steps.rank() >= 0) entry.where.rank = row->steps.rank();
    out.push_back(std::move(entry));
  }
  std::ranges::stable_sort(out, {}, [&](const Entry& entry) {
    return std::tuple(entry.steps->count() * 20 < most, entry.steps->rank(),
                      -static_cast<std::int64_t>(entry.steps->count()));
  });
  return out;
}

}  // namespace hotlap
