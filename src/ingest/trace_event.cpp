#include "ingest/trace_event.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ingest/argument_keys.h"

namespace hotlap {
namespace {

using json::Doubts;
using json::Scan;
using json::skip_space;
using json::Text;

// key == text, for a text whose length the compiler knows: two loads instead of a call.
template <std::size_t n>
bool is(std::string_view key, const char (&text)[n]) {
  return key.size() == n - 1 && std::memcmp(key.data(), text, n - 1) == 0;
}

// What a scan has met on its way.
struct Met {
  Doubts doubts;
  std::uint32_t members = 0;  // a bit for each known one
  bool is_repeated = false;

  void member(std::uint32_t bit) {
    is_repeated |= (members & bit) != 0;
    members |= bit;
  }
};

constexpr std::array<std::string_view, 17> kEventKeys{"ph",  "cat",  "name",  "pid",     "tid",  "ts",
                                                      "dur", "args", "id",    "id2",     "s",    "bp",
                                                      "tts", "sf",   "cname", "bind_id", "scope"};

bool is_event_key(std::string_view key) { return std::ranges::find(kEventKeys, key) != kEventKeys.end(); }

// `at` stands at a quote: whether `"key"` and a colon follow. kCutOff: the text ends before that is clear.
Scan is_event_member(const char* at, const char* end) {
  constexpr std::ptrdiff_t kKeyMax = 8;
  const char* const limit = end - at > kKeyMax + 2 ? at + kKeyMax + 2 : end;
  const char* const quote = std::find(at + 1, limit, '"');
  if (quote == limit) return limit == end ? Scan::kCutOff : Scan::kWrong;
  if (!is_event_key({at + 1, static_cast<std::size_t>(quote - at - 1)})) return Scan::kWrong;
  const char* const colon = skip_space(quote + 1, end);
  if (colon == end) return Scan::kCutOff;
  return *colon == ':' ? Scan::kOk : Scan::kWrong;
}

// The same without quotes, or with one of them missing: `pid": 1`.
Scan is_bare_member(const char* at, const char* end) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '2' || c == '_'; };
  const char* const stop = std::find_if_not(at, end, is_letter);
  if (stop == end) return Scan::kCutOff;
  if (!is_event_key({at, static_cast<std::size_t>(stop - at)})) return Scan::kWrong;
  const char* const colon = skip_space(*stop == '"' ? stop + 1 : stop, end);
  if (colon == end) return Scan::kCutOff;
  return *colon == ':' ? Scan::kOk : Scan::kWrong;
}

// A text or a token: what stands there, without quotes. Of a time, a token that is no number is the caller's to count.
Scan scan_plain(const char*& at, const char* end, std::string_view& out, Doubts& doubts, bool is_time = false) {
  if (at != end && *at == '"') {
    ++at;
    Text text;
    const Scan scanned = json::scan_text(at, end, text);
    if (scanned == Scan::kOk) out = text.raw;
    doubts.in_text |= !text.is_plain();
    return scanned;
  }
  const char* const begin = at;
  const bool is_nest = at != end && (*at == '{' || *at == '[');
  Doubts found;
  const Scan scanned = json::skip_value(at, end, found);
  if (scanned != Scan::kOk || is_nest) return scanned;
  out = {begin, static_cast<std::size_t>(at - begin)};
  doubts.in_number |= found.in_number && !is_time;
  return scanned;
}

bool is_null(std::string_view token) { return token == "null"; }

Scan scan_number_argument(const char*& at, const char* end, std::int64_t& out, Met& met) {
  met.is_repeated |= out != kNoArgument;
  constexpr std::ptrdiff_t kDigitsMax = 18;  // fit int64
  const char* p = at;
  std::int64_t number = 0;
  for (; p != end && *p >= '0' && *p <= '9' && p - at < kDigitsMax; ++p) number = number * 10 + (*p - '0');
  if (p != at && p != end && (*p == ',' || *p == '}' || json::is_space(*p))) {
    out = number;
    at = p;
    return Scan::kOk;
  }
  std::string_view token;
  const Scan scanned = scan_plain(at, end, token, met.doubts);
  if (scanned == Scan::kOk && !token.empty()) out = json::whole_number(token).value_or(kNoArgument);
  return scanned;
}

