#include "view/run_settings.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::array<std::string_view, 8> kAreas{"argument", "told",    "loader",      "precision",
                                                 "code",     "version", "environment", "machine"};
constexpr std::string_view kNotSet = "not set";
constexpr std::size_t kTextBytesMax = 200;

std::string clipped(std::string text) {
  text = strip_control(to_valid_utf8(text));
  if (text.size() <= kTextBytesMax) return text;
  std::size_t end = kTextBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "\u2026";
}

bool is_number(std::string_view word) { return parse_f64(word).has_value(); }
bool is_flag(std::string_view word) { return word.size() >= 2 && word[0] == '-' && !is_number(word); }

std::string scalar_text(const JsonValue& value) {
  if (auto text = value.text()) return *text;
  if (const auto whole = value.integer()) return format("{}", *whole);
  if (const auto number = value.number()) return format("{}", *number);
  if (const auto truth = value.truth()) return *truth ? "true" : "false";
  return value.is_null() ? "none" : "";
}

// The members of an INFO record of the hook that are one value each.
void take_members(const std::string& json_untrusted, std::string_view prefix,
                  std::span<const std::string_view> left_out, std::map<std::string, std::string>& into) {
  const Result<JsonDocument> document = JsonDocument::parse(json_untrusted);
  if (!document.ok()) return;
  for (const std::string& key : document->root().keys()) {
    if (std::find(left_out.begin(), left_out.end(), key) != left_out.end()) continue;
    const std::string text = scalar_text(document->root()[key]);
    if (!text.empty()) into.try_emplace(std::string(prefix) + key, clipped(text));
  }
}

// "process.<label>.<what>": what a Python process told. The label may have dots ("python3.11 (4711)").
struct ToldBy {
  std::string_view label;
  std::string_view what;
};
std::optional<ToldBy> told_by(std::string_view key) {
  constexpr std::string_view kPrefix = "process.";
  if (!key.starts_with(kPrefix)) return std::nullopt;
  const std::string_view rest = key.substr(kPrefix.size());
  for (const std::string_view what : {"torch", "python", "keras", "jax", "precision"}) {
    if (rest.size() > what.size() + 1 && rest.ends_with(what) && rest[rest.size() - what.size() - 1] == '.') {
      return ToldBy{rest.substr(0, rest.size() - what.size() - 1), what};
    }
  }
  const std::size_t loader = rest.rfind(".loader.");
  if (loader == std::string_view::npos) return std::nullopt;
  return ToldBy{rest.substr(0, loader), rest.substr(loader + 1)};
}

void take_attribute(std::string_view key, const std::string& text, RunSettings& out) {
  constexpr std::array<std::string_view, 5> kLoaderOwn{"known", "number", "text", "collate", "class"};
  if (const auto told = told_by(key)) {
    // Workers say the same as the process that started them.
    if (told->label.starts_with("loader ")) return;
    if (told->what == "precision") return take_members(text, "", {}, out["precision"]);
    if (told->what.starts_with("loader.")) {
      const std::string_view number = told->what.substr(std::string_view("loader.").size());
      return take_members(text, number == "1" ? "" : format("loader {} ", number), kLoaderOwn, out["loader"]);
    }
    return take_members(text, std::string(told->what) + " ", {}, out["version"]);
  }
  constexpr std::string_view kMeta = "meta.";
  if (key.starts_with(kMeta)) {
    out["told"].try_emplace(clipped(std::string(key.substr(kMeta.size()))), clipped(text));
    return;
  }
  constexpr std::string_view kCode = "code.";
  if (key.starts_with(kCode)) {
    out["code"].try_emplace(std::string(key.substr(kCode.size())), clipped(text));
  } else if (key == "kernel" || key == "gpu.driver" || key == "gpu.cuda") {
    out["version"].try_emplace(std::string(key), clipped(text));
  } else if (key == "cpu.model" || key == "cpu.count" || key == "memory.bytes" || key == "gpu.count" ||
             (key.starts_with("gpu") && key.ends_with(".name"))) {
    out["machine"].try_emplace(std::string(key), clipped(text));
  }
}

