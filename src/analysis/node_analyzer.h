#pragma once
// The part that analyzers of a machine share: each node has its own cores, disks and GPUs, so recordings are kept whole
// and each speaks for its node; of two recordings of one node (a recorder that was started again) the longer one does.
#include <map>
#include <string>
#include <vector>

#include "analysis/analyzer.h"
#include "analysis/step_table.h"

namespace hotlap {

// `Self` gives `void snapshot_node(const std::string& node, FactTable&) const`, where node is empty in a run of one
// node, and `std::int64_t seen_ns() const`, the time that it saw.
template <class Self>
class NodeAnalyzer : public Analyzer {
 public:
  explicit NodeAnalyzer(const RunDescription& run)
      : table_(run.steps), side_(run.side), node_(run.recording == nullptr ? std::string() : run.recording->node) {}

  void merge(const Analyzer& other) final { parts_.push_back(&static_cast<const Self&>(other)); }

  void snapshot(FactTable& out) const final {
    if (parts_.empty()) {
      static_cast<const Self*>(this)->snapshot_node({}, out);
      return;
    }
    std::map<std::string, const Self*> longest;
    for (const Self* part : parts_) {
      const Self*& kept = longest[part->node_];
      if (kept == nullptr || kept->seen_ns() < part->seen_ns()) kept = part;
    }
    for (const auto& [node, part] : longest) part->snapshot_node(longest.size() > 1 ? node : std::string(), out);
  }

 protected:
  const StepTable* table_;
  const SideSeries* side_;
  std::string node_;

 private:
  std::vector<const Self*> parts_;
};

}  // namespace hotlap
