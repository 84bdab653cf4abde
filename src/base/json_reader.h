#pragma once
// Small JSON documents of our own (run.json, verdict.json) as a read-only tree. Foreign traces are the importers'
// business: this reader holds the whole document in memory.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hotlap {

// A view of one value; valid while its JsonDocument lives. Every accessor answers "absent" instead of failing, so that
// a reader of an older or newer file takes what it knows.
class JsonValue {
 public:
  JsonValue() = default;
  explicit JsonValue(const void* node) : node_(node) {}

  bool exists() const { return node_ != nullptr; }
  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  JsonValue operator[](std::string_view name) const;  // member of an object
  std::vector<JsonValue> items() const;               // of an array
  std::vector<std::string> keys() const;              // of an object, in file order
  std::optional<std::string> text() const;
  std::optional<double> number() const;
  std::optional<std::int64_t> integer() const;
  std::optional<bool> truth() const;

 private:
  const void* node_ = nullptr;
};

class JsonDocument {
 public:
  // kCorrupt with the byte offset when `json_untrusted` is not one JSON value. Nested however deep: nothing here
  // recurses, and memory is bounded by the text's length. `takes_nan`: also NaN and Infinity, which Python writes and
  // JSON does not have; number() then gives them.
  static Result<JsonDocument> parse(std::string_view json_untrusted, bool takes_nan = false);
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();
  JsonValue root() const;

 private:
  struct State;
  explicit JsonDocument(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hotlap
