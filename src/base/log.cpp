#include "base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace hotlap {
namespace {

LogLevel level_from_environment() {
  const char* text = std::getenv("HOTLAP_LOG");  // NOLINT(concurrency-mt-unsafe): read once, before any thread
  if (text == nullptr) return LogLevel::kWarning;
  const std::string_view name(text);
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return LogLevel::kWarning;
}

struct LogState {
  LogLevel level = level_from_environment();
  std::shared_ptr<spdlog::logger> logger;
};

// Built at first use and never destroyed: a line may be logged by any thread until the very end.
LogState& state() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the one log of the process, behind state()
  static auto* const instance = [] {
    auto* made = new LogState;
    made->logger = std::make_shared<spdlog::logger>("hotlap", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->logger->set_level(spdlog::level::trace);
    made->logger->set_pattern("hotlap: %v");
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) { state().level = level; }
LogLevel log_level() { return state().level; }

bool log_to_file(const char* path) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  ::close(fd);
  try {
    auto logger = std::make_shared<spdlog::logger>("hotlap", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
    logger->set_level(spdlog::level::trace);
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %P %l %v");
    logger->flush_on(spdlog::level::trace);
    state().logger = std::move(logger);
    return true;
  } catch (const spdlog::spdlog_ex&) {
    return false;
  }
}

void log_line(LogLevel level, std::string_view line) {
  spdlog::level::level_enum mapped = spdlog::level::info;
  switch (level) {
    case LogLevel::kDebug: mapped = spdlog::level::debug; break;
    case LogLevel::kInfo: mapped = spdlog::level::info; break;
    case LogLevel::kWarning: mapped = spdlog::level::warn; break;
    case LogLevel::kError: mapped = spdlog::level::err; break;
    case LogLevel::kOff: return;
  }
  state().logger->log(mapped, "{}", line);
}

}  // namespace hotlap
