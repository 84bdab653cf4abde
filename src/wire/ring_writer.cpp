#include "wire/ring_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "wire/ring_frame.h"

namespace hotlap {
namespace {

template <class T>
RecordHead record_head(RecordType type, std::size_t bytes = sizeof(T), std::uint8_t flags = 0) {
  return {static_cast<std::uint8_t>(type), flags, static_cast<std::uint16_t>((bytes + 7) & ~std::size_t{7})};
}

}  // namespace

Result<RingWriter> RingWriter::create(const std::string& path, RingIdentity identity, std::uint64_t data_bytes) {
  HOTLAP_CHECK(data_bytes % 8 == 0 && data_bytes >= kRingDataBytesMin && data_bytes <= kRingDataBytesMax);
  const std::string unfinished = path + ".new";
  const int fd = ::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return errno_error("ring " + unfinished, errno);
  RingWriter writer;
  writer.file_bytes_ = kRingPageBytes + data_bytes;
  const int allocated = ::posix_fallocate(fd, 0, static_cast<off_t>(writer.file_bytes_));
  void* map =
      allocated == 0 ? ::mmap(nullptr, writer.file_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  const int failure = allocated != 0 ? allocated : errno;
  ::close(fd);
  if (map == MAP_FAILED) {
    ::unlink(unfinished.c_str());
    return errno_error("ring " + unfinished, failure);
  }
  writer.map_ = map;
  std::memcpy(identity.magic, kRingMagic.data(), sizeof identity.magic);
  identity.layout_version = kRingLayoutVersion;
  identity.page_bytes = kRingPageBytes;
  identity.data_bytes = data_bytes;
  RingPage& page = writer.page();
  page.identity = identity;
  page.live.step = page.live.step_end_ns = page.live.collective_group = page.live.collective_sequence = -1;
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return errno_error("ring " + path, errno);
  return writer;
}

RingWriter::RingWriter(RingWriter&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)),
      file_bytes_(other.file_bytes_),
      sequence_(other.sequence_),
      records_(other.records_),
      pending_(std::move(other.pending_)) {}

RingWriter& RingWriter::operator=(RingWriter&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(file_bytes_, other.file_bytes_);
  std::swap(sequence_, other.sequence_);
  std::swap(records_, other.records_);
  std::swap(pending_, other.pending_);
  return *this;
}

RingWriter::~RingWriter() {
  if (map_ != nullptr) ::munmap(map_, file_bytes_);
}

RingPage& RingWriter::page() { return *static_cast<RingPage*>(map_); }

std::byte* RingWriter::data() const { return static_cast<std::byte*>(map_) + kRingPageBytes; }

void RingWriter::append(const void* record, std::size_t bytes, ByteView first, ByteView second) {
  put_bytes(pending_, ByteView(static_cast<const std::byte*>(record), bytes));
  put_bytes(pending_, first);
  put_bytes(pending_, second);
  pending_.resize((pending_.size() + 7) & ~std::size_t{7});
  ++records_;
}

void RingWriter::span(const Span& span, std::uint8_t flags) {
  const SpanRecord record{record_head<SpanRecord>(RecordType::kSpan, sizeof(SpanRecord), flags),
                          static_cast<std::uint16_t>(span.kind),
                          0,
                          span.start_ns,
                          span.duration_ns,
                          span.thread,
                          span.name,
                          span.step,
                          span.value_a,
                          span.value_b};
  append(&record, sizeof record, {}, {});
}

void RingWriter::name(std::uint32_t id, std::string_view text) {
  const NameRecord record{record_head<NameRecord>(RecordType::kName, sizeof(NameRecord) + text.size()),
                          id,
                          static_cast<std::uint16_t>(text.size()),
                          {}};
  append(&record, sizeof record, as_bytes(text), {});
}

void RingWriter::info(std::int64_t t_ns, std::string_view key, std::string_view json) {
  const InfoRecord record{record_head<InfoRecord>(RecordType::kInfo, sizeof(InfoRecord) + key.size() + json.size()),
                          static_cast<std::uint16_t>(key.size()), static_cast<std::uint16_t>(json.size()), t_ns};
  append(&record, sizeof record, as_bytes(key), as_bytes(json));
}

void RingWriter::count(std::uint32_t name, std::int64_t t_ns, double value, std::int64_t step, std::uint8_t flags) {
  CountRecord record{record_head<CountRecord>(RecordType::kCount), name, t_ns, value, step};
  record.head.flags = flags;
  append(&record, sizeof record, {}, {});
}

void RingWriter::phase(std::int64_t t_ns, std::uint32_t phase, std::int64_t step) {
  const PhaseRecord record{record_head<PhaseRecord>(RecordType::kPhase), phase, t_ns, step};
  append(&record, sizeof record, {}, {});
}

void RingWriter::process(const ProcessRecord& process) {
  ProcessRecord record = process;
  record.head = record_head<ProcessRecord>(RecordType::kProcess);
  append(&record, sizeof record, {}, {});
}

void RingWriter::end(std::int64_t t_ns, std::uint32_t reason) {
  const EndRecord record{record_head<EndRecord>(RecordType::kEnd), reason, t_ns};
  append(&record, sizeof record, {}, {});
}

void RingWriter::raw(RecordHead head, ByteView content) { append(&head, sizeof head, content, {}); }

bool RingWriter::flush() {
  const std::uint64_t records = std::exchange(records_, 0);
  const Bytes payload = std::exchange(pending_, {});
  if (payload.empty()) return true;
  HOTLAP_CHECK(payload.size() <= kRingFramePayloadMax);
  if (!publish_frame(page(), data(), page().identity.data_bytes, payload.data(), payload.size(), sequence_)) {
    page().live.records_dropped += records;
    page().live.frames_dropped += 1;
    return false;
  }
  ++sequence_;
  page().live.records_sent += records;
  return true;
}

}  // namespace hotlap
