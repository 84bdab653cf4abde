#include "collect/process_files.h"

#include "base/format.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

ProcessState state_from(std::string_view letter) {
  switch (letter.empty() ? '?' : letter.front()) {
    case 'R': return ProcessState::kRunning;
    case 'S': return ProcessState::kSleeping;
    case 'D': return ProcessState::kDiskSleep;
    case 'T': return ProcessState::kStopped;
    case 't': return ProcessState::kTraced;
    case 'Z': return ProcessState::kZombie;
    case 'I': return ProcessState::kIdle;
    default: return ProcessState::kUnknown;
  }
}

void skip_words(TextCursor& cursor, int count) {
  for (int i = 0; i < count; ++i) (void)cursor.word();
}

// The number after `key` at the start of one of the lines from `cursor` on, which moves to that line.
std::optional<std::uint64_t> keyed_number(TextCursor& cursor, std::string_view key) {
  for (; !cursor.at_end(); cursor.skip_line()) {
    std::uint64_t number = 0;
    if (cursor.accept(key)) return cursor.number(number) ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  TextCursor cursor(text.substr(name_end + 1));
  ProcessStat stat;
  stat.state = state_from(cursor.word());
  std::uint64_t unused = 0;
  std::uint64_t parent = 0;
  bool ok = cursor.number(parent);
  stat.parent_pid = static_cast<std::int32_t>(parent);
  skip_words(cursor, 5);  // pgrp session tty tpgid flags
  ok = ok && cursor.number(unused) && cursor.number(unused) && cursor.number(stat.major_faults) &&
       cursor.number(unused) && cursor.number(stat.user_ticks) && cursor.number(stat.system_ticks);
  skip_words(cursor, 4);  // cutime cstime priority nice: may be negative
  ok = ok && cursor.number(stat.threads);
  skip_words(cursor, 1);  // itrealvalue
  ok = ok && cursor.number(stat.start_ticks) && cursor.number(unused) && cursor.number(stat.rss_pages);
  return ok ? std::optional(stat) : std::nullopt;
}

std::optional<ProcessStat> read_process_stat(const Host& host, std::int32_t pid) {
  const Result<std::string> text = host.read_text(format("/proc/{}/stat", pid));
  return text.ok() ? parse_process_stat(*text) : std::nullopt;
}

std::optional<ProcessIo> parse_process_io(std::string_view text) {
  TextCursor cursor(text);
  const auto read_chars = keyed_number(cursor, "rchar:");
  const auto written_chars = keyed_number(cursor, "wchar:");
  const auto read_bytes = keyed_number(cursor, "read_bytes:");
  const auto written_bytes = keyed_number(cursor, "write_bytes:");
  if (!read_chars || !written_chars || !read_bytes || !written_bytes) return std::nullopt;
  return ProcessIo{*read_chars, *written_chars, *read_bytes, *written_bytes};
}

std::optional<ContextSwitches> parse_context_switches(std::string_view text) {
  // They are the last two lines of some fifty.
  const std::size_t begin = text.rfind("\nvoluntary_ctxt_switches:");
  if (begin == std::string_view::npos) return std::nullopt;
  TextCursor cursor(text.substr(begin + 1));
  const auto voluntary = keyed_number(cursor, "voluntary_ctxt_switches:");
  const auto involuntary = keyed_number(cursor, "nonvoluntary_ctxt_switches:");
  if (!voluntary || !involuntary) return std::nullopt;
  return ContextSwitches{*voluntary, *involuntary};
}

std::optional<SchedulerTimes> parse_schedstat(std::string_view text) {
  TextCursor cursor(text);
  SchedulerTimes times;
  if (!cursor.number(times.run_ns) || !cursor.number(times.wait_ns)) return std::nullopt;
  return times;
}

std::optional<std::uint64_t> parse_pss_kib(std::string_view text) {
  TextCursor cursor(text);
  return keyed_number(cursor, "Pss:");
}

}  // namespace hotlap
