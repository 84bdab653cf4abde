#include "observe/sender.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace hotlap {
namespace {

constexpr std::int64_t kDrainNs = 20'000'000;
constexpr std::int64_t kTotalsNs = 1'000'000'000;
constexpr std::uint32_t kTotalsMax = 400;  // names whose calls and time are told; the recorder has a bound as well
// Of an observed span: two readings of the clock and a place in a buffer. For what the observer says of its own cost.
constexpr std::int64_t kOwnNsPerSpan = 100;
constexpr int kFinishTries = 2'000;  // a thread that drains takes some µs

constexpr std::uint32_t kBufferFree = 0;
constexpr std::uint32_t kBufferOwned = 1;
constexpr std::uint32_t kBufferLeft = 2;  // its thread has ended; free once it is empty

// Figures are named like the recorder's metrics; their numbers lie behind all that a NameTable gives.
constexpr std::string_view kRangeCalls = "range.calls ";
constexpr std::string_view kRangeTime = "range.time.ns ";
constexpr std::string_view kOperatorCalls = "operator.calls ";
constexpr std::string_view kOperatorTime = "operator.time.ns ";
constexpr std::size_t kFigureBytesMax = kOperatorTime.size();
constexpr std::uint32_t kFirstFigure = NameTable::kNamesMax + 1;
struct Figure {
  std::string_view prefix;
  std::uint64_t value;
};

// Which sender the calling thread's buffer belongs to: a program has one, tests have several.
struct OwnBuffer {
  const void* sender;
  void* buffer;
};
thread_local OwnBuffer own_buffer_of_thread;

// A JSON string of at most `limit` bytes; what does not fit is left out.
std::size_t write_json_text(std::string_view text, char* out, std::size_t limit) {
  constexpr char kHex[] = "0123456789abcdef";
  std::size_t used = 0;
  out[used++] = '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (used + 7 >= limit) break;
    if (c == '"' || c == '\\') {
      out[used++] = '\\';
      out[used++] = c;
    } else if (byte < 0x20) {
      std::memcpy(out + used, "\\u00", 4);
      out[used + 4] = kHex[byte >> 4];
      out[used + 5] = kHex[byte & 15];
      used += 6;
    } else {
      out[used++] = c;
    }
  }
  out[used++] = '"';
  return used;
}

}  // namespace

bool Sender::start(std::string_view source) {
  if (!swap_word<std::uint32_t>(state_, kOff, kStarting)) return is_on();
  pthread_key_t key = 0;
  if (!ring_.read_environment(source) || ::pthread_key_create(&key, &Sender::leave_buffer) != 0) {
    store_word(state_, kEnded);
    return false;
  }
  key_of_thread_end_ = key;
  pid_ = ::getpid();
  generation_ = 1;
  store_word(state_, kOn);
  return true;
}

std::uint32_t Sender::thread() {
  const Buffer* buffer = own_buffer();
  return buffer == nullptr ? 0 : buffer->thread;
}

Sender::Buffer* Sender::own_buffer() {
  if (own_buffer_of_thread.sender == this) return static_cast<Buffer*>(own_buffer_of_thread.buffer);
  for (std::size_t i = 0; i < kObserverThreadsMax; ++i) {
    Buffer& buffer = buffers_[i];
    if (load_word(buffer.state, std::memory_order_relaxed) != kBufferFree ||
        !swap_word(buffer.state, kBufferFree, kBufferOwned)) {
      continue;
    }
    buffer.thread = static_cast<std::uint32_t>(::gettid());
    std::uint32_t used = load_word(buffers_used_);
    while (used < i + 1 && !swap_word(buffers_used_, used, static_cast<std::uint32_t>(i + 1))) {
      used = load_word(buffers_used_);
    }
    own_buffer_of_thread = {this, &buffer};
    ::pthread_setspecific(key_of_thread_end_, &buffer);
    return &buffer;
  }
  return nullptr;
}

void Sender::leave_buffer(void* buffer) {
  own_buffer_of_thread = {};
  store_word(static_cast<Buffer*>(buffer)->state, kBufferLeft);
}

