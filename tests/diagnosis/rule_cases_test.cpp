// tests/cases/rules/<Rule>/<case>/: facts.json in, expected.json out. Each rule has cases whose names begin with
// "fires", "near-miss" and "missing-data". HOTLAP_UPDATE_GOLDEN=1 rewrites what is expected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "analysis/registry.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "rules/engine.h"
#include "rules/registry.h"
#include "short_lines.h"
#include "support/golden.h"
#include "view/analyze.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = fs::path(HOTLAP_SOURCE_DIR) / "tests/cases/rules";

// Kinds and fields must be those of the analyzers' schemas: a typing mistake would make every near miss pass.
std::string_view known_kind(const std::string& kind, const std::vector<std::string>& fields) {
  for (const AnalyzerSpec* spec : all_analyzers()) {
    for (const FactSchema& schema : spec->produces) {
      if (schema.kind != kind) continue;
      for (const std::string& field : fields) {
        EXPECT_TRUE(std::ranges::any_of(schema.fields, [&](const FactField& one) { return one.name == field; }))
            << kind << " has no field " << field;
      }
      return schema.kind;
    }
  }
  ADD_FAILURE() << "no analyzer makes " << kind;
  return {};
}

FactTable facts_from(const std::string& json) {
  FactTable table;
  const auto document = JsonDocument::parse(json);
  if (!document.ok()) {
    ADD_FAILURE() << document.error().message;
    return table;
  }
  for (const JsonValue& one : document->root()["facts"].items()) {
    const JsonValue fields = one["fields"];
    Fact fact{.kind = known_kind(one["kind"].text().value_or(""), fields.keys()), .where = {}, .fields = {}};
    fact.where.node = one["node"].text().value_or("");
    fact.where.device = one["device"].text().value_or("");
    fact.where.process = one["process"].text().value_or("");
    if (const auto rank = one["rank"].integer()) fact.where.rank = static_cast<std::int32_t>(*rank);
    for (const std::string& name : fields.keys()) {
      if (const auto text = fields[name].text()) {
        fact.set_text(name, *text);
      } else {
        fact.set(name, fields[name].number());
      }
    }
    table.add(std::move(fact));
  }
  return table;
}

void write_texts(JsonWriter& w, std::string_view key, const std::vector<std::string>& texts) {
  w.key(key).begin_array();
  for (const std::string& text : texts) w.value(std::string_view(text));
  w.end_array();
}

// One decimal is what people read; more would make the files brittle.
std::optional<double> rounded(const std::optional<double>& value) {
  return value ? std::optional(std::round(*value * 10) / 10) : std::nullopt;
}

std::string outcome_text(const RulesOutcome& outcome) {
  JsonWriter w(JsonWriter::Style::kPretty);
  w.begin_object().key("findings").begin_array();
  for (const Finding& finding : outcome.findings) {
    w.begin_object().field("id", std::string_view(finding.id())).field("severity", to_string(finding.severity));
    w.field("certainty", to_string(finding.certainty)).field("cause", std::string_view(finding.cause));
    if (!finding.loss.empty()) w.field("loss", std::string_view(finding.loss));
    w.field("lost_pct", rounded(finding.lost_pct)).field("lost_s", rounded(finding.lost_s));
    write_texts(w, "why", finding.why);
    w.key("advice").begin_array();
    for (const Advice& advice : finding.advice) {
      w.begin_object().field("change", std::string_view(advice.change));
      w.field("step_ms_low", rounded(advice.step_ms_low)).field("step_ms_high", rounded(advice.step_ms_high));
      w.field("basis", to_string(advice.basis)).field("note", std::string_view(advice.note));
      if (!advice.gain.empty()) w.field("gain", std::string_view(advice.gain));
      w.end_object();
    }
    w.end_array();
    write_texts(w, "not", finding.look_alikes_excluded);
    write_texts(w, "limits", finding.limits);
    if (!finding.explained_by.empty()) w.field("explained_by", std::string_view(finding.explained_by));
    w.end_object();
  }
  w.end_array().key("cannot_tell").begin_array();
  for (const Doubt& doubt : outcome.cannot_tell) w.value(std::string_view(doubt.because));
  w.end_array().key("not_run").begin_array();
  for (const SkippedRule& rule : outcome.not_run) {
    w.begin_object().field("rule", std::string_view(rule.rule));
    write_texts(w, "missing", rule.missing);
    w.end_object();
  }
  w.end_array().end_object();
  return w.take() + "\n";
}

std::vector<fs::path> cases() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(kCases)) {
    if (entry.path().filename() == "facts.json") out.push_back(entry.path().parent_path());
  }
  std::ranges::sort(out);
  return out;
}

class RuleCase : public testing::TestWithParam<fs::path> {};

TEST_P(RuleCase, GivesWhatIsExpected) {
  const fs::path folder = GetParam();
  const std::string rule = folder.parent_path().filename().string();
  // The rule of the folder alone, or all of them where several meet.
  std::vector<const RuleSpec*> rules;
  for (const RuleSpec* spec : all_rules()) {
    if (spec->id == rule || rule == "together") rules.push_back(spec);
  }
  ASSERT_FALSE(rules.empty()) << rule << " is no rule";
  const FactTable facts = facts_from(test::file_text(folder / "facts.json"));
  const RulesOutcome outcome = run_rules(rules, facts, {});
  EXPECT_TRUE(outcome.errors.empty());
  for (const Finding& finding : outcome.findings) {
    EXPECT_FALSE(finding.cause.empty());
    EXPECT_FALSE(finding.why.empty());
    for (const Advice& advice : finding.advice) {
      EXPECT_LE(advice.step_ms_low.value_or(0), advice.step_ms_high.value_or(0));
      const auto now_ms = finding.evidence.find("step_ms");
      if (!advice.step_ms_low || now_ms == finding.evidence.end()) continue;
      EXPECT_LT(*advice.step_ms_low, std::get<double>(now_ms->second)) << "advice that makes it slower";
    }
  }
  test::expect_golden(folder / "expected.json", outcome_text(outcome));
  expect_short_lines(verdict_text(make_document({}, facts, outcome)));
  const std::string name = folder.filename().string();
  const bool must_fire = name.starts_with("fires");
  const bool must_not = name.starts_with("near-miss") || name.starts_with("missing-data");
  EXPECT_TRUE(!must_fire || !outcome.findings.empty());
  EXPECT_TRUE(!must_not || outcome.findings.empty());
}

std::string case_name(const testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.parent_path().filename().string() + "_" + info.param.filename().string();
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Rules, RuleCase, testing::ValuesIn(cases()), case_name);

TEST(RuleCases, EveryRuleFiresNearlyMissesAndLacksData) {
  for (const RuleSpec* rule : all_rules()) {
    for (const std::string_view kind : {"fires", "near-miss", "missing-data"}) {
      const auto all = cases();
      EXPECT_TRUE(std::ranges::any_of(all,
                                      [&](const fs::path& folder) {
                                        return folder.parent_path().filename() == rule->id &&
                                               folder.filename().string().starts_with(kind);
                                      }))
          << rule->id << " has no case " << kind;
    }
  }
}

}  // namespace
}  // namespace hotlap
