#include "ingest/trace_file_name.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/text.h"
#include "ingest/byte_stream.h"

namespace hotlap {
namespace {

constexpr std::int32_t kRankMax = 1'000'000;

// The number behind `word` and at most one of "-_ =" where both stand for themselves: not "franks3", not "rank3x".
std::optional<std::int32_t> number_behind(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at > 0 && is_letter(text[at - 1])) continue;
    std::size_t begin = at + word.size();
    if (begin < text.size() && std::string_view("-_=").find(text[begin]) != std::string_view::npos) ++begin;
    std::size_t end = begin;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == begin || (end < text.size() && is_letter(text[end]))) continue;
    const auto number = parse_u64(text.substr(begin, end - begin));
    if (number && *number <= std::uint64_t{kRankMax}) return static_cast<std::int32_t>(*number);
  }
  return std::nullopt;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

TraceFileName read_trace_file_name(std::string_view file_name) {
  std::string_view stem = without_compression_suffix(file_name);
  const bool is_pytorch = take_suffix(stem, ".pt.trace.json");
  if (!is_pytorch && !take_suffix(stem, ".trace.json")) (void)take_suffix(stem, ".json");
  if (is_pytorch) {  // the moment of the capture
    const std::size_t dot = stem.rfind('.');
    if (dot != std::string_view::npos && dot + 1 < stem.size() && std::ranges::all_of(stem.substr(dot + 1), is_digit)) {
      stem = stem.substr(0, dot);
    }
  }
  TraceFileName out{.worker = std::string(stem), .rank = {}, .pid = {}};
  const std::string lower = to_lower(stem);
  out.rank = number_behind(lower, "rank");
  if (out.rank || !is_pytorch) return out;
  const std::size_t bar = stem.rfind('_');
  if (bar != std::string_view::npos && bar + 1 < stem.size()) {
    if (const auto pid = parse_u64(stem.substr(bar + 1)); pid && *pid > 0 && *pid <= INT32_MAX) {
      out.pid = static_cast<std::int32_t>(*pid);
      return out;  // what stands before is a host
    }
  }
  // torch_tb_profiler's own examples, and whoever names the worker by hand.
  if (lower.starts_with("worker")) out.rank = number_behind(lower, "worker");
  return out;
}

}  // namespace hotlap