void Sender::span(const ObservedSpan& span) {
  if (!is_on()) return;
  const std::int64_t now_ns = span.start_ns + span.duration_ns;
  Buffer* buffer = own_buffer();
  if (buffer == nullptr) {
    drain(now_ns);  // gives back the buffers of threads that have ended
    buffer = own_buffer();
  }
  if (buffer == nullptr) {
    add_word<std::uint64_t>(dropped_without_buffer_, 1);
    return;
  }
  std::uint64_t tail = load_word(buffer->tail);
  if (buffer->head - tail >= kThreadSpans) {
    drain(now_ns);
    tail = load_word(buffer->tail);
    if (buffer->head - tail >= kThreadSpans) {
      add_word<std::uint64_t>(buffer->dropped, 1);
      return;
    }
  }
  const std::uint64_t head = buffer->head;
  buffer->spans[head % kThreadSpans] = span;
  store_word(buffer->head, head + 1);
  if (head + 1 - tail >= kThreadSpans / 2 || now_ns - load_word(drained_ns_, std::memory_order_relaxed) >= kDrainNs) {
    drain(now_ns);
  }
}

void Sender::info(std::string_view key, std::string_view text) {
  if (!is_on()) return;
  const std::uint32_t index = load_word(infos_used_) < kInfosMax ? add_word<std::uint32_t>(infos_used_, 1) : kInfosMax;
  if (index >= kInfosMax) {
    add_word<std::uint64_t>(dropped_without_buffer_, 1);
    return;
  }
  Info& info = infos_[index];
  const std::string_view short_key = cut_utf8(key, sizeof info.key);
  std::memcpy(info.key, short_key.data(), short_key.size());
  info.key_bytes = static_cast<std::uint32_t>(short_key.size());
  info.json_bytes =
      static_cast<std::uint32_t>(write_json_text(cut_utf8(text, sizeof info.json / 2), info.json, sizeof info.json));
  store_word<std::uint32_t>(info.is_ready, 1);
}

void Sender::drain(std::int64_t now_ns) {
  if (now_ns < load_word(not_before_ns_, std::memory_order_relaxed)) return;
  if (!swap_word<std::uint32_t>(lock_, 0, 1)) return;
  // A child that was made without our handler (a bare clone) must not write into its parent's ring.
  if (::getpid() != pid_) {
    after_fork();
    lock_ = 1;
  }
  if (is_ready_to_send()) {
    const std::int64_t begin_ns = observer_now_ns();
    const bool has_room = drain_locked(begin_ns);
    // A ring that stays full (the recorder is gone) is not tried at each span.
    if (!has_room) store_word(not_before_ns_, begin_ns + kDrainNs, std::memory_order_relaxed);
    count_losses();
    own_time_ns_ += observer_now_ns() - begin_ns;
    ring_.live().own_time_ns = own_time_ns_ + static_cast<std::int64_t>(spans_seen_) * kOwnNsPerSpan;
  }
  store_word(drained_ns_, now_ns, std::memory_order_relaxed);
  store_word<std::uint32_t>(lock_, 0);
}

bool Sender::is_ready_to_send() {
  if (ring_.is_open() || ring_.open()) return true;
  store_word(state_, kEnded);  // it will not work later either
  return false;
}

// Everything that was handed in when it began. False: the ring is full, the rest stays where it is.
bool Sender::drain_locked(std::int64_t now_ns) {
  const HookCommand command = ring_.take_command();
  if (command == HookCommand::kSayAgain) {
    ++generation_;
    first_unsaid_ = 0;
  }
  if (command != HookCommand::kNone) {
    const bool is_known = command == HookCommand::kSayAgain || command == HookCommand::kPing;
    ring_.answer(is_known ? HookAnswer::kDone : HookAnswer::kUnsupported);
  }
  const std::uint32_t buffers = load_word(buffers_used_);
  for (std::uint32_t i = 0; i < buffers; ++i) heads_[i] = load_word(buffers_[i].head);
  // Spans leave half of the room to names, figures and long spans.
  budget_.advance(now_ns, static_cast<std::int64_t>(ring_.free_bytes() / 2 / sizeof(SpanRecord)));
  // The names that these spans have are there by now; they go first.
  if (!say_names(names_.count()) || !say_infos(now_ns)) return false;
  for (std::uint32_t i = 0; i < buffers; ++i) {
    Buffer& buffer = buffers_[i];
    if (!send_spans(buffer, heads_[i])) return false;
    // Its thread wrote nothing more before it left.
    if (load_word(buffer.state) == kBufferLeft && load_word(buffer.head) == buffer.tail) {
      store_word(buffer.state, kBufferFree);
    }
  }
  if (now_ns < next_totals_ns_) return true;
  if (!say_totals(now_ns)) return false;
  next_totals_ns_ = now_ns + kTotalsNs;
  return true;
}

