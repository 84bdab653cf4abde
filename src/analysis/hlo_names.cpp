#include "analysis/hlo_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace hotlap {
namespace {

constexpr std::array<std::string_view, 7> kCollectives{
    "all-reduce", "all-gather",           "reduce-scatter",        "collective-permute",
    "all-to-all", "collective-broadcast", "async-collective-start"};
constexpr std::array<std::string_view, 5> kWhole{"async-collective-done", "send", "send-done", "recv", "recv-done"};

// The operation in "%all-reduce.1 = f32[8]{0} all-reduce(%p.2), replica_groups={}"; what stands behind it names others.
// Empty: it is no name of an operation, as those of kernels with templates and parameters.
std::string_view operation_in(std::string_view name) {
  if (name.starts_with('%')) name.remove_prefix(1);
  const std::size_t blank = name.find(' ');
  if (blank != std::string_view::npos && !name.substr(blank).starts_with(" = ")) return {};
  name = name.substr(0, blank);
  const bool is_name = std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
  });
  return is_name ? name : std::string_view{};
}

}  // namespace

bool names_hlo_collective(std::string_view operation) {
  const std::string_view name = operation_in(operation);
  const auto is_word_at = [&](std::size_t at, std::size_t size) {
    const auto is_letter = [&](std::size_t i) { return std::isalnum(static_cast<unsigned char>(name[i])) != 0; };
    return (at == 0 || !is_letter(at - 1)) && (at + size == name.size() || !is_letter(at + size));
  };
  for (const std::string_view word : kCollectives) {
    const std::size_t at = name.find(word);
    if (at != std::string_view::npos && is_word_at(at, word.size())) return true;
  }
  const std::string_view stem = name.substr(0, name.find('.'));
  return std::ranges::find(kWhole, stem) != kWhole.end();
}

}  // namespace hotlap
