#include "report/tensorboard_events.h"

#include <array>
#include <bit>
#include <ostream>

namespace hotlap {
namespace {

constexpr std::array<std::uint32_t, 256> kTable = [] {
  constexpr std::uint32_t kPolynomial = 0x82F6'3B78;  // reflected
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}();

// So that a CRC of data that holds CRCs is still one.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xA282'EAD8U; }

enum Wire : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
void put_key(Bytes& out, std::uint64_t field, Wire wire) { put_varint(out, field << 3U | wire); }
void put_bytes(Bytes& out, std::uint64_t field, ByteView content) {
  put_key(out, field, kBytes);
  put_varint(out, content.size());
  out.insert(out.end(), content.begin(), content.end());
}

// Fields of tensorflow/core/util/event.proto and summary.proto.
constexpr std::uint64_t kEventWallTime = 1;
constexpr std::uint64_t kEventStep = 2;
constexpr std::uint64_t kEventFileVersion = 3;
constexpr std::uint64_t kEventSummary = 5;
constexpr std::uint64_t kSummaryValue = 1;
constexpr std::uint64_t kValueTag = 1;
constexpr std::uint64_t kValueSimple = 2;

}  // namespace

std::uint32_t crc32c(ByteView bytes) {
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) crc = kTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

TensorboardEvents::TensorboardEvents(std::ostream& out, double wall_s) : out_(out) {
  put_key(event_, kEventWallTime, kFixed64);
  put_fixed(event_, wall_s);
  put_bytes(event_, kEventFileVersion, as_bytes("brain.Event:2"));
  write_record(event_);
}

void TensorboardEvents::add_scalar(std::string_view tag, std::int64_t step, double wall_s, float value) {
  value_.clear();
  put_bytes(value_, kValueTag, as_bytes(tag));
  put_key(value_, kValueSimple, kFixed32);
  put_fixed(value_, value);
  summary_.clear();
  put_bytes(summary_, kSummaryValue, value_);
  event_.clear();
  put_key(event_, kEventWallTime, kFixed64);
  put_fixed(event_, wall_s);
  put_key(event_, kEventStep, kVarint);
  put_varint(event_, static_cast<std::uint64_t>(step));
  put_bytes(event_, kEventSummary, summary_);
  write_record(event_);
}

void TensorboardEvents::write_record(ByteView content) {
  Bytes head;
  put_fixed(head, static_cast<std::uint64_t>(content.size()));
  put_fixed(head, masked(crc32c(head)));
  Bytes tail;
  put_fixed(tail, masked(crc32c(content)));
  for (const ByteView part : {ByteView(head), content, ByteView(tail)}) {
    const std::string_view text = as_text(part);
    out_.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
}

}  // namespace hotlap
