#include "base/json_reader.h"

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include "base/format.h"

namespace hotlap {

struct JsonDocument::State {
  rapidjson::Document document;
};

namespace {
const rapidjson::Value& node(const void* opaque) { return *static_cast<const rapidjson::Value*>(opaque); }
}  // namespace

JsonDocument::JsonDocument(std::unique_ptr<State> state) : state_(std::move(state)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

Result<JsonDocument> JsonDocument::parse(std::string_view json_untrusted, bool takes_nan) {
  auto state = std::make_unique<State>();
  // Iterative: a document of a million brackets must not end our stack.
  if (takes_nan) {
    state->document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag>(json_untrusted.data(),
                                                                                           json_untrusted.size());
  } else {
    state->document.Parse<rapidjson::kParseIterativeFlag>(json_untrusted.data(), json_untrusted.size());
  }
  if (state->document.HasParseError()) {
    return Error{ErrorCode::kCorrupt, format("not valid JSON at byte {}: {}", state->document.GetErrorOffset(),
                                             rapidjson::GetParseError_En(state->document.GetParseError()))};
  }
  return JsonDocument(std::move(state));
}

JsonValue JsonDocument::root() const { return JsonValue(static_cast<const rapidjson::Value*>(&state_->document)); }

bool JsonValue::is_null() const { return node_ != nullptr && node(node_).IsNull(); }
bool JsonValue::is_object() const { return node_ != nullptr && node(node_).IsObject(); }
bool JsonValue::is_array() const { return node_ != nullptr && node(node_).IsArray(); }

JsonValue JsonValue::operator[](std::string_view name) const {
  if (!is_object()) return {};
  const auto found =
      node(node_).FindMember(rapidjson::Value(name.data(), static_cast<rapidjson::SizeType>(name.size())));
  return found == node(node_).MemberEnd() ? JsonValue{} : JsonValue(&found->value);
}

std::vector<JsonValue> JsonValue::items() const {
  std::vector<JsonValue> found;
  if (is_array()) {
    for (const auto& item : node(node_).GetArray()) found.emplace_back(&item);
  }
  return found;
}

std::vector<std::string> JsonValue::keys() const {
  std::vector<std::string> found;
  if (is_object()) {
    for (const auto& member : node(node_).GetObject()) {
      found.emplace_back(member.name.GetString(), member.name.GetStringLength());
    }
  }
  return found;
}

std::optional<std::string> JsonValue::text() const {
  if (node_ == nullptr || !node(node_).IsString()) return std::nullopt;
  return std::string(node(node_).GetString(), node(node_).GetStringLength());
}
std::optional<double> JsonValue::number() const {
  if (node_ == nullptr || !node(node_).IsNumber()) return std::nullopt;
  return node(node_).GetDouble();
}
std::optional<std::int64_t> JsonValue::integer() const {
  if (node_ == nullptr || !node(node_).IsInt64()) return std::nullopt;
  return node(node_).GetInt64();
}
std::optional<bool> JsonValue::truth() const {
  if (node_ == nullptr || !node(node_).IsBool()) return std::nullopt;
  return node(node_).GetBool();
}

}  // namespace hotlap
