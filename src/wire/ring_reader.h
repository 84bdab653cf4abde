#pragma once
// The recorder's end of a ring. The file is hostile: nothing in it is believed before it is checked, and it is
// read with pread, so that a file cut short under us is an error and not a signal. Never blocks; a poll looks at
// no more than the data area once, plus a bounded search after damage. One thread.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/span.h"
#include "wire/ring_layout.h"

namespace hotlap {

// Receives the records of one poll in the order they were written. Views are valid during the call only. Text is
// UTF-8 that may hold control characters; `process` of a span is 0.
class RecordVisitor {
 public:
  virtual ~RecordVisitor() = default;
  virtual void on_span(const Span& span, std::uint8_t flags) = 0;
  virtual void on_name(std::uint32_t id, std::string_view text_untrusted) = 0;
  virtual void on_info(std::int64_t t_ns, std::string_view key_untrusted, std::string_view json_untrusted) = 0;
  virtual void on_count(std::uint32_t name, std::int64_t t_ns, double value, std::int64_t step, std::uint8_t flags) = 0;
  virtual void on_phase(std::int64_t t_ns, std::uint32_t phase, std::int64_t step) = 0;
  virtual void on_process(const ProcessRecord& process) = 0;
  virtual void on_end(std::int64_t t_ns, std::uint32_t reason) = 0;
};

// What was lost or skipped so far, as seen from this end.
struct RingCounters {
  std::uint64_t frames = 0;
  std::uint64_t records = 0;
  std::uint64_t frames_damaged = 0;  // checksum or length wrong, or overwritten: counted by gaps in the sequence too
  std::uint64_t bytes_skipped = 0;
  std::uint64_t records_unknown = 0;    // of a type that a newer hook writes
  std::uint64_t records_malformed = 0;  // inside a frame whose checksum is right
  friend bool operator==(const RingCounters&, const RingCounters&) = default;
};

// What the hook lost or left out.
struct HookLosses {
  std::uint64_t records_dropped = 0;
  std::uint64_t errors = 0;
  std::uint64_t names_refused = 0;
  std::uint64_t spans_left_out = 0;  // by a native observer
};

class RingReader {
 public:
  // Opens `<pid>-<start>.ring`. kNotFound, kIo; kCorrupt when it is no ring, kUnsupported when its layout is newer
  // than ours, kInvalidInput when it is not a regular file of `owner_uid`.
  static Result<RingReader> open(const std::string& path, std::uint32_t owner_uid);
  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&& other) noexcept;
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;
  ~RingReader();

  // Drains every frame that is complete. kCorrupt when the file was cut short or its positions make no sense: the
  // ring is then of no further use, what came before was delivered.
  Result<void> poll(RecordVisitor& visitor);

  // As of the last open() or poll().
  const RingIdentity& identity() const { return page_.identity; }
  std::string_view run_id() const;
  const RingLive& live() const { return page_.live; }
  const RingCounters& counters() const { return counters_; }
  std::uint64_t head() const { return page_.head; }
  std::uint64_t backlog_bytes() const { return page_.head - tail_; }
  // Whether another reader took records out before: what they said was not said to us.
  bool was_read_before() const { return was_read_before_; }
  // What the hook lost, as of the last open() or poll(), and no reader has taken yet: it is taken with this, also for
  // later readers.
  HookLosses take_losses();
  // Whether another file is at `path` by now: a program that replaced itself (exec) makes one of the same name.
  bool is_replaced_at(const std::string& path) const;

  // Asks the hook for something; it answers at the end of a step. Returns the word to compare answer().word with.
  Result<std::uint64_t> send(HookCommand command, std::uint64_t argument);
  const RingAnswer& answer() const { return page_.answer; }

 private:
  RingReader() = default;
  Result<void> read_page();
  Result<void> read_data();
  std::uint64_t drain(RecordVisitor& visitor);
  std::uint64_t resynchronise(std::uint64_t position);
  bool frame_at(std::uint64_t position, RingFrameHead& head, std::uint64_t& checked_bytes) const;
  void visit_records(ByteView payload_untrusted, RecordVisitor& visitor);
  bool visit_record(RecordHead head, ByteView bytes_untrusted, RecordVisitor& visitor);

  int fd_ = -1;
  std::string path_;
  RingPage page_{};
  std::vector<std::byte> data_;  // what lies between tail_ and head, unwrapped
  std::uint64_t tail_ = 0;
  bool was_read_before_ = false;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t suspect_position_ =
      UINT64_MAX;                  // a frame that failed once: looked at again before it counts as damaged
  std::uint64_t damage_open_ = 0;  // frames counted as damaged that the next gap in the sequence includes
  std::uint64_t request_ = 0;
  RingCounters counters_;
};

// Reads and strips `<pid>-<start>.off`: at most kRingOffTextMax bytes, control characters replaced, one line.
Result<std::string> read_off_reason(const std::string& path, std::uint32_t owner_uid);

// "<pid>-<start ticks>" of a file name in the ring folder ("812-99120.ring", "812-99120.nvtx.ring"); nothing for any
// other name.
struct RingFileName {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string_view source;  // "nvtx": of a native observer; empty: of the hook
  std::string_view suffix;  // ".ring", ".on", ".off"
};
std::optional<RingFileName> parse_ring_file_name(std::string_view name);

}  // namespace hotlap
