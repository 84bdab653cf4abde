#include "cost/price.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/format.h"

namespace hotlap {
namespace {

constexpr double kPerHourMax = 100'000;
constexpr double kSecondsPerHour = 3'600;
constexpr std::size_t kSuggestions = 3;

// Number of leading characters two names share, family first: "g5.3xlarge" is nearest to the g5 types.
std::size_t common_prefix(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

std::optional<InstanceType> find_instance(std::string_view name) {
  const auto all = instance_catalogue();
  const auto found = std::ranges::find(all, name, &InstanceType::name);
  return found == all.end() ? std::nullopt : std::optional(*found);
}

Result<Price> price_of_instance(std::string_view name_untrusted) {
  if (const auto found = find_instance(name_untrusted)) {
    return Price{.per_hour = found->usd_per_hour,
                 .currency = "USD",
                 .source = format("catalogue {} {} {} {}", found->provider, found->name, found->region, found->as_of)};
  }
  std::vector<InstanceType> nearest(instance_catalogue().begin(), instance_catalogue().end());
  std::ranges::stable_sort(nearest, std::ranges::greater{},
                           [&](const InstanceType& type) { return common_prefix(type.name, name_untrusted); });
  std::string names;
  for (std::size_t i = 0; i < kSuggestions; ++i) names += format("{}{}", i == 0 ? "" : ", ", nearest[i].name);
  return Error{
      ErrorCode::kNotFound,
      format("no price is known for instance type '{}'; nearest: {}; or give the price itself: --price USD_PER_HOUR",
             name_untrusted, names)};
}

Result<Price> price_per_hour(double usd_per_hour) {
  if (!(usd_per_hour > 0) || usd_per_hour > kPerHourMax) {
    return Error{ErrorCode::kInvalidInput,
                 format("a price is more than 0 and at most {} USD per hour, not {}", kPerHourMax, usd_per_hour)};
  }
  return Price{.per_hour = usd_per_hour, .currency = "USD", .source = "--price"};
}

Money money_for(double seconds, const Price& price) {
  return Money{.amount = seconds / kSecondsPerHour * price.per_hour, .currency = price.currency, .basis = price.source};
}

std::string format_money(double amount, std::string_view currency) {
  const double magnitude = std::fabs(amount);
  std::string figure;
  if (magnitude >= 100) {
    figure = format("{:.0f}", magnitude);
  } else if (magnitude >= 1) {
    figure = format("{:.2f}", magnitude);
  } else if (magnitude >= 0.0995) {
    figure = format("{:.2f}", magnitude);
  } else {
    figure = magnitude >= 0.00995 ? format("{:.3f}", magnitude) : format("{:.4f}", magnitude);
  }
  const std::string_view sign = amount < 0 ? "-" : "";
  return currency == "USD" ? format("{}${}", sign, figure) : format("{}{} {}", sign, figure, currency);
}

}  // namespace hotlap
