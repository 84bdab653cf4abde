// docs/reference/losses.md is made from the table of counters. HOTLAP_UPDATE_GOLDEN=1 rewrites it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/format.h"
#include "model/losses.h"
#include "support/golden.h"

namespace hotlap {
namespace {

std::string_view severity_text(LossSeverity severity) {
  switch (severity) {
    case LossSeverity::kInfo: return "info";
    case LossSeverity::kNotice: return "notice";
    case LossSeverity::kDataLoss: return "data loss";
    case LossSeverity::kError: return "error";
  }
  return "";
}

std::string reference() {
  std::string text =
      "# Losses\n\nMade from the table of counters; do not edit. Whatever is dropped, repaired or skipped is counted "
      "under one of these\nnames; `hotlap show` and the JSON of `hotlap analyze` list every one that is not 0.\n\n"
      "| counter | severity | what it means |\n|---|---|---|\n";
  for (const LossDesc& loss : kLosses) {
    text += format("| `{}` | {} | {} |\n", loss.counter, severity_text(loss.severity), loss.help);
  }
  return text;
}

TEST(LossesReference, IsWhatTheTableSays) {
  test::expect_golden(std::filesystem::path(HOTLAP_SOURCE_DIR) / "docs/reference/losses.md", reference());
}

}  // namespace
}  // namespace hotlap
