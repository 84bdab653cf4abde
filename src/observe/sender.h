#pragma once
// Brings what an observer sees in a job's threads into the observer's own ring. Any thread hands in spans and asks for
// names; each has a buffer of its own, written without a lock. Whoever finds a buffer half full, or nothing sent for 20
// ms, empties all of them into the ring, unless another thread is just doing that: nobody waits. What does not fit is
// dropped and counted. Nothing is allocated, no thread is started, and nothing of the process is changed.
//
// Bounded: kObserverThreadsMax threads at a time, kThreadSpans spans each, names as in NameTable. Of spans about
// kSpansPerS are kept; where there are more, short ones are left out of the ring and counted. Calls and time of every
// name of ranges and operators are told once a second all the same.
//
// Lies in zeroed static memory; there is no constructor and no destructor.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/span.h"
#include "observe/names.h"
#include "observe/ring_file.h"
#include "observe/span_budget.h"

namespace hotlap {

inline constexpr std::size_t kObserverThreadsMax = 256;
inline constexpr std::size_t kThreadSpans = 1024;

struct ObservedSpan {
  std::int64_t start_ns;
  std::int64_t duration_ns;
  std::int64_t value_a;  // -1: missing
  std::int64_t value_b;
  std::uint32_t name;
  std::uint32_t thread;
  SpanKind kind;
  bool is_total;         // counts for calls and time of its name alone
  std::uint8_t flags;    // as its record's, by kind
  std::uint32_t weight;  // it stands for so many of its name: one in so many was looked at; 0 is 1
};

class Sender {
 public:
  // Switches on what is sent, for good. False: this process is not recorded. Thread-safe; only the first call counts.
  bool start(std::string_view source);
  bool is_on() { return load_word(state_) == kOn; }

  std::uint32_t number_of(std::string_view name) { return names_.number_of(name); }
  // An attribute of the process: the text is made a JSON string. Rare things only.
  void info(std::string_view key, std::string_view text);
  void span(const ObservedSpan& span);
  // Something that an observer had no room for.
  void count_drop(std::uint64_t records = 1) { add_word<std::uint64_t>(dropped_without_buffer_, records); }
  // Linux thread id of the caller.
  std::uint32_t thread();

  // Empties the caller's buffer, and the others', as far as the ring has room. For threads of an observer's own.
  void send_now() { drain(observer_now_ns()); }
  // Whether the ring takes so many spans now, without short ones being left out. A guess; true where there is none yet.
  bool has_room(std::size_t spans);

  // The process ends, or is asked to let go: what there is is sent, and nothing more is taken.
  void finish();
  // In the child, before anything else of ours runs there.
  void after_fork();
  // In the child of an observer that sees nothing there: all is over, and nothing of the parent's is touched.
  void abandon();

 private:
  static constexpr std::uint32_t kOff = 0;
  static constexpr std::uint32_t kStarting = 1;
  static constexpr std::uint32_t kOn = 2;
  static constexpr std::uint32_t kEnded = 3;
  static constexpr std::size_t kInfosMax = 64;

  struct Buffer {
    std::uint32_t state;
    std::uint32_t thread;
    std::uint64_t dropped;           // by the owner
    alignas(64) std::uint64_t head;  // by the owner
    alignas(64) std::uint64_t tail;  // by who drains
    ObservedSpan spans[kThreadSpans];
  };
  struct Info {
    std::uint32_t is_ready;
    std::uint32_t said_in;
    std::uint32_t key_bytes, json_bytes;
    char key[96];
    char json[416];
  };

  Buffer* own_buffer();
  static void leave_buffer(void* buffer);
  void drain(std::int64_t now_ns);
  bool drain_locked(std::int64_t now_ns);
  bool is_ready_to_send();
  bool say_names(std::uint32_t count);
  bool say_infos(std::int64_t now_ns);
  bool send_spans(Buffer& buffer, std::uint64_t head);
  bool say_totals(std::int64_t now_ns);
  bool say_total(std::uint32_t number, std::int64_t now_ns);
  void count_losses();

  std::uint32_t state_;
  std::uint32_t lock_;  // of everything below
  std::int64_t drained_ns_;
  std::int64_t not_before_ns_;
  std::int32_t pid_;
  std::uint32_t key_of_thread_end_;
  std::uint32_t generation_;  // of the ring, and of each time that a reader asks for everything again
  std::uint32_t first_unsaid_;
  std::int64_t next_totals_ns_;
  std::uint64_t spans_seen_;
  std::int64_t own_time_ns_;
  std::uint64_t dropped_without_buffer_;
  std::uint32_t buffers_used_;
  std::uint32_t infos_used_;
  SpanBudget budget_;
  RingFile ring_;
  Info infos_[kInfosMax];
  std::uint64_t heads_[kObserverThreadsMax];
  Buffer buffers_[kObserverThreadsMax];
  NameTable names_;
};

}  // namespace hotlap