// `at` stands behind a '{': reads `"key":` and calls `take(key)` with `at` at the value, until the '}'.
template <class Take>
Scan scan_members(const char*& at, const char* end, Doubts& doubts, Take&& take) {
  while (true) {
    at = skip_space(at, end);
    if (at == end) return Scan::kCutOff;
    const char c = *at;
    if (c == ',') {  // also one too many, as hand-made files have it
      ++at;
      continue;
    }
    if (c == '}') {
      ++at;
      return Scan::kOk;
    }
    if (c != '"') return Scan::kWrong;
    ++at;
    Text key;
    if (json::scan_text(at, end, key) != Scan::kOk) return Scan::kCutOff;
    doubts.in_text |= !key.is_plain();
    at = skip_space(at, end);
    if (at == end) return Scan::kCutOff;
    if (*at != ':') return Scan::kWrong;
    at = skip_space(at + 1, end);
    if (at == end) return Scan::kCutOff;
    if (const Scan taken = take(key.raw); taken != Scan::kOk) return taken;
    // What follows a value is a comma or the end: anything else says that the value was misread.
    at = skip_space(at, end);
    if (at == end) return Scan::kCutOff;
    if (*at != ',' && *at != '}') return Scan::kWrong;
  }
}

Scan scan_arguments(const char*& at, const char* end, TraceEvent& out, Met& met, const KeptArguments* kept_arguments) {
  const char* const begin = at;
  if (*at != '{') return json::skip_value(at, end, met.doubts);  // a list, where an object belongs: seen in the wild
  ++at;
  std::uint64_t keys = 0;
  const char* details = nullptr;
  const char* details_end = nullptr;
  const Scan scanned = scan_members(at, end, met.doubts, [&](std::string_view key) {
    keys = with_key(keys, key);
    if (const auto kept = kept_number(key); kept != nullptr) return scan_number_argument(at, end, out.*kept, met);
    if (is(key, "name") && *at == '"') {
      ++at;
      const Scan text = json::scan_text(at, end, out.argument_name);
      met.doubts.in_text |= !out.argument_name.is_plain();
      return text;
    }
    if (kept_arguments == nullptr || !kept_arguments->holds(key)) {
      ++out.arguments_skipped;
      return json::skip_value(at, end, met.doubts);
    }
    if (details == nullptr) details = key.data() - 1;
    const Scan skipped = json::skip_value(at, end, met.doubts);
    details_end = at;
    return skipped;
  });
  if (scanned != Scan::kOk) return scanned;
  out.arguments = {begin, static_cast<std::size_t>(at - begin)};
  if (details != nullptr) out.details = {details, static_cast<std::size_t>(details_end - details)};
  out.argument_keys = keys;
  return scanned;
}

void set_start(std::string_view number, TraceEvent& out) {
  const auto ns = json::nanoseconds_of_us(number);
  out.has_start = ns.has_value();
  out.start_ns = ns.value_or(0);
}

void set_duration(std::string_view number, TraceEvent& out) {
  const auto ns = json::nanoseconds_of_us(number);
  out.has_duration = ns.has_value();
  out.has_bad_duration = !ns && !is_null(number);
  out.duration_ns = ns.value_or(0);
}

void set_phase(std::string_view text, TraceEvent& out) { out.phase = text.size() == 1 ? text[0] : '\0'; }

// "id2": {"local": "0x1"} or {"global": …}
void set_id2(std::string_view object, TraceEvent& out) {
  std::string_view key;
  std::string_view value;
  if (next_argument(object, key, value)) out.id = value;
}

enum Member : std::uint32_t {
  kPhase = 1U << 0U,
  kTime = 1U << 1U,
  kId = 1U << 2U,
  kProcess = 1U << 3U,
  kThread = 1U << 4U,
  kCategory = 1U << 5U,
  kDuration = 1U << 6U,
  kId2 = 1U << 7U,
  kName = 1U << 8U,
  kArguments = 1U << 9U,
};

