#pragma once
// Reads trace events by their shape. A profiler prints its events with few different texts around the values: what
// stands between two values is compared, not scanned, and a value goes where the shape says. Twice as fast as
// scan_event(), with the same outcome: whatever is not plain (an escape, a byte from 0x80 on, an odd number, a member
// more or fewer, the end of the input) is not taken here. Bounded: kShapesMax of kShapeBytesMax. Confined to one
// thread.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/trace_event.h"

namespace hotlap {

class EventShapes {
 public:
  static constexpr std::size_t kShapesMax = 48;
  static constexpr std::size_t kShapeBytesMax = 4096;  // of text between values
  static constexpr std::size_t kMembersMax = 256;

  // `kept`: which arguments are details; null: none. It outlives this.
  explicit EventShapes(const KeptArguments* kept = nullptr) : kept_(kept) {}
  // `at` stands at an event's '{'. The event's end, and the event; null: not of a known shape, scan it.
  const char* read(const char* at, const char* end, TraceEvent& out);
  // Takes the shape of an event that scan_event() has read from `text`, if it has one and there is room.
  void learn(std::string_view text, const TraceEvent& event);

 private:
  enum class Target : std::uint8_t {
    kName,
    kArgumentName,
    kProcess,
    kThread,
    kId,
    kStart,
    kDuration,
    kNumber,  // an argument that is kept
    kNothing,
  };
  enum class Form : std::uint8_t { kText, kToken, kNest };
  // What stands in front of a value, then the value.
  struct Part {
    std::uint32_t literal = 0;  // in literals_, padded to whole lanes
    std::uint32_t length = 0;
    Target target = Target::kNothing;
    Form form = Form::kToken;
    std::int64_t TraceEvent::*number = nullptr;
  };
  struct Shape {
    std::string literals;
    std::vector<Part> parts;  // the last one has no value: it ends the event
    TraceEvent event;         // what is the same in all of them
    // Where in the text: at this byte of the literal of a part.
    struct Place {
      std::size_t part = SIZE_MAX;
      std::size_t offset = 0;
    };
    Place category;
    std::size_t category_length = 0;
    Place arguments;
    Place arguments_end;
    Place details;
    Place details_end;
    std::size_t next = 0;  // the shape that came behind it the last time
  };
  class Learner;

  static const char* read_as(const Shape& shape, const char* at, const char* end, TraceEvent& out);

  const KeptArguments* kept_;
  std::vector<Shape> shapes_;
  std::size_t last_ = 0;
  std::uint32_t refused_ = 0;  // events that have no shape; after many of them few are looked at
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  bool is_off_ = false;  // most events have no shape that is known
};

}  // namespace hotlap
