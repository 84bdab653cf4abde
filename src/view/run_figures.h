#pragma once
// The figures of one run that comparisons and reports speak of: step time, throughput, waiting, utilisation, memory,
// energy, cost. Each is a mean over the typical steps with the interval that it supports, or missing with the reason:
// never 0.
//
// Reads what was sampled during those steps window by window, so that memory does not grow with the run's length.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/run.h"
#include "rules/engine.h"
#include "store/run_folder.h"
#include "view/analysis_document.h"
#include "view/change.h"

namespace hotlap {

// What is better, where one of them is.
enum class Better : std::uint8_t { kLower, kHigher, kNeither };

struct FigureDesc {
  std::string_view name;  // "step_ms": in JSON and in --fail-on
  std::string_view title;
  std::string_view unit;  // UCUM; "$": the currency of the price
  Better better = Better::kLower;
  ChangeScale scale = ChangeScale::kPercent;
  std::string_view help;
};
std::span<const FigureDesc> figure_descriptions();
// Its place in figure_descriptions(); nothing when there is none of that name.
std::optional<std::size_t> find_figure(std::string_view name);

struct Figure {
  std::optional<Measured> measured;
  std::string missing;  // why there is none
};

struct RunFigures {
  RunInfo info;
  bool is_live = false;
  std::int64_t steps = 0;      // typical ones
  std::int64_t steps_all = 0;  // seen
  bool is_inferred = false;    // steps were cut by the loader's cadence
  std::optional<double> samples_per_step;
  std::string currency;         // of the cost figures; empty: no price
  std::vector<Figure> figures;  // in the order of figure_descriptions()
  // Settings that can differ: area → name → text. What was not recorded is absent.
  std::map<std::string, std::map<std::string, std::string>> settings;
  AnalysisDocument document;
};

// `price`: in place of the run's own; absent: the run's.
Result<RunFigures> read_run_figures(const RunFolder& folder, const RuleSettings& settings,
                                    const std::optional<Price>& price = std::nullopt);

}  // namespace hotlap
