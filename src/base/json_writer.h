#pragma once
// Streaming JSON output (RapidJSON's Writer behind it). Numbers that JSON cannot hold (NaN, infinity) and absent values
// become null. Text that is not UTF-8 is written with U+FFFD in place of the bad bytes.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hotlap {

// Not thread-safe. Misuse (a value without a key inside an object) is a failed check.
class JsonWriter {
 public:
  enum class Style { kCompact, kPretty };
  explicit JsonWriter(Style style = Style::kCompact);
  ~JsonWriter();
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(int number) { return value(std::int64_t{number}); }
  JsonWriter& value(bool truth);
  JsonWriter& null();
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  // `json` must be one complete JSON value; it is copied as it is.
  JsonWriter& raw(std::string_view json);

  // The text so far; complete once every object and array is closed.
  std::string take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hotlap
