#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

Error usage(std::string message) { return Error{ErrorCode::kInvalidInput, std::move(message)}; }

const FlagSpec* find_flag(const CommandSpec& spec, std::string_view spelling) {
  for (const FlagSpec& flag : spec.flags) {
    for (const std::string_view candidate : flag_spellings(flag)) {
      if (candidate == spelling) return &flag;
    }
  }
  return nullptr;
}

bool looks_like_flag(std::string_view word) {
  // A lone "-" is standard input by convention, and "-5" or "-.5" a number.
  return word.size() >= 2 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

bool takes_rest(const CommandSpec& spec) { return !spec.positionals.empty() && spec.positionals.back().takes_rest; }

Error unknown_flag(const CommandSpec& spec, std::string_view word) {
  std::vector<std::string_view> known{"help"};  // compared without the dashes, which always match
  for (const FlagSpec& flag : spec.flags) {
    for (const std::string_view spelling : flag_spellings(flag)) {
      if (spelling.starts_with("--")) known.push_back(spelling.substr(2));
    }
  }
  const std::string_view bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  const std::string_view nearest = nearest_text(bare, known);
  if (!nearest.empty()) return usage(format("unknown flag {}; did you mean --{}?", strip_control(word), nearest));
  return usage(format("unknown flag {}", strip_control(word)));
}

std::string value_kind(const FlagSpec& flag) {
  switch (flag.type) {
    case FlagType::kSwitch: return "nothing";
    case FlagType::kText: return "a value";
    case FlagType::kNumber: return "a number";
    case FlagType::kInteger: return "a whole number";
    case FlagType::kDuration: return "a duration with its unit (ns us ms s min h d), such as 500ms";
  }
  return {};
}

std::string range_text(const FlagSpec& flag, double bound) {
  if (flag.type == FlagType::kDuration) return format_duration(static_cast<std::int64_t>(bound));
  return format("{:.15g}", bound);
}

Result<void> check_value(const FlagSpec& flag, std::string_view spelling, const std::string& value) {
  std::optional<double> number;
  switch (flag.type) {
    case FlagType::kSwitch:
    case FlagType::kText: return {};
    case FlagType::kNumber: number = parse_f64(value); break;
    case FlagType::kInteger:
      if (const auto whole = parse_i64(value)) number = static_cast<double>(*whole);
      break;
    case FlagType::kDuration:
      if (const auto ns = parse_duration_ns(value)) number = static_cast<double>(*ns);
      break;
  }
  if (!number || !(*number == *number)) {
    return usage(format("{} takes {}, not '{}'", spelling, value_kind(flag), strip_control(value)));
  }
  if (flag.min != flag.max && (*number < flag.min || *number > flag.max)) {
    return usage(format("{} {} is out of range: it takes {} to {}", spelling, strip_control(value),
                        range_text(flag, flag.min), range_text(flag, flag.max)));
  }
  return {};
}

// The words up to the job's own command line, and that line.
struct SplitWords {
  bool wants_help = false;
  std::vector<std::string> head;
  std::vector<std::string> rest;
};

// Takes the flag at `words[at]` and its value, checked, into `out`; the next word to look at.
Result<std::size_t> take_flag(const CommandSpec& spec, std::span<const std::string> words, std::size_t at,
                              std::vector<std::string>& out) {
  const std::string& word = words[at];
  const std::size_t equals = word.find('=');
  const std::string spelling = word.substr(0, equals);
  const FlagSpec* flag = find_flag(spec, spelling);
  if (flag == nullptr) return unknown_flag(spec, spelling);
  out.push_back(spelling);
  if (flag->type == FlagType::kSwitch) {
    if (equals != std::string::npos) return usage(format("{} takes no value", spelling));
    return at + 1;
  }
  std::string value;  // CLI11 sees it as a word of its own
  std::size_t next = at + 1;
  if (equals != std::string::npos) {
    value = word.substr(equals + 1);
  } else if (next < words.size() && words[next] != "--" && find_flag(spec, words[next]) == nullptr) {
    value = words[next++];
  } else {
    return usage(format("{} needs {} after it", spelling, value_kind(*flag)));
  }
  HOTLAP_TRY(check_value(*flag, spelling, value));
  out.push_back(std::move(value));
  return next;
}

// Finds what CLI11 would say less clearly: unknown flags, missing values, and where the rest begins.
Result<SplitWords> split_words(const CommandSpec& spec, std::span<const std::string> words) {
  SplitWords out;
  const bool has_rest = takes_rest(spec);
  for (std::size_t at = 0; at < words.size();) {
    const std::string& word = words[at];
    if (word == "--" || (has_rest && !looks_like_flag(word))) {
      const std::span<const std::string> after = words.subspan(has_rest && word == "--" ? at + 1 : at);
      std::vector<std::string>& into = has_rest ? out.rest : out.head;
      into.insert(into.end(), after.begin(), after.end());
      return out;
    }
    if (!looks_like_flag(word)) {
      out.head.push_back(word);
      ++at;
    } else if (word == "--help" || word == "-h") {
      out.wants_help = true;
      return out;
    } else {
      HOTLAP_TRY_ASSIGN(at, take_flag(spec, words, at, out.head));
    }
  }
  return out;
}

// CLI11 reports by exception; they all end here.
Result<Args> parse_head(const CommandSpec& spec, std::vector<std::string> head) {
  try {
    CLI::App app;
    app.set_help_flag();
    std::vector<std::pair<const FlagSpec*, CLI::Option*>> flags;
    for (const FlagSpec& flag : spec.flags) {
      CLI::Option* option = flag.type == FlagType::kSwitch
                                ? app.add_flag(std::string(flag.name))
                                : app.add_option(std::string(flag.name))->type_size(1)->expected(1);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      flags.emplace_back(&flag, option);
    }
    app.allow_extras();
    std::reverse(head.begin(), head.end());  // CLI11 takes words from the back
    app.parse(std::move(head));

    Args args;
    for (const auto& [flag, option] : flags) {
      const std::vector<std::string> given = option->count() == 0 ? std::vector<std::string>{} : option->results();
      for (const std::string_view spelling : flag_spellings(*flag)) args.values.emplace(spelling, given);
    }
    std::vector<std::string> words = app.remaining();
    // CLI11 hands the separator back among the extras.
    words.erase(std::remove(words.begin(), words.end(), "--"), words.end());
    std::size_t next = 0;
    for (const PositionalSpec& positional : spec.positionals) {
      std::vector<std::string>& values = args.values[std::string(positional.name)];
      if (positional.takes_rest) continue;
      const std::size_t left = words.size() - next;
      const std::size_t count = positional.is_repeated ? left : std::min<std::size_t>(1, left);
      values.assign(words.begin() + static_cast<std::ptrdiff_t>(next),
                    words.begin() + static_cast<std::ptrdiff_t>(next + count));
      next += count;
    }
    if (next < words.size()) return usage(format("unexpected argument '{}'", strip_control(words[next])));
    return args;
  } catch (const CLI::Error& error) {
    return usage(strip_control(error.what()));
  }
}

}  // namespace

std::vector<std::string_view> flag_spellings(const FlagSpec& flag) { return split(flag.name, ','); }

Result<ParsedWords> parse_words(const CommandSpec& spec, std::span<const std::string> words) {
  HOTLAP_TRY_ASSIGN(SplitWords split, split_words(spec, words));
  if (split.wants_help) return ParsedWords{.wants_help = true, .args = {}};
  HOTLAP_TRY_ASSIGN(Args args, parse_head(spec, std::move(split.head)));
  if (takes_rest(spec)) args.values[std::string(spec.positionals.back().name)] = std::move(split.rest);
  for (const PositionalSpec& positional : spec.positionals) {
    if (positional.is_required && args.positional(positional.name).empty()) {
      return usage(format("{} is missing, as in: {}", positional.name, spec.example));
    }
  }
  return ParsedWords{.wants_help = false, .args = std::move(args)};
}

}  // namespace hotlap
