#include "report/npz.h"

#include <algorithm>
#include <ostream>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::uint64_t kZipBytesMax = 0xFFFF'0000U;
constexpr std::size_t kZipEntriesMax = 65'535;
constexpr std::size_t kNameBytesMax = 65'000;
constexpr std::uint16_t kVersion = 20;        // of zip: 2.0
constexpr std::uint16_t kUtf8Names = 0x0800;  // flag 11
constexpr std::uint16_t kFirstDay = 0x0021;   // 1980-01-01: the same run gives the same bytes

// The code points of valid UTF-8.
std::vector<std::uint32_t> code_points(std::string_view text) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t point = size == 1 ? lead : lead & (0xFFU >> (size + 1));
    for (std::size_t k = 1; k < size && i + k < text.size(); ++k) {
      point = (point << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    }
    out.push_back(point);
    i += size;
  }
  return out;
}

}  // namespace

Bytes npy_of(std::string_view type, std::size_t count, ByteView content) {
  std::string header = format("{{'descr': {}, 'fortran_order': False, 'shape': ({},), }}", type, count);
  // Magic, version, header size and header together are a multiple of 64.
  constexpr std::size_t kBefore = 6 + 2 + 4;
  header.append((64 - (kBefore + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  Bytes out;
  out.reserve(kBefore + header.size() + content.size());
  put_bytes(out, as_bytes(std::string_view("\x93NUMPY\x02\x00", 8)));
  put_fixed(out, static_cast<std::uint32_t>(header.size()));
  put_bytes(out, as_bytes(header));
  put_bytes(out, content);
  return out;
}

Bytes npy_of(std::span<const double> values) { return npy_of("'<f8'", values.size(), std::as_bytes(values)); }
Bytes npy_of(std::span<const std::int64_t> values) { return npy_of("'<i8'", values.size(), std::as_bytes(values)); }

Bytes npy_of(std::span<const std::string> texts) {
  std::vector<std::vector<std::uint32_t>> points;
  std::size_t width = 1;
  for (const std::string& text : texts) {
    points.push_back(code_points(to_valid_utf8(text)));
    width = std::max(width, points.back().size());
  }
  std::vector<std::uint32_t> content(width * texts.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::copy(points[i].begin(), points[i].end(), content.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  return npy_of(format("'<U{}'", width), texts.size(), std::as_bytes(std::span(content)));
}

void NpzWriter::write(ByteView bytes) {
  const std::string_view text = as_text(bytes);
  out_.write(text.data(), static_cast<std::streamsize>(text.size()));
  offset_ += bytes.size();
}

Result<void> NpzWriter::add(std::string_view name, ByteView npy) {
  if (entries_.size() >= kZipEntriesMax || offset_ + npy.size() + name.size() + 1024 > kZipBytesMax) {
    return Error{ErrorCode::kResourceLimit, "more than a .npz holds (4 GiB, 65,535 arrays): export less, or as csv"};
  }
  Entry entry{.name = std::string(name.substr(0, kNameBytesMax)) + ".npy",
              .crc = crc32(npy),
              .size = static_cast<std::uint32_t>(npy.size()),
              .offset = static_cast<std::uint32_t>(offset_)};
  Bytes head;
  put_fixed(head, std::uint32_t{0x04034B50});
  for (const std::uint16_t field : {kVersion, kUtf8Names, std::uint16_t{0}, std::uint16_t{0}, kFirstDay}) {
    put_fixed(head, field);
  }
  for (const std::uint32_t field : {entry.crc, entry.size, entry.size}) put_fixed(head, field);
  put_fixed(head, static_cast<std::uint16_t>(entry.name.size()));
  put_fixed(head, std::uint16_t{0});
  put_bytes(head, as_bytes(entry.name));
  write(head);
  write(npy);
  entries_.push_back(std::move(entry));
  return {};
}

Result<void> NpzWriter::finish() {
  const auto begin = static_cast<std::uint32_t>(offset_);
  for (const Entry& entry : entries_) {
    Bytes head;
    put_fixed(head, std::uint32_t{0x02014B50});
    for (const std::uint16_t field : {kVersion, kVersion, kUtf8Names, std::uint16_t{0}, std::uint16_t{0}, kFirstDay}) {
      put_fixed(head, field);
    }
    for (const std::uint32_t field : {entry.crc, entry.size, entry.size}) put_fixed(head, field);
    put_fixed(head, static_cast<std::uint16_t>(entry.name.size()));
    for (int i = 0; i < 4; ++i) put_fixed(head, std::uint16_t{0});
    put_fixed(head, std::uint32_t{0});
    put_fixed(head, entry.offset);
    put_bytes(head, as_bytes(entry.name));
    write(head);
    if (offset_ > UINT32_MAX) return Error{ErrorCode::kResourceLimit, "more than a .npz holds (4 GiB)"};
  }
  const auto size = static_cast<std::uint32_t>(offset_ - begin);
  Bytes tail;
  put_fixed(tail, std::uint32_t{0x06054B50});
  put_fixed(tail, std::uint32_t{0});
  put_fixed(tail, static_cast<std::uint16_t>(entries_.size()));
  put_fixed(tail, static_cast<std::uint16_t>(entries_.size()));
  put_fixed(tail, size);
  put_fixed(tail, begin);
  put_fixed(tail, std::uint16_t{0});
  write(tail);
  return {};
}

}  // namespace hotlap
