#pragma once
// Two sides, each of one run or several, beside each other: every figure with its change, the interval of the change
// and the word that the interval supports; the settings that differ; whether a prediction came true; conditions of
// scripts.
//
// The same document for the terminal, Markdown, JUnit and JSON (docs/reference/json.md, "compare").
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "view/fail_on.h"
#include "view/run_figures.h"
#include "view/run_settings.h"

namespace hotlap {

inline constexpr int kComparisonSchema = 2;

struct ComparedFigure {
  const FigureDesc* desc = nullptr;
  std::string unit;                // desc's, with the currency in place of "$"
  std::optional<Measured> before;  // mean of the side
  std::optional<Measured> after;
  std::optional<Change> change;
  std::string word;     // "better", "worse", "higher", "lower", "no difference"; empty without a change
  std::string missing;  // why there is no change
};

struct Prediction {
  std::string change;  // the advice that was followed
  double step_ms_low = 0;
  double step_ms_high = 0;
  std::string place;  // "inside", "better than predicted", "worse than predicted"
};

struct CheckedCondition {
  std::string text;
  std::optional<bool> holds;  // absent: it could not be checked
  std::string why;            // figures behind it, or what is missing
};

struct ComparedRun {
  std::string id;
  std::string name;
  std::string status;
  bool is_live = false;
  std::int64_t steps = 0;
};

struct Comparison {
  std::vector<ComparedRun> before;
  std::vector<ComparedRun> after;
  std::string refusal;  // why they cannot be compared; empty: they can
  std::vector<ComparedFigure> figures;
  std::size_t headline = 0;  // the figure that the answer speaks of: step time, else throughput
  std::vector<SettingDifference> settings;
  std::optional<Prediction> prediction;
  std::vector<CheckedCondition> conditions;
  std::vector<std::string> notes;     // what to keep in mind: a run goes on, steps are inferred
  std::vector<std::string> problems;  // recordings that could not be read

  bool fails() const;  // a condition holds
  // The first condition that could not be checked, in words; empty: none.
  std::string unchecked() const;
};

// Neither side is empty.
Comparison compare_sides(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after,
                         const std::vector<FailCondition>& conditions);

// "step 210 -> 104 ms, -50 % (-52 to -48): better"
std::string headline_text(const Comparison& comparison);

enum class ComparisonFormat : std::uint8_t { kText, kMarkdown, kJunit, kJson };
std::string format_comparison(const Comparison& comparison, ComparisonFormat format);

}  // namespace hotlap
