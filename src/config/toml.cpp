#include "config/toml.h"

// NOLINTBEGIN(readability-identifier-naming): the library's own switches
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
// NOLINTEND(readability-identifier-naming)
#include <toml++/toml.h>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::size_t kShownMax = 40;  // bytes of a value in a message

TomlEntry make_entry(std::string_view key, const toml::node& node, std::string_view file_name, const std::string& path);

std::vector<TomlEntry> make_entries(const toml::table& table, std::string_view file_name, const std::string& parent) {
  std::vector<TomlEntry> entries;
  for (const auto& [key, node] : table) {
    const std::string path = parent.empty() ? std::string(key.str()) : parent + "." + std::string(key.str());
    entries.push_back(make_entry(key.str(), node, file_name, path));
  }
  return entries;
}

// Depth is bounded by toml++ (TOML_MAX_NESTED_VALUES).
TomlEntry make_entry(std::string_view key, const toml::node& node, std::string_view file_name,
                     const std::string& path) {
  TomlEntry entry;
  entry.key = key;
  entry.where = format("{}:{}: {}", file_name, node.source().begin.line, path);
  if (const auto* text = node.as_string()) {
    entry.kind = TomlEntry::Kind::kText;
    entry.text = text->get();
  } else if (const auto* whole = node.as_integer()) {
    entry.kind = TomlEntry::Kind::kNumber;
    entry.text = format("{}", whole->get());
  } else if (const auto* number = node.as_floating_point()) {
    entry.kind = TomlEntry::Kind::kNumber;
    entry.text = format("{}", number->get());
  } else if (const auto* truth = node.as_boolean()) {
    entry.kind = TomlEntry::Kind::kTruth;
    entry.text = truth->get() ? "true" : "false";
  } else if (const auto* table = node.as_table()) {
    entry.kind = TomlEntry::Kind::kTable;
    entry.members = make_entries(*table, file_name, path);
  } else {
    entry.text = node.is_array() ? "a list" : "a date or time";
  }
  return entry;
}

}  // namespace

std::string TomlEntry::shown() const {
  switch (kind) {
    case Kind::kText: {
      const bool is_long = text.size() > kShownMax;
      return format("\"{}{}\"", to_valid_utf8(text.substr(0, kShownMax)), is_long ? "…" : "");
    }
    case Kind::kNumber:
    case Kind::kTruth:
    case Kind::kOther: return text;
    case Kind::kTable: return "a table";
  }
  return {};
}

Result<std::vector<TomlEntry>> parse_toml(std::string_view text_untrusted, std::string_view file_name) {
  const toml::parse_result result = toml::parse(text_untrusted);
  if (!result) {
    const toml::parse_error& error = result.error();
    return Error{ErrorCode::kInvalidInput,
                 format("{}:{}: not valid TOML: {}", file_name, error.source().begin.line, error.description())};
  }
  return make_entries(result.table(), file_name, {});
}

}  // namespace hotlap
