#include "ingest/log_items.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/text.h"
#include "ingest/civil_time.h"

namespace hotlap {
namespace {

constexpr std::size_t kKeyMax = 64;

bool is_word(char c) { return is_digit(c) || is_letter(c) || c == '_'; }

struct Number {
  double value = 0;
  std::size_t length = 0;
};

// "12", "-1.5e-05", "1,234,567", "nan", "inf" at the beginning of `text`.
std::optional<Number> read_number(std::string_view text) {
  std::size_t begin = 0;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) begin = 1;
  for (const std::string_view word : {"nan", "inf"}) {
    if (to_lower(text.substr(begin, 3)) == word && (text.size() == begin + 3 || !is_word(text[begin + 3]))) {
      const double value =
          word == "nan" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
      return Number{text[0] == '-' ? -value : value, begin + 3};
    }
  }
  const bool has_digit =
      begin < text.size() &&
      (is_digit(text[begin]) || (text[begin] == '.' && begin + 1 < text.size() && is_digit(text[begin + 1])));
  if (!has_digit) return std::nullopt;
  // Thousands in groups of three.
  std::string plain;
  std::size_t at = begin;
  while (at < text.size() && is_digit(text[at])) plain += text[at++];
  bool has_groups = false;
  while (plain.size() <= 30 && !plain.empty() && at + 3 < text.size() && text[at] == ',' && is_digit(text[at + 1]) &&
         is_digit(text[at + 2]) && is_digit(text[at + 3]) && (at + 4 == text.size() || !is_digit(text[at + 4]))) {
    if (!has_groups && plain.size() > 3) break;
    plain += text.substr(at + 1, 3);
    at += 4;
    has_groups = true;
  }
  if (has_groups) {
    std::size_t end = at;
    if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
      plain += text[end++];
      while (end < text.size() && is_digit(text[end])) plain += text[end++];
    }
    const auto value = parse_f64(plain);
    if (!value) return std::nullopt;
    return Number{text[0] == '-' ? -*value : *value, end};
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (error == std::errc::result_out_of_range) value = std::numeric_limits<double>::infinity();
  if (error != std::errc{} && error != std::errc::result_out_of_range) return std::nullopt;
  return Number{text[0] == '-' ? -value : value, length};
}

// "1:02:03", "00:25", "12:03.5" at the beginning of `text`, in seconds.
std::optional<Number> read_clock(std::string_view text) {
  double seconds = 0;
  std::size_t at = 0;
  int parts = 0;
  while (parts < 3) {
    std::size_t digits = 0;
    double part = 0;
    while (at + digits < text.size() && is_digit(text[at + digits]) && digits < 4) {
      part = part * 10 + (text[at + digits] - '0');
      ++digits;
    }
    if (digits == 0 || (parts > 0 && (digits != 2 || part > 59))) return std::nullopt;
    seconds = seconds * 60 + part;
    at += digits;
    ++parts;
    const bool goes_on = at + 1 < text.size() && text[at] == ':' && is_digit(text[at + 1]);
    if (!goes_on) break;
    if (parts == 3) return std::nullopt;
    ++at;
  }
  if (parts < 2 || (at < text.size() && is_word(text[at]))) return std::nullopt;
  return Number{seconds, at};
}

// The words in front of a number, between the last separator and it.
std::string key_of(std::string_view between) {
  // What ends a figure and begins the next.
  constexpr std::string_view kSeparators = ",;|\t{}]";
  const std::size_t hard = between.find_last_of(kSeparators);
  if (hard != std::string_view::npos) between = between.substr(hard + 1);
  for (const std::string_view soft : {"  ", " - "}) {
    const std::string_view inner = between.substr(0, between.find_last_not_of(" :=") + 1);
    const std::size_t found = inner.rfind(soft);
    if (found != std::string_view::npos) between = between.substr(found + soft.size());
  }
  const auto is_edge = [](char c) {
    constexpr std::string_view kEdge = " \t:='\"[(|<>~+-*#/";
    return (static_cast<unsigned char>(c) & 0x80U) != 0 ||
           kEdge.find(c) != std::string_view::npos;  // bars are drawn in UTF-8
  };
  while (!between.empty() && is_edge(between.front())) between.remove_prefix(1);
  while (!between.empty() && (is_edge(between.back()) || between.back() == '.')) between.remove_suffix(1);
  // "INFO:__main__:step"
  std::string_view key = between;
  if (const std::size_t colon = key.rfind(':'); colon != std::string_view::npos) key = trim(key.substr(colon + 1));
  if (key.size() > kKeyMax) return {};
  return to_lower(key);
}

struct Unit {
  std::string_view text;
  std::size_t length = 0;  // with what stands around it
};

// "ms", "%", "it/s", "s/it", "ms/step", "/s" behind a number; after a blank only what is a rate ("tokens/s") or a unit
// of time as a word of its own, which may stand in brackets: "0.050 s", "1460.0 (ms)".
Unit unit_of(std::string_view behind) {
  const bool has_blank = behind.starts_with(' ');
  std::string_view rest = behind.substr(has_blank ? 1 : 0);
  const bool is_in_brackets = has_blank && rest.starts_with('(');
  if (is_in_brackets) rest = rest.substr(1);
  std::size_t length = 0;
  while (length < rest.size() && length < 16 &&
         (is_letter(rest[length]) || rest[length] == '/' || rest[length] == '%')) {
    ++length;
  }
  if (length < rest.size() && is_word(rest[length])) return {};  // the beginning of a word
  const std::string_view unit = rest.substr(0, length);
  const bool is_time = is_unit_of_time(unit);
  if (is_in_brackets) {
    if (!is_time || length == rest.size() || rest[length] != ')') return {};
    return {unit, length + 3};
  }
  if (has_blank && !is_time && (unit.find('/') == std::string_view::npos || unit.starts_with('/'))) return {};
  return {unit, unit.empty() ? 0 : length + (has_blank ? 1 : 0)};
}

// "elapsed time per iteration (ms)" → the key and its unit.
void split_unit(LogItem& item) {
  if (!item.key.ends_with(')')) {
    // "iter time (s" when the edge was trimmed.
    const std::size_t open = item.key.find(" (");
    if (open != std::string::npos && item.key.find(')') == std::string::npos) {
      if (item.unit.empty()) item.unit = item.key.substr(open + 2);
      item.key.resize(open);
    }
    return;
  }
  const std::size_t open = item.key.rfind('(');
  if (open == std::string::npos) return;
  if (item.unit.empty()) item.unit = item.key.substr(open + 1, item.key.size() - open - 2);
  item.key.resize(open);
  while (item.key.ends_with(' ')) item.key.pop_back();
}

class ItemFinder {
 public:
  explicit ItemFinder(std::string_view line) : line_(line) {}

