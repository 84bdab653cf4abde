#pragma once
// The fields of DCGM, as the metrics that the collector `nvidia` records: one table for what dcgmi prints and for what
// its exporter serves.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ingest/importer.h"
#include "model/nvidia_metrics.h"
#include "model/value.h"

namespace hotlap {

struct DcgmField {
  std::string_view name;    // "DCGM_FI_DEV_GPU_UTIL"
  std::string_view column;  // of `dcgmi dmon`: "GPUTL"; empty: not known
  NvidiaMetric metric;
  double factor = 1;  // to the metric's unit
};

// Null: it is none of the metrics.
const DcgmField* find_dcgm_field(std::string_view name_or_column);

// Gives readings of one GPU after the other to a sink. What is no metric of ours is kept as "dcgm.<name>". Confined to
// one thread; bounded by what the sink takes.
class DcgmReadings {
 public:
  explicit DcgmReadings(ImportSink& out) : out_(out) {}

  // `instance`: "gpu0", "gpu0/mig1". `told`: as printed; nothing: there is none.
  void take(std::string_view name, const std::string& instance, std::int64_t t_ns, std::optional<double> told);

 private:
  static constexpr std::size_t kGpusMax = 4096;
  // Parts of the memory of one GPU at one time: together they are all of it.
  struct Memory {
    std::int64_t t_ns = INT64_MIN;
    std::optional<double> used, free, reserved;
    bool has_total = false;
  };
  void take_memory(NvidiaMetric metric, const std::string& instance, std::int64_t t_ns, double bytes);
  void take_xid(const std::string& instance, std::int64_t t_ns, double code);

  ImportSink& out_;
  std::map<std::string, Memory> memory_;
  std::map<std::string, double> xids_;
};

}  // namespace hotlap
