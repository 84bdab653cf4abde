#include "view/change.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "base/format.h"

namespace hotlap {
namespace {

// How many standard errors a mean's 95 % interval reaches to each side.
double student_t_95(std::size_t freedom) {
  const boost::math::students_t_distribution<double> t(static_cast<double>(freedom));
  return boost::math::quantile(t, 0.975);
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Half of the 95 % interval of the difference of two means, by the pooled variance of both sides.
double between_runs(std::span<const double> before, std::span<const double> after) {
  // Deviations from each side's own mean, as one sample with one degree of freedom lost per side.
  double squares = 0;
  for (const auto side : {before, after}) {
    const double mean = mean_of(side);
    for (const double value : side) squares += (value - mean) * (value - mean);
  }
  const std::size_t freedom = before.size() + after.size() - 2;
  const double deviation = std::sqrt(squares / static_cast<double>(freedom));
  return student_t_95(freedom) * deviation *
         std::sqrt(1 / static_cast<double>(before.size()) + 1 / static_cast<double>(after.size()));
}

// What the runs' own intervals say of the mean of a side; nothing when one has none.
std::optional<double> within_runs(std::span<const Measured> side, ChangeScale scale) {
  double squares = 0;
  for (const Measured& run : side) {
    if (!run.half_width) return std::nullopt;
    const double half = scale == ChangeScale::kPercent ? *run.half_width / run.value : *run.half_width;
    squares += half * half;
  }
  return std::sqrt(squares) / static_cast<double>(side.size());
}

}  // namespace

std::optional<Change> change_of(std::span<const Measured> before, std::span<const Measured> after, ChangeScale scale) {
  if (before.empty() || after.empty()) return std::nullopt;
  const bool is_percent = scale == ChangeScale::kPercent;
  // Ratios are told by differences of logarithms: halved and doubled are equally far from unchanged.
  std::vector<double> values_before;
  std::vector<double> values_after;
  for (const auto& [runs, values] : {std::pair{before, &values_before}, std::pair{after, &values_after}}) {
    for (const Measured& run : runs) {
      if (!std::isfinite(run.value) || (is_percent && run.value <= 0)) return std::nullopt;
      values->push_back(is_percent ? std::log(run.value) : run.value);
    }
  }
  const double difference = mean_of(values_after) - mean_of(values_before);
  Change out;
  out.before = is_percent ? std::exp(mean_of(values_before)) : mean_of(values_before);
  out.after = is_percent ? std::exp(mean_of(values_after)) : mean_of(values_after);
  out.is_between_runs = before.size() + after.size() > 2;
  double half = 0;
  if (out.is_between_runs) {
    half = between_runs(values_before, values_after);
    const auto within_before = within_runs(before, scale);
    const auto within_after = within_runs(after, scale);
    // Two runs may agree by chance; they cannot tell more than each knows of itself.
    if (within_before && within_after) half = std::max(half, std::hypot(*within_before, *within_after));
  } else {
    const auto within_before = within_runs(before, scale);
    const auto within_after = within_runs(after, scale);
    if (!within_before || !within_after) return std::nullopt;
    const double ratio = is_percent ? std::exp(difference) : 1;
    half = std::max(ratio * std::hypot(*within_before, *within_after), is_percent ? kFloorPct / 100 : kFloorPct);
    const double change = is_percent ? std::expm1(difference) : difference;
    const double unit = is_percent ? 100 : 1;
    out.change = unit * change;
    out.low = unit * (change - half);
    out.high = unit * (change + half);
    return out;
  }
  if (is_percent) {
    out.change = 100 * std::expm1(difference);
    out.low = 100 * std::expm1(difference - half);
    out.high = 100 * std::expm1(difference + half);
  } else {
    out.change = difference;
    out.low = difference - half;
    out.high = difference + half;
  }
  return out;
}

std::string change_figure(double change) { return std::fabs(change) < 0.05 ? "0.0" : format("{:+.1f}", change); }

std::string_view word_of(const Change& change, std::string_view when_lower, std::string_view when_higher) {
  if (change.high < 0) return when_lower;
  if (change.low > 0) return when_higher;
  return "no difference";
}

}  // namespace hotlap