  std::vector<LogItem> find() {
    while (at_ < line_.size() && items_.size() < kLogItemsMax) {
      if (!begins_number() || !take()) ++at_;
    }
    return std::move(items_);
  }

 private:
  bool begins_number() const {
    const char c = line_[at_];
    const char before = at_ > 0 ? line_[at_ - 1] : ' ';
    if (is_word(before) || before == '.' || before == '@') return false;  // acc@1
    if (is_digit(c) || c == '.' || c == '+' || c == '-') return true;
    // "nan" and "inf" only where a value stands.
    if (c != 'n' && c != 'N' && c != 'i' && c != 'I') return false;
    const std::size_t last = line_.substr(0, at_).find_last_not_of(" '\"");
    return last != std::string_view::npos && last + 1 >= end_ &&
           (line_[last] == ':' || line_[last] == '=' || (before == ' ' && is_letter(line_[last])));
  }

  bool take() {
    const std::string_view rest = line_.substr(at_);
    if (const auto time = read_civil_time(rest)) {  // when it was printed is no figure
      end_ = at_ += time->length;
      return true;
    }
    LogItem item;
    std::size_t length = 0;
    if (const auto clock = read_clock(rest)) {
      item.value = clock->value;
      item.is_clock = true;
      length = clock->length;
    } else if (const auto number = read_number(rest)) {
      item.value = number->value;
      length = number->length;
    } else {
      return false;
    }
    const std::string_view between = line_.substr(end_, at_ - end_);
    item.begins_bracket = between.ends_with('[');
    item.at = at_;
    // "(7.0)" is the average of the number before, "(0.600s, 853.33/s)" those of the two before.
    const std::string_view gap = trim(between);
    if (gap.find(')') != std::string_view::npos) is_in_averages_ = false;
    is_in_averages_ |= gap == "(";
    at_ += length;
    const std::string_view behind = line_.substr(at_);
    const Unit unit = unit_of(behind);
    LogItem* const averaged =
        is_in_averages_ && !item.is_clock && (gap == "(" || gap == ",") ? averaged_by(unit.text) : nullptr;
    if (averaged != nullptr) {
      averaged->average = item.value;
      end_ = at_ += unit.length;
      return true;
    }
    item.key = key_of(between);
    if (!item.is_clock && take_total(item)) {
      end_ = at_;
    } else {
      item.unit = unit.text;
      end_ = at_ += unit.length;
    }
    split_unit(item);
    items_.push_back(std::move(item));
    return true;
  }

  // Of the last two figures the one of this unit that has no average yet.
  LogItem* averaged_by(std::string_view unit) {
    for (std::size_t back = 1; back <= std::min<std::size_t>(2, items_.size()); ++back) {
      LogItem& item = items_[items_.size() - back];
      if (item.unit == unit && unit != "%" && !item.average && !item.total && !item.is_clock) return &item;
    }
    return nullptr;
  }

  // "/ 500" behind the number.
  bool take_total(LogItem& item) {
    std::size_t at = at_;
    while (at < line_.size() && line_[at] == ' ') ++at;
    if (at == line_.size() || line_[at] != '/') return false;
    ++at;
    while (at < line_.size() && line_[at] == ' ') ++at;
    if (at == line_.size() || !is_digit(line_[at])) return false;
    const auto total = read_number(line_.substr(at));
    if (!total) return false;
    item.total = total->value;
    at_ = at + total->length;
    return true;
  }

  std::string_view line_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;  // of the item before
  bool is_in_averages_ = false;
  std::vector<LogItem> items_;
};

}  // namespace

bool is_unit_of_time(std::string_view unit) {
  constexpr std::array<std::string_view, 8> kUnits{"s", "sec", "secs", "seconds", "ms", "msec", "us", "min"};
  return std::ranges::find(kUnits, unit) != kUnits.end();
}

std::vector<LogItem> find_log_items(std::string_view line_untrusted) { return ItemFinder(line_untrusted).find(); }

std::string without_escapes(std::string_view line_untrusted) {
  std::string out;
  out.reserve(line_untrusted.size());
  for (std::size_t i = 0; i < line_untrusted.size(); ++i) {
    const char c = line_untrusted[i];
    if (c == '\b') {  // Keras draws over its own line
      if (!out.empty()) out.pop_back();
    } else if (c == '\x1b' && i + 1 < line_untrusted.size() && line_untrusted[i + 1] == '[') {
      i += 2;
      while (i < line_untrusted.size() && (line_untrusted[i] < '@' || line_untrusted[i] > '~')) ++i;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace hotlap
