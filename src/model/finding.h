#pragma once
// Findings: what a rule concludes, with evidence, advice and price. The JSON of `analyze` mirrors these.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/fact.h"

namespace hotlap {

enum class Severity : std::uint8_t { kInfo, kWarning, kCritical };
enum class Certainty : std::uint8_t { kPossible, kLikely, kCertain };
enum class FindingState : std::uint8_t { kOpen, kUpdated, kClosed };
enum class Basis : std::uint8_t { kMeasured, kModel, kArithmetic, kRuleOfThumb };
std::string_view to_string(Severity severity);
std::string_view to_string(Certainty certainty);
std::string_view to_string(FindingState state);
std::string_view to_string(Basis basis);

// What a loss is a share of: the typical steps' time, or all time from the first step to the last. Interruptions lie
// between typical steps, so that the two never contain each other.
enum class LostOf : std::uint8_t { kSteps, kRun };
std::string_view to_string(LostOf of);

struct Money {
  double amount = 0;
  std::string currency;
  std::string basis;  // where the price comes from
};

// One change to make. Step times are a range; absent when they cannot be predicted.
struct Advice {
  std::string change;
  std::optional<double> step_ms_low;
  std::optional<double> step_ms_high;
  Basis basis = Basis::kRuleOfThumb;
  std::string note;  // risk, condition, what is not known
  std::string gain;  // in words, where it is not the typical step that gets shorter: "20 % -> 5.8 % of the run"
};

struct Finding {
  std::string rule;
  Severity severity = Severity::kWarning;
  FindingState state = FindingState::kOpen;
  Certainty certainty = Certainty::kPossible;
  Where where;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::string cause;                                       // first line of the verdict, up to the first "·"
  std::string loss;                                        // in words, when it is not "training waits N % of each step"
  std::vector<std::string> why;                            // evidence in words, most telling first
  std::map<std::string, FactValue, std::less<>> evidence;  // the same in figures
  std::optional<double> lost_s;
  std::optional<double> lost_pct;
  LostOf lost_of = LostOf::kSteps;  // what lost_pct is a share of
  std::optional<Money> money;
  std::string claims;                 // part of the step whose time it accounts for: "data_wait"
  std::int32_t distance = 0;          // from the cause, among those that claim the same: nearest wins
  std::vector<std::string> explains;  // ids of findings that see the same wait
  std::string explained_by;
  std::vector<std::string> look_alikes_excluded;
  std::vector<Advice> advice;
  std::vector<std::string> limits;  // "more workers will NOT help", what is not known

  // A table to read beside the others: no fault, nothing lost, nothing to change.
  bool is_note() const { return severity == Severity::kInfo && !lost_pct && !lost_s && advice.empty(); }
  // Stable over re-evaluation: rule + where.
  std::string id() const;
};

}  // namespace hotlap
