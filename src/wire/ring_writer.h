#pragma once
// The native writer of a ring: for tests, golden files and later native parts. The Python hook has its own
// (python/src/hotlap/_wire.py) that produces the same bytes. Confined to one thread; never blocks; a full ring drops.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "model/span.h"
#include "wire/ring_layout.h"

namespace hotlap {

class RingWriter {
 public:
  // Makes `path` (which must not exist; it appears complete) with the identity given: magic, version, sizes are
  // filled in.
  static Result<RingWriter> create(const std::string& path, RingIdentity identity, std::uint64_t data_bytes);
  RingWriter(RingWriter&& other) noexcept;
  RingWriter& operator=(RingWriter&& other) noexcept;
  RingWriter(const RingWriter&) = delete;
  RingWriter& operator=(const RingWriter&) = delete;
  ~RingWriter();

  // Records gather in memory until flush().
  void span(const Span& span, std::uint8_t flags = 0);
  void name(std::uint32_t id, std::string_view text);
  void info(std::int64_t t_ns, std::string_view key, std::string_view json);
  void count(std::uint32_t name, std::int64_t t_ns, double value, std::int64_t step, std::uint8_t flags = 0);
  void phase(std::int64_t t_ns, std::uint32_t phase, std::int64_t step);
  void process(const ProcessRecord& process);
  void end(std::int64_t t_ns, std::uint32_t reason);
  // A record of any type: what a newer hook may write.
  void raw(RecordHead head, ByteView content);

  // One frame of all that gathered; false when it was dropped because the ring is full.
  bool flush();

  // The first page itself, for live state, command and answer.
  RingPage& page();

 private:
  RingWriter() = default;
  std::byte* data() const;
  void append(const void* record, std::size_t bytes, ByteView first, ByteView second);

  void* map_ = nullptr;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t records_ = 0;
  Bytes pending_;
};

}  // namespace hotlap
