#include "record/profile_plan.h"

#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::int64_t kStepsMax = 1'000'000'000'000;
constexpr std::int64_t kCountMax = 1'000;
constexpr std::int64_t kPeriodMinS = 10;
constexpr std::int64_t kPeriodMaxS = 30 * 86'400;
constexpr double kHzMax = 100;
constexpr double kHzDefault = 20;
constexpr std::int64_t kStartDefault = 10;  // past what the first steps set up
constexpr std::int64_t kMegabytesMax = 1 << 20;
constexpr std::array<std::string_view, 11> kWords{"steps",  "every",  "on-outlier", "now",    "off",  "functions",
                                                  "budget", "memory", "disk",       "shapes", "ranks"};

Error wrong(std::string_view item, std::string_view why) {
  return Error{ErrorCode::kInvalidInput, format("--profile {}: {}", item, why)};
}

std::optional<std::int64_t> in_range(std::string_view text, std::int64_t min, std::int64_t max) {
  const auto number = parse_i64(text);
  return number && *number >= min && *number <= max ? number : std::nullopt;
}

// "256MB", "1GB", "256" → MB.
std::optional<std::int64_t> megabytes(std::string_view text) {
  std::int64_t factor = 1;
  if (text.ends_with("GB") || text.ends_with("GiB")) factor = 1024;
  for (const std::string_view unit : {"GiB", "MiB", "GB", "MB"}) {
    if (text.ends_with(unit)) {
      text.remove_suffix(unit.size());
      break;
    }
  }
  const auto number = in_range(text, 0, kMegabytesMax / factor);
  return number ? std::optional(*number * factor) : std::nullopt;
}

Result<void> take_steps(std::string_view item, std::string_view value, ProfilePlan& plan) {
  const std::size_t colon = value.find(':');
  const bool has_start = colon != std::string_view::npos;
  plan.step_count = in_range(has_start ? value.substr(colon + 1) : value, 1, kCountMax);
  if (has_start) plan.start_step = in_range(value.substr(0, colon), 0, kStepsMax);
  if (!plan.step_count || (has_start && !plan.start_step)) {
    return wrong(item, format("write steps=FIRST:COUNT or steps=COUNT, at most {} steps a window", kCountMax));
  }
  return {};
}

Result<void> take_ranks(std::string_view item, std::string_view value, ProfilePlan& plan) {
  for (const std::string_view rank : split(value, '+')) {
    if (value != "all" && !in_range(rank, 0, INT32_MAX)) return wrong(item, "write ranks=all or ranks=0+8");
  }
  plan.ranks = value;
  return {};
}

Result<void> take(std::string_view item, ProfilePlan& plan) {
  const std::size_t equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  std::string_view value = equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
  if (key == "steps") return take_steps(item, value, plan);
  if (key == "ranks") return take_ranks(item, value, plan);
  if (key == "every") {
    const auto period_ns = parse_duration_ns(value);
    if (!period_ns || *period_ns < kPeriodMinS * kNsPerS || *period_ns > kPeriodMaxS * kNsPerS) {
      return wrong(item, format("write a duration from {} s to 30 d, such as every=10min", kPeriodMinS));
    }
    plan.every_s = *period_ns / kNsPerS;
  } else if (key == "functions") {
    if (value.ends_with("hz") || value.ends_with("Hz")) value.remove_suffix(2);
    plan.functions_hz = equals == std::string_view::npos ? kHzDefault : parse_f64(value).value_or(0);
    if (!(*plan.functions_hz > 0 && *plan.functions_hz <= kHzMax)) {
      return wrong(item, format("write functions=20hz, at most {} hz", kHzMax));
    }
  } else if (key == "budget") {
    if (value.ends_with('%')) value.remove_suffix(1);
    plan.budget_pct = parse_f64(value);
    if (!plan.budget_pct || !(*plan.budget_pct >= 0 && *plan.budget_pct <= 100)) {
      return wrong(item, "write the share of the job's time, such as budget=1%");
    }
  } else if (key == "memory" || key == "disk") {
    auto& size = key == "memory" ? plan.memory_mb : plan.disk_mb;
    size = megabytes(value);
    if (!size) return wrong(item, format("write a size such as {}=256MB", key));
  } else if (value.empty() && key == "on-outlier") {
    plan.is_on_outlier = true;
  } else if (value.empty() && key == "shapes") {
    plan.has_shapes = true;
  } else if (value.empty() && key == "now") {
    plan.is_now = true;
  } else if (value.empty() && key == "off") {
    plan.is_off = true;
  } else {
    const std::string_view meant = nearest_text(key, kWords);
    return wrong(item, meant.empty() ? std::string("write steps=10:3, every=10min, on-outlier, functions=20hz or off")
                                     : format("unknown; did you mean {}?", meant));
  }
  return {};
}

}  // namespace