// What the runs of a side have under one name; empty when the whole side lacks the area.
std::string side_text(const std::vector<const RunSettings*>& side, const std::string& area, const std::string& name) {
  std::set<std::string> texts;
  for (const RunSettings* run : side) {
    const auto found_area = run->find(area);
    if (found_area == run->end() || found_area->second.empty()) continue;
    const auto found = found_area->second.find(name);
    texts.insert(found == found_area->second.end() ? std::string(kNotSet) : found->second);
  }
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : " or ") + text;
  return joined;
}

}  // namespace

std::map<std::string, std::string> named_arguments(const std::vector<std::string>& command) {
  std::map<std::string, std::string> out;
  const auto add = [&](const std::string& name, const std::string& text) {
    std::string& value = out[clipped(name)];
    value += (value.empty() ? "" : " ") + clipped(text);
  };
  int place = 0;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos && equals > 0) {
      add(word.substr(0, equals), word.substr(equals + 1));
    } else if (!is_flag(word)) {
      add(format("{}", ++place), word);
    } else if (i + 1 < command.size() && !is_flag(command[i + 1]) && !command[i + 1].ends_with(".py")) {
      add(word, command[i + 1]);
      ++i;
    } else {
      add(word, "set");
    }
  }
  return out;
}

RunSettings read_run_settings(const RunInfo& info, RunReader& reader) {
  RunSettings out;
  out["argument"] = named_arguments(info.command);
  if (!info.command.empty()) out["argument"]["program"] = clipped(info.command[0]);
  for (const auto& [name, text] : info.environment) {
    // Ours say where a run is kept, not what it does; a job id is another one each time.
    if (!name.starts_with("HOTLAP_") && !name.ends_with("JOB_ID")) {
      out["environment"].emplace(clipped(name), clipped(text));
    }
  }
  out["version"]["hotlap"] = info.hotlap_version;
  if (const auto instance = info.join_keys.find("instance"); instance != info.join_keys.end()) {
    out["machine"]["instance type"] = clipped(instance->second);
  }
  std::set<std::string> nodes;
  std::size_t ranks = 0;
  for (const auto& recording : reader.recordings()) {
    nodes.insert(recording->info().node);
    for (const auto& [key, text] : recording->info().attributes) take_attribute(key, text, out);
    const Result<std::map<std::string, std::string>> told = recording->read_attributes();
    if (told.ok()) {
      for (const auto& [key, text] : *told) take_attribute(key, text, out);
    }
    const Result<std::vector<ProcessInfo>> processes = recording->read_processes();
    if (!processes.ok()) continue;
    std::set<std::int32_t> seen;  // a rank that was started again is one
    for (const ProcessInfo& process : *processes) {
      if (process.role == ProcessRole::kRank) seen.insert(process.index);
    }
    ranks += seen.size();
  }
  std::string names;
  for (const std::string& node : nodes) names += (names.empty() ? "" : ", ") + node;
  if (!names.empty()) out["machine"]["node"] = clipped(names);
  if (ranks > 0) out["machine"]["ranks"] = format("{}", ranks);
  return out;
}

std::vector<SettingDifference> settings_differences(const std::vector<const RunSettings*>& before,
                                                    const std::vector<const RunSettings*>& after) {
  std::vector<SettingDifference> out;
  for (const std::string_view area_name : kAreas) {
    const std::string area(area_name);
    std::set<std::string> names;
    for (const auto& side : {before, after}) {
      for (const RunSettings* run : side) {
        const auto found = run->find(area);
        if (found == run->end()) continue;
        for (const auto& [name, text] : found->second) names.insert(name);
      }
    }
    for (const std::string& name : names) {
      const std::string was = side_text(before, area, name);
      const std::string is = side_text(after, area, name);
      if (was.empty() || is.empty() || was == is) continue;
      out.push_back({.area = area, .name = name, .before = was, .after = is});
    }
  }
  return out;
}

}  // namespace hotlap
