// The floor under an import: a bare On-Demand pass of simdjson over the fields that we keep, the file in memory and
// nothing made of what is found. Built where simdjson is installed, for this machine's own instructions. MB/s of CPU
// time, so that other load counts less.
//
//   trace_floor FILE [REPEATS=3]      an object with "traceEvents"; not compressed
#include <simdjson.h>

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

using simdjson::ondemand::field;
using simdjson::ondemand::object;

struct Sum {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;  // of names and tokens, so that nothing is left out by the compiler
};

void take_arguments(object arguments, Sum& sum) {
  for (auto member : arguments) {
    const std::string_view key = member.unescaped_key();
    if (key == "correlation" || key == "External id" || key == "stream" || key == "device" || key == "bytes" ||
        key == "Sequence number" || key == "Python id" || key == "Python parent id") {
      std::int64_t number = 0;
      if (member.value().get_int64().get(number) == simdjson::SUCCESS) sum.bytes += static_cast<std::uint64_t>(number);
    }
  }
}

void take_event(object event, Sum& sum) {
  ++sum.events;
  for (auto member : event) {
    const std::string_view key = member.unescaped_key();
    if (key == "name" || key == "cat" || key == "ph") {
      sum.bytes += std::string_view(member.value().raw_json_token()).size();
    } else if (key == "ts" || key == "dur") {
      double number = 0;
      if (member.value().get_double().get(number) == simdjson::SUCCESS) sum.bytes += number > 0;
    } else if (key == "pid" || key == "tid") {
      sum.bytes += std::string_view(member.value().raw_json_token()).size();
    } else if (key == "args") {
      object arguments;
      if (member.value().get_object().get(arguments) == simdjson::SUCCESS) take_arguments(arguments, sum);
    }
  }
}

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 3;
  simdjson::padded_string text;
  if (simdjson::padded_string::load(argv[1]).get(text) != simdjson::SUCCESS) {
    std::fprintf(stderr, "%s: cannot be read\n", argv[1]);
    return 1;
  }
  simdjson::ondemand::parser parser(std::size_t{8} << 30U);
  double best_s = 1e9;
  Sum sum;
  for (int i = 0; i < repeats; ++i) {
    sum = {};
    const double begin_s = cpu_seconds();
    try {
      auto document = parser.iterate(text);
      for (auto event : document.find_field("traceEvents").get_array()) take_event(event.get_object(), sum);
    } catch (const simdjson::simdjson_error& error) {
      std::fprintf(stderr, "%s: %s\n", argv[1], error.what());
      return 1;
    }
    best_s = std::min(best_s, cpu_seconds() - begin_s);
  }
  std::printf("On-Demand (%s) %8.0f MB/s  %6.2f M events/s  (%llu)\n",
              simdjson::get_active_implementation()->name().c_str(), static_cast<double>(text.size()) / 1e6 / best_s,
              static_cast<double>(sum.events) / 1e6 / best_s, static_cast<unsigned long long>(sum.bytes));
  return 0;
}
