#pragma once
// Series of processes are named after their place in the job ("loader 3", "rank 1", "main"): whoever imports such
// series by name tells of the processes behind them, so that they count as what they are. Bounded; confined to one
// thread.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/text.h"
#include "ingest/importer.h"

namespace hotlap {

class SeriesProcesses {
 public:
  explicit SeriesProcesses(ImportSink& out) : out_(out) {}

  // "process.threads" of "loader 3", "allocator.reserved.bytes" of "main/cuda:0".
  void see(std::string_view metric, std::string_view instance) {
    if (!metric.starts_with("process.") && !metric.starts_with("allocator.")) return;
    const std::string_view label = instance.substr(0, instance.find('/'));
    if (label.empty() || known_.size() == kLabelsMax || known_.contains(label)) return;
    known_.emplace(label);
    ProcessInfo process{.label = std::string(label)};
    if (label == "main") {
      process.role = ProcessRole::kMain;
    } else if (const auto worker = number_behind(label, "loader ")) {
      process.role = ProcessRole::kLoader;
      process.index = *worker;
    } else if (const auto rank = number_behind(label, "rank ")) {
      process.role = ProcessRole::kRank;
      process.index = *rank;
    } else {
      return;
    }
    out_.process(process);
  }

 private:
  static constexpr std::size_t kLabelsMax = 8192;

  static std::optional<std::int32_t> number_behind(std::string_view label, std::string_view begin) {
    if (!label.starts_with(begin)) return std::nullopt;
    const auto number = parse_u64(label.substr(begin.size()));
    return number && *number <= INT32_MAX ? std::optional(static_cast<std::int32_t>(*number)) : std::nullopt;
  }

  ImportSink& out_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace hotlap