// The known members of an event but "args" and "name".
Scan scan_member(std::string_view key, const char*& at, const char* end, TraceEvent& out, Met& met) {
  std::string_view token;
  switch (key.size()) {
    case 2: {
      if (!is(key, "ph") && !is(key, "ts") && !is(key, "id")) break;
      const bool is_time = key[0] == 't';
      const Scan scanned = scan_plain(at, end, token, met.doubts, is_time);
      if (scanned != Scan::kOk) return scanned;
      if (is_time) {
        met.member(kTime);
        set_start(token, out);
      } else if (key[0] == 'p') {
        met.member(kPhase);
        set_phase(token, out);
      } else {
        met.member(kId);
        out.id = token;
      }
      return scanned;
    }
    case 3:
      if (is(key, "pid")) {
        met.member(kProcess);
        return scan_plain(at, end, out.process, met.doubts);
      }
      if (is(key, "tid")) {
        met.member(kThread);
        return scan_plain(at, end, out.thread, met.doubts);
      }
      if (is(key, "cat")) {
        met.member(kCategory);
        return scan_plain(at, end, out.category, met.doubts);
      }
      if (is(key, "dur")) {
        met.member(kDuration);
        const Scan scanned = scan_plain(at, end, token, met.doubts, true);
        if (scanned == Scan::kOk) set_duration(token, out);
        return scanned;
      }
      if (is(key, "id2")) {
        met.member(kId2);
        const char* const begin = at;
        const Scan scanned = json::skip_value(at, end, met.doubts);
        if (scanned == Scan::kOk && *begin == '{') set_id2({begin, static_cast<std::size_t>(at - begin)}, out);
        return scanned;
      }
      break;
    case 11:
      if (is(key, "traceEvents") && *at == '[') {
        out.is_document = true;
        return Scan::kWrong;
      }
      break;
    default: break;
  }
  return json::skip_value(at, end, met.doubts);
}

// Nothing but blanks stand between the line's begin and `at`; `begin` is no line's.
bool begins_line(const char* at, const char* begin) {
  while (at != begin && (at[-1] == ' ' || at[-1] == '\t')) --at;
  return at != begin && at[-1] == '\n';
}

// In a text of `event` a line ends and another event begins: the writer broke off there.
bool is_broken_off(std::string_view event) {
  const char* const begin = event.data();
  const char* const end = begin + event.size();
  for (const char* brace = std::find(begin + 1, end, '{'); brace != end; brace = std::find(brace + 1, end, '{')) {
    const char* before = brace - 1;
    while (before != begin && json::is_space(*before)) --before;
    const bool is_value = *before == ':' || *before == '[' || *before == ',';
    if (!is_value && begins_line(brace, begin) && begins_event(brace, end) == Scan::kOk) return true;
  }
  return false;
}

struct TextEnd {
  const char* end = nullptr;   // null: none
  const char* next = nullptr;  // behind its quote, where it has one
};

// Where a damaged text that begins at `at` ends: at the first quote behind which the event goes on or ends, or, where
// its quote is missing, in front of the comma and the next member.
TextEnd find_text_end(const char* at, const char* end) {
  const char* const begin = at;
  for (const char* quote = std::find(at, end, '"'); quote != end; quote = std::find(quote + 1, end, '"')) {
    const char* before = quote;
    while (before != begin && json::is_space(before[-1])) --before;
    if (before != begin && before[-1] == ',' && is_event_member(quote, end) == Scan::kOk) return {before - 1, before};
    const char* next = skip_space(quote + 1, end);
    if (next == end) return {quote, quote + 1};
    if (*next == '"' && is_event_member(next, end) == Scan::kOk) return {quote, quote + 1};  // a comma is missing
    if (*next == '}') {
      next = skip_space(next + 1, end);
      if (next == end || *next == ',' || *next == ']' || *next == '}') return {quote, quote + 1};
    } else if (*next == ',') {
      next = skip_space(next + 1, end);
      if (next == end) continue;
      const Scan follows = *next == '"' ? is_event_member(next, end) : is_bare_member(next, end);
      if (follows == Scan::kOk) return {quote, quote + 1};
    }
  }
  return {};
}

