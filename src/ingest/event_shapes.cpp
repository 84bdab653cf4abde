#include "ingest/event_shapes.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/ascii.h"
#include "base/lane.h"

namespace hotlap {
namespace {

using json::skip_space;

constexpr std::uint32_t kRefusedMany = 256;  // from then on only every kEvery-th is looked at
constexpr std::uint64_t kEvery = 16;

// Whether `length` bytes at `at` are those at `literal`; both may be read to whole lanes.
bool is_literal(const char* at, const char* literal, std::uint32_t length) {
  for (; length > static_cast<std::uint32_t>(kLaneBytes);
       length -= kLaneBytes, at += kLaneBytes, literal += kLaneBytes) {
    if (lane_bits(load_lane(at) == load_lane(literal)) != 0xFFFFU) return false;
  }
  const std::uint32_t wanted = (1U << length) - 1;
  return (lane_bits(load_lane(at) == load_lane(literal)) & wanted) == wanted;
}

// The closing quote of a text of plain characters that begins at `at`; null: there is another character first.
const char* end_of_plain_text(const char* at, const char* end) {
  for (; end - at >= kLaneBytes; at += kLaneBytes) {
    const Lane bytes = load_lane(at);
    const std::uint32_t stops = lane_bits((bytes == '"') | (bytes == '\\') | (std::bit_cast<LaneMask>(bytes) < 0x20));
    if (stops == 0) continue;
    const char* const stop = at + std::countr_zero(stops);
    return *stop == '"' ? stop : nullptr;
  }
  return nullptr;
}

constexpr bool ends_number(char c) { return c == ',' || c == '}' || c == ']' || json::is_space(c); }

// "12345" or "12345.678": microseconds as nanoseconds, as json::nanoseconds_of_us() has them. Null: of another form.
const char* read_time(const char* at, const char* end, std::int64_t& out_ns) {
  constexpr int kWholeMax = 16;                                // digits of Unix time
  constexpr std::int64_t kWholeMaxUs = 9'000'000'000'000'000;  // in nanoseconds it fits int64
  if (end - at < 4 * kLaneBytes) return nullptr;
  const char* p = at;
  std::int64_t number = 0;
  for (; is_digit(*p) && p - at < kWholeMax; ++p) number = number * 10 + (*p - '0');
  if (p == at || number > kWholeMaxUs) return nullptr;
  int decimals = 0;
  bool rounds_up = false;
  if (*p == '.') {
    for (++p; decimals < 3 && is_digit(*p); ++p, ++decimals) number = number * 10 + (*p - '0');
    if (decimals == 0) return nullptr;
    rounds_up = decimals == 3 && *p >= '5' && *p <= '9';
    const char* const stop = p + kLaneBytes;
    while (is_digit(*p) && p != stop) ++p;
  }
  if (!ends_number(*p)) return nullptr;
  for (; decimals < 3; ++decimals) number *= 10;
  out_ns = number + (rounds_up ? 1 : 0);
  return p;
}

const char* read_number(const char* at, const char* end, std::int64_t& out) {
  constexpr int kDigitsMax = 18;  // fit int64
  if (end - at < 2 * kLaneBytes) return nullptr;
  const bool is_negative = *at == '-';
  const char* const digits = is_negative ? at + 1 : at;
  const char* p = digits;
  std::int64_t number = 0;
  for (; is_digit(*p) && p - digits < kDigitsMax; ++p) number = number * 10 + (*p - '0');
  if (p == digits || !ends_number(*p)) return nullptr;
  out = is_negative ? -number : number;
  return p;
}

bool is_same(const TraceEvent& a, const TraceEvent& b) {
  return a.phase == b.phase && a.name.raw == b.name.raw && a.category == b.category && a.process == b.process &&
         a.thread == b.thread && a.id == b.id && a.start_ns == b.start_ns && a.duration_ns == b.duration_ns &&
         a.has_start == b.has_start && a.has_duration == b.has_duration && a.has_bad_duration == b.has_bad_duration &&
         a.correlation == b.correlation && a.external_id == b.external_id && a.device == b.device &&
         a.stream == b.stream && a.bytes == b.bytes && a.sequence == b.sequence && a.function_id == b.function_id &&
         a.function_caller == b.function_caller && a.step == b.step && a.argument_name.raw == b.argument_name.raw &&
         a.arguments == b.arguments && a.details == b.details && a.arguments_skipped == b.arguments_skipped;
}

}  // namespace

// Walks an event that is known to be sound and notes where its values stand.
class EventShapes::Learner {
 public:
  Learner(std::string_view text, const TraceEvent& event, const KeptArguments* kept)
      : begin_(text.data()), end_(begin_ + text.size()), kept_(kept) {
    shape_.event.phase = event.phase;
    shape_.event.arguments_skipped = event.arguments_skipped;
    literal_begin_ = begin_;
  }

