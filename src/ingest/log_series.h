#pragma once
// The figures of a log's lines as series: losses, rates, and whatever else has a name.
#include <cstdint>
#include <set>
#include <string>

#include "ingest/importer.h"
#include "ingest/log_line.h"

namespace hotlap {

// Of one rank. State is bounded. Confined to one thread.
class LogSeries {
 public:
  LogSeries(ImportSink& out, std::int32_t rank) : out_(out), rank_(rank) {}
  void give(const LogLine& line, std::int64_t now_ns);

 private:
  void give_one(const MetricDesc& metric, double value);

  ImportSink& out_;
  std::int32_t rank_;
  std::int64_t sample_ns_ = INT64_MIN / 2;
  std::set<std::string> other_names_;
};

}  // namespace hotlap
