// docs/reference/cli.md and config.md are made from specs. HOTLAP_UPDATE_GOLDEN=1 rewrites them.
#include "cli/reference.h"

#include <gtest/gtest.h>

#include "cli/registry.h"
#include "rules/registry.h"
#include "support/golden.h"

namespace hotlap {
namespace {

const std::filesystem::path kReference = std::filesystem::path(HOTLAP_SOURCE_DIR) / "docs/reference";

TEST(Reference, CommandsAreAsStored) { test::expect_golden(kReference / "cli.md", cli_reference(all_commands())); }
TEST(Reference, ConfigurationIsAsStored) {
  test::expect_golden(kReference / "config.md", config_reference(all_rules()));
}

}  // namespace
}  // namespace hotlap
