#include "rules/end_of_job.h"

#include <chrono>
#include <cmath>

#include "base/ascii.h"
#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr double kUnixS = 1e9;     // smaller times count from some moment
constexpr double kBeforeS = 60;    // an error is printed once what waits for the dead process gives up …
constexpr double kAfterS = 5;      // … and clocks differ by a little
constexpr double kStepsEndS = 60;  // without an error: the steps end so near

// "4711" in "(pid 4711) is killed", not in "14711".
bool names(std::string_view text, std::int64_t number) {
  const std::string digits = std::to_string(number);
  for (std::size_t at = text.find(digits); at != std::string_view::npos; at = text.find(digits, at + 1)) {
    const std::size_t end = at + digits.size();
    if ((at == 0 || !is_digit(text[at - 1])) && (end == text.size() || !is_digit(text[end]))) return true;
  }
  return false;
}

}  // namespace

MachineEvent machine_event(const Fact& fact, std::string_view failure) {
  return {.at_s = fact.number("at_s"),
          .pid = fact.number("pid"),
          .failure = failure,
          .has_time = fact.number("at_s").has_value()};
}

AtEnd at_end(const FactTable& facts, const MachineEvent& event) {
  const Fact* failure = facts.find("log.failure");
  const auto last_step_s = number_in(facts.find("steps.summary"), "to_s");
  if (failure == nullptr) {
    const bool is_known = event.has_time && event.at_s && last_step_s && *event.at_s > kUnixS && *last_step_s > kUnixS;
    return is_known && std::fabs(*event.at_s - *last_step_s) <= kStepsEndS ? AtEnd::kNear : AtEnd::kNo;
  }
  const std::string text = failure->text("text").value_or("");
  if (event.pid && names(text, std::llround(*event.pid))) return AtEnd::kSame;
  const auto failed_s = failure->number("at_s");
  if (event.has_time && event.at_s && failed_s && *event.at_s > kUnixS && *failed_s > kUnixS) {
    const double from_s = std::min(*failed_s, last_step_s.value_or(*failed_s)) - kBeforeS;
    return *event.at_s >= from_s && *event.at_s <= *failed_s + kAfterS ? AtEnd::kNear : AtEnd::kNo;
  }
  return !event.failure.empty() && failure->text("kind") == event.failure ? AtEnd::kPerhaps : AtEnd::kNo;
}

void tie_to_end(AtEnd at, Finding& finding) {
  if (at == AtEnd::kNo) return;
  finding.claims = kClaimsEnd;
  finding.distance = -1;
  switch (at) {
    case AtEnd::kSame: finding.why.emplace_back("the error in which the job's log ends names that process"); break;
    case AtEnd::kNear: finding.why.emplace_back("the job's log ends then"); break;
    case AtEnd::kPerhaps:
      finding.limits.emplace_back(
          "that it is what ended the job: the times of the kernel's log count from the machine's start (dmesg "
          "--time-format iso)");
      break;
    case AtEnd::kNo: break;
  }
}

std::string when_words(const Fact& fact) {
  if (const auto boot_s = fact.number("boot_s"))
    return format("{} s after the machine was started", shown_count(static_cast<std::uint64_t>(*boot_s)));
  const auto at_s = fact.number("at_s");
  if (!at_s) return {};
  if (*at_s < kUnixS) return format("{} s on the recording's clock", figure(*at_s));
  const std::chrono::sys_seconds moment{std::chrono::seconds(std::llround(*at_s))};
  const auto day = std::chrono::floor<std::chrono::days>(moment);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{moment - day};
  return format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                time.minutes().count(), time.seconds().count());
}

}  // namespace hotlap
