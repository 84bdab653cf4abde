#pragma once
// Golden files: what a test makes must be what the repository holds. With HOTLAP_UPDATE_GOLDEN=1 in the environment the
// file is rewritten first; read the change before it is kept. One thread.
#include <filesystem>
#include <string>
#include <string_view>

namespace hotlap::test {

// The whole file; empty when it cannot be read.
std::string file_text(const std::filesystem::path& path);

// Empty: the file holds `text`, byte for byte. Else one or two lines: where they begin to differ.
std::string golden_difference(const std::filesystem::path& path, std::string_view text);

// Fails the test that calls it, with the difference and how to rewrite the file.
void expect_golden(const std::filesystem::path& path, std::string_view text);

}  // namespace hotlap::test
