#include "record/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/format.h"
#include "base/host.h"
#include "base/sanitizer.h"
#include "base/text.h"
#include "base/word_pointers.h"

namespace hotlap {
namespace {

constexpr int kFirstHandedFd = 3;
constexpr int kHandedMax = 8;
constexpr int kNoDescriptors = 125;
constexpr std::size_t kFirstLineMax = 256;  // the kernel looks at no more of a script

void restore_signals(const InheritedSignals& signals) {
  if (signals.ignores_child) ::signal(SIGCHLD, SIG_IGN);
  ::sigprocmask(SIG_SETMASK, &signals.mask, nullptr);
}

bool is_executable_file(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// What execvp() takes for `program`; empty: nothing that can be executed.
std::string file_of(std::string_view program) {
  if (program.empty()) return {};
  const auto known = [](std::string path) { return is_executable_file(path) ? path : std::string(); };
  if (program.find('/') != std::string_view::npos) return known(std::string(program));
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): one thread
  std::string_view rest(path != nullptr ? path : "/bin:/usr/bin");
  for (;;) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view folder = end == 0 ? "." : rest.substr(0, end);
    if (std::string found = known(format("{}/{}", folder, program)); !found.empty()) return found;
    if (end == rest.size()) return {};
    rest.remove_prefix(end + 1);
  }
}

// Why the kernel did not start a file that is there and can be executed: what it starts the file with is missing.
std::string why_not_started(const std::string& file, int error_number) {
  if (error_number != ENOENT && error_number != EACCES && error_number != ENOTDIR) return {};
  std::array<char, kFirstLineMax> head{};
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  const ssize_t n = ::read(fd, head.data(), head.size());
  ::close(fd);
  std::string_view line(head.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (line.starts_with("\177ELF")) {
    return error_number == ENOENT ? "the loader that it asks for does not exist (built for another system?)" : "";
  }
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string interpreter(line.substr(0, line.find_first_of(" \t")));
  if (interpreter.empty() || is_executable_file(interpreter)) return {};
  if (interpreter.ends_with('\r')) {
    return format("its first line ends in a carriage return, so its interpreter is '{}': save it with Unix line ends",
                  interpreter.substr(0, interpreter.size() - 1) + "\\r");
  }
  return format("its interpreter '{}' {}", strip_control(interpreter),
                ::access(interpreter.c_str(), F_OK) == 0 ? "cannot be executed" : "does not exist");
}

// What these load into the job is meant for the job; in ours it costs, and what ld.so says of it would be said twice.
std::vector<char*> own_environment() {
  std::vector<char*> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("LD_PRELOAD=") && !text.starts_with("LD_AUDIT=")) entries.push_back(*entry);
  }
  entries.push_back(nullptr);
  return entries;
}

// Between fork and exec, in a process that had one thread.
[[noreturn]] void become_own(const OwnProcess& process, char* const* words, const InheritedSignals& signals,
                             pid_t parent) {
  ::setsid();
  if (process.dies_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);  // it was gone before the kernel knew what to do then
  }
  const int null_fd = ::open("/dev/null", O_RDWR);
  ::dup2(null_fd, STDIN_FILENO);
  if (!process.keeps_stderr) ::dup2(null_fd, STDERR_FILENO);
  ::dup2(null_fd, STDOUT_FILENO);
  const int count = static_cast<int>(process.descriptors.size());
  // First out of the way, then into place: a source may be somebody's target.
  std::array<int, kHandedMax> spares{};
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    spares[index] = ::fcntl(process.descriptors[index], F_DUPFD, kFirstHandedFd + kHandedMax);
    if (spares[index] < 0) ::_exit(kNoDescriptors);
  }
  for (int i = 0; i < count; ++i) {
    if (::dup2(spares[static_cast<std::size_t>(i)], kFirstHandedFd + i) < 0) ::_exit(kNoDescriptors);
  }
  close_from(kFirstHandedFd + count);
  if (process.nice != 0) ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + process.nice);
  if (process.address_bytes_max != 0 && !kHasSanitizer) {
    const rlimit limit{process.address_bytes_max, process.address_bytes_max};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  restore_signals(signals);
  ::execve(kOwnProgram, words, own_environment().data());
  ::_exit(127);
}

}  // namespace

