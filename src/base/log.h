#pragma once
// Our own diagnostics: to stderr (never stdout, which is the job's), marked "hotlap:". Thread-safe.
#include <string_view>

#include "base/format.h"

namespace hotlap {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Lines below `level` are dropped. Default: kWarning; HOTLAP_LOG=debug|info|warning|error|off overrides at start.
void set_log_level(LogLevel level);
LogLevel log_level();

// Sends later lines to `path` (appended, created 0600) instead of stderr: the recorder's log in the run folder.
bool log_to_file(const char* path);

void log_line(LogLevel level, std::string_view line);

}  // namespace hotlap

#define HOTLAP_LOG_AT(level, ...)                                                                     \
  do {                                                                                                \
    if ((level) >= ::hotlap::log_level()) ::hotlap::log_line((level), ::hotlap::format(__VA_ARGS__)); \
  } while (false)
#define HOTLAP_LOG_DEBUG(...) HOTLAP_LOG_AT(::hotlap::LogLevel::kDebug, __VA_ARGS__)
#define HOTLAP_LOG_INFO(...) HOTLAP_LOG_AT(::hotlap::LogLevel::kInfo, __VA_ARGS__)
#define HOTLAP_LOG_WARNING(...) HOTLAP_LOG_AT(::hotlap::LogLevel::kWarning, __VA_ARGS__)
#define HOTLAP_LOG_ERROR(...) HOTLAP_LOG_AT(::hotlap::LogLevel::kError, __VA_ARGS__)
