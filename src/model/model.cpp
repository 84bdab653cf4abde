#include <array>

#include "base/check.h"
#include "base/format.h"
#include "base/text.h"
#include "model/event.h"
#include "model/finding.h"
#include "model/process.h"
#include "model/run.h"
#include "model/span.h"
#include "model/value.h"

namespace hotlap {

std::string_view to_string(MissingReason reason) {
  switch (reason) {
    case MissingReason::kNotSampled: return "not sampled";
    case MissingReason::kNotSupported: return "not supported";
    case MissingReason::kNoPermission: return "no permission";
    case MissingReason::kSourceLost: return "source lost";
    case MissingReason::kReadFailed: return "read failed";
    case MissingReason::kTimedOut: return "timed out";
    case MissingReason::kCounterReset: return "counter reset";
    case MissingReason::kNotMeasured: return "not measured";
    case MissingReason::kTooMany: return "too many series";
  }
  return "unknown reason";
}

std::string_view to_string(SpanKind kind) {
  static constexpr std::array<std::string_view, kSpanKindCount> kNames{"?",
                                                                       "step",
                                                                       "data_wait",
                                                                       "forward",
                                                                       "backward",
                                                                       "optimizer",
                                                                       "checkpoint",
                                                                       "gc",
                                                                       "compile",
                                                                       "epoch",
                                                                       "evaluation",
                                                                       "worker_batch",
                                                                       "worker_fetch",
                                                                       "worker_transform",
                                                                       "worker_collate",
                                                                       "worker_start",
                                                                       "transfer",
                                                                       "collective",
                                                                       "user",
                                                                       "initialisation",
                                                                       "hook",
                                                                       "shadow",
                                                                       "operator",
                                                                       "kernel",
                                                                       "runtime",
                                                                       "function",
                                                                       "device_annotation",
                                                                       "profile_pause",
                                                                       "device_window"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "?";
}

std::string_view to_string(ProcessRole role) {
  switch (role) {
    case ProcessRole::kOther: return "other";
    case ProcessRole::kMain: return "main";
    case ProcessRole::kRank: return "rank";
    case ProcessRole::kLoader: return "loader";
    case ProcessRole::kRecorder: return "recorder";
    case ProcessRole::kWatcher: return "watcher";
    case ProcessRole::kSupervisor: return "supervisor";
  }
  return "other";
}

std::string slot_label(const ProcessInfo& process) {
  if (!process.label.empty()) return process.label;
  switch (process.role) {
    case ProcessRole::kRank:
    case ProcessRole::kLoader: return format("{} {}", to_string(process.role), process.index);
    case ProcessRole::kOther: {
      std::string_view rest(process.command);
      std::string_view program = next_word(rest);
      if (const auto slash = program.rfind('/'); slash != std::string_view::npos) program.remove_prefix(slash + 1);
      return format("{} ({})", program.empty() ? "process" : program, process.pid);
    }
    default: return std::string(to_string(process.role));
  }
}

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::kPhase: return "phase";
    case EventKind::kClockStep: return "clock_step";
    case EventKind::kSuspend: return "suspend";
    case EventKind::kRecorderGap: return "recorder_gap";
    case EventKind::kProcessStart: return "process_start";
    case EventKind::kProcessEnd: return "process_end";
    case EventKind::kOomKill: return "oom_kill";
    case EventKind::kCpuOffline: return "cpu_offline";
    case EventKind::kCpuOnline: return "cpu_online";
    case EventKind::kMountStuck: return "mount_stuck";
    case EventKind::kIntervalChanged: return "interval_changed";
    case EventKind::kSignal: return "signal";
    case EventKind::kJobStopped: return "job_stopped";
    case EventKind::kJobContinued: return "job_continued";
    case EventKind::kNote: return "note";
    case EventKind::kTransfer: return "transfer";
    case EventKind::kGpuFound: return "gpu_found";
    case EventKind::kGpuLost: return "gpu_lost";
    case EventKind::kGpuBack: return "gpu_back";
    case EventKind::kGpuXid: return "gpu_xid";
  }
  return "?";
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::kStarting: return "starting";
    case Phase::kDownloading: return "downloading";
    case Phase::kInitialisation: return "initialisation";
    case Phase::kTraining: return "training";
    case Phase::kEvaluation: return "evaluation";
    case Phase::kFinalisation: return "finalisation";
    case Phase::kUploading: return "uploading";
  }
  return "?";
}

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kCritical: return "critical";
  }
  return "info";
}

std::string_view to_string(LostOf of) { return of == LostOf::kRun ? "run" : "steps"; }

std::string_view to_string(Certainty certainty) {
  switch (certainty) {
    case Certainty::kPossible: return "possible";
    case Certainty::kLikely: return "likely";
    case Certainty::kCertain: return "certain";
  }
  return "possible";
}

std::string_view to_string(FindingState state) {
  switch (state) {
    case FindingState::kOpen: return "open";
    case FindingState::kUpdated: return "updated";
    case FindingState::kClosed: return "closed";
  }
  return "open";
}

std::string_view to_string(Basis basis) {
  switch (basis) {
    case Basis::kMeasured: return "measured";
    case Basis::kModel: return "model";
    case Basis::kArithmetic: return "arithmetic";
    case Basis::kRuleOfThumb: return "rule of thumb";
  }
  return "rule of thumb";
}

std::string Finding::id() const {
  std::string text = rule;
  if (!where.node.empty()) text += "@" + where.node;
  if (where.rank) text += format("/rank{}", *where.rank);
  if (!where.device.empty()) text += "/" + where.device;
  if (!where.process.empty()) text += "/" + where.process;
  return text;
}

namespace {
constexpr std::string_view kCrockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kUlidLength = 26;
}  // namespace

std::string make_ulid(std::int64_t wall_ns, std::uint64_t random_high, std::uint64_t random_low) {
  // 128 bits as 26 digits of 5 bits (the first digit holds 3): time in the high 48, 16 + 64 random bits below.
  const auto ms = static_cast<std::uint64_t>(wall_ns / 1'000'000) & 0xFFFF'FFFF'FFFFU;
  std::uint64_t high = (ms << 16) | (random_high & 0xFFFFU);
  std::uint64_t low = random_low;
  std::string text(kUlidLength, '0');
  for (std::size_t i = kUlidLength; i-- > 0;) {
    text[i] = kCrockford[low & 31U];
    low = (low >> 5) | ((high & 31U) << 59);
    high >>= 5;
  }
  return text;
}

bool is_ulid(std::string_view text) {
  return text.size() == kUlidLength && text.find_first_not_of(kCrockford) == std::string_view::npos && text[0] <= '7';
}

std::string_view to_string(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning: return "running";
    case RunStatus::kFinished: return "finished";
    case RunStatus::kFailed: return "failed";
    case RunStatus::kKilled: return "killed";
    case RunStatus::kEnded: return "ended";
    case RunStatus::kUnknown: return "unknown";
  }
  return "unknown";
}

std::optional<RunStatus> run_status_from(std::string_view text) {
  for (const RunStatus s : {RunStatus::kRunning, RunStatus::kFinished, RunStatus::kFailed, RunStatus::kKilled,
                            RunStatus::kEnded, RunStatus::kUnknown}) {
    if (to_string(s) == text) return s;
  }
  return std::nullopt;
}

}  // namespace hotlap
