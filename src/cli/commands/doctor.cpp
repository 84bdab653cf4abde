// What this machine offers, and what is in the way of a good recording.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "base/format.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/doctor/doctor.h"
#include "cli/shown.h"
#include "collect/registry.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--python",
             .type = FlagType::kText,
             .placeholder = "PATH",
             .help = "the Python that runs the job; default: python3 on PATH"},
    FlagSpec{.name = "--no-python", .help = "leave Python out: quicker"},
    FlagSpec{.name = "--json", .help = "as JSON"},
};

std::string in_ink(Health health, std::string text, const Ink& ink) {
  switch (health) {
    case Health::kGood: return ink.good(text);
    case Health::kWarning: return ink.warn(text);
    case Health::kBroken: return ink.bad(text);
    case Health::kNote:
    case Health::kAbsent: break;
  }
  return text;
}

void print(const Checks& checks, Streams& streams) {
  const Ink ink(streams.out_is_terminal);
  std::size_t name_columns = 0;
  for (const Check& check : checks) name_columns = std::max(name_columns, columns_of(check.name));
  std::string_view area;
  for (const Check& check : checks) {
    if (check.area != area) {
      streams.out << (area.empty() ? "" : "\n") << ink.bold(check.area) << '\n';
      area = check.area;
    }
    const std::string health = format("{:<7}", to_string(check.health));
    const std::string name = one_line(check.name) + std::string(name_columns - columns_of(check.name), ' ');
    streams.out << format("  {}  {}  {}\n", in_ink(check.health, health, ink), name, one_line(check.text));
    if (!check.mend.empty())
      streams.out << std::string(name_columns + 13, ' ') << "-> " << one_line(check.mend) << '\n';
  }
}

std::string summary(std::size_t broken, std::size_t warnings) {
  const auto things = [](std::size_t count) { return format("{} thing{}", count, count == 1 ? "" : "s"); };
  const std::string also = warnings == 0 ? "" : format("; {} could be better (warning)", things(warnings));
  if (broken > 0) return format("{} must be mended (broken){}.", things(broken), also);
  return format("Ready to record{}.", also);
}

std::string to_json(const Checks& checks, bool is_ready) {
  JsonWriter json(JsonWriter::Style::kPretty);
  json.begin_object().field("schema", 1).field("ready", is_ready).key("checks").begin_array();
  for (const Check& check : checks) {
    json.begin_object().field("area", check.area).field("name", check.name).field("health", to_string(check.health));
    json.field("text", check.text).key("mend");
    if (check.mend.empty()) {
      json.null();
    } else {
      json.value(check.mend);
    }
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

Result<int> run(const Args& args, Streams& streams) {
  Checks collectors;
  Texts texts;
  const Readings readings =
      check_collectors(system_host(), all_collectors(), static_cast<std::int32_t>(::getpid()), collectors, texts);
  Checks checks;
  check_machine(system_host(), readings, environ, checks);
  check_gpus(system_host(), readings, texts, collectors, environ, checks);
  checks.insert(checks.end(), collectors.begin(), collectors.end());
  check_clocks(system_host(), checks);
  check_home(system_host(), checks);
  check_observers(environ, checks);
  if (!args.has("--no-python")) check_python(args.text("--python").value_or(""), environ, checks);

  const auto count = [&](Health health) {
    return static_cast<std::size_t>(
        std::count_if(checks.begin(), checks.end(), [&](const Check& check) { return check.health == health; }));
  };
  const std::size_t broken = count(Health::kBroken);
  if (args.has("--json")) {
    streams.out << to_json(checks, broken == 0) << '\n';
  } else {
    print(checks, streams);
    streams.out << '\n' << summary(broken, count(Health::kWarning)) << '\n';
  }
  return int{broken == 0 ? kExitSuccess : kExitFailed};
}

}  // namespace

extern constinit const CommandSpec command_doctor{
    .name = "doctor",
    .summary = "Say what this machine offers, what is missing, and the line that mends it.",
    .example = "hotlap doctor --python .venv/bin/python",
    .help =
        "Samples every collector, writes and reads back a recording where runs are kept, and runs a few steps in "
        "this Python (with PyTorch where it is installed) to see whether the hook is at work. Exit code 1 when "
        "something needed is broken.",
    .flags = kFlags,
    .run = run};

}  // namespace hotlap