InheritedSignals block_signals() {
  InheritedSignals before;
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before.mask);
  struct sigaction child {};
  ::sigaction(SIGCHLD, nullptr, &child);
  before.ignores_child = child.sa_handler == SIG_IGN || (child.sa_flags & SA_NOCLDWAIT) != 0;
  if (before.ignores_child) ::signal(SIGCHLD, SIG_DFL);
  return before;
}

int SpawnFailure::exit_code() const { return error_number == ENOENT || error_number == ENOTDIR ? 127 : 126; }

Result<pid_t> spawn_job(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                        const InheritedSignals& signals, SpawnFailure& failure) {
  std::vector<std::string> words(command);
  std::vector<std::string> variables(environment);
  const std::vector<char*> arguments = word_pointers(words);
  const std::vector<char*> entries = word_pointers(variables);
  std::array<int, 2> report{-1, -1};  // closed by a successful exec; carries the failure otherwise
  const bool can_report = ::pipe2(report.data(), O_CLOEXEC) == 0;
  const pid_t pid = ::fork();
  if (pid < 0) {
    failure.error_number = errno;
    for (const int fd : report) ::close(fd);
    return errno_error("cannot start a process", failure.error_number);
  }
  if (pid == 0) {
    restore_signals(signals);
    ::execvpe(arguments[0], arguments.data(), entries.data());
    const SpawnFailure refused{errno};
    const std::string line = can_report ? "" : format("hotlap: {}\n", describe(refused, command[0]).message);
    while (!line.empty() && ::write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EINTR) {}
    while (can_report && ::write(report[1], &refused, sizeof refused) < 0 && errno == EINTR) {}
    ::_exit(refused.exit_code());
  }
  if (!can_report) return pid;
  ::close(report[1]);
  ssize_t n = 0;
  do {
    n = ::read(report[0], &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  ::close(report[0]);
  if (n != static_cast<ssize_t>(sizeof failure)) return pid;
  ::waitpid(pid, nullptr, 0);
  return describe(failure, command[0]);
}

SpawnFailure become_job(const std::vector<std::string>& command) {
  std::vector<std::string> words(command);
  ::execvp(words[0].c_str(), word_pointers(words).data());
  return {errno};
}

Error describe(const SpawnFailure& failure, std::string_view program) {
  const std::string name = strip_control(program);
  const std::string file = file_of(program);
  if (const std::string why = file.empty() ? "" : why_not_started(file, failure.error_number); !why.empty()) {
    return Error{ErrorCode::kNotFound, format("cannot run {}: {}", name, why)};
  }
  if (failure.error_number == ENOENT && name.find('/') == std::string::npos) {
    return Error{ErrorCode::kNotFound, format("{}: command not found", name)};
  }
  return errno_error(format("cannot run {}", name), failure.error_number);
}

Result<pid_t> spawn_own(const OwnProcess& process, const InheritedSignals& signals) {
  std::vector<std::string> words{"hotlap"};
  words.insert(words.end(), process.words.begin(), process.words.end());
  const std::vector<char*> arguments = word_pointers(words);
  HOTLAP_CHECK(process.descriptors.size() <= static_cast<std::size_t>(kHandedMax));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("cannot start a process", errno);
  if (pid == 0) become_own(process, arguments.data(), signals, parent);
  return pid;
}

void close_from(int first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  // Linux before 5.9.
  for (const std::string& name : system_host().list("/proc/self/fd").value_or({})) {
    if (const auto fd = parse_i64(name); fd && *fd >= first) ::close(static_cast<int>(*fd));
  }
}

std::vector<std::string> shell_command(const std::string& line) { return {"/bin/sh", "-c", line}; }

std::vector<pid_t> process_tree(pid_t root) {
  std::vector<pid_t> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const std::string tasks = format("/proc/{}/task", tree[i]);
    for (const std::string& task : system_host().list(tasks).value_or({})) {
      const std::string children =
          system_host().read_text(format("{}/{}/children", tasks, task)).value_or(std::string());
      std::string_view rest(children);
      for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
        if (const auto pid = parse_i64(word)) tree.push_back(static_cast<pid_t>(*pid));
      }
    }
  }
  return tree;
}

}  // namespace hotlap
