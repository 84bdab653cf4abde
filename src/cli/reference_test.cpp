// docs/reference/cli.md and config.md are made from specs. HOTLAP_UPDATE_GOLDEN=1 rewrites them.
#include "cli/reference.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/registry.h"
#include "query/registry.h"
#include "rules/registry.h"
#include "support/golden.h"

namespace hotlap {
namespace {

const std::filesystem::path kReference = std::filesystem::path(HOTLAP_SOURCE_DIR) / "docs/reference";

TEST(Reference, CommandsAreAsStored) { test::expect_golden(kReference / "cli.md", cli_reference(all_commands())); }
TEST(Reference, ConfigurationIsAsStored) {
  test::expect_golden(kReference / "config.md", config_reference(all_rules()));
}

// What stands above the tables is written by hand; its examples are run by tests/cases/sql.
TEST(Reference, TablesAreAsStored) {
  const std::filesystem::path file = kReference / "sql.md";
  const Result<std::string> stored = read_regular_file(file, std::size_t{1} << 20U);
  ASSERT_TRUE(stored.ok());
  const std::size_t begin = stored->find("## Tables");
  ASSERT_NE(begin, std::string::npos);
  test::expect_golden(file, stored->substr(0, begin) + sql_reference(all_tables()));
}

}  // namespace
}  // namespace hotlap
