#include "rules/series_words.h"

#include <array>
#include <cmath>

#include "rules/words.h"

namespace hotlap {
namespace {

struct Series {
  std::string_view metric;
  std::string_view words;
  std::string_view unit;
  double factor = 1;
};
constexpr std::array kSeries{
    Series{"cpu.busy.seconds", "busy cores", "", 1},
    Series{"cpu.iowait.seconds", "cores waiting for I/O", "", 1},
    Series{"cpu.steal.seconds", "cores taken by the hypervisor", "", 1},
    Series{"disk.total.read.bytes", "disk reads", " MB/s", 1e-6},
    Series{"disk.total.write.bytes", "disk writes", " MB/s", 1e-6},
    Series{"network.total.receive.bytes", "network receives", " MB/s", 1e-6},
    Series{"gpu.busy.percent", "use", " %", 1},
    Series{"gpu.clock.sm.mhz", "clock", " MHz", 1},
    Series{"gpu.power.watts", "power", " W", 1},
    Series{"gpu.temperature.celsius", "temperature", " C", 1},
};

}  // namespace

std::string series_words(const Fact& fact, std::string_view name, std::string_view before, std::string_view after) {
  const auto series = fact.text(name);
  const auto then = fact.number(before);
  const auto now = fact.number(after);
  if (!series || !then || !now) return {};
  const std::size_t space = series->find(' ');
  const std::string_view metric = std::string_view(*series).substr(0, space);
  const std::string instance = space == std::string::npos ? std::string() : series->substr(space + 1) + " ";
  for (const Series& one : kSeries) {
    if (one.metric == metric)
      return format("{}{} {} -> {}{}", instance, one.words, figure(*then * one.factor), figure(*now * one.factor),
                    one.unit);
  }
  return format("{} {} -> {}", *series, figure(*then), figure(*now));
}

std::string ordinal(double number) {
  const long n = std::lround(number);
  if (n == 2) return "second";
  const std::string_view end = n % 100 / 10 == 1 ? "th"
                               : n % 10 == 1     ? "st"
                               : n % 10 == 2     ? "nd"
                               : n % 10 == 3     ? "rd"
                                                 : "th";
  return format("{}{}", n, end);
}

}  // namespace hotlap