  std::optional<Shape> learn() {
    const char* at = begin_ + 1;
    if (!members(at, false) || at != end_) return std::nullopt;
    add(end_, Target::kNothing, Form::kToken, nullptr);
    if (shape_.literals.size() > kShapeBytesMax) return std::nullopt;
    return std::move(shape_);
  }

 private:
  // Behind a '{': to behind its '}'.
  bool members(const char*& at, bool is_arguments) {
    while (true) {
      at = skip_space(at, end_);
      if (at == end_) return false;
      if (*at == ',') {
        ++at;
        continue;
      }
      if (*at == '}') {
        ++at;
        return true;
      }
      if (*at != '"' || ++count_ > kMembersMax) return false;
      ++at;
      json::Text key;
      if (json::scan_text(at, end_, key) != json::Scan::kOk || !key.is_plain()) return false;
      at = skip_space(at, end_);
      if (at == end_ || *at != ':') return false;
      at = skip_space(at + 1, end_);
      if (at == end_ || !(is_arguments ? argument(key.raw, at) : member(key.raw, at))) return false;
    }
  }

  bool member(std::string_view key, const char*& at) {
    if (key == "ph" || key == "cat") {
      // The same in all events of the shape: part of the text between values.
      const char* const begin = at;
      if (*at != '"' || json::skip_value(at, end_) != json::Scan::kOk) return false;
      if (key == "cat") {
        shape_.category = place(begin + 1);
        shape_.category_length = static_cast<std::size_t>(at - begin - 2);
      }
      return true;
    }
    if (key == "name") return *at == '"' && value(at, Target::kName);
    if (key == "pid") return *at != '{' && *at != '[' && value(at, Target::kProcess);
    if (key == "tid") return *at != '{' && *at != '[' && value(at, Target::kThread);
    if (key == "id") return *at != '{' && *at != '[' && value(at, Target::kId);
    if (key == "ts") return *at != '"' && value(at, Target::kStart);
    if (key == "dur") return *at != '"' && value(at, Target::kDuration);
    if (key == "id2" || key == "traceEvents") return false;
    if (key == "args" && *at == '{') {
      shape_.arguments = place(at);
      ++at;
      if (!members(at, true)) return false;
      shape_.arguments_end = place(at);
      return true;
    }
    return value(at, Target::kNothing);
  }

  bool argument(std::string_view key, const char*& at) {
    if (const auto number = kept_number(key); number != nullptr) {
      return *at != '"' && *at != '{' && *at != '[' && value(at, Target::kNumber, number);
    }
    if (key == "name" && *at == '"') return value(at, Target::kArgumentName);
    if (kept_ == nullptr || !kept_->holds(key)) return value(at, Target::kNothing);
    if (shape_.details.part == SIZE_MAX) shape_.details = place(key.data() - 1);
    if (!value(at, Target::kNothing)) return false;
    shape_.details_end = place(at);
    return true;
  }

  Shape::Place place(const char* at) const {
    return {shape_.parts.size(), static_cast<std::size_t>(at - literal_begin_)};
  }

  bool value(const char*& at, Target target, std::int64_t TraceEvent::*number = nullptr) {
    const Form form = *at == '"' ? Form::kText : *at == '{' || *at == '[' ? Form::kNest : Form::kToken;
    add(form == Form::kToken ? at : at + 1, target, form, number);
    if (json::skip_value(at, end_) != json::Scan::kOk) return false;
    literal_begin_ = at;
    return true;
  }

  void add(const char* literal_end, Target target, Form form, std::int64_t TraceEvent::*number) {
    const auto length = static_cast<std::size_t>(literal_end - literal_begin_);
    shape_.parts.push_back({.literal = static_cast<std::uint32_t>(shape_.literals.size()),
                            .length = static_cast<std::uint32_t>(length),
                            .target = target,
                            .form = form,
                            .number = number});
    shape_.literals.append(literal_begin_, length);
    shape_.literals.append(static_cast<std::size_t>(kLaneBytes), '\0');
  }

