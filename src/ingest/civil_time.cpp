#include "ingest/civil_time.h"

#include <array>
#include <chrono>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr int kYearMin = 1970;
constexpr int kYearMax = 2200;  // nanoseconds leave int64 in 2262

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Exactly `digits` digits.
  bool number(std::size_t digits, unsigned& out) {
    if (text_.size() - at_ < digits) return false;
    unsigned value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char c = text_[at_ + i];
      if (c < '0' || c > '9') return false;
      value = value * 10 + static_cast<unsigned>(c - '0');
    }
    at_ += digits;
    out = value;
    return true;
  }
  // One of `choices`.
  bool accept(std::string_view choices, char* found = nullptr) {
    if (at_ == text_.size() || choices.find(text_[at_]) == std::string_view::npos) return false;
    if (found != nullptr) *found = text_[at_];
    ++at_;
    return true;
  }
  // ".635" in nanoseconds, digits beyond the ninth ignored; nothing moves when no digit follows.
  std::int64_t fraction_ns() {
    const std::size_t begin = at_;
    if (!accept(".,")) return 0;
    std::int64_t ns = 0;
    std::int64_t unit = kNsPerS / 10;
    std::size_t digits = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_, ++digits) {
      ns += unit * (text_[at_] - '0');
      unit /= 10;
    }
    if (digits == 0) at_ = begin;
    return ns;
  }
  std::size_t at() const { return at_; }
  void back_to(std::size_t at) { at_ = at; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// "Z", "+02:00", "-0530", " UTC": the offset in seconds. Nothing, and no move, when there is none.
std::optional<std::int64_t> read_zone(Scanner& scanner) {
  const std::size_t begin = scanner.at();
  if (scanner.accept("Z")) return 0;
  char sign = '+';
  unsigned hours = 0;
  unsigned minutes = 0;
  if (scanner.accept("+-", &sign) && scanner.number(2, hours)) {
    scanner.accept(":");
    if (scanner.number(2, minutes) && hours <= 14 && minutes < 60) {
      const std::int64_t offset = std::int64_t{hours} * 3600 + std::int64_t{minutes} * 60;
      return sign == '+' ? offset : -offset;
    }
  }
  scanner.back_to(begin);
  if (scanner.accept(" ") && scanner.accept("U") && scanner.accept("T") && scanner.accept("C")) return 0;
  scanner.back_to(begin);
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> unix_ns_of(int year, unsigned month, unsigned day, unsigned hour, unsigned minute,
                                       unsigned second, std::int64_t ns) {
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok() || year < kYearMin || year > kYearMax || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (days * 86'400 + std::int64_t{hour} * 3600 + std::int64_t{minute} * 60 + second) * kNsPerS + ns;
}

std::optional<CivilTime> read_civil_time(std::string_view text) {
  Scanner scanner(text);
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  const bool is_read = scanner.number(4, year) && scanner.accept("-/") && scanner.number(2, month) &&
                       scanner.accept("-/") && scanner.number(2, day) && scanner.accept(" T_") &&
                       scanner.number(2, hour) && scanner.accept(":") && scanner.number(2, minute) &&
                       scanner.accept(":") && scanner.number(2, second);
  if (!is_read) return std::nullopt;
  const std::int64_t fraction = scanner.fraction_ns();
  const auto unix_ns = unix_ns_of(static_cast<int>(year), month, day, hour, minute, second, fraction);
  if (!unix_ns) return std::nullopt;
  const auto zone_s = read_zone(scanner);
  return CivilTime{
      .unix_ns = *unix_ns - zone_s.value_or(0) * kNsPerS, .has_zone = zone_s.has_value(), .length = scanner.at()};
}

}  // namespace hotlap
