#pragma once
// Tells whether the arguments of an event have a key twice. Profilers write few different sequences of keys: each is
// looked at once, and after that costs a hash that the scanner makes on its way. Confined to the importing thread.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hotlap {

// Of the keys of one object, in their order: `hash` is the one of those before.
std::uint64_t with_key(std::uint64_t hash, std::string_view key);

class ArgumentKeys {
 public:
  // `arguments`: the object as it stands in the text; `hash`: of its keys.
  bool has_repeated(std::string_view arguments, std::uint64_t hash) {
    if (known_[hash % known_.size()] == hash) return false;
    return look(arguments, hash);
  }

 private:
  bool look(std::string_view arguments, std::uint64_t hash);

  std::array<std::uint64_t, 1024> known_{};  // sequences without repetition, each at one place
  std::vector<std::string_view> keys_;       // scratch
};

}  // namespace hotlap
