#pragma once
// Starting processes: the job exactly as its parent would have started it, and our own ones apart from it.
#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hotlap {

// What a child must get back: what was in force when this process started.
struct InheritedSignals {
  sigset_t mask{};
  bool ignores_child = false;  // SIGCHLD was ignored; waiting for children needs it not to be
};
// Blocks every signal that can be blocked and tells what was before. Dispositions stay as they are, so a child inherits
// them.
InheritedSignals block_signals();

struct SpawnFailure {
  int error_number = 0;
  // As a shell has it: 127 when there is no such command, 126 when it cannot be run.
  int exit_code() const;
};

// Forks and executes `command` by PATH with `environment`; same session, process group, terminal and descriptors. The
// pid, or why it could not be executed. Where no descriptor is left to learn that, the new process says it and ends by
// the exit code. One thread only.
Result<pid_t> spawn_job(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                        const InheritedSignals& signals, SpawnFailure& failure);

// Replaces this process by the job; comes back only when that fails.
SpawnFailure become_job(const std::vector<std::string>& command);
// "no-such: command not found", "cannot run ./tool: its interpreter '/opt/python9' does not exist"
Error describe(const SpawnFailure& failure, std::string_view program);

// This program, also after its file was replaced.
inline constexpr const char* kOwnProgram = "/proc/self/exe";

struct OwnProcess {
  std::vector<std::string> words;       // after the program's name
  std::vector<int> descriptors;         // become 3, 4 …
  bool keeps_stderr = false;            // to speak to the user; otherwise all three are /dev/null
  bool dies_with_us = false;            // by SIGKILL, when this process ends
  int nice = 0;                         // added
  std::uint64_t address_bytes_max = 0;  // 0: no limit
};
// Runs this program anew in a session of its own: neither Ctrl-C nor the end of the terminal reaches it, and it holds
// nothing of the job's.
Result<pid_t> spawn_own(const OwnProcess& process, const InheritedSignals& signals);

// Closes `first` and every descriptor above it. One thread only.
void close_from(int first);

// The words of a line for /bin/sh.
std::vector<std::string> shell_command(const std::string& line);

// `root` and all that descend from it now.
std::vector<pid_t> process_tree(pid_t root);

}  // namespace hotlap
