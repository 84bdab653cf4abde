#pragma once
// Texts to small numbers, for millions of look-ups of few texts: no allocation but for a new one. Confined to one
// thread.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace hotlap {

class TextTable {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The text's number, counted from 0 in the order of arrival, and whether it is new. kNone beyond `texts_max` texts or
  // `bytes_max` bytes of them.
  struct Place {
    std::uint32_t index;
    bool is_new;
  };
  TextTable(std::size_t texts_max, std::size_t bytes_max)
      : slots_(kSlotsMin, kNone), texts_max_(texts_max), bytes_max_(bytes_max) {}

  Place place_of(std::string_view text) { return place_of(text, {}); }
  // Of a pair of texts.
  Place place_of(std::string_view first, std::string_view second) {
    const std::uint64_t hash = mixed(hash_of(first) * kFactor + hash_of(second));
    std::size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot] != kNone) {
      const Entry& entry = entries_[slots_[slot]];
      if (entry.hash == hash && entry.first == first && entry.second == second) return {slots_[slot], false};
      slot = (slot + 1) & (slots_.size() - 1);
    }
    if (entries_.size() >= texts_max_ || bytes_ + first.size() + second.size() > bytes_max_) return {kNone, false};
    const auto index = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({hash, kept(first), kept(second)});
    slots_[slot] = index;
    if (entries_.size() * 2 > slots_.size()) grow();
    return {index, true};
  }
  std::size_t size() const { return entries_.size(); }

 private:
  static constexpr std::size_t kSlotsMin = 1024;
  static constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
  static constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15ULL;
  struct Entry {
    std::uint64_t hash;
    std::string_view first;
    std::string_view second;
  };

  static std::uint64_t mixed(std::uint64_t h) {
    h ^= h >> 32U;
    h *= kFactor;
    return h ^ (h >> 29U);
  }
  static std::uint64_t hash_of(std::string_view text) {
    std::uint64_t h = text.size() * kFactor;
    const char* at = text.data();
    std::size_t left = text.size();
    for (; left >= 8; left -= 8, at += 8) {
      std::uint64_t part = 0;
      std::memcpy(&part, at, 8);
      h = (h ^ part) * kFactor;
      h ^= h >> 32U;
    }
    std::uint64_t part = 0;
    if (left > 0) std::memcpy(&part, at, left);
    return (h ^ part) * kFactor;
  }

  std::string_view kept(std::string_view text) {
    if (text.empty()) return {};
    bytes_ += text.size();
    if (text.size() > room_) {
      room_ = text.size() > kBlockBytes ? text.size() : kBlockBytes;
      blocks_.push_back(std::make_unique<char[]>(room_));
      free_ = blocks_.back().get();
    }
    std::memcpy(free_, text.data(), text.size());
    const std::string_view copy(free_, text.size());
    free_ += text.size();
    room_ -= text.size();
    return copy;
  }

  void grow() {
    slots_.assign(slots_.size() * 2, kNone);
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      std::size_t slot = entries_[i].hash & (slots_.size() - 1);
      while (slots_[slot] != kNone) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = i;
    }
  }

  std::vector<std::uint32_t> slots_;
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t room_ = 0;
  std::size_t bytes_ = 0;
  std::size_t texts_max_;
  std::size_t bytes_max_;
};

}  // namespace hotlap
