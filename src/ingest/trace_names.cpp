#include "ingest/trace_names.h"

#include <algorithm>
#include <string>

#include "base/ascii.h"
#include "base/text.h"
#include "model/phase_names.h"

namespace hotlap {
namespace {

std::int64_t step_number(std::string_view text) { return parse_i64(text).value_or(-1); }

constexpr std::string_view kBetween = " _-:=[(#";  // what may stand between words and in front of the number

void skip_between(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word) || (text.size() > word.size() && is_letter(text[word.size()]))) return false;
  text.remove_prefix(word.size());
  skip_between(text);
  return true;
}

}  // namespace

NamedMeaning meaning_of_name(std::string_view name) {
  if (name.starts_with("ProfilerStep")) {
    return {NameMeaning::kStep, name.size() > 13 ? step_number(name.substr(13)) : -1};
  }
  if (name.starts_with("enumerate(DataLoader)#")) return {NameMeaning::kDataWait};
  if (name.starts_with("Optimizer.step#")) return {NameMeaning::kOptimizer};
  if (name == "[memory]") return {NameMeaning::kMemory};
  if (name.starts_with("[pl]")) {  // Lightning names its hooks
    if (name.ends_with("train_dataloader_next")) return {NameMeaning::kDataWait};
    if (name.ends_with(".training_step")) return {NameMeaning::kForward};
    if (name.ends_with(".backward")) return {NameMeaning::kBackward};
  }
  return {};
}

SpanKind kind_of_label(std::string_view name) {
  switch (phase_name(name)) {
    case PhaseName::kDataWait: return SpanKind::kDataWait;
    case PhaseName::kForward: return SpanKind::kForward;
    case PhaseName::kBackward: return SpanKind::kBackward;
    case PhaseName::kOptimizer: return SpanKind::kOptimizer;
    default: return SpanKind::kUser;
  }
}

std::optional<std::int32_t> rank_in_name(std::string_view name) {
  const std::string text = to_lower(name);
  const std::size_t word = text.find("rank");
  if (word == std::string::npos || text.find("rank", word + 1) != std::string::npos) return std::nullopt;
  const auto begin = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(word) + 4, text.end(), is_digit);
  const auto end = std::find_if_not(begin, text.end(), is_digit);
  const bool is_apart = std::any_of(text.begin() + static_cast<std::ptrdiff_t>(word) + 4, begin, is_letter) ||
                        std::any_of(end, text.end(), [&](char c) { return is_letter(c) || is_digit(c); });
  const auto number = parse_i64(std::string_view(begin, end));
  if (is_apart || !number || *number > INT32_MAX) return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

std::optional<std::int32_t> pipeline_stage_in_name(std::string_view name) {
  const std::string lower = to_lower(name);
  for (std::size_t at = 0; at < lower.size(); ++at) {
    if (at > 0 && (is_letter(lower[at - 1]) || is_digit(lower[at - 1]))) continue;
    std::string_view rest = std::string_view(lower).substr(at);
    if (!take_word(rest, "pp") && !take_word(rest, "pipeline")) continue;
    if (!take_word(rest, "rank")) (void)take_word(rest, "stage");
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto number = parse_i64(rest.substr(0, digits));
    if (number && *number <= INT32_MAX) return static_cast<std::int32_t>(*number);
  }
  return std::nullopt;
}

}  // namespace hotlap
