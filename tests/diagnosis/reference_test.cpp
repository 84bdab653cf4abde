// docs/reference/rules.md is made from the rules' specs (HOTLAP_UPDATE_GOLDEN=1 rewrites it); answers are what
// docs/reference/analyze-schema.json says.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "rules/registry.h"
#include "support/fake_job.h"
#include "support/golden.h"
#include "view/analyze.h"
#include "view/previous_run.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;
const fs::path kReference = fs::path(HOTLAP_SOURCE_DIR) / "docs/reference";

std::string range_of(const ParamDesc& param) {
  if (param.type == ParamType::kText) return "any";
  if (param.type == ParamType::kNumber) return format("{} to {}", param.min, param.max);
  return format("{} to {}", format_duration(static_cast<std::int64_t>(param.min)),
                format_duration(static_cast<std::int64_t>(param.max)));
}

std::string rules_reference() {
  std::string text =
      "# Rules\n\nMade from the rules' specs; do not edit. A rule sees facts only (`src/analysis/plugins`) and runs "
      "live and "
      "offline alike. One\nwhose facts are missing does not run, and the answer says which.\n"
      "Rules that SageMaker Debugger has too: [what is different](sagemaker-rules.md).\n";
  for (const RuleSpec* rule : all_rules()) {
    text += format("\n## {}\n\n{}.\n\n{}\n\nProposes: {}\n\nNeeds: ", rule->id, rule->title, rule->why, rule->advice);
    for (std::size_t i = 0; i < rule->needs.size(); ++i) text += format("{}`{}`", i == 0 ? "" : ", ", rule->needs[i]);
    for (std::size_t i = 0; i < rule->needs_one_of.size(); ++i) {
      const std::string_view between = i > 0 ? " or " : rule->needs.empty() ? "" : ", and ";
      text += format("{}`{}`", between, rule->needs_one_of[i]);
    }
    text += "\n\n| parameter | default | range | what |\n|---|---|---|---|\n";
    for (const ParamDesc& param : rule->params) {
      const bool has_unit = param.type == ParamType::kNumber && param.unit != "1";
      text += format("| `{}` | {}{} | {} | {} |\n", param.name, param.default_text,
                     has_unit ? format(" {}", param.unit) : std::string(), range_of(param), param.help);
    }
  }
  text +=
      "\n# Facts\n\nWhat the analyzers make of a recording, and all that rules look at. A field is absent where it is "
      "not "
      "known.\n";
  for (const AnalyzerSpec* analyzer : all_analyzers()) {
    for (const FactSchema& schema : analyzer->produces) {
      text += format("\n## {}\n\n{}.\n\n| field | unit | what |\n|---|---|---|\n", schema.kind, schema.help);
      for (const FactField& field : schema.fields)
        text += format("| `{}` | {} | {} |\n", field.name, field.unit, field.help);
    }
  }
  return text;
}

TEST(RulesReference, IsWhatTheSpecsSay) { test::expect_golden(kReference / "rules.md", rules_reference()); }

bool has_type(const JsonValue& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.text().has_value();
  if (type == "boolean") return value.truth().has_value();
  if (type == "integer") return value.integer().has_value();
  return value.number().has_value();
}

bool same(const JsonValue& a, const JsonValue& b) { return a.text() == b.text() && a.integer() == b.integer(); }

// The first place where `value` is not what `schema` says; empty: it is. Knows the part of JSON Schema that ours uses.
std::string violation(const JsonValue& schema, const JsonValue& value, const std::string& where) {
  if (const JsonValue choices = schema["anyOf"]; choices.exists()) {
    const auto fits = [&](const JsonValue& one) { return violation(one, value, where).empty(); };
    return std::ranges::any_of(choices.items(), fits) ? "" : where + ": none of the choices";
  }
  if (const JsonValue type = schema["type"]; type.exists()) {
    std::vector<std::string> allowed;
    if (const auto one = type.text()) allowed.push_back(*one);
    for (const JsonValue& one : type.items()) allowed.push_back(one.text().value_or(""));
    const auto fits = [&](const std::string& one) { return has_type(value, one); };
    if (!std::ranges::any_of(allowed, fits)) return where + ": type";
  }
  if (const JsonValue only = schema["const"]; only.exists() && !same(only, value)) return where + ": const";
  if (const JsonValue choices = schema["enum"]; choices.exists()) {
    const auto fits = [&](const JsonValue& one) { return same(one, value); };
    if (!std::ranges::any_of(choices.items(), fits)) return where + ": enum";
  }
  for (const JsonValue& name : schema["required"].items()) {
    if (value.is_object() && !value[*name.text()].exists()) return where + "." + *name.text() + ": missing";
  }
  for (const std::string& name : value.is_object() ? value.keys() : std::vector<std::string>{}) {
    JsonValue property = schema["properties"][name];
    if (!property.exists() && schema["additionalProperties"].is_object()) property = schema["additionalProperties"];
    if (!property.exists()) {
      if (schema["properties"].exists() && name != "evidence") return where + "." + name + ": not in the schema";
      continue;
    }
    if (const std::string found = violation(property, value[name], where + "." + name); !found.empty()) return found;
  }
  for (const JsonValue& item : value.items()) {
    if (const std::string found = violation(schema["items"], item, where + "[]"); !found.empty()) return found;
  }
  return {};
}

void expect_answer_valid(const FakeJob& job, const RunInfo& run, bool with_extras) {
  FakeRecording recording;
  job.record(recording);
  if (with_extras) {
    recording.add_sample("allocator.allocated.bytes", "main/cuda:0", MetricKind::kGauge, 1,
                         {1'000'000'000'000, Value::of(std::uint64_t{5})});
    recording.add_attribute("process.main.model", R"({"classes": ["Net"], "parameters": 7, "trainable": 7})");
  }
  std::vector<RecordingReader*> readers{&recording};
  RunAnalysis analysis(run, all_analyzers());
  ASSERT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  const FactTable facts = analysis.facts();
  AnalysisDocument d = make_document(run, facts, run_rules(all_rules(), facts, {}));
  d.verdict_text = verdict_text(d);
  if (with_extras) {
    d.losses.push_back({.counter = "hook.records_dropped", .count = 3, .help = "the ring was full"});
    StepsOfRun before = steps_of(d);
    before.mean_ms *= 2;
    d.previous = compare_runs(before, steps_of(d)).value();
  }
  const auto schema = JsonDocument::parse(test::file_text(kReference / "analyze-schema.json"));
  ASSERT_TRUE(schema.ok());
  const auto answer = JsonDocument::parse(to_json(d));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->root()["facts"].keys(),
            with_extras ? (std::vector<std::string>{"device.memory", "job.model"}) : std::vector<std::string>{});
  EXPECT_EQ(violation(schema->root(), answer->root(), "$"), "");
}

TEST(AnalyzeSchema, HoldsForEveryKindOfAnswer) {
  RunInfo run;
  run.id = "01AN4Z07BY79KA1307SR9X4MV3";
  run.price = Price{.per_hour = 3.6, .source = "--price"};
  expect_answer_valid({.steps = 300, .workers = 0}, run, true);
  expect_answer_valid({.steps = 300, .workers = 4, .batch_ms = 40, .compute_ms = 40}, run, false);
  expect_answer_valid({.steps = 10}, {}, false);
  expect_answer_valid({.steps = 300, .has_hook = false}, {}, false);
}

}  // namespace
}  // namespace hotlap