Result<ProfilePlan> parse_profile_plan(std::string_view text, bool is_live) {
  ProfilePlan plan;
  for (const std::string_view item : split(text, ',')) HOTLAP_TRY(take(trim(item), plan));
  if (plan.is_off && text.find(',') != std::string_view::npos) return wrong(text, "off goes with nothing else");
  if (plan.is_off) return plan;
  if (!is_live) {
    if (plan.is_now) return wrong(text, "now is for a run that is there already: hotlap set RUN --profile now");
    if (!plan.is_wanted() && plan.step_count) plan.start_step = kStartDefault;
  } else {
    const int wanted =
        int{plan.is_now} + int{plan.is_on_outlier} + int{plan.every_s.has_value()} + int{plan.functions_hz.has_value()};
    if (plan.start_step || !plan.ranks.empty() || plan.has_shapes || plan.budget_pct || plan.memory_mb ||
        plan.disk_mb || wanted != 1) {
      return wrong(text,
                   "a live run takes one of now, every=10min, on-outlier, functions=20hz and off, and steps=COUNT");
    }
  }
  if (!plan.is_wanted()) return wrong(text, "says not when: add steps=10:3, every=10min, on-outlier or functions=20hz");
  return plan;
}

std::string profile_text(const ProfilePlan& plan) {
  if (plan.is_off || !plan.is_wanted()) return {};
  std::string text;
  const auto add = [&](std::string_view key, const auto& value) {
    text += format("{}{}={}", text.empty() ? "" : ",", key, value);
  };
  if (plan.start_step) add("steps", *plan.start_step);
  if (plan.step_count) add("count", *plan.step_count);
  if (plan.every_s) add("every_s", *plan.every_s);
  if (plan.is_on_outlier) add("on_outlier", 1);
  if (!plan.ranks.empty()) add("ranks", plan.ranks);
  if (plan.functions_hz) add("functions_hz", *plan.functions_hz);
  if (plan.has_shapes) add("shapes", 1);
  if (plan.budget_pct) add("budget_pct", *plan.budget_pct);
  if (plan.memory_mb) add("memory_mb", *plan.memory_mb);
  if (plan.disk_mb) add("disk_mb", *plan.disk_mb);
  return text;
}

std::uint64_t profile_argument(const ProfilePlan& plan) {
  const ProfileMode mode = plan.is_off          ? ProfileMode::kOff
                           : plan.is_on_outlier ? ProfileMode::kOnOutlier
                           : plan.every_s       ? ProfileMode::kEvery
                           : plan.functions_hz  ? ProfileMode::kFunctions
                                                : ProfileMode::kNow;
  const auto hz = static_cast<std::uint64_t>(std::ceil(plan.functions_hz.value_or(0)));
  return static_cast<std::uint64_t>(plan.step_count.value_or(0)) | static_cast<std::uint64_t>(mode) << 16 |
         static_cast<std::uint64_t>(plan.every_s.value_or(0)) << 20 | hz << 52;
}

}  // namespace hotlap
