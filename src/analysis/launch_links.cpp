#include "analysis/launch_links.h"

namespace hotlap {

void LaunchLinks::add(const Span& span) {
  if (span.duration_ns < 0) return;
  switch (span.kind) {
    case SpanKind::kOperator:
    case SpanKind::kOptimizer: {
      const Operator what{span.name, span.value_a, span.process, span.thread, span.start_ns, span.detail};
      operators_.put(span.value_a, what);
      (void)innermost(span);  // what has ended by now goes
      const auto thread = threads_.find({span.process, span.thread});
      if (thread == threads_.end() && threads_.size() >= kThreadsMax) return;
      std::vector<Frame>& frames = thread == threads_.end() ? threads_[{span.process, span.thread}] : thread->second;
      if (frames.size() < kDepthMax) frames.push_back({span.start_ns + span.duration_ns, what});
      return;
    }
    case SpanKind::kRuntime: {
      if (span.value_a < 0) return;
      Call call{span.start_ns, span.duration_ns, span.name, span.process, span.thread, false, {}};
      const Operator* by = operators_.find(span.value_b);
      if (by == nullptr) by = innermost(span);
      if (by != nullptr) {
        call.has_operator = true;
        call.by = *by;
      }
      calls_.put(span.value_a, call);
      return;
    }
    default: return;
  }
}

const LaunchLinks::Operator* LaunchLinks::innermost(const Span& span) {
  const auto thread = threads_.find({span.process, span.thread});
  if (thread == threads_.end()) return nullptr;
  std::vector<Frame>& frames = thread->second;
  while (!frames.empty() && frames.back().end_ns <= span.start_ns) frames.pop_back();
  return frames.empty() ? nullptr : &frames.back().what;
}

const LaunchLinks::Operator* LaunchLinks::operator_of(const Span& work) const {
  // Of a copy the second value is its size.
  if (work.kind == SpanKind::kKernel) {
    if (const Operator* const found = operators_.find(work.value_b)) return found;
  }
  const Call* const call = call_of(work);
  return call != nullptr && call->has_operator ? &call->by : nullptr;
}

}  // namespace hotlap
