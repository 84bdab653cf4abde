#include "observe/names.h"

#include <cstring>

namespace hotlap {
namespace {

constexpr std::uint32_t kRefused = UINT32_MAX;
constexpr int kSpinsMax = 256;  // while another thread copies a name of at most 512 bytes

// Not for keeping: a hash of this process alone.
std::uint64_t hash_of(std::string_view text) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
  std::uint64_t hash = text.size() * kFactor;
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 29;
  };
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= sizeof(std::uint64_t); at += sizeof(std::uint64_t), left -= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    mix(word);
  }
  std::uint64_t last = 0;
  std::memcpy(&last, at, left);
  mix(last);
  mix(hash >> 32);
  return hash | 1;  // 0 means free
}

}  // namespace

std::string_view cut_utf8(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return text.substr(0, limit);
}

std::uint32_t NameTable::number_of(std::string_view text) {
  text = cut_utf8(text, kObserverNameBytesMax);
  const std::uint64_t hash = hash_of(text);
  for (std::uint32_t probe = 0; probe < kProbesMax; ++probe) {
    Slot& slot = slots_[(hash + probe) % kSlots];
    std::uint64_t found = load_word(slot.hash);
    if (found == 0) {
      if (swap_word<std::uint64_t>(slot.hash, 0, hash)) return fill(slot, text);
      found = load_word(slot.hash);
    }
    if (found != hash) continue;
    std::uint32_t number = load_word(slot.number);
    for (int spin = 0; number == 0 && spin < kSpinsMax; ++spin) number = load_word(slot.number);
    if (number == 0) return 0;
    if (number == kRefused) {
      add_word<std::uint64_t>(refused_, 1);
      return 0;
    }
    if (this->text(at(number)) == text) return number;
  }
  add_word<std::uint64_t>(refused_, 1);
  return 0;
}

std::uint32_t NameTable::fill(Slot& slot, std::string_view text) {
  const auto bytes = static_cast<std::uint32_t>(text.size());
  const std::uint32_t offset = add_word(text_used_, bytes);
  // Room that was taken for a name that is refused is not given back: others may have taken more behind it.
  const std::uint32_t index = offset <= kTextBytes - bytes ? add_word<std::uint32_t>(count_, 1) : kNamesMax;
  if (index >= kNamesMax) {
    store_word(slot.number, kRefused);
    add_word<std::uint64_t>(refused_, 1);
    return 0;
  }
  Name& name = names_[index];
  std::memcpy(text_ + offset, text.data(), bytes);
  name.offset = offset;
  name.bytes = bytes;
  store_word<std::uint32_t>(name.is_ready, 1);
  store_word(slot.number, index + 1);
  return index + 1;
}

void NameTable::after_fork() {
  for (Slot& slot : slots_) {
    if (slot.hash != 0 && slot.number == 0) slot.hash = 0;
  }
  for (std::uint32_t number = 1; number <= count(); ++number) at(number).is_ready = 1;  // an unfinished one is empty
}

}  // namespace hotlap
