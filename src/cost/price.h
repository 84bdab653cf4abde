#pragma once
// What an hour of the machine costs, and what a stretch of time then costs. Pure data and arithmetic.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/finding.h"
#include "model/run.h"

namespace hotlap {

struct InstanceType {
  std::string_view provider;
  std::string_view name;
  std::int32_t vcpus = -1;  // -1: unknown
  std::int32_t gpus = 0;    // -1: unknown
  std::string_view gpu_model;
  double usd_per_hour = 0;  // on demand
  std::string_view region;
  std::string_view as_of;  // date of the price, "2026-07-20"
};

// Sorted by name.
std::span<const InstanceType> instance_catalogue();
std::optional<InstanceType> find_instance(std::string_view name);

// The catalogue's price with its source; kNotFound names the nearest types.
Result<Price> price_of_instance(std::string_view name_untrusted);
// --price: kInvalidInput unless 0 < per_hour ≤ 100,000.
Result<Price> price_per_hour(double usd_per_hour);

// time × rate.
Money money_for(double seconds, const Price& price);

// "$2.14", "$0.0042", "3.10 EUR"; three significant digits, never less than cents for a dollar and more.
std::string format_money(double amount, std::string_view currency);

}  // namespace hotlap
