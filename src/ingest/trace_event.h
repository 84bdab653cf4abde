#pragma once
// One event of the Chrome trace format ("Trace Event Format"), as every profiler of the field writes it: Kineto, the
// legacy autograd profiler, Horovod, TensorFlow, SageMaker. A view into the text: valid while that stands.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "ingest/json_scan.h"
#include "ingest/kept_arguments.h"

namespace hotlap {

inline constexpr std::int64_t kNoArgument = INT64_MIN;

struct TraceEvent {
  char phase = 0;  // 'X', 'B' …; 0: none, or none that is one letter
  json::Text name;
  std::string_view category;  // as it stands in the text
  std::string_view process;   // "pid" and "tid": a number or a text
  std::string_view thread;
  std::string_view id;        // "id", else what "id2" holds
  std::int64_t start_ns = 0;  // on the file's clock
  std::int64_t duration_ns = 0;
  bool has_start = false;
  bool has_duration = false;
  bool has_bad_duration = false;  // it is there and no number
  bool is_repaired = false;       // read leniently
  bool is_document = false;       // no event: an object with a list "traceEvents" (then it is kWrong)
  bool has_repeated_member = false;
  json::Damage damage;  // of all but its name

  // Arguments that are kept; kNoArgument: not there, or not a whole number.
  std::int64_t correlation = kNoArgument;
  std::int64_t external_id = kNoArgument;
  std::int64_t device = kNoArgument;
  std::int64_t stream = kNoArgument;
  std::int64_t bytes = kNoArgument;
  std::int64_t sequence = kNoArgument;
  std::int64_t function_id = kNoArgument;
  std::int64_t function_caller = kNoArgument;
  std::int64_t step = kNoArgument;  // number of the training step that it belongs to
  json::Text argument_name;         // "name": of processes and threads
  std::string_view arguments;       // the whole object, for counters; empty: none
  std::string_view details;         // from the first argument that KeptArguments holds to the last; empty: none
  std::uint64_t argument_keys = 0;  // a hash of them in their order, see ArgumentKeys
  std::uint32_t arguments_skipped = 0;
};

// Where the number of this argument is kept; null: it is not.
std::int64_t TraceEvent::*kept_number(std::string_view key);

// `at` stands at the event's '{' and is left behind its '}' (only by kOk). kWrong: the text there is damaged. `kept`:
// which arguments are details; null: none.
json::Scan scan_event(const char*& at, const char* end, TraceEvent& out, const KeptArguments* kept = nullptr);

// Reads what can be read of a damaged event: unescaped quotes, missing quotes and commas. `text` is the event alone
// (see find_event_end). False when there is no phase or no name, so that nothing can be made of it.
bool scan_damaged_event(std::string_view text, TraceEvent& out, const KeptArguments* kept = nullptr);

// Where the damaged event at `at` (its '{') ends: in front of the next event or of the list's ']'. Null: not in
// [at, end). `is_last`: nothing follows `end`.
const char* find_event_end(const char* at, const char* end, bool is_last);

// `at` stands at a '{' that begins an event rather than a document. kCutOff: too few characters to tell.
json::Scan begins_event(const char* at, const char* end);

// Its name as text for people, without control characters and at most `bytes_max`; counts what had to be mended at
// `lose`, a function of a counter, but not twice for one event.
template <class Lose>
std::string clean_name(const TraceEvent& event, std::size_t bytes_max, Lose&& lose) {
  std::string name;
  const bool is_sound = json::append_clean({.raw = event.name.raw.substr(0, bytes_max)}, name);
  if (event.is_repaired) {
    lose("ingest.events_repaired");
  } else if (!is_sound && !event.damage.has_bad_text) {
    lose("ingest.texts_repaired");
  }
  return strip_control(name);
}

// The members of a counter's arguments, one after the other: false at the end or at damage.
bool next_argument(std::string_view& rest, std::string_view& key, std::string_view& value);

}  // namespace hotlap
