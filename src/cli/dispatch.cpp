#include "cli/dispatch.h"

#include <ostream>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/help.h"
#include "cli/parse.h"

namespace hotlap {
namespace {

const CommandSpec* find_command(std::span<const CommandSpec* const> commands, std::string_view name) {
  for (const CommandSpec* spec : commands) {
    if (spec->name == name) return spec;
  }
  return nullptr;
}

int unknown_command(std::span<const CommandSpec* const> commands, std::string_view word, Streams& streams) {
  std::vector<std::string_view> names;
  for (const CommandSpec* spec : commands) {
    if (!spec->is_hidden) names.push_back(spec->name);
  }
  const bool is_flag = word.starts_with("-");
  if (is_flag) names = {"--help", "--version"};
  const std::string_view nearest = nearest_text(word, names);
  streams.err << format("hotlap: unknown {} {}; {}\n", is_flag ? "flag" : "command", strip_control(word),
                        nearest.empty() ? "see hotlap --help" : format("did you mean {}?", nearest));
  return kExitUsage;
}

int run_command(const CommandSpec& spec, std::span<const std::string> words, Streams& streams) {
  Result<ParsedWords> parsed = parse_words(spec, words);
  if (!parsed.ok()) {
    streams.err << format("hotlap {}: {} (see hotlap {} --help)\n", spec.name, parsed.error().message, spec.name);
    return kExitUsage;
  }
  if (parsed->wants_help) {
    streams.out << command_help(spec);
    return kExitSuccess;
  }
  const Result<int> code = spec.run(parsed->args, streams);
  if (code.ok()) return *code;
  streams.err << format("hotlap {}: {}\n", spec.name, strip_control(code.error().message));
  return exit_code_of(code.error().code);
}

}  // namespace

ExitCode exit_code_of(ErrorCode code) { return code == ErrorCode::kInvalidInput ? kExitUsage : kExitFailed; }

int dispatch(std::span<const CommandSpec* const> commands, std::span<const std::string> words, Streams& streams) {
  if (words.empty()) {
    streams.err << program_help(commands);
    return kExitUsage;
  }
  const std::string& word = words[0];
  if (word == "--help" || word == "-h" || (word == "help" && words.size() == 1)) {
    streams.out << program_help(commands);
    return kExitSuccess;
  }
  if (word == "--version" || word == "-V") {
    streams.out << format("hotlap {}\n", hotlap_version());
    return kExitSuccess;
  }
  const std::string& name = word == "help" ? words[1] : word;
  const CommandSpec* spec = find_command(commands, name);
  if (spec == nullptr) return unknown_command(commands, name, streams);
  if (word == "help") {
    streams.out << command_help(*spec);
    return kExitSuccess;
  }
  return run_command(*spec, words.subspan(1), streams);
}

}  // namespace hotlap
