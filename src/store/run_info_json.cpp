// run.json: text of a RunInfo and back.
#include <limits>
#include <map>

#include "base/format.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

constexpr std::int64_t kSchema = 1;

void put_texts(JsonWriter& out, std::string_view name, const std::map<std::string, std::string>& texts) {
  out.key(name).begin_object();
  for (const auto& [key, text] : texts) out.field(key, std::string_view(text));
  out.end_object();
}

// Nanoseconds travel as decimal text: a double, which is all that many readers of JSON have, cannot hold them.
void put_ns(JsonWriter& out, std::string_view name, std::int64_t ns) {
  out.field(name, std::string_view(format("{}", ns)));
}

std::int64_t read_ns(JsonValue value, std::int64_t absent) {
  if (const auto text = value.text()) return parse_i64(*text).value_or(absent);
  return value.integer().value_or(absent);
}

std::map<std::string, std::string> read_texts(JsonValue value) {
  std::map<std::string, std::string> texts;
  for (const std::string& key : value.keys()) {
    if (auto text = value[key].text()) texts[key] = std::move(*text);
  }
  return texts;
}

std::optional<std::int32_t> read_i32(JsonValue value) {
  const auto number = value.integer();
  if (!number || *number < std::numeric_limits<std::int32_t>::min() ||
      *number > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*number);
}

}  // namespace

std::string run_info_to_json(const RunInfo& info) {
  JsonWriter out(JsonWriter::Style::kPretty);
  out.begin_object();
  out.field("schema", kSchema);
  out.field("id", std::string_view(info.id));
  out.field("name", std::string_view(info.name));
  out.field("status", to_string(info.status));
  out.key("command").begin_array();
  for (const std::string& word : info.command) out.value(std::string_view(word));
  out.end_array();
  out.field("script", std::string_view(info.script));
  out.field("working_directory", std::string_view(info.working_directory));
  out.field("node", std::string_view(info.node));
  out.field("hotlap_version", std::string_view(info.hotlap_version));
  put_ns(out, "start_wall_ns", info.start_wall_ns);
  if (info.end_wall_ns >= 0) {
    put_ns(out, "end_wall_ns", info.end_wall_ns);
  } else {
    out.key("end_wall_ns").null();
  }
  put_ns(out, "interval_ns", info.interval_ns);
  out.key("exit_code");
  info.exit_code ? out.value(*info.exit_code) : out.null();
  out.key("exit_signal");
  info.exit_signal ? out.value(*info.exit_signal) : out.null();
  out.field("job_pid", info.job_pid);
  out.field("job_start_ticks", info.job_start_ticks);
  out.field("boot_id", std::string_view(info.boot_id));
  out.field("attempt", info.attempt);
  if (!info.recording_folder.empty()) out.field("recording_folder", std::string_view(info.recording_folder));
  put_texts(out, "join_keys", info.join_keys);
  put_texts(out, "environment", info.environment);
  out.key("price");
  if (info.price) {
    out.begin_object();
    out.field("per_hour", info.price->per_hour);
    out.field("currency", std::string_view(info.price->currency));
    out.field("source", std::string_view(info.price->source));
    out.end_object();
  } else {
    out.null();
  }
  out.end_object();
  return out.take() + "\n";
}

Result<RunInfo> run_info_from_json(std::string_view json_untrusted) {
  HOTLAP_TRY_ASSIGN(const JsonDocument document, JsonDocument::parse(json_untrusted));
  const JsonValue root = document.root();
  if (!root.is_object()) return Error{ErrorCode::kCorrupt, "is not a JSON object"};
  const std::int64_t schema = root["schema"].integer().value_or(kSchema);
  if (schema > kSchema) {
    return Error{ErrorCode::kUnsupported,
                 format("schema {}, this hotlap knows up to {}: use a newer hotlap", schema, kSchema)};
  }
  RunInfo info;
  info.id = root["id"].text().value_or("");
  if (!is_ulid(info.id)) return Error{ErrorCode::kCorrupt, "\"id\" is missing or not the id of a run"};
  info.name = root["name"].text().value_or("");
  info.status = run_status_from(root["status"].text().value_or("")).value_or(RunStatus::kUnknown);
  for (const JsonValue& word : root["command"].items()) info.command.push_back(word.text().value_or(""));
  info.script = root["script"].text().value_or("");
  info.working_directory = root["working_directory"].text().value_or("");
  info.node = root["node"].text().value_or("");
  info.hotlap_version = root["hotlap_version"].text().value_or("");
  info.start_wall_ns = read_ns(root["start_wall_ns"], -1);
  info.end_wall_ns = read_ns(root["end_wall_ns"], -1);
  info.interval_ns = read_ns(root["interval_ns"], 0);
  info.exit_code = read_i32(root["exit_code"]);
  info.exit_signal = read_i32(root["exit_signal"]);
  info.job_pid = read_i32(root["job_pid"]).value_or(0);
  info.job_start_ticks = root["job_start_ticks"].integer();
  info.boot_id = root["boot_id"].text().value_or("");
  info.attempt = read_i32(root["attempt"]).value_or(1);
  info.recording_folder = root["recording_folder"].text().value_or("");
  info.join_keys = read_texts(root["join_keys"]);
  info.environment = read_texts(root["environment"]);
  if (const JsonValue price = root["price"]; price.is_object()) {
    if (const auto per_hour = price["per_hour"].number()) {
      info.price = Price{.per_hour = *per_hour,
                         .currency = price["currency"].text().value_or("USD"),
                         .source = price["source"].text().value_or("")};
    }
  }
  return info;
}

}  // namespace hotlap
