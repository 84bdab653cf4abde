#include "ingest/lines.h"

#include <algorithm>

#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::size_t kMarkBytes = 3;  // of the longest byte order mark, UTF-8's
constexpr std::string_view kMarkUtf8 = "\xEF\xBB\xBF";
constexpr std::string_view kMarkLittle = "\xFF\xFE";
constexpr std::string_view kMarkBig = "\xFE\xFF";

void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

bool LineCutter::learn_encoding(std::string_view chunk) {
  moved_ = std::min(chunk.size(), kMarkBytes - head_.size());
  head_ += chunk.substr(0, moved_);
  if (head_.size() < kMarkBytes) return false;
  encoding_ = head_.starts_with(kMarkLittle) ? Encoding::kUtf16Little
              : head_.starts_with(kMarkBig)  ? Encoding::kUtf16Big
                                             : Encoding::kUtf8;
  std::size_t mark = encoding_ == Encoding::kUtf8 ? 0 : kMarkLittle.size();
  if (head_ == kMarkUtf8) mark = kMarkUtf8.size();
  head_.erase(0, mark);
  bytes_ = mark;
  line_offset_ = static_cast<std::int64_t>(mark);
  return true;
}

std::string LineCutter::take_head() {
  std::string head;
  head.swap(head_);
  return head;
}

std::string_view LineCutter::rest_of(std::string_view chunk) {
  chunk.remove_prefix(moved_);
  moved_ = 0;
  return chunk;
}

std::string_view LineCutter::decode_utf16(char byte) {
  const auto value = static_cast<std::uint32_t>(static_cast<unsigned char>(byte));
  if (!has_half_unit_) {
    unit_ = value;
    has_half_unit_ = true;
    return {};
  }
  has_half_unit_ = false;
  unit_ = encoding_ == Encoding::kUtf16Little ? unit_ | (value << 8) : (unit_ << 8) | value;
  decoded_.clear();
  const bool is_second_half = unit_ >= 0xDC00 && unit_ < 0xE000;
  if (surrogate_ != 0 && is_second_half) {
    append_utf8(decoded_, 0x10000 + ((surrogate_ - 0xD800) << 10) + (unit_ - 0xDC00));
    surrogate_ = 0;
    return decoded_;
  }
  surrogate_ = 0;
  if (unit_ >= 0xD800 && unit_ < 0xDC00) {
    surrogate_ = unit_;
    return {};
  }
  append_utf8(decoded_, is_second_half ? 0xFFFD : unit_);
  return decoded_;
}

void LineCutter::keep(std::string_view text) {
  const std::size_t room = line_bytes_max_ - line_.size();
  is_too_long_ |= text.size() > room;
  line_ += text.substr(0, room);
}

std::string sniffed_text(ByteView head_untrusted) {
  std::string text;
  LineCutter cutter(head_untrusted.size());
  const auto take = [&](const TextLine& line) {
    text += line.text;
    if (line.has_end) text += '\n';
  };
  cutter.push(head_untrusted, take);
  cutter.finish(take);
  return text;
}

std::string_view first_row(std::string_view text) {
  for (std::string_view line; next_line(text, line);) {
    if (!trim(line).empty() && !line.starts_with('#')) return trim(line);
  }
  return {};
}

}  // namespace hotlap
