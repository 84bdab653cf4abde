// try_import FILE|FOLDER…: which importer takes it, and what it makes of it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/import_capture.h"

namespace {
std::string file_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}
}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path path(argv[i]);
    const std::string content = std::filesystem::is_directory(path) ? std::string{} : file_text(path);
    const hotlap::ImporterSpec* const spec =
        hotlap::test::importer_of(content, path.filename().string() + (std::filesystem::is_directory(path) ? "/" : ""));
    std::printf("=== %s: %s\n", path.c_str(), spec == nullptr ? "none" : std::string(spec->name).c_str());
    if (spec == nullptr) continue;
    const std::string text = spec->open_path != nullptr ? hotlap::test::import_path(*spec, path)
                                                        : hotlap::test::import_stream(*spec, content, 65536);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}
