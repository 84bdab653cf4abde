// The answer of a query's process as bytes on a pipe, and its reading.
//
//   ┌───────────┬──────────────────────────────────────────────┐
//   │ size: u32 │ payload: one letter, then                     │   C  names of the columns     R  the cells of a row
//   └───────────┴──────────────────────────────────────────────┘   E  code, message: the end     D  the end, all well
//
// Texts are a varint and their bytes; a cell is a letter (n i f t) and its content. The child is ours but ran a foreign
// text, so what it says is checked all the same.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/sanitizer.h"
#include "base/text.h"
#include "base/word_pointers.h"
#include "query/query.h"

extern char** environ;

namespace hotlap {
namespace {

constexpr std::size_t kBufferBytes = 64U << 10U;
constexpr std::size_t kPayloadBytesMax = 64U << 20U;  // a row: at most 200 values of 16 MiB, but never so much together
constexpr std::size_t kColumnsMax = 2'000;
constexpr std::int64_t kGraceNs = 5 * kNsPerS;  // beyond the time that the child itself keeps
// Besides what the query may take: the program itself, stacks, what opening the run needs.
constexpr std::size_t kOwnBytes = std::size_t{192} << 20U;

void put_text(Bytes& out, std::string_view text) {
  put_varint(out, text.size());
  put_bytes(out, as_bytes(text));
}

class AnswerWriter final : public QuerySink {
 public:
  explicit AnswerWriter(int fd) : fd_(fd) {}

  void columns(std::span<const std::string> names) override {
    payload_.assign(1, std::byte{'C'});
    put_varint(payload_, names.size());
    for (const std::string& name : names) put_text(payload_, name);
    is_sent_ = send();
  }

  Result<void> row(std::span<const Cell> cells) override {
    payload_.assign(1, std::byte{'R'});
    for (const Cell& cell : cells) {
      if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
        payload_.push_back(std::byte{'i'});
        put_varint(payload_, zigzag(*whole));
      } else if (const auto* real = std::get_if<double>(&cell)) {
        payload_.push_back(std::byte{'f'});
        put_fixed(payload_, *real);
      } else if (const auto* text = std::get_if<std::string_view>(&cell)) {
        payload_.push_back(std::byte{'t'});
        put_text(payload_, *text);
      } else {
        payload_.push_back(std::byte{'n'});
      }
    }
    if (payload_.size() > kPayloadBytesMax) return Error{ErrorCode::kResourceLimit, "a row is larger than 64 MiB"};
    is_sent_ = is_sent_ && send();
    if (!is_sent_) return Error{ErrorCode::kCancelled, "nobody reads the answer"};
    return {};
  }

  void end(const Result<void>& result) {
    if (result.ok()) {
      payload_.assign(1, std::byte{'D'});
    } else {
      payload_.assign(1, std::byte{'E'});
      payload_.push_back(static_cast<std::byte>(result.error().code));
      put_text(payload_, result.error().message);
    }
    if (is_sent_ && send()) flush();
  }

 private:
  bool send() {
    put_fixed(buffer_, static_cast<std::uint32_t>(payload_.size()));
    put_bytes(buffer_, payload_);
    return buffer_.size() < kBufferBytes || flush();
  }
  bool flush() {
    std::size_t at = 0;
    while (at < buffer_.size()) {
      const ssize_t n = ::write(fd_, buffer_.data() + at, buffer_.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += static_cast<std::size_t>(n);
    }
    buffer_.clear();
    return true;
  }

  int fd_;
  bool is_sent_ = true;
  Bytes payload_;
  Bytes buffer_;
};

// For the rest of this process's life.
void take_limits(const QueryLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const auto limit = [](auto resource, rlim_t value) {
    const rlimit both{.rlim_cur = value, .rlim_max = value};
    ::setrlimit(resource, &both);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>((limits.time_ns + kGraceNs) / kNsPerS + 1));
  sqlite3_hard_heap_limit64(static_cast<sqlite3_int64>(limits.memory_bytes));
  // A sanitizer reserves more of the address space than any limit allows.
  if (!kHasSanitizer) limit(RLIMIT_AS, limits.memory_bytes + kOwnBytes);
}

Error damaged() { return {ErrorCode::kInternal, "the query's process gave an answer that cannot be read"}; }

class AnswerReader {
 public:
  explicit AnswerReader(QuerySink& out) : out_(out) {}

  bool is_over() const { return is_over_; }

  // Takes the frames that are whole; keeps the rest.
  Result<void> add(ByteView bytes) {
    put_bytes(pending_, bytes);
    std::size_t at = 0;
    while (!is_over_ && pending_.size() - at >= sizeof(std::uint32_t)) {
      std::uint32_t size = 0;
      std::memcpy(&size, pending_.data() + at, sizeof size);
      if (size == 0 || size > kPayloadBytesMax) return damaged();
      if (pending_.size() - at - sizeof size < size) break;
      HOTLAP_TRY(take(ByteView(pending_).subspan(at + sizeof size, size)));
      at += sizeof size + size;
    }
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(at));
    return {};
  }