bool Sender::say_names(std::uint32_t count) {
  if (first_unsaid_ >= count) return true;
  if (!ring_.begin_frame()) return false;
  bool are_all_said = true;
  for (std::uint32_t index = first_unsaid_; index < count; ++index) {
    NameTable::Name& name = names_.at(index + 1);
    const bool is_ready = load_word(name.is_ready) != 0;
    if (is_ready && name.said_in != generation_) {
      if (!ring_.has_room(sizeof(NameRecord) + name.bytes + 8)) {
        ring_.end_frame();
        if (!ring_.begin_frame()) return false;
      }
      const NameRecord record{observed_head<NameRecord>(RecordType::kName, name.bytes),
                              index + 1,
                              static_cast<std::uint16_t>(name.bytes),
                              {}};
      ring_.append(&record, sizeof record, names_.text(name));
      name.said_in = generation_;
    }
    are_all_said &= is_ready;
    if (are_all_said) first_unsaid_ = index + 1;
  }
  ring_.end_frame();
  return true;
}

bool Sender::say_infos(std::int64_t now_ns) {
  const std::uint32_t count = std::min<std::uint32_t>(load_word(infos_used_), kInfosMax);
  for (std::uint32_t i = 0; i < count; ++i) {
    Info& info = infos_[i];
    if (info.said_in == generation_ || load_word(info.is_ready) == 0) continue;
    if (!ring_.begin_frame()) return false;
    const InfoRecord record{observed_head<InfoRecord>(RecordType::kInfo, info.key_bytes + info.json_bytes),
                            static_cast<std::uint16_t>(info.key_bytes), static_cast<std::uint16_t>(info.json_bytes),
                            now_ns};
    ring_.append(&record, sizeof record, {info.key, info.key_bytes}, {info.json, info.json_bytes});
    ring_.end_frame();
    info.said_in = generation_;
  }
  return true;
}

bool Sender::send_spans(Buffer& buffer, std::uint64_t head) {
  if (buffer.tail == head) return true;
  if (!ring_.begin_frame()) return false;
  std::uint64_t at = buffer.tail;
  bool has_room = true;
  for (; at != head; ++at) {
    const ObservedSpan& span = buffer.spans[at % kThreadSpans];
    if (!ring_.has_room(sizeof(SpanRecord))) {
      ring_.end_frame();
      has_room = ring_.begin_frame();
      if (!has_room) break;
    }
    ++spans_seen_;
    if (span.name != 0 && (span.kind == SpanKind::kUser || span.kind == SpanKind::kOperator)) {
      const std::uint64_t weight = std::max<std::uint32_t>(1, span.weight);
      NameTable::Name& name = names_.at(span.name);
      name.calls += weight;
      name.time_ns += weight * static_cast<std::uint64_t>(std::max<std::int64_t>(0, span.duration_ns));
      name.is_operator = span.kind == SpanKind::kOperator ? 1 : 0;
    }
    if (span.is_total) continue;
    if (!budget_.keeps(span.duration_ns)) {
      ring_.live().spans_left_out += 1;
      continue;
    }
    const SpanRecord record{observed_head<SpanRecord>(RecordType::kSpan, 0, span.flags),
                            static_cast<std::uint16_t>(span.kind),
                            0,
                            span.start_ns,
                            span.duration_ns,
                            span.thread,
                            span.name,
                            -1,
                            span.value_a,
                            span.value_b};
    ring_.append(&record, sizeof record);
  }
  ring_.end_frame();
  store_word(buffer.tail, at);
  return has_room;
}

bool Sender::say_totals(std::int64_t now_ns) {
  if (!ring_.begin_frame()) return false;
  const std::uint32_t count = std::min(names_.count(), kTotalsMax);
  for (std::uint32_t number = 1; number <= count; ++number) {
    const NameTable::Name& name = names_.at(number);
    const bool is_news = name.calls != name.calls_said || (name.calls != 0 && name.figures_said_in != generation_);
    if (is_news && !say_total(number, now_ns)) return false;
  }
  ring_.end_frame();
  return true;
}