  const char* begin_;
  const char* end_;
  const char* literal_begin_;
  const KeptArguments* kept_;
  std::size_t count_ = 0;
  Shape shape_;
};

void EventShapes::learn(std::string_view text, const TraceEvent& event) {
  const bool is_plain = !event.is_repaired && !event.has_repeated_member && !event.damage.has_bad_text &&
                        !event.damage.has_bad_number && !event.damage.has_wide_number;
  if (!is_plain || shapes_.size() >= kShapesMax || (refused_ > kRefusedMany && misses_ % kEvery != 0)) return;
  std::optional<Shape> shape = Learner(text, event, kept_).learn();
  if (shape) {
    // What the shape reads otherwise than the scanner did is none. Behind the event it looks further than it goes.
    std::string padded(text);
    padded.append(std::size_t{4} * kLaneBytes, ' ');
    TraceEvent again;
    const char* const stop = read_as(*shape, padded.data(), padded.data() + padded.size(), again);
    if (stop != padded.data() + text.size() || !is_same(again, event)) shape.reset();
  }
  if (!shape) {
    ++refused_;
    return;
  }
  shapes_.push_back(std::move(*shape));
}

const char* EventShapes::read_as(const Shape& shape, const char* at, const char* end, TraceEvent& out) {
  out = shape.event;
  const char* arguments = nullptr;
  const char* details = nullptr;
  for (std::size_t i = 0; i < shape.parts.size(); ++i) {
    const Part& part = shape.parts[i];
    if (end - at < static_cast<std::ptrdiff_t>(part.length) + kLaneBytes) return nullptr;
    if (!is_literal(at, shape.literals.data() + part.literal, part.length)) return nullptr;
    if (i == shape.category.part) out.category = {at + shape.category.offset, shape.category_length};
    if (i == shape.arguments.part) arguments = at + shape.arguments.offset;
    if (i == shape.details_end.part) {
      out.details = {details, static_cast<std::size_t>(at + shape.details_end.offset - details)};
    }
    if (i == shape.details.part) details = at + shape.details.offset;
    if (i == shape.arguments_end.part) {
      out.arguments = {arguments, static_cast<std::size_t>(at + shape.arguments_end.offset - arguments)};
    }
    at += part.length;
    if (i + 1 == shape.parts.size()) break;
    if (part.form == Form::kText) {
      const char* const quote = end_of_plain_text(at, end);
      if (quote == nullptr) return nullptr;
      const std::string_view text(at, static_cast<std::size_t>(quote - at));
      at = quote + 1;
      switch (part.target) {
        case Target::kName: out.name.raw = text; break;
        case Target::kArgumentName: out.argument_name.raw = text; break;
        case Target::kProcess: out.process = text; break;
        case Target::kThread: out.thread = text; break;
        case Target::kId: out.id = text; break;
        default: break;
      }
      continue;
    }
    if (part.form == Form::kNest) {
      json::Doubts doubts;
      if (json::skip_nest(at, end, doubts) != json::Scan::kOk || doubts.any()) return nullptr;
      continue;
    }
    switch (part.target) {
      case Target::kStart:
        at = read_time(at, end, out.start_ns);
        if (at == nullptr) return nullptr;
        out.has_start = true;
        break;
      case Target::kDuration:
        at = read_time(at, end, out.duration_ns);
        if (at == nullptr) return nullptr;
        out.has_duration = true;
        break;
      case Target::kNumber:
        at = read_number(at, end, out.*part.number);
        if (at == nullptr) return nullptr;
        break;
      default: {
        std::string_view token;
        if (json::scan_token(at, end, token) != json::Scan::kOk || json::is_doubtful(token)) return nullptr;
        if (part.target == Target::kProcess) out.process = token;
        if (part.target == Target::kThread) out.thread = token;
        if (part.target == Target::kId) out.id = token;
        break;
      }
    }
  }
  return at;
}

const char* EventShapes::read(const char* at, const char* end, TraceEvent& out) {
  if (shapes_.empty() || is_off_) return nullptr;
  // The shape that came behind the last one is the likely one.
  const std::size_t likely = shapes_[last_].next;
  if (const char* const stop = read_as(shapes_[likely], at, end, out); stop != nullptr) {
    last_ = likely;
    ++hits_;
    return stop;
  }
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    if (i == likely) continue;
    if (const char* const stop = read_as(shapes_[i], at, end, out); stop != nullptr) {
      shapes_[last_].next = i;
      last_ = i;
      ++hits_;
      return stop;
    }
  }
  constexpr std::uint64_t kMissesMin = 4096;
  is_off_ = ++misses_ > kMissesMin && misses_ > hits_;
  return nullptr;
}

}  // namespace hotlap
