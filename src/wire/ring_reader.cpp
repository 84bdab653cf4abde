#include "wire/ring_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

// Reads exactly `bytes`; false with errno 0 when the file is shorter.
bool read_whole(int fd, void* into, std::size_t bytes, std::uint64_t offset) {
  auto* out = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got == 0) errno = 0;
      return false;
    }
    out += got;
    bytes -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

bool write_whole(int fd, const void* from, std::size_t bytes, std::uint64_t offset) {
  ssize_t done = 0;
  do {
    done = ::pwrite(fd, from, bytes, static_cast<off_t>(offset));
  } while (done < 0 && errno == EINTR);
  return done == static_cast<ssize_t>(bytes);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// The file behind `path` if it is a regular file of `owner_uid`.
Result<int> open_owned(const std::string& path, std::uint32_t owner_uid, int flags, struct stat& found) {
  const int fd = ::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return errno == ENOENT ? Error{ErrorCode::kNotFound, path + ": no such file"} : errno_error(path, errno);
  }
  if (::fstat(fd, &found) != 0) {
    const int failure = errno;
    ::close(fd);
    return errno_error(path, failure);
  }
  if (!S_ISREG(found.st_mode) || found.st_uid != owner_uid) {
    ::close(fd);
    return Error{ErrorCode::kInvalidInput, format("{}: not a file of user {}", path, owner_uid)};
  }
  return fd;
}

}  // namespace

Result<RingReader> RingReader::open(const std::string& path, std::uint32_t owner_uid) {
  struct stat found {};
  RingReader reader;
  HOTLAP_TRY_ASSIGN(reader.fd_, open_owned(path, owner_uid, O_RDWR, found));
  reader.path_ = path;
  if (!read_whole(reader.fd_, &reader.page_, sizeof reader.page_, 0)) {
    return Error{ErrorCode::kCorrupt, path + ": too short for a ring"};
  }
  const RingPage& page = reader.page_;
  const RingIdentity& identity = page.identity;
  if (std::string_view(identity.magic, sizeof identity.magic) != kRingMagic) {
    return Error{ErrorCode::kCorrupt, path + ": not a ring"};
  }
  if (identity.layout_version > kRingLayoutVersion) {
    return Error{ErrorCode::kUnsupported, format("{}: ring layout {} is newer than this program's {}; update hotlap",
                                                 path, identity.layout_version, kRingLayoutVersion)};
  }
  const std::uint64_t data_bytes = identity.data_bytes;
  if (identity.layout_version == 0 || identity.page_bytes != kRingPageBytes || data_bytes < kRingDataBytesMin ||
      data_bytes > kRingDataBytesMax || data_bytes % 8 != 0) {
    return Error{ErrorCode::kCorrupt, path + ": a ring with impossible sizes"};
  }
  if (static_cast<std::uint64_t>(found.st_size) < kRingPageBytes + data_bytes) {
    return Error{ErrorCode::kCorrupt, path + ": a ring that was cut short"};
  }
  if (page.tail % 8 != 0 || page.head < page.tail || page.head - page.tail > data_bytes) {
    return Error{ErrorCode::kCorrupt, path + ": a ring with impossible positions"};
  }
  reader.tail_ = page.tail;
  reader.was_read_before_ = page.tail > 0;
  reader.request_ = page.command.word >> 16;
  return reader;
}

