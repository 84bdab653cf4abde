#pragma once
// Which arguments of a trace's events are kept beside those that link events: shapes and types of operators, call
// stacks, what a collective is. All others are counted and dropped. A list, since what profilers write grows.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hotlap {

// What is kept where nothing else is asked for: docs/reference/traces.md lists them.
std::span<const std::string_view> standard_arguments();

class KeptArguments {
 public:
  static const KeptArguments& standard();
  // "all", "none", or names with commas between them that are kept beside the standard ones.
  static KeptArguments of(std::string_view words);

  bool holds(std::string_view key) const {
    if (keeps_all_) return true;
    if ((lengths_ >> (key.size() & 63U) & 1U) == 0) return false;
    for (const std::string& name : names_) {
      if (name == key) return true;
    }
    return false;
  }
  // The kept ones of `members`, a piece of an object's text between two of its commas, as an object of their own.
  // Empty: there is none, or the text is no JSON.
  std::string as_object(std::string_view members_untrusted) const;

 private:
  void add(std::string_view name);

  std::vector<std::string> names_;
  std::uint64_t lengths_ = 0;  // a bit for each length of a name
  bool keeps_all_ = false;
};

}  // namespace hotlap
