#include "cli/completion.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "store/home.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

constexpr std::string_view kBashHead = R"(# Completion of hotlap for bash: source <(hotlap completion bash)
)";
constexpr std::string_view kZshHead = R"(#compdef hotlap
# Completion of hotlap for zsh: source <(hotlap completion zsh)
autoload -U +X bashcompinit && bashcompinit
)";

// Takes the names of the commands, and a case of the shell for each.
constexpr std::string_view kFunction = R"sh(_hotlap() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} i
  local flags='' valued='' takes=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{0}' -- "$current"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == -- ]] || continue
    if declare -F _command_offset >/dev/null; then
      _command_offset $((i + 1))
    elif ((COMP_CWORD == i + 1)); then
      COMPREPLY=($(compgen -c -- "$current"))
    fi
    return
  done
  case ${{COMP_WORDS[1]}} in
{1}  esac
  [[ " $valued " == *" $previous "* ]] && return
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ $takes == runs ]]; then
    COMPREPLY=($(compgen -W "last $(hotlap completion runs 2>/dev/null)" -- "$current"))
  elif [[ -n $takes ]]; then
    COMPREPLY=($(compgen -W "$takes" -- "$current"))
  fi
}}
complete -o default -F _hotlap hotlap
)sh";

// "-o,--output" is two words.
std::string words_of(std::span<const FlagSpec> flags, bool only_with_value) {
  std::string out;
  for (const FlagSpec& flag : flags) {
    if (only_with_value && flag.type == FlagType::kSwitch) continue;
    for (const std::string_view name : split(flag.name, ',')) {
      out += ' ';
      out += name;
    }
  }
  return out;
}

// What stands where no flag does: runs, the job after "--", or words of the command's own.
std::string taken_by(const CommandSpec& spec) {
  for (const PositionalSpec& positional : spec.positionals) {
    if (positional.takes_rest) return "--";
    if (!positional.choices.empty()) return std::string(positional.choices);
    if (positional.names_runs) return "runs";
  }
  return {};
}

bool is_plain(std::string_view name) {
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

}  // namespace

std::string completion_script(std::span<const CommandSpec* const> commands, Shell shell) {
  std::string names;
  std::string cases;
  for (const CommandSpec* spec : commands) {
    if (spec->is_hidden) continue;
    if (!names.empty()) names += ' ';
    names += spec->name;
    cases += format("    {}) flags='--help{}' valued='{}' takes='{}' ;;\n", spec->name, words_of(spec->flags, false),
                    trim(words_of(spec->flags, true)), taken_by(*spec));
  }
  std::string out(shell == Shell::kBash ? kBashHead : kZshHead);
  out += format(kFunction, names, cases);
  return out;
}

Result<std::string> completion_runs(std::size_t limit) {
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  std::string out;
  std::set<std::string> told;
  for (const RunFolder& run : RunFolder::list(home, nullptr)) {
    if (told.size() == limit) break;
    const RunInfo& info = run.info();
    const std::string& word = is_plain(info.name) ? info.name : info.id;
    if (is_plain(word) && told.insert(word).second) out += word + '\n';
  }
  return out;
}

}  // namespace hotlap
