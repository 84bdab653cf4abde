#pragma once
// Files that a user names: anything may lie behind the path.
#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace hotlap {

// Whole content of a regular file of at most `bytes_max` (kResourceLimit beyond). Never waits: a folder, a pipe, a
// device or a socket is kInvalidInput and named as such.
Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t bytes_max);

// kInvalidInput with what it is ("is a folder") when `path` exists but is no regular file; kNotFound, kIo.
Result<void> check_regular_file(const std::filesystem::path& path);

}  // namespace hotlap
