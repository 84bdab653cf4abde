#include "ingest/log_prefix.h"

#include <array>
#include <utility>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/text.h"
#include "ingest/civil_time.h"

namespace hotlap {
namespace {

constexpr int kYearUnknown = 2023;  // stands for a year that is not written

bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// A scanner over the beginning of a line that takes one piece of a prefix after the other.
class PrefixReader {
 public:
  explicit PrefixReader(std::string_view line) : line_(line) {}

  LogPrefix read() {
    // Few pieces stand before a text: "[1,0]<stdout>:[2024-04-05 06:17:19,635] [INFO] …".
    for (int piece = 0; piece < 6; ++piece) {
      skip(" \t");
      if (!take_rank() && !take_time()) break;
    }
    skip(" \t");
    prefix_.length = at_;
    return prefix_;
  }

 private:
  std::string_view rest() const { return line_.substr(at_); }
  void skip(std::string_view characters) {
    const std::size_t next = line_.find_first_not_of(characters, at_);
    at_ = next == std::string_view::npos ? line_.size() : next;
  }

  // "[rank3]: ", "[1,3]<stdout>:", "[default3]:", "[Rank 3]", "3: ".
  bool take_rank() {
    constexpr std::array<std::string_view, 5> kNames{"[rank", "[Rank ", "[default", "[1,", "worker-"};
    const std::string_view text = rest();
    for (const std::string_view name : kNames) {
      if (!text.starts_with(name)) continue;
      std::size_t end = name.size();
      while (end < text.size() && is_digit(text[end])) ++end;
      const auto rank = parse_u64(text.substr(name.size(), end - name.size()));
      if (!rank || *rank > 1'000'000) continue;
      if (name.front() == '[') {
        if (end == text.size() || text[end] != ']') continue;
        ++end;
      }
      for (const std::string_view stream : {"<stdout>", "<stderr>"}) {
        if (text.substr(end).starts_with(stream)) end += stream.size();
      }
      if (end < text.size() && text[end] == ':') ++end;
      prefix_.rank = static_cast<std::int32_t>(*rank);
      at_ += end;
      return true;
    }
    // srun --label: a number alone.
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) ++digits;
    if (at_ == 0 && digits > 0 && digits <= 4 && text.substr(digits).starts_with(": ") && !prefix_.unix_ns) {
      prefix_.rank = static_cast<std::int32_t>(*parse_u64(text.substr(0, digits)));
      at_ += digits + 2;
      return true;
    }
    return false;
  }

  bool take_time() {
    if (prefix_.unix_ns) return false;
    std::string_view text = rest();
    std::size_t begin = 0;
    if (text.starts_with('[') || text.starts_with('(')) begin = 1;
    text.remove_prefix(begin);
    CivilTime time;
    if (const auto civil = read_civil_time(text)) {
      time = *civil;
    } else if (const auto american = read_american(text)) {
      time = *american;
    } else if (const auto seconds = read_epoch(text)) {
      time = *seconds;
    } else if (const auto yearless = read_without_year(text)) {
      time = *yearless;
      prefix_.has_year = false;
    } else {
      return false;
    }
    prefix_.unix_ns = time.unix_ns;
    prefix_.has_zone = time.has_zone;
    at_ += begin + time.length;
    skip("])");
    skip(" \t");
    if (rest().starts_with("- ") || rest().starts_with("| ") || rest().starts_with(": ")) at_ += 2;
    return true;
  }

