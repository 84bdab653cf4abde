// docs/reference/cli.md and config.md are made from specs. HOTLAP_UPDATE_GOLDEN=1 rewrites them.
#include "cli/reference.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/registry.h"
#include "rules/registry.h"

namespace hotlap {
namespace {

void expect_stored(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(HOTLAP_SOURCE_DIR) / "docs/reference" / name;
  if (std::getenv("HOTLAP_UPDATE_GOLDEN") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(path) << text;
    GTEST_SKIP() << "rewrote " << path;
  }
  std::ostringstream stored;
  stored << std::ifstream(path).rdbuf();
  EXPECT_TRUE(stored.str() == text) << "HOTLAP_UPDATE_GOLDEN=1 build/dev/src/cli/cli_test rewrites docs/reference/"
                                    << name;
}

TEST(Reference, CommandsAreAsStored) { expect_stored("cli.md", cli_reference(all_commands())); }
TEST(Reference, ConfigurationIsAsStored) { expect_stored("config.md", config_reference(all_rules())); }

}  // namespace
}  // namespace hotlap
