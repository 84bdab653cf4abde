#pragma once
// What a program printed and an importer understood, as notes of a run: their first word says what happened, the others
// are "key=value" and have no blanks; the event's value is the rank that printed it, -1: not told.
#include <string_view>

#include "model/event.h"

namespace hotlap {

// ask, total, free, allocated, gap, process in bytes; gpu
inline constexpr std::string_view kOutOfMemoryNote = "out_of_memory";
// Horovod: tensor; ready or missing: "0,1,2"
inline constexpr std::string_view kStallNote = "collective_stall";
// NCCL's watchdog: group, seq, op, numel_in, numel_out, ran_ms, timeout_ms, enqueued, completed
inline constexpr std::string_view kTimeoutNote = "collective_timeout";
// nccl: socket, ib, libfabric, p2p, shm; used or found: 1 or 0; device
inline constexpr std::string_view kTransportNote = "transport";
// A checkpoint was begun or written.
inline constexpr std::string_view kSavedNote = "checkpoint_saved";
// The evaluation of the model was begun.
inline constexpr std::string_view kEvaluationNote = "evaluation_begun";
// The last error of a log behind whose steps none comes. kind: worker_killed, shared_memory, gpu, other; text, the last
// word: the message, blanks and all
inline constexpr std::string_view kFailureNote = "failure";
// The job was started again from a checkpoint: steps that it did anew; lost_ms: their time, and that until it went on.
inline constexpr std::string_view kRestartNote = "restart";
// For `ms` nothing was printed between two steps, and nothing says why; step: the one before.
inline constexpr std::string_view kSilenceNote = "silence";

// The kernel's log. what: oom_kill (process, pid, rss and limit in bytes, by: group or host, group), crash (process,
// pid, fault, module), mount_stuck and mount_back (kind, server), disk_error (device), hot (device), memory_error
// (device, grave), machine_check (grave), hung (process, pid, seconds). boot_s: the time since the machine was started,
// where that is all that is known of when.
inline constexpr std::string_view kKernelNote = "kernel";

inline bool is_note_of(const Event& event, std::string_view what) {
  return event.kind == EventKind::kNote && event.text.starts_with(what) &&
         (event.text.size() == what.size() || event.text[what.size()] == ' ');
}

// Empty: there is no such word.
inline std::string_view message_word(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
      return word.substr(key.size() + 1);
    if (end == std::string_view::npos) break;
    text = text.substr(end + 1);
  }
  return {};
}

}  // namespace hotlap
