#pragma once
// The steps of every training process of a recording, or of a run, with what tells the processes apart. The engine
// keeps one for all analyzers; what they say is about the same typical steps therefore.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/step_statistics.h"
#include "model/fact.h"
#include "model/process.h"
#include "model/run.h"
#include "model/step.h"

namespace hotlap {

class StepTable {
 public:
  StepTable() = default;  // to merge others into it
  explicit StepTable(const RecordingInfo& recording);

  void on_processes(std::span<const ProcessInfo> processes);
  void on_step(const Step& step);
  // `other`: of a recording of another node, or of this one and later.
  void merge(const StepTable& other);

  struct Entry {
    Where where;             // rank only when there are several, node only when there are several
    std::uint32_t slot = 0;  // in its recording
    std::string process;     // label of its series
    const StepStatistics* steps = nullptr;
  };
  // One entry per rank (or per training process without a rank), the rank with the most steps first and then by rank.
  // Processes that did less than a twentieth of its steps (an evaluation beside the job) come last.
  std::vector<Entry> entries() const;

 private:
  struct Row {
    std::string node;
    std::uint32_t slot = 0;
    std::string process;
    StepStatistics steps;
  };
  std::string node_;
  bool is_trace_ = false;  // its steps are those that a profiler was told to look at
  std::vector<Row> rows_;  // in the order of their first step
  std::map<std::uint32_t, std::string> labels_;
};

}  // namespace hotlap