  // The number that the digits of `text` from `begin` on make.
  static unsigned field(std::string_view text, std::size_t begin, std::size_t count) {
    return static_cast<unsigned>(parse_u64(text.substr(begin, count)).value_or(0));
  }
  // `form`: '0' stands for a digit, '?' for a separator, anything else for itself.
  static bool has_form(std::string_view text, std::string_view form) {
    constexpr std::string_view kSeparators = "/-";
    if (text.size() < form.size()) return false;
    for (std::size_t i = 0; i < form.size(); ++i) {
      const bool fits = form[i] == '0'   ? is_digit(text[i])
                        : form[i] == '?' ? kSeparators.find(text[i]) != std::string_view::npos
                                         : text[i] == form[i];
      if (!fits) return false;
    }
    return true;
  }
  // ".635" or ",635" at `at`, which moves behind it.
  static std::int64_t fraction_ns(std::string_view text, std::size_t& at) {
    if (at + 1 >= text.size() || (text[at] != '.' && text[at] != ',') || !is_digit(text[at + 1])) return 0;
    std::int64_t ns = 0;
    std::int64_t unit = kNsPerS / 10;
    for (++at; at < text.size() && is_digit(text[at]); ++at, unit /= 10) ns += unit * (text[at] - '0');
    return ns;
  }

  // "04/05/2024 06:17:19", as Transformers logs it.
  static std::optional<CivilTime> read_american(std::string_view text) {
    constexpr std::string_view kForm = "00/00/0000 00:00:00";
    if (!has_form(text, kForm)) return std::nullopt;
    std::size_t length = kForm.size();
    const std::int64_t fraction = fraction_ns(text, length);
    const auto ns = unix_ns_of(static_cast<int>(field(text, 6, 4)), field(text, 0, 2), field(text, 3, 2),
                               field(text, 11, 2), field(text, 14, 2), field(text, 17, 2), fraction);
    if (!ns) return std::nullopt;
    return CivilTime{.unix_ns = *ns, .has_zone = false, .length = length};
  }

  // "10/09 08:53:20" of detectron2, "I1009 08:53:20.123456" of glog. A day stands first where no month is so large.
  static std::optional<CivilTime> read_without_year(std::string_view text) {
    constexpr std::string_view kForm = "00?00 00:00:00";
    constexpr std::string_view kGlogForm = "0000 00:00:00";
    constexpr std::string_view kLevels = "IWEF";
    const bool is_glog =
        !text.empty() && kLevels.find(text[0]) != std::string_view::npos && has_form(text.substr(1), kGlogForm);
    if (!is_glog && !has_form(text, kForm)) return std::nullopt;
    if (is_glog) text.remove_prefix(1);
    unsigned month = field(text, 0, 2);
    unsigned day = field(text, is_glog ? 2 : 3, 2);
    if (month > 12 && day <= 12) std::swap(month, day);
    const bool is_leap_day = month == 2 && day == 29;  // the year that stands for all has none
    const std::size_t clock = is_glog ? 5 : 6;
    std::size_t length = clock + std::string_view("00:00:00").size();
    if (length < text.size() && is_digit(text[length])) return std::nullopt;
    const std::int64_t fraction = fraction_ns(text, length);
    const auto ns = unix_ns_of(kYearUnknown, month, is_leap_day ? 28 : day, field(text, clock, 2),
                               field(text, clock + 3, 2), field(text, clock + 6, 2), fraction);
    if (!ns) return std::nullopt;
    constexpr std::int64_t kDayNs = 86'400 * kNsPerS;
    return CivilTime{.unix_ns = *ns + (is_leap_day ? kDayNs : 0), .length = length + (is_glog ? 1 : 0)};
  }

  // "1712297839.635"; only where nothing else than a separator follows.
  static std::optional<CivilTime> read_epoch(std::string_view text) {
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) ++digits;
    if (digits != 10) return std::nullopt;
    const auto seconds = parse_i64(text.substr(0, digits));
    if (!seconds || *seconds >= 9'000'000'000) return std::nullopt;
    const std::int64_t fraction = fraction_ns(text, digits);
    if (digits < text.size() && is_word(text[digits])) return std::nullopt;
    return CivilTime{.unix_ns = *seconds * kNsPerS + fraction, .has_zone = true, .length = digits};
  }

  std::string_view line_;
  std::size_t at_ = 0;
  LogPrefix prefix_;
};

}  // namespace

LogPrefix read_log_prefix(std::string_view line_untrusted) { return PrefixReader(line_untrusted).read(); }

}  // namespace hotlap
