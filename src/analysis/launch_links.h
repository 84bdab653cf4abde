#pragma once
// Which call on the host launched a piece of work on a device, and inside which operator: by correlation and operator's
// id where the trace has them, else by what ran around the call. Spans come by start, so that a call is known before
// what it launched. Bounded: the last RecentById::kEntries calls and operators.
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analysis/trace_tables.h"
#include "model/span.h"

namespace hotlap {

class LaunchLinks {
 public:
  static constexpr std::size_t kThreadsMax = 4096;
  static constexpr std::size_t kDepthMax = 512;

  struct Operator {
    std::uint32_t name = 0;
    std::int64_t id = -1;  // -1: the trace has none
    std::uint32_t process = 0;
    std::uint32_t thread = 0;
    std::int64_t start_ns = 0;
    std::uint32_t detail = 0;  // of its arguments
  };
  struct Call {
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::uint32_t name = 0;
    std::uint32_t process = 0;
    std::uint32_t thread = 0;
    bool has_operator = false;
    Operator by;  // the innermost one around it
  };

  // Of any kind; those that say nothing about launches are passed over. Without an end: passed over, too.
  void add(const Span& span);
  // Of a kernel or copy. Null: its launch is not in the trace, or long gone.
  const Call* call_of(const Span& work) const { return calls_.find(work.value_a); }
  const Operator* operator_of(const Span& work) const;

 private:
  struct Frame {
    std::int64_t end_ns;
    Operator what;
  };
  const Operator* innermost(const Span& span);

  RecentById<Operator> operators_;
  RecentById<Call> calls_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Frame>> threads_;
};

}  // namespace hotlap
