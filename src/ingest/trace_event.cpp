#include "ingest/trace_event.h"

#include <algorithm>
#include <array>

namespace hotlap {
namespace {

using json::Scan;
using json::skip_space;
using json::Text;

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

// A text or a token: what stands there, without quotes.
Scan scan_plain(const char*& at, const char* end, std::string_view& out) {
  if (at != end && *at == '"') {
    ++at;
    Text text;
    const Scan scanned = json::scan_text(at, end, text);
    if (scanned == Scan::kOk) out = text.raw;
    return scanned;
  }
  if (at != end && (*at == '{' || *at == '[')) return json::skip_value(at, end);
  return json::scan_token(at, end, out);
}

bool is_null(std::string_view token) { return token == "null"; }

Scan scan_number_argument(const char*& at, const char* end, std::int64_t& out) {
  std::string_view token;
  const Scan scanned = scan_plain(at, end, token);
  if (scanned == Scan::kOk && !token.empty()) out = json::whole_number(token).value_or(kNoArgument);
  return scanned;
}

std::int64_t* kept_argument(std::string_view key, TraceEvent& out) {
  switch (key.size()) {
    case 5: return key == "bytes" || key == "Bytes" ? &out.bytes : nullptr;
    case 6:
      if (key == "stream") return &out.stream;
      return key == "device" || key == "Device" ? &out.device : nullptr;
    case 9: return key == "Python id" ? &out.function_id : nullptr;
    case 11:
      if (key == "External id" || key == "external id") return &out.external_id;
      return key == "correlation" ? &out.correlation : nullptr;
    case 15: return key == "Sequence number" ? &out.sequence : nullptr;
    case 16: return key == "Python parent id" ? &out.function_caller : nullptr;
    default: return nullptr;
  }
}

// `at` stands behind a '{': reads `"key":` and calls `take(key)` with `at` at the value, until the '}'.
template <class Take>
Scan scan_members(const char*& at, const char* end, Take&& take) {
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
    const char* const key_begin = ++at;
    while (at != end && *at != '"') at += *at == '\\' && end - at > 1 ? 2 : 1;
    if (at == end) return Scan::kCutOff;
    const std::string_view key(key_begin, static_cast<std::size_t>(at - key_begin));
    at = skip_space(at + 1, end);
    if (at == end) return Scan::kCutOff;
    if (*at != ':') return Scan::kWrong;
    at = skip_space(at + 1, end);
    if (at == end) return Scan::kCutOff;
    if (const Scan taken = take(key); taken != Scan::kOk) return taken;
    // What follows a value is a comma or the end: anything else says that the value was misread.
    at = skip_space(at, end);
    if (at == end) return Scan::kCutOff;
    if (*at != ',' && *at != '}') return Scan::kWrong;
  }
}

Scan scan_arguments(const char*& at, const char* end, TraceEvent& out) {
  const char* const begin = at;
  if (*at != '{') return json::skip_value(at, end);  // a list, where an object belongs: seen in the wild
  ++at;
  const Scan scanned = scan_members(at, end, [&](std::string_view key) {
    if (std::int64_t* const kept = kept_argument(key, out); kept != nullptr)
      return scan_number_argument(at, end, *kept);
    if (key == "name" && *at == '"') {
      ++at;
      return json::scan_text(at, end, out.argument_name);
    }
    ++out.arguments_skipped;
    return json::skip_value(at, end);
  });
  if (scanned == Scan::kOk) out.arguments = {begin, static_cast<std::size_t>(at - begin)};
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

// The known members of an event but "args" and "name".
Scan scan_member(std::string_view key, const char*& at, const char* end, TraceEvent& out) {
  std::string_view token;
  switch (key.size()) {
    case 2:
      if (key == "ph" || key == "ts" || key == "id") {
        const Scan scanned = scan_plain(at, end, token);
        if (scanned != Scan::kOk) return scanned;
        if (key[0] == 'p') {
          set_phase(token, out);
        } else if (key[0] == 't') {
          set_start(token, out);
        } else {
          out.id = token;
        }
        return scanned;
      }
      break;
    case 3:
      if (key == "pid") return scan_plain(at, end, out.process);
      if (key == "tid") return scan_plain(at, end, out.thread);
      if (key == "cat") return scan_plain(at, end, out.category);
      if (key == "dur") {
        const Scan scanned = scan_plain(at, end, token);
        if (scanned == Scan::kOk) set_duration(token, out);
        return scanned;
      }
      if (key == "id2") {
        const char* const begin = at;
        const Scan scanned = json::skip_value(at, end);
        if (scanned == Scan::kOk && *begin == '{') set_id2({begin, static_cast<std::size_t>(at - begin)}, out);
        return scanned;
      }
      break;
    default: break;
  }
  return json::skip_value(at, end);
}

// A damaged text that begins behind `at`: it ends at the first quote behind which the event goes on or ends.
const char* find_text_end(const char* at, const char* end) {
  for (const char* quote = std::find(at, end, '"'); quote != end; quote = std::find(quote + 1, end, '"')) {
    const char* next = skip_space(quote + 1, end);
    if (next == end) return quote;
    if (*next == '"' && is_event_member(next, end) == Scan::kOk) return quote;  // a comma is missing
    if (*next == '}') {
      next = skip_space(next + 1, end);
      if (next == end || *next == ',' || *next == ']' || *next == '}') return quote;
    } else if (*next == ',') {
      next = skip_space(next + 1, end);
      if (next != end && *next == '"' && is_event_member(next, end) == Scan::kOk) return quote;
    }
  }
  return nullptr;
}

// The next `"key":` of an event at or behind `at`; null: none.
const char* find_member(const char* at, const char* end) {
  for (const char* quote = std::find(at, end, '"'); quote != end; quote = std::find(quote + 1, end, '"')) {
    if (is_event_member(quote, end) == Scan::kOk) return quote;
  }
  return nullptr;
}

Scan scan_damaged_text(const char*& at, const char* end, Text& out) {
  const char* const begin = at + 1;
  const char* const quote = find_text_end(begin, end);
  if (quote == nullptr) return Scan::kWrong;
  out.raw = {begin, static_cast<std::size_t>(quote - begin)};
  out.has_escape = true;  // whatever is in it is cleaned
  at = quote + 1;
  return Scan::kOk;
}

}  // namespace

Scan scan_event(const char*& at, const char* end, TraceEvent& out) {
  const char* p = at + 1;
  const Scan scanned = scan_members(p, end, [&](std::string_view key) {
    if (key == "name") {
      if (*p == '"') {
        ++p;
        return json::scan_text(p, end, out.name);
      }
      return scan_plain(p, end, out.name.raw);
    }
    if (key == "args") return scan_arguments(p, end, out);
    return scan_member(key, p, end, out);
  });
  if (scanned == Scan::kOk) at = p;
  return scanned;
}

bool scan_damaged_event(std::string_view text, TraceEvent& out) {
  out = TraceEvent{};
  out.is_repaired = true;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool has_arguments = false;  // what follows them may be theirs: it must not take the event's own place
  while ((at = find_member(at, end)) != nullptr) {
    const char* const quote = std::find(at + 1, end, '"');
    const std::string_view key(at + 1, static_cast<std::size_t>(quote - at - 1));
    const char* value = skip_space(quote + 1, end);
    value = skip_space(value + 1, end);
    at = quote + 1;
    if (value == end) break;
    if (key == "args") {
      // Arguments that are whole are taken; of others nothing is.
      TraceEvent sound = out;
      const char* p = value;
      has_arguments = true;
      if (scan_arguments(p, end, sound) != Scan::kOk) continue;
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
      if (scan_member(key, p, end, tried) != Scan::kOk) continue;
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
      // Behind a colon stand arguments; behind a comma, or where one is missing, the next event.
      if (*before != ',' && *before != '}') continue;
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
      if (*member == '"' && is_event_member(member, end) == Scan::kWrong) return stop;
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
  if (scan_plain(at, end, value) != Scan::kOk) return false;
  rest = {at, static_cast<std::size_t>(end - at)};
  return true;
}

}  // namespace hotlap
