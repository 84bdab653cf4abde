#pragma once
// A TOML document as plain data with the place of every key, so that messages can name file, line and key. The one
// place that knows toml++.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hotlap {

struct TomlEntry {
  enum class Kind : std::uint8_t { kText, kNumber, kTruth, kTable, kOther };
  Kind kind = Kind::kOther;
  std::string key;
  std::string text;                // of a text, number or truth; the name of its type of kOther
  std::string where;               // "hotlap.toml:3: rules.InputBound.min_pct"
  std::vector<TomlEntry> members;  // of a table, sorted by key

  // The value as a message shows it: "\"fast\"", "5", "a table".
  std::string shown() const;
};

// The top level's entries, sorted by key. kInvalidInput with file and line when it is not TOML.
Result<std::vector<TomlEntry>> parse_toml(std::string_view text_untrusted, std::string_view file_name);

}  // namespace hotlap
