#pragma once
// Reads documents of Chrome trace events in pieces of any size: an object with "traceEvents" anywhere in it, also in
// objects inside it, a bare list, a list of documents, one event a line, several of them in one file, closed or cut
// off. Events are handed on as they come; what is told does not depend on where pieces end. Memory: one piece and at
// most kEventBytesMax of what is left of the last one. One bad event costs one event. Confined to one thread.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "ingest/argument_keys.h"
#include "ingest/event_shapes.h"
#include "ingest/trace_event.h"

namespace hotlap {

class TraceReader {
 public:
  static constexpr std::size_t kEventBytesMax = std::size_t{8} << 20;   // larger ones are dropped
  static constexpr std::size_t kMemberBytesMax = std::size_t{1} << 20;  // larger members are skipped unseen

  class Handler {
   public:
    virtual ~Handler() = default;
    // A document begins, which may be of another writer.
    virtual void on_document() {}
    // Views are valid during the call.
    virtual void on_event(const TraceEvent& event, std::int64_t offset) = 0;
    // A member of the document beside "traceEvents"; `value` as it stands in the text.
    virtual void on_member(std::string_view key, std::string_view value) = 0;
    virtual void on_loss(std::string_view counter, std::int64_t offset) = 0;
  };

  struct Options {
    bool is_strict = false;               // what is no JSON is counted as a repair also where the reader does not mind
    bool uses_shapes = true;              // the same without, but slower: for tests
    const KeptArguments* kept = nullptr;  // outlives the reader; null: no details
  };
  explicit TraceReader(Handler& handler, Options options)
      : handler_(handler), options_(options), shapes_(options.kept) {}
  explicit TraceReader(Handler& handler) : TraceReader(handler, Options{}) {}

  void push(ByteView chunk_untrusted);
  void finish();
  std::uint64_t bytes() const { return bytes_; }

 private:
  enum class Place : std::uint8_t { kDocument, kMembers, kEvents, kHugeMember };

  const char* consume(const char* at, const char* end, bool is_last);
  const char* in_document(const char* at, const char* end, bool is_last);
  const char* in_members(const char* at, const char* end);
  const char* member(std::string_view key, const char* value, const char* stop);
  const char* in_events(const char* at, const char* end, bool is_last);
  void look_inside(const char* value);
  const char* in_huge_member(const char* at, const char* end);
  bool check(const TraceEvent& event, std::string_view text, std::int64_t offset);
  const char* damaged_event(const char* at, const char* limit, bool is_last);
  const char* unreadable(const char* at, const char* end);
  std::int64_t offset_of(const char* at) const { return window_offset_ + (at - window_); }

  Handler& handler_;
  Options options_;
  ArgumentKeys argument_keys_;
  EventShapes shapes_;
  Place place_ = Place::kDocument;
  bool is_waiting_ = false;     // set by consume(): what is left needs more input
  bool is_unreadable_ = false;  // inside text that was counted already
  std::string closers_;         // of what is open around the events: "}" of their document
  // Inside a huge member.
  std::size_t depth_ = 0;     // of closers_ around it
  std::uint64_t unkept_ = 0;  // nested deeper than is kept in closers_
  bool is_in_text_ = false;
  bool is_escaped_ = false;
  std::string text_;  // the beginning of the last one
  enum class Behind : std::uint8_t { kOther, kText, kColon } behind_ = Behind::kOther;

  std::string carry_;            // what the last pieces left, from the start of something unfinished
  std::size_t retry_bytes_ = 0;  // not looked at again before it has grown to this
  const char* window_ = nullptr;
  std::int64_t window_offset_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace hotlap