RingReader::RingReader(RingReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      page_(other.page_),
      data_(std::move(other.data_)),
      tail_(other.tail_),
      was_read_before_(other.was_read_before_),
      next_sequence_(other.next_sequence_),
      suspect_position_(other.suspect_position_),
      damage_open_(other.damage_open_),
      request_(other.request_),
      counters_(other.counters_) {}

RingReader& RingReader::operator=(RingReader&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(page_, other.page_);
  std::swap(data_, other.data_);
  std::swap(tail_, other.tail_);
  std::swap(was_read_before_, other.was_read_before_);
  std::swap(next_sequence_, other.next_sequence_);
  std::swap(suspect_position_, other.suspect_position_);
  std::swap(damage_open_, other.damage_open_);
  std::swap(request_, other.request_);
  std::swap(counters_, other.counters_);
  return *this;
}

RingReader::~RingReader() {
  if (fd_ >= 0) ::close(fd_);
}

std::string_view RingReader::run_id() const {
  const char* text = page_.identity.run_id;
  return {text, ::strnlen(text, sizeof page_.identity.run_id)};
}

// Takes a new look at page 0. The sizes checked at open() stay in force whatever the file says by now.
Result<void> RingReader::read_page() {
  RingPage fresh;
  if (!read_whole(fd_, &fresh, sizeof fresh, 0)) return Error{ErrorCode::kCorrupt, path_ + ": the ring was cut short"};
  const std::uint64_t data_bytes = page_.identity.data_bytes;
  if (fresh.head % 8 != 0 || fresh.head < tail_ || fresh.head - tail_ > data_bytes) {
    return Error{ErrorCode::kCorrupt, path_ + ": the ring's positions make no sense"};
  }
  fresh.identity.data_bytes = data_bytes;
  fresh.tail = tail_;
  fresh.told = page_.told;
  page_ = fresh;
  return {};
}

Result<void> RingReader::read_data() {
  const std::uint64_t data_bytes = page_.identity.data_bytes;
  const std::uint64_t unread = page_.head - tail_;
  const std::uint64_t offset = tail_ % data_bytes;
  const std::uint64_t first = std::min(unread, data_bytes - offset);
  data_.resize(unread);
  if (!read_whole(fd_, data_.data(), first, kRingPageBytes + offset) ||
      !read_whole(fd_, data_.data() + first, unread - first, kRingPageBytes)) {
    return Error{ErrorCode::kCorrupt, path_ + ": the ring was cut short"};
  }
  return {};
}

Result<void> RingReader::poll(RecordVisitor& visitor) {
  HOTLAP_TRY(read_page());
  if (page_.head == tail_) return {};
  HOTLAP_TRY(read_data());
  const std::uint64_t reached = drain(visitor);
  if (reached == tail_) return {};
  tail_ = reached;
  page_.tail = reached;
  // Eight aligned bytes; a writer that saw them torn would find them out of its bounds or lose a frame, which is
  // counted.
  if (!write_whole(fd_, &reached, sizeof reached, offsetof(RingPage, tail))) return errno_error(path_, errno);
  return {};
}

// Visits what is whole from tail_ on and returns where the next poll begins.
std::uint64_t RingReader::drain(RecordVisitor& visitor) {
  const std::uint64_t data_bytes = page_.identity.data_bytes;
  std::uint64_t position = tail_;
  while (position < page_.head) {
    const std::uint64_t room = data_bytes - position % data_bytes;
    const std::uint64_t unread = page_.head - position;
    if (load<std::uint32_t>(data_.data() + (position - tail_)) == kRingPad && room <= unread) {
      position += room;
      continue;
    }
    RingFrameHead frame{};
    std::uint64_t checked_bytes = 0;
    if (frame_at(position, frame, checked_bytes)) {
      const std::uint64_t missing = next_sequence_ == 0 ? 0 : frame.sequence - next_sequence_;
      // A hostile sequence cannot make the count absurd: no more frames than fit are missing between two polls.
      if (missing > damage_open_ && missing <= data_bytes) counters_.frames_damaged += missing - damage_open_;
      damage_open_ = 0;
      next_sequence_ = frame.sequence + 1;
      ++counters_.frames;
      visit_records(ByteView(data_).subspan(position - tail_ + sizeof frame, frame.payload_bytes), visitor);
      position += ring_frame_bytes(frame.payload_bytes);
      continue;
    }
    // On machines that reorder stores, head may be seen before the frame: it gets a second look at the next poll.
    if (suspect_position_ != position) {
      suspect_position_ = position;
      return position;
    }
    const std::uint64_t found = resynchronise(position);
    ++counters_.frames_damaged;
    ++damage_open_;
    counters_.bytes_skipped += found - position;
    position = found;
  }
  return position;
}

// A whole, plausible frame at `position`? Adds to `checked_bytes` what the answer cost.
bool RingReader::frame_at(std::uint64_t position, RingFrameHead& head, std::uint64_t& checked_bytes) const {
  const std::uint64_t data_bytes = page_.identity.data_bytes;
  const std::uint64_t room = std::min(data_bytes - position % data_bytes, page_.head - position);
  if (room < sizeof head) return false;
  const std::byte* place = data_.data() + (position - tail_);
  head = load<RingFrameHead>(place);
  if (head.payload_bytes < 8 || head.payload_bytes % 8 != 0 || head.payload_bytes > kRingFramePayloadMax) return false;
  if (ring_frame_bytes(head.payload_bytes) > room || head.sequence < next_sequence_) return false;
  checked_bytes += head.payload_bytes;
  return crc32(ByteView(place + sizeof head, head.payload_bytes), static_cast<std::uint32_t>(head.sequence)) ==
         head.crc;
}

// The first position after `position` where a frame (or the pad before the wrap) begins, else head. The work is
// bounded: a hostile file that looks like frames everywhere is given up.
std::uint64_t RingReader::resynchronise(std::uint64_t position) {
  const std::uint64_t data_bytes = page_.identity.data_bytes;
  std::uint64_t checked_bytes = 0;
  for (std::uint64_t at = position + 8; at + sizeof(RingFrameHead) <= page_.head; at += 8) {
    if (at % data_bytes == 0) return at;  // frames do not wrap: one begins here or the data ends here
    RingFrameHead head{};
    if (frame_at(at, head, checked_bytes)) return at;
    if (checked_bytes > 2 * data_bytes) break;
  }
  return page_.head;
}

void RingReader::visit_records(ByteView rest, RecordVisitor& visitor) {
  while (!rest.empty()) {
    const auto head = load<RecordHead>(rest.data());  // rest is a multiple of 8
    if (head.size < 8 || head.size % 8 != 0 || head.size > rest.size()) {
      ++counters_.records_malformed;
      return;
    }
    if (visit_record(head, rest.first(head.size), visitor)) ++counters_.records;
    rest = rest.subspan(head.size);
  }
}

bool RingReader::visit_record(RecordHead head, ByteView bytes, RecordVisitor& visitor) {
  const auto fits = [&](std::size_t needed) {
    if (bytes.size() >= needed) return true;
    ++counters_.records_malformed;
    return false;
  };
  switch (static_cast<RecordType>(head.type)) {
    case RecordType::kSpan: {
      if (!fits(sizeof(SpanRecord))) return false;
      const auto r = load<SpanRecord>(bytes.data());
      if (r.kind == 0 || r.kind >= kSpanKindCount) break;
      visitor.on_span(Span{.start_ns = r.start_ns,
                           .duration_ns = r.duration_ns,
                           .kind = static_cast<SpanKind>(r.kind),
                           .process = 0,
                           .thread = r.thread,
                           .name = r.name,
                           .step = r.step,
                           .value_a = r.value_a,
                           .value_b = r.value_b},
                      head.flags);
      return true;
    }
    case RecordType::kName: {
      if (!fits(sizeof(NameRecord))) return false;
      const auto r = load<NameRecord>(bytes.data());
      if (!fits(sizeof r + r.text_bytes)) return false;
      visitor.on_name(r.id, as_text(bytes.subspan(sizeof r, r.text_bytes)));
      return true;
    }
    case RecordType::kInfo: {
      if (!fits(sizeof(InfoRecord))) return false;
      const auto r = load<InfoRecord>(bytes.data());
      if (!fits(sizeof r + r.key_bytes + r.json_bytes)) return false;
      visitor.on_info(r.t_ns, as_text(bytes.subspan(sizeof r, r.key_bytes)),
                      as_text(bytes.subspan(sizeof r + r.key_bytes, r.json_bytes)));
      return true;
    }
    case RecordType::kCount: {
      if (!fits(sizeof(CountRecord))) return false;
      const auto r = load<CountRecord>(bytes.data());
      visitor.on_count(r.name, r.t_ns, r.value, r.step, head.flags);
      return true;
    }
    case RecordType::kPhase: {
      if (!fits(sizeof(PhaseRecord))) return false;
      const auto r = load<PhaseRecord>(bytes.data());
      visitor.on_phase(r.t_ns, r.phase, r.step);
      return true;
    }
    case RecordType::kProcess: {
      if (!fits(sizeof(ProcessRecord))) return false;
      visitor.on_process(load<ProcessRecord>(bytes.data()));
      return true;
    }
    case RecordType::kEnd: {
      if (!fits(sizeof(EndRecord))) return false;
      const auto r = load<EndRecord>(bytes.data());
      visitor.on_end(r.t_ns, r.reason);
      return true;
    }
  }
  ++counters_.records_unknown;
  return false;
}

Result<std::uint64_t> RingReader::send(HookCommand command, std::uint64_t argument) {
  const std::uint64_t word = (++request_ << 16) | static_cast<std::uint64_t>(command);
  if (!write_whole(fd_, &argument, sizeof argument, offsetof(RingPage, command) + offsetof(RingCommand, argument)) ||
      !write_whole(fd_, &word, sizeof word, offsetof(RingPage, command) + offsetof(RingCommand, word))) {
    return errno_error(path_, errno);
  }
  return word;
}

HookLosses RingReader::take_losses() {
  bool is_new = false;
  const auto take = [&](std::uint64_t now, std::uint64_t& told) {
    const std::uint64_t before = std::exchange(told, std::max(told, now));
    is_new |= told != before;
    return told - before;
  };
  const RingLive& live = page_.live;
  const HookLosses fresh{.records_dropped = take(live.records_dropped, page_.told.records_dropped),
                         .errors = take(live.errors, page_.told.errors),
                         .names_refused = take(live.names_refused, page_.told.names_refused),
                         .spans_left_out = take(live.spans_left_out, page_.told.spans_left_out)};
  // Not written: a later reader tells it once more.
  if (is_new) (void)write_whole(fd_, &page_.told, sizeof page_.told, offsetof(RingPage, told));
  return fresh;
}

bool RingReader::is_replaced_at(const std::string& path) const {
  struct stat own {};
  struct stat there {};
  return ::fstat(fd_, &own) == 0 && ::lstat(path.c_str(), &there) == 0 && own.st_ino != there.st_ino;
}

Result<std::string> read_off_reason(const std::string& path, std::uint32_t owner_uid) {
  struct stat found {};
  HOTLAP_TRY_ASSIGN(const int fd, open_owned(path, owner_uid, O_RDONLY, found));
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(found.st_size), kRingOffTextMax), '\0');
  const bool whole = read_whole(fd, text.data(), text.size(), 0);
  ::close(fd);
  if (!whole) return Error{ErrorCode::kIo, path + ": cannot be read"};
  text = text.substr(0, text.find('\n'));
  return strip_control(to_valid_utf8(text));
}

std::optional<RingFileName> parse_ring_file_name(std::string_view name) {
  const std::size_t dash = name.find('-');
  const std::size_t dot = name.find('.');
  if (dash == std::string_view::npos || dot == std::string_view::npos || dot < dash) return std::nullopt;
  const std::size_t last_dot = name.rfind('.');
  const std::string_view suffix = name.substr(last_dot);
  if (suffix != kRingSuffix && suffix != kRingOnSuffix && suffix != kRingOffSuffix) return std::nullopt;
  std::string_view source;
  if (last_dot != dot) {
    source = name.substr(dot + 1, last_dot - dot - 1);
    const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    if (source.empty() || source.size() > kRingSourceMax || !std::ranges::all_of(source, is_letter))
      return std::nullopt;
  }
  const auto pid = parse_u64(name.substr(0, dash));
  const auto start = parse_u64(name.substr(dash + 1, dot - dash - 1));
  if (!pid || !start || *pid == 0 || *pid > UINT32_MAX) return std::nullopt;
  return RingFileName{static_cast<std::uint32_t>(*pid), *start, source, suffix};
}

}  // namespace hotlap
