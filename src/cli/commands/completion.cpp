// The completion script of a shell.
#include <array>
#include <ostream>

#include "base/format.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/registry.h"

namespace hotlap {
namespace {

constexpr std::size_t kRunsMax = 200;

constexpr std::array kPositionals{PositionalSpec{
    .name = "SHELL", .help = "bash or zsh; runs: the names to complete", .is_required = true, .choices = "bash zsh"}};

Result<int> run(const Args& args, Streams& streams) {
  const std::string& what = args.positional("SHELL")[0];
  if (what == "bash" || what == "zsh") {
    streams.out << completion_script(all_commands(), what == "bash" ? Shell::kBash : Shell::kZsh);
    return int{kExitSuccess};
  }
  if (what != "runs") return Error{ErrorCode::kInvalidInput, format("no completion for '{}': give bash or zsh", what)};
  HOTLAP_TRY_ASSIGN(const std::string runs, completion_runs(kRunsMax));
  streams.out << runs;
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_completion{
    .name = "completion",
    .summary = "Print the script by which a shell completes hotlap's command line.",
    .example = "hotlap completion bash",
    .help =
        "Put this line into ~/.bashrc: source <(hotlap completion bash); for zsh with zsh in its place, into ~/.zshrc. "
        "make install puts the scripts where both shells look for them by themselves.",
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
