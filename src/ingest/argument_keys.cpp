#include "ingest/argument_keys.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ingest/trace_event.h"

namespace hotlap {
namespace {

constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15ULL;

template <class T>
std::uint64_t load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

std::uint64_t with_key(std::uint64_t hash, std::string_view key) {
  // Begin, end and length tell keys apart well enough: what looks the same here is only looked at once.
  const char* const at = key.data();
  const std::size_t n = key.size();
  std::uint64_t text = n;
  if (n >= 8) {
    text ^= load<std::uint64_t>(at) ^ std::rotl(load<std::uint64_t>(at + n - 8), 29);
  } else if (n >= 4) {
    text ^= load<std::uint32_t>(at) << 8U ^ load<std::uint32_t>(at + n - 4) << 32U;
  } else if (n > 0) {
    text ^=
        load<std::uint8_t>(at) << 8U ^ load<std::uint8_t>(at + n / 2) << 24U ^ load<std::uint8_t>(at + n - 1) << 40U;
  }
  hash = (hash ^ text) * kFactor;
  return hash ^ (hash >> 32U);
}

bool ArgumentKeys::look(std::string_view arguments, std::uint64_t hash) {
  keys_.clear();
  std::string_view key;
  std::string_view value;
  while (next_argument(arguments, key, value)) keys_.push_back(key);
  std::ranges::sort(keys_);
  if (std::ranges::adjacent_find(keys_) != keys_.end()) return true;
  known_[hash % known_.size()] = hash;
  return false;
}

}  // namespace hotlap
