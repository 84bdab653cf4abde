#pragma once
// What the name of a trace's file says of who wrote it. What the file itself says goes before.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hotlap {

struct TraceFileName {
  std::string worker;  // "node-7.example_1234" of "node-7.example_1234.1676543210.pt.trace.json.gz"
  std::optional<std::int32_t> rank;
  std::optional<std::int32_t> pid;  // of PyTorch's default name, HOST_PID.TIME.pt.trace.json
};

// "rank-3.Jul_15_10_52_41.1074.pt.trace.json", "worker0.1623143089861.pt.trace.json", "trace_rank_3.json.gz",
// "pytorch-rank7_step20.json", "host_123.1676.pt.trace.json". A number in a host's name is no rank.
TraceFileName read_trace_file_name(std::string_view file_name);

}  // namespace hotlap
