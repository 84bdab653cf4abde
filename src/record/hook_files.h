#pragma once
// The hook's Python package, carried inside the program and laid out once per version for jobs to load.
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hotlap {

struct EmbeddedFile {
  std::string_view path;  // "hotlap/_start.py"
  std::string_view content;
};
// Generated from python/src by cmake/embed_files.cmake.
std::span<const EmbeddedFile> embedded_hook_files();

// Folder that holds the package `hotlap`: HOTLAP_HOOK_PATH if that is set, else <home>/hook/<content hash>, made or
// mended when it is not exactly what this program carries (0700/0600, appears whole).
Result<std::filesystem::path> lay_out_hook(const std::filesystem::path& home);

}  // namespace hotlap
