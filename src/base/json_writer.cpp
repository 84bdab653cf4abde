#include "base/json_writer.h"

#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <variant>

#include "base/check.h"
#include "base/text.h"

namespace hotlap {

struct JsonWriter::State {
  using Compact = rapidjson::Writer<rapidjson::StringBuffer>;
  using Pretty = rapidjson::PrettyWriter<rapidjson::StringBuffer>;

  explicit State(Style style) {
    if (style == Style::kPretty) {
      pretty = std::make_unique<Pretty>(buffer);
      pretty->SetIndent(' ', 2);
      pretty->SetFormatOptions(rapidjson::kFormatSingleLineArray);
    } else {
      compact = std::make_unique<Compact>(buffer);
    }
  }
  template <class F>
  void apply(F&& f) {
    const bool written = pretty ? f(*pretty) : f(*compact);
    HOTLAP_CHECK(written);
  }

  rapidjson::StringBuffer buffer;
  std::unique_ptr<Compact> compact;
  std::unique_ptr<Pretty> pretty;
};

JsonWriter::JsonWriter(Style style) : state_(std::make_unique<State>(style)) {}
JsonWriter::~JsonWriter() = default;

JsonWriter& JsonWriter::begin_object() {
  state_->apply([](auto& w) { return w.StartObject(); });
  return *this;
}
JsonWriter& JsonWriter::end_object() {
  state_->apply([](auto& w) { return w.EndObject(); });
  return *this;
}
JsonWriter& JsonWriter::begin_array() {
  state_->apply([](auto& w) { return w.StartArray(); });
  return *this;
}
JsonWriter& JsonWriter::end_array() {
  state_->apply([](auto& w) { return w.EndArray(); });
  return *this;
}
JsonWriter& JsonWriter::key(std::string_view name) {
  const std::string clean = to_valid_utf8(name);
  state_->apply([&](auto& w) { return w.Key(clean.data(), static_cast<rapidjson::SizeType>(clean.size())); });
  return *this;
}
JsonWriter& JsonWriter::value(std::string_view text) {
  const std::string clean = to_valid_utf8(text);
  state_->apply([&](auto& w) { return w.String(clean.data(), static_cast<rapidjson::SizeType>(clean.size())); });
  return *this;
}
JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  state_->apply([&](auto& w) { return w.Double(number); });
  return *this;
}
JsonWriter& JsonWriter::value(std::int64_t number) {
  state_->apply([&](auto& w) { return w.Int64(number); });
  return *this;
}
JsonWriter& JsonWriter::value(std::uint64_t number) {
  state_->apply([&](auto& w) { return w.Uint64(number); });
  return *this;
}
JsonWriter& JsonWriter::value(bool truth) {
  state_->apply([&](auto& w) { return w.Bool(truth); });
  return *this;
}
JsonWriter& JsonWriter::null() {
  state_->apply([](auto& w) { return w.Null(); });
  return *this;
}
JsonWriter& JsonWriter::raw(std::string_view json) {
  state_->apply([&](auto& w) { return w.RawValue(json.data(), json.size(), rapidjson::kObjectType); });
  return *this;
}

std::string JsonWriter::take() {
  std::string text(state_->buffer.GetString(), state_->buffer.GetSize());
  state_->buffer.Clear();
  return text;
}

}  // namespace hotlap
