#include "ingest/trace_reader.h"

#include <algorithm>

#include "base/json_reader.h"

namespace hotlap {
namespace {

using json::Scan;
using json::skip_space;

constexpr std::size_t kCarryStep = std::size_t{64} << 10;  // of a new piece, to end what the last one began
constexpr std::size_t kNestKept = 4096;
constexpr std::string_view kEventsKey = "traceEvents";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// What begins at `at` is looked for in so many bytes and no further: where a piece ends must not decide what is read.
const char* limit_of(const char* at, const char* end, std::size_t bytes_max) {
  return at + std::min(static_cast<std::size_t>(end - at), bytes_max);
}
bool is_full(const char* at, const char* limit, std::size_t bytes_max) {
  return static_cast<std::size_t>(limit - at) == bytes_max;
}

// `at` stands behind a member's opening quote and is left at its value.
Scan scan_key(const char*& at, const char* end, json::Text& out) {
  if (json::scan_text(at, end, out) != Scan::kOk) return Scan::kCutOff;
  at = skip_space(at, end);
  if (at == end) return Scan::kCutOff;
  if (*at != ':') return Scan::kWrong;
  at = skip_space(at + 1, end);
  return at == end ? Scan::kCutOff : Scan::kOk;
}

}  // namespace

void TraceReader::push(ByteView chunk_untrusted) {
  std::string_view chunk = as_text(chunk_untrusted);
  bytes_ += chunk.size();
  while (!chunk.empty() && !carry_.empty()) {
    const std::size_t had = carry_.size();
    const std::size_t taken = std::min(chunk.size(), std::max(kCarryStep, retry_bytes_ - std::min(retry_bytes_, had)));
    carry_.append(chunk.substr(0, taken));
    if (carry_.size() < retry_bytes_) return;
    window_ = carry_.data();
    const char* const stop = consume(window_, window_ + carry_.size(), false);
    const auto consumed = static_cast<std::size_t>(stop - window_);
    window_offset_ += static_cast<std::int64_t>(consumed);
    if (consumed >= had) {
      // The rest stands in the new piece whole.
      chunk.remove_prefix(consumed - had);
      carry_.clear();
      retry_bytes_ = 0;
    } else {
      carry_.erase(0, consumed);
      retry_bytes_ = 2 * carry_.size();
      chunk.remove_prefix(taken);
    }
  }
  if (chunk.empty()) return;
  window_ = chunk.data();
  const char* const stop = consume(window_, window_ + chunk.size(), false);
  const auto consumed = static_cast<std::size_t>(stop - window_);
  window_offset_ += static_cast<std::int64_t>(consumed);
  carry_.assign(chunk.substr(consumed));
  retry_bytes_ = carry_.size() + 1;
}

void TraceReader::finish() {
  window_ = carry_.data();
  const char* const stop = consume(window_, window_ + carry_.size(), true);
  const bool has_rest = skip_space(stop, window_ + carry_.size()) != window_ + carry_.size();
  // A list that was never closed is how many writers leave their file; what is cut off is something else.
  if (has_rest || place_ == Place::kHugeMember) handler_.on_loss("ingest.input_truncated", offset_of(stop));
  carry_.clear();
}

const char* TraceReader::consume(const char* at, const char* end, bool is_last) {
  is_waiting_ = false;
  while (at != end && !is_waiting_) {
    switch (place_) {
      case Place::kDocument: at = in_document(at, end, is_last); break;
      case Place::kMembers: at = in_members(at, end); break;
      case Place::kEvents: at = in_events(at, end, is_last); break;
      case Place::kHugeMember: at = in_huge_member(at, end); break;
    }
  }
  return at;
}

const char* TraceReader::unreadable(const char* at, const char* end) {
  if (!is_unreadable_) handler_.on_loss("ingest.input_unreadable", offset_of(at));
  is_unreadable_ = true;
  // To the next character that may begin or end something here: all that would be taken at the begin of a piece.
  const std::string_view rest(at + 1, static_cast<std::size_t>(end - at - 1));
  const std::size_t next = rest.find_first_of(place_ == Place::kEvents     ? "{]"
                                              : place_ == Place::kDocument ? "{["
                                              : closers_.back() == ']'     ? "\"}]{"
                                                                           : "\"}");
  return next == std::string_view::npos ? end : at + 1 + next;
}

const char* TraceReader::in_document(const char* at, const char* end, bool is_last) {
  at = skip_space(at, end);
  if (at == end) return at;
  if (*at == ',') return at + 1;  // between events, one a line
  if (*at == '[') {
    handler_.on_document();
    is_unreadable_ = false;
    place_ = Place::kEvents;
    return at + 1;
  }
  if (*at == '{') {
    const char* const limit = limit_of(at, end, kMemberBytesMax);
    const Scan begins = begins_event(at, limit);
    if (begins == Scan::kCutOff && !is_last && !is_full(at, limit, kMemberBytesMax)) {
      is_waiting_ = true;
      return at;
    }
    if (begins == Scan::kOk) {
      const char* const first = skip_space(at + 1, limit);
      if (first != limit && *first != '}') return in_events(at, end, is_last);
    }
    handler_.on_document();
    closers_ = "}";
    is_unreadable_ = false;
    place_ = Place::kMembers;
    return at + 1;
  }
  if (offset_of(at) == 0 && *at == kByteOrderMark[0]) {
    if (end - at < 3 && !is_last) {
      is_waiting_ = true;
      return at;
    }
    if (std::string_view(at, static_cast<std::size_t>(end - at)).starts_with(kByteOrderMark)) return at + 3;
  }
  return unreadable(at, end);
}

const char* TraceReader::in_members(const char* at, const char* end) {
  at = skip_space(at, end);
  if (at == end) return at;
  if (*at == ',') return at + 1;
  if (*at == '}' || (*at == ']' && closers_.back() == ']')) {
    closers_.pop_back();
    if (closers_.empty()) place_ = Place::kDocument;
    return at + 1;
  }
  if (*at == '{' && closers_.back() == ']') {  // the next of a list of documents
    closers_ += '}';
    return at + 1;
  }
  if (*at != '"') return unreadable(at, end);
  const char* const limit = limit_of(at, end, kMemberBytesMax);
  const char* p = at + 1;
  json::Text key;
  switch (scan_key(p, limit, key)) {
    case Scan::kOk: break;
    case Scan::kWrong: return unreadable(at, end);
    case Scan::kCutOff:
      if (is_full(at, limit, kMemberBytesMax)) return unreadable(at, end);
      is_waiting_ = true;
      return at;
  }
  is_unreadable_ = false;
  if (key.raw == kEventsKey && *p == '[') {
    place_ = Place::kEvents;
    return p + 1;
  }
  const char* const value = p;
  const char* const value_limit = limit_of(value, end, kMemberBytesMax);
  switch (json::skip_value(p, value_limit)) {
    case Scan::kOk: return member(key.raw, value, p);
    case Scan::kWrong: return unreadable(value, end);
    case Scan::kCutOff: break;
  }
  if (!is_full(value, value_limit, kMemberBytesMax)) {
    is_waiting_ = true;
    return at;
  }
  if (*value != '{' && *value != '[' && *value != '"') return unreadable(value, end);
  look_inside(value);
  return value + 1;
}

const char* TraceReader::member(std::string_view key, const char* value, const char* stop) {
  const std::string_view text(value, static_cast<std::size_t>(stop - value));
  if (options_.is_strict && !JsonDocument::parse(text).ok())
    handler_.on_loss("ingest.input_unreadable", offset_of(value));
  if ((*value == '{' || *value == '[') && text.find(kEventsKey) != std::string_view::npos) {
    look_inside(value);
    return value + 1;
  }
  handler_.on_member(key, text);
  return stop;
}

// Of a value that is too large to be kept, or may hold the events.
void TraceReader::look_inside(const char* value) {
  place_ = Place::kHugeMember;
  depth_ = closers_.size();
  unkept_ = 0;
  is_in_text_ = *value == '"';
  is_escaped_ = false;
  text_.clear();
  behind_ = Behind::kOther;
  if (!is_in_text_) closers_ += *value == '{' ? '}' : ']';
}

const char* TraceReader::in_huge_member(const char* at, const char* end) {
  for (; at != end; ++at) {
    if (is_escaped_) {
      is_escaped_ = false;
      continue;
    }
    if (is_in_text_) {
      if (*at == '\\') is_escaped_ = true;
      if (*at != '"') {
        if (text_.size() <= kEventsKey.size()) text_ += *at;
        continue;
      }
      is_in_text_ = false;
      behind_ = Behind::kText;
    } else if (*at == '"') {
      is_in_text_ = true;
      text_.clear();
      continue;
    } else if (*at == '{' || *at == '[') {
      if (*at == '[' && behind_ == Behind::kColon && text_ == kEventsKey) {
        place_ = Place::kEvents;
        return at + 1;
      }
      behind_ = Behind::kOther;
      if (closers_.size() < kNestKept) {
        closers_ += *at == '{' ? '}' : ']';
      } else {
        ++unkept_;
      }
    } else if (*at == '}' || *at == ']') {
      behind_ = Behind::kOther;
      if (unkept_ > 0) {
        --unkept_;
      } else {
        closers_.pop_back();
      }
    } else if (!json::is_space(*at)) {
      behind_ = *at == ':' && behind_ == Behind::kText ? Behind::kColon : Behind::kOther;
    }
    if (closers_.size() == depth_ && !is_in_text_) {
      place_ = Place::kMembers;
      return at + 1;
    }
  }
  return at;
}

const char* TraceReader::in_events(const char* at, const char* end, bool is_last) {
  while (true) {
    at = skip_space(at, end);
    if (at == end) return at;
    if (*at == ',') {
      ++at;
      continue;
    }
    if (*at == ']') {
      place_ = closers_.empty() ? Place::kDocument : Place::kMembers;
      return at + 1;
    }
    if (*at != '{') return unreadable(at, end);
    TraceEvent event;
    const char* const begin = at;
    const char* const limit = limit_of(at, end, kEventBytesMax);
    const char* const stop = options_.uses_shapes ? shapes_.read(at, limit, event) : nullptr;
    if (stop != nullptr) {
      at = stop;
      is_unreadable_ = false;
      if (options_.is_strict) (void)check(event, {begin, static_cast<std::size_t>(at - begin)}, offset_of(begin));
      handler_.on_event(event, offset_of(begin));
      if (place_ == Place::kDocument) return at;
      continue;
    }
    event = TraceEvent{};
    const Scan scanned = scan_event(at, limit, event, options_.kept);
    if (scanned != Scan::kOk) {
      if (scanned == Scan::kCutOff && !is_last && !is_full(begin, limit, kEventBytesMax)) {
        is_waiting_ = true;
        return begin;
      }
      if (event.is_document) {  // of a list of them
        handler_.on_document();
        closers_ += "]}";
        place_ = Place::kMembers;
        return begin + 1;
      }
      return damaged_event(begin, limit, is_last && limit == end);
    }
    is_unreadable_ = false;
    const std::string_view text(begin, static_cast<std::size_t>(at - begin));
    if (check(event, text, offset_of(begin)) && options_.uses_shapes) shapes_.learn(text, event);
    handler_.on_event(event, offset_of(begin));
    if (place_ == Place::kDocument) return at;
  }
}

// Counts what is wrong with an event that could be read all the same; true where nothing is.
bool TraceReader::check(const TraceEvent& event, std::string_view text, std::int64_t offset) {
  bool is_sound = true;
  const auto lose_if = [&](bool is_so, std::string_view counter) {
    if (!is_so) return;
    is_sound = false;
    handler_.on_loss(counter, offset);
  };
  lose_if(event.damage.has_bad_text, "ingest.texts_repaired");
  lose_if(event.damage.has_bad_number, "ingest.numbers_repaired");
  lose_if(event.damage.has_wide_number, "ingest.numbers_wide");
  lose_if(event.has_repeated_member ||
              (event.argument_keys != 0 && argument_keys_.has_repeated(event.arguments, event.argument_keys)),
          "ingest.members_repeated");
  lose_if(options_.is_strict && !JsonDocument::parse(text).ok(), "ingest.events_repaired");
  return is_sound;
}

// `limit`: where the search for its end is given up.
const char* TraceReader::damaged_event(const char* at, const char* limit, bool is_last) {
  const char* stop = find_event_end(at, limit, is_last);
  const bool is_endless = stop == nullptr;
  if (is_endless) {
    if (!is_full(at, limit, kEventBytesMax)) {
      is_waiting_ = true;
      return at;
    }
    stop = limit;
  }
  // What the input breaks off in is no damaged event.
  if (is_last && stop == limit) {
    const std::string_view rest(at, static_cast<std::size_t>(limit - at));
    const std::size_t last = rest.find_last_not_of(" \t\r\n,");
    if (last == std::string_view::npos || rest[last] != '}') {
      is_waiting_ = true;
      return at;
    }
  }
  TraceEvent event;
  if (!is_endless && scan_damaged_event({at, static_cast<std::size_t>(stop - at)}, event, options_.kept)) {
    handler_.on_event(event, offset_of(at));
  } else {
    handler_.on_loss("ingest.events_dropped", offset_of(at));
    is_unreadable_ = is_endless;
  }
  return stop;
}

}  // namespace hotlap
