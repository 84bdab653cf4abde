#include "query/aggregates.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

namespace hotlap {
namespace {

struct Values {
  std::vector<double> numbers;
  double percent = 50;
};

// The state that SQLite keeps for a group is zeroed memory: a pointer in it.
Values** state_of(sqlite3_context* context, int bytes) {
  return static_cast<Values**>(sqlite3_aggregate_context(context, bytes));
}

void add(sqlite3_context* context, int count, sqlite3_value** values) {
  const int type = sqlite3_value_numeric_type(values[0]);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
  Values** state = state_of(context, sizeof(Values*));
  if (state == nullptr) {
    sqlite3_result_error_nomem(context);
    return;
  }
  if (*state == nullptr) *state = new Values;
  try {
    (*state)->numbers.push_back(sqlite3_value_double(values[0]));
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
  if (count > 1) (*state)->percent = sqlite3_value_double(values[1]);
}

// Between two values: by their distance.
double quantile(std::vector<double>& numbers, double q) {
  const double place = q * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(place);
  std::nth_element(numbers.begin(), numbers.begin() + below, numbers.end());
  const double low = numbers[static_cast<std::size_t>(below)];
  if (below + 1 >= static_cast<std::ptrdiff_t>(numbers.size())) return low;
  const double high = *std::min_element(numbers.begin() + below + 1, numbers.end());
  return low + (high - low) * (place - static_cast<double>(below));
}

void end_percentile(sqlite3_context* context) {
  Values** state = state_of(context, 0);
  if (state == nullptr || *state == nullptr) return sqlite3_result_null(context);
  const double percent = (*state)->percent;
  if (percent >= 0 && percent <= 100) {
    sqlite3_result_double(context, quantile((*state)->numbers, percent / 100));
  } else {
    sqlite3_result_error(context, "percentile(x, p): p is from 0 to 100", -1);
  }
  delete *state;
  *state = nullptr;
}

void end_stddev(sqlite3_context* context) {
  Values** state = state_of(context, 0);
  if (state == nullptr || *state == nullptr) return sqlite3_result_null(context);
  const std::vector<double>& numbers = (*state)->numbers;
  const auto n = static_cast<double>(numbers.size());
  double mean = 0;
  for (const double number : numbers) mean += number / n;
  double squares = 0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  numbers.size() < 2 ? sqlite3_result_null(context) : sqlite3_result_double(context, std::sqrt(squares / (n - 1)));
  delete *state;
  *state = nullptr;
}

}  // namespace

int add_aggregates(sqlite3* database) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  int code = sqlite3_create_function_v2(database, "median", 1, kFlags, nullptr, nullptr, add, end_percentile, nullptr);
  if (code == SQLITE_OK) {
    code =
        sqlite3_create_function_v2(database, "percentile", 2, kFlags, nullptr, nullptr, add, end_percentile, nullptr);
  }
  if (code == SQLITE_OK) {
    code = sqlite3_create_function_v2(database, "stddev", 1, kFlags, nullptr, nullptr, add, end_stddev, nullptr);
  }
  return code;
}

}  // namespace hotlap