// The next member of an event at or behind `at`, at its quote or, without one, at its first letter; null: none.
const char* find_member(const char* at, const char* end) {
  const auto is_stop = [](char c) { return c == '"' || c == ',' || c == '{'; };
  for (at = std::find_if(at, end, is_stop); at != end; at = std::find_if(at + 1, end, is_stop)) {
    if (*at == '"') {
      if (is_event_member(at, end) == Scan::kOk) return at;
    } else if (const char* const bare = skip_space(at + 1, end); is_bare_member(bare, end) == Scan::kOk) {
      return bare;
    }
  }
  return nullptr;
}

Scan scan_damaged_text(const char*& at, const char* end, Text& out) {
  const char* const begin = at + 1;
  const TextEnd found = find_text_end(begin, end);
  if (found.end == nullptr) return Scan::kWrong;
  out.raw = {begin, static_cast<std::size_t>(found.end - begin)};
  out.has_escape = true;  // whatever is in it is cleaned
  at = found.next;
  return Scan::kOk;
}

// Looks closer at an event that was scanned and gave doubts; its name is its reader's to clean.
json::Damage damage_of(std::string_view text, const Text& name) {
  const char* const begin = text.data();
  const bool has_name = name.raw.data() > begin && name.raw.data()[-1] == '"';
  if (!has_name) return json::damage_in(text);
  const char* const behind = name.raw.data() + name.raw.size() + 1;
  json::Damage damage = json::damage_in({begin, static_cast<std::size_t>(name.raw.data() - 1 - begin)});
  const json::Damage rest = json::damage_in({behind, static_cast<std::size_t>(begin + text.size() - behind)});
  damage.has_bad_text |= rest.has_bad_text;
  damage.has_bad_number |= rest.has_bad_number;
  damage.has_wide_number |= rest.has_wide_number;
  return damage;
}

}  // namespace

std::int64_t TraceEvent::*kept_number(std::string_view key) {
  switch (key.size()) {
    case 4: return is(key, "step") || is(key, "Step") ? &TraceEvent::step : nullptr;
    case 5: return is(key, "bytes") || is(key, "Bytes") ? &TraceEvent::bytes : nullptr;
    case 6:
      if (is(key, "stream")) return &TraceEvent::stream;
      return is(key, "device") || is(key, "Device") ? &TraceEvent::device : nullptr;
    case 8: return is(key, "step_num") ? &TraceEvent::step : nullptr;
    case 9:
      if (is(key, "Python id")) return &TraceEvent::function_id;
      return is(key, "iteration") || is(key, "Iteration") ? &TraceEvent::step : nullptr;
    case 11:
      if (is(key, "External id") || is(key, "external id")) return &TraceEvent::external_id;
      if (is(key, "global_step")) return &TraceEvent::step;
      return is(key, "correlation") ? &TraceEvent::correlation : nullptr;
    case 15: return is(key, "Sequence number") ? &TraceEvent::sequence : nullptr;
    case 16: return is(key, "Python parent id") ? &TraceEvent::function_caller : nullptr;
    default: return nullptr;
  }
}

Scan scan_event(const char*& at, const char* end, TraceEvent& out, const KeptArguments* kept) {
  const char* const begin = at;
  const char* p = at + 1;
  Met met;
  const Scan scanned = scan_members(p, end, met.doubts, [&](std::string_view key) {
    if (is(key, "name")) {
      met.member(kName);
      if (*p == '"') {
        ++p;
        return json::scan_text(p, end, out.name);
      }
      return scan_plain(p, end, out.name.raw, met.doubts);
    }
    if (is(key, "args")) {
      met.member(kArguments);
      return scan_arguments(p, end, out, met, kept);
    }
    return scan_member(key, p, end, out, met);
  });
  if (scanned != Scan::kOk) return scanned;
  const std::string_view text(begin, static_cast<std::size_t>(p - begin));
  out.has_repeated_member = met.is_repeated;
  if (met.doubts.any()) out.damage = damage_of(text, out.name);
  if ((out.name.has_control || out.damage.has_bad_text) && is_broken_off(text)) return Scan::kWrong;
  at = p;
  return scanned;
}