bool Sender::say_total(std::uint32_t number, std::int64_t now_ns) {
  NameTable::Name& name = names_.at(number);
  const std::string_view text = cut_utf8(names_.text(name), kObserverNameBytesMax - kFigureBytesMax);
  const bool is_operator = name.is_operator != 0;
  const Figure figures[] = {{is_operator ? kOperatorCalls : kRangeCalls, name.calls},
                            {is_operator ? kOperatorTime : kRangeTime, name.time_ns}};
  std::uint32_t id = kFirstFigure + 2 * (number - 1);
  for (const Figure& figure : figures) {
    const std::size_t bytes = figure.prefix.size() + text.size();
    if (!ring_.has_room(sizeof(NameRecord) + bytes + sizeof(CountRecord) + 8)) {
      ring_.end_frame();
      if (!ring_.begin_frame()) return false;
    }
    if (name.figures_said_in != generation_) {
      const NameRecord record{
          observed_head<NameRecord>(RecordType::kName, bytes), id, static_cast<std::uint16_t>(bytes), {}};
      ring_.append(&record, sizeof record, figure.prefix, text);
    }
    const CountRecord record{observed_head<CountRecord>(RecordType::kCount, 0, kCountOfHook), id, now_ns,
                             static_cast<double>(figure.value), -1};
    ring_.append(&record, sizeof record);
    ++id;
  }
  name.figures_said_in = generation_;
  name.calls_said = name.calls;
  return true;
}

void Sender::count_losses() {
  std::uint64_t dropped = load_word(dropped_without_buffer_, std::memory_order_relaxed);
  const std::uint32_t buffers = load_word(buffers_used_);
  for (std::uint32_t i = 0; i < buffers; ++i) dropped += load_word(buffers_[i].dropped, std::memory_order_relaxed);
  ring_.live().records_dropped = dropped;
  ring_.live().names_refused = names_.refused();
}

bool Sender::has_room(std::size_t spans) {
  if (!swap_word<std::uint32_t>(lock_, 0, 1)) return false;
  const bool has_room = !ring_.is_open() || ring_.free_bytes() / 2 >= spans * sizeof(SpanRecord);
  store_word<std::uint32_t>(lock_, 0);
  return has_room;
}

void Sender::abandon() {
  store_word(state_, kEnded);
  ring_.forget();
}

void Sender::finish() {
  if (!swap_word(state_, kOn, kEnded)) return;
  // The lock is kept: nothing is sent after the end.
  for (int tries = 0; !swap_word<std::uint32_t>(lock_, 0, 1); ++tries) {
    if (tries == kFinishTries) return;
  }
  if (::getpid() != pid_ || !ring_.is_open()) return;
  const std::int64_t now_ns = observer_now_ns();
  next_totals_ns_ = now_ns;
  static_cast<void>(drain_locked(now_ns));
  count_losses();
  if (ring_.begin_frame()) {
    const EndRecord record{observed_head<EndRecord>(RecordType::kEnd), 0, now_ns};
    ring_.append(&record, sizeof record);
    ring_.end_frame();
  }
  store_word<std::uint64_t>(ring_.live().closed, 1);
}

void Sender::after_fork() {
  if (load_word(state_) != kOn) return;
  ring_.forget();
  names_.after_fork();
  pid_ = ::getpid();
  lock_ = 0;
  not_before_ns_ = drained_ns_ = next_totals_ns_ = 0;
  ++generation_;
  first_unsaid_ = 0;
  spans_seen_ = dropped_without_buffer_ = 0;
  own_time_ns_ = 0;
  // What gathered is the parent's, and so are its other threads.
  for (Buffer& buffer : buffers_) {
    if (buffer.state == kBufferFree) continue;
    buffer.tail = buffer.head;
    buffer.dropped = 0;
    if (own_buffer_of_thread.sender == this && own_buffer_of_thread.buffer == &buffer) {
      buffer.thread = static_cast<std::uint32_t>(::gettid());
    } else {
      buffer.state = kBufferFree;
    }
  }
  for (std::uint32_t number = 1; number <= names_.count(); ++number) {
    NameTable::Name& name = names_.at(number);
    name.calls = name.time_ns = name.calls_said = 0;
  }
}

}  // namespace hotlap