 private:
  Result<void> take(ByteView payload) {
    ByteReader reader(payload.subspan(1));
    switch (static_cast<char>(payload[0])) {
      case 'C': return take_columns(reader);
      case 'R': return take_row(reader);
      case 'D': is_over_ = true; return {};
      case 'E': {
        is_over_ = true;
        const auto code = reader.fixed<std::uint8_t>();
        const std::string message(as_text(reader.bytes(reader.varint())));
        if (!reader.ok() || code > static_cast<std::uint8_t>(ErrorCode::kCancelled)) return damaged();
        return Error{static_cast<ErrorCode>(code), message};
      }
      default: return damaged();
    }
  }

  Result<void> take_columns(ByteReader& reader) {
    const std::uint64_t count = reader.varint();
    if (count > kColumnsMax) return damaged();
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < count && reader.ok(); ++i) names.emplace_back(as_text(reader.bytes(reader.varint())));
    if (!reader.ok()) return damaged();
    cells_.resize(names.size());
    out_.columns(names);
    return {};
  }

  Result<void> take_row(ByteReader& reader) {
    for (Cell& cell : cells_) {
      switch (static_cast<char>(reader.fixed<std::uint8_t>())) {
        case 'n': cell = std::monostate(); break;
        case 'i': cell = unzigzag(reader.varint()); break;
        case 'f': cell = reader.fixed<double>(); break;
        case 't': cell = as_text(reader.bytes(reader.varint())); break;
        default: return damaged();
      }
    }
    if (!reader.ok()) return damaged();
    return out_.row(cells_);
  }

  QuerySink& out_;
  Bytes pending_;
  std::vector<Cell> cells_;
  bool is_over_ = false;
};

Result<pid_t> start(std::vector<std::string> words, int output_fd) {
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
  const std::vector<char*> arguments = word_pointers(words);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return errno_error("cannot start the query's process", failed);
  return pid;
}

Result<void> read_answer(int fd, std::int64_t deadline_ns, AnswerReader& answer) {
  std::array<std::byte, kBufferBytes> chunk;
  while (!answer.is_over()) {
    const std::int64_t left_ms = (deadline_ns - system_clock().mono_ns()) / kNsPerMs;
    if (left_ms <= 0) return Error{ErrorCode::kResourceLimit, "timed out"};
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left_ms, 60'000)));
    if (ready < 0 && errno != EINTR) return errno_error("poll", errno);
    if (ready <= 0) continue;
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    const std::int64_t before_ns = system_clock().mono_ns();
    HOTLAP_TRY(answer.add(ByteView(chunk).first(static_cast<std::size_t>(n))));
    deadline_ns += system_clock().mono_ns() - before_ns;  // a pager that is read slowly is no slow query
  }
  return {};
}

}  // namespace

void serve_query(QueriedRun& run, const QueryRequest& request, int fd) {
  take_limits(request.limits);
  AnswerWriter writer(fd);
  try {
    writer.end(execute_query(run, request, writer));
  } catch (const std::bad_alloc&) {
    serve_error({ErrorCode::kResourceLimit, format("needs more than {} of memory: ask for less",
                                                   format_bytes(static_cast<double>(request.limits.memory_bytes)))},
                fd);
  }
}

void serve_error(const Error& error, int fd) { AnswerWriter(fd).end(error); }

std::filesystem::path query_place(const RunFolder& folder) {
  std::error_code unknown;
  std::filesystem::path place = folder.path();
  if (!std::filesystem::exists(place / "run.json", unknown)) {
    const std::vector<std::filesystem::path> recordings = folder.recordings();
    if (!recordings.empty()) place = recordings.front();
  }
  return std::filesystem::absolute(place, unknown);
}

std::vector<std::string> query_words(const QueryRequest& request, QueryFindings findings,
                                     const std::filesystem::path& config) {
  std::vector<std::string> words{"/proc/self/exe",
                                 "_query",
                                 "--folder=" + request.run_folder.native(),
                                 "--sql=" + request.sql,
                                 format("--time={}ns", request.limits.time_ns),
                                 format("--memory={}", request.limits.memory_bytes)};
  for (const auto& [name, value] : request.parameters) words.push_back(format("--{}={}", name.substr(1), value));
  if (findings == QueryFindings::kOfOwnRules) words.emplace_back("--own-rules");
  std::error_code unknown;
  if (!config.empty()) words.push_back("--config=" + std::filesystem::absolute(config, unknown).native());
  return words;
}

Result<void> run_query(const std::vector<std::string>& words, const QueryLimits& limits, QuerySink& out) {
  HOTLAP_CHECK(!words.empty());
  std::array<int, 2> pipe{-1, -1};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  const Result<pid_t> pid = start(words, pipe[1]);
  ::close(pipe[1]);
  if (!pid.ok()) {
    ::close(pipe[0]);
    return pid.error();
  }
  AnswerReader reader(out);
  const std::int64_t deadline_ns = system_clock().mono_ns() + limits.time_ns + kGraceNs;
  Result<void> answered = read_answer(pipe[0], deadline_ns, reader);
  ::close(pipe[0]);
  // What has answered is ending; what has not is ended.
  if (!answered.ok() || !reader.is_over()) ::kill(*pid, SIGKILL);
  int status = 0;
  while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {}
  if (!answered.ok() && answered.error().message == "timed out") {
    return Error{ErrorCode::kResourceLimit,
                 format("took more than {}: ask for less, or give it --timeout", format_duration(limits.time_ns))};
  }
  if (answered.ok() && !reader.is_over()) {
    return Error{ErrorCode::kResourceLimit,
                 "the query's process ended without an answer: it was killed, or ran out of memory"};
  }
  return answered;
}

}  // namespace hotlap