bool scan_damaged_event(std::string_view text, TraceEvent& out, const KeptArguments* kept) {
  out = TraceEvent{};
  out.is_repaired = true;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool has_arguments = false;  // what follows them may be theirs: it must not take the event's own place
  Met ignored;
  while ((at = find_member(at, end)) != nullptr) {
    const char* const key_begin = *at == '"' ? at + 1 : at;
    const char* const colon = std::find(key_begin, end, ':');
    const char* key_end = colon;
    while (key_end != key_begin && (json::is_space(key_end[-1]) || key_end[-1] == '"')) --key_end;
    const std::string_view key(key_begin, static_cast<std::size_t>(key_end - key_begin));
    const char* const value = skip_space(colon + 1, end);
    at = colon + 1;
    if (value == end) break;
    if (key == "args") {
      // Arguments that are whole are taken; of others nothing is.
      TraceEvent sound = out;
      const char* p = value;
      has_arguments = true;
      if (scan_arguments(p, end, sound, ignored, kept) != Scan::kOk) continue;
      out = sound;
      at = p;
      has_arguments = false;
    } else if (key == "name") {
      if (has_arguments || !out.name.raw.empty()) continue;
      const char* p = value;
      if (*p == '"' && scan_damaged_text(p, end, out.name) == Scan::kOk) at = p;
    } else {
      TraceEvent tried = out;
      const char* p = value;
      if (has_arguments && key != "ph" && key != "ts") continue;
      if (scan_member(key, p, end, tried, ignored) != Scan::kOk) continue;
      out = tried;
      at = p;
    }
  }
  return out.phase != 0 && !out.name.raw.empty();
}

const char* find_event_end(const char* at, const char* end, bool is_last) {
  const auto is_stop = [](char c) { return c == '{' || c == ']'; };
  for (const char* stop = std::find_if(at + 1, end, is_stop); stop != end;
       stop = std::find_if(stop + 1, end, is_stop)) {
    const char* before = stop - 1;
    while (before != at && json::is_space(*before)) --before;
    if (*stop == '{') {
      // Behind a colon stand arguments; behind a comma, or where one is missing, the next event, and also behind zeros,
      // which a writer leaves that died. A list that begins a line is another document.
      const bool is_list = *before == '[' && before != at && before[-1] == '\n';
      if (begins_line(stop, at) && *before != '[' && *before != ':' && begins_event(stop, end) == Scan::kOk)
        return stop;
      if (*before != ',' && *before != '}' && !is_list && static_cast<unsigned char>(*before) >= 0x20) continue;
      const Scan begins = begins_event(stop, end);
      if (begins == Scan::kOk) return stop;
      if (begins == Scan::kCutOff && !is_last) return nullptr;
    } else if (*before == '}' || *before == ',') {
      const char* const after = skip_space(stop + 1, end);
      if (after == end ? is_last : *after == '}') return stop;
      if (after == end) return nullptr;
      if (*after != ',') continue;
      const char* const member = skip_space(after + 1, end);
      if (member == end) return is_last ? stop : nullptr;
      // A list among the arguments has such an end, too: then a member of the event follows.
      if (*member != '"') continue;
      const Scan follows = is_event_member(member, end);
      if (follows == Scan::kWrong) return stop;
      if (follows == Scan::kCutOff && !is_last) return nullptr;
    }
  }
  return is_last ? end : nullptr;
}

Scan begins_event(const char* at, const char* end) {
  const char* const first = skip_space(at + 1, end);
  if (first == end) return Scan::kCutOff;
  if (*first == '}') return Scan::kOk;
  return *first == '"' ? is_event_member(first, end) : Scan::kWrong;
}

bool next_argument(std::string_view& rest, std::string_view& key, std::string_view& value) {
  const char* at = rest.data();
  const char* const end = at + rest.size();
  while (at != end && (json::is_space(*at) || *at == '{' || *at == ',')) ++at;
  if (at == end || *at != '"') return false;
  ++at;
  Text text;
  if (json::scan_text(at, end, text) != Scan::kOk) return false;
  key = text.raw;
  at = skip_space(at, end);
  if (at == end || *at != ':') return false;
  at = skip_space(at + 1, end);
  value = {};
  Doubts ignored;
  if (scan_plain(at, end, value, ignored) != Scan::kOk) return false;
  rest = {at, static_cast<std::size_t>(end - at)};
  return true;
}

}  // namespace hotlap
