#include "view/run_figures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/format.h"
#include "view/analyze.h"
#include "view/resource_means.h"
#include "view/run_document.h"
#include "view/run_settings.h"

namespace hotlap {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kMsPerS = 1e3;

// The places of kFigures.
enum : std::size_t {
  kStep,
  kSamplesPerS,
  kTokensPerS,
  kWaiting,
  kCpuBusy,
  kGpuBusy,
  kSmActive,
  kMemory,
  kGpuMemory,
  kPower,
  kEnergyPerStep,
  kEnergyPerSample,
  kCostPerStep,
  kCostPerSample,
  kCostPerEpoch,
  kFigureCount
};

constexpr std::array<FigureDesc, kFigureCount> kFigures{{
    {"step_ms", "step", "ms", Better::kLower, ChangeScale::kPercent, "mean time of a typical step"},
    {"samples_per_s", "samples/s", "{sample}/s", Better::kHigher, ChangeScale::kPercent,
     "samples per second of typical steps, of all ranks"},
    {"tokens_per_s", "tokens/s", "{token}/s", Better::kHigher, ChangeScale::kPercent,
     "tokens per second of typical steps, of all ranks"},
    {"data_wait_pct", "waiting for data", "%", Better::kLower, ChangeScale::kPoints, "share of the step"},
    {"cpu_busy_pct", "CPU busy", "%", Better::kNeither, ChangeScale::kPoints,
     "busy cores of those that the job may use, by whomever"},
    {"gpu_busy_pct", "GPU busy", "%", Better::kHigher, ChangeScale::kPoints, "mean of the job's GPUs"},
    {"gpu_sm_active_pct", "SM active", "%", Better::kHigher, ChangeScale::kPoints,
     "share of the GPU's multiprocessors that had work, mean of the job's GPUs"},
    {"memory_bytes", "memory", "By", Better::kLower, ChangeScale::kPercent,
     "resident memory of the job's processes on a node, shared pages counted in each"},
    {"gpu_memory_bytes", "GPU memory", "By", Better::kLower, ChangeScale::kPercent,
     "used on the job's GPUs of a node, together"},
    {"gpu_power_w", "GPU power", "W", Better::kNeither, ChangeScale::kPercent, "of the job's GPUs of a node, together"},
    {"energy_per_step_j", "energy/step", "J", Better::kLower, ChangeScale::kPercent, "of the GPUs; power x step time"},
    {"energy_per_sample_j", "energy/sample", "J", Better::kLower, ChangeScale::kPercent,
     "of the GPUs; power / samples per second"},
    {"cost_per_step", "cost/step", "$", Better::kLower, ChangeScale::kPercent, "price x nodes x step time"},
    {"cost_per_sample", "cost/sample", "$", Better::kLower, ChangeScale::kPercent,
     "price x nodes / samples per second"},
    {"cost_per_epoch", "cost/epoch", "$", Better::kLower, ChangeScale::kPercent,
     "price x nodes x typical steps of an epoch; pauses between them are not in it"},
}};

Figure missing(std::string reason) { return {.measured = {}, .missing = std::move(reason)}; }

// A product or quotient: relative errors add as independent ones.
std::optional<double> joined_half(double value, const Measured& a, const Measured& b) {
  if (!a.half_width || !b.half_width || a.value == 0 || b.value == 0) return std::nullopt;
  return std::abs(value) * std::hypot(*a.half_width / a.value, *b.half_width / b.value);
}
Figure times(const Figure& a, const Figure& b, double factor) {
  if (!a.measured) return missing(a.missing);
  if (!b.measured) return missing(b.missing);
  const double value = a.measured->value * b.measured->value * factor;
  return {.measured = Measured{value, joined_half(value, *a.measured, *b.measured)}, .missing = {}};
}
Figure over(const Figure& a, const Figure& b) {
  if (!a.measured) return missing(a.missing);
  if (!b.measured || b.measured->value <= 0) return missing(b.measured ? "no throughput" : b.missing);
  const double value = a.measured->value / b.measured->value;
  return {.measured = Measured{value, joined_half(value, *a.measured, *b.measured)}, .missing = {}};
}
Figure scaled(const Figure& a, double factor) {
  if (!a.measured) return a;
  const Measured& m = *a.measured;
  return {.measured =
              Measured{m.value * factor, m.half_width ? std::optional(*m.half_width * std::abs(factor)) : std::nullopt},
          .missing = {}};
}

std::string no_steps_reason(const RunFigures& run) {
  if (run.steps_all == 0) return run.is_live ? "no step yet" : "no training step was seen";
  return format("{} typical steps, {} are needed", run.steps, kStepsToJudge);
}

Figure step_figure(const RunFigures& run) {
  const StepsDocument& steps = run.document.steps;
  if (!steps.mean_ms || *steps.mean_ms <= 0 || run.steps < kStepsToJudge) return missing(no_steps_reason(run));
  return {.measured = Measured{*steps.mean_ms, steps.half_width_ms}, .missing = {}};
}

// Work per second of the job: the sum over its ranks. Its error is that of the step time it is made of.
Figure rate_figure(const FactTable& facts, std::string_view field, const Figure& step, std::string_view noun) {
  if (!step.measured) return step;
  const std::vector<const Fact*> all = facts.all("throughput.summary");
  std::vector<const Fact*> ranks;
  std::copy_if(all.begin(), all.end(), std::back_inserter(ranks),
               [](const Fact* fact) { return fact->where.rank.has_value(); });
  // Without ranks the first one trains; the others are an evaluation beside it.
  if (ranks.empty() && !all.empty()) ranks.push_back(all.front());
  double sum = 0;
  for (const Fact* fact : ranks) {
    const auto rate = fact->number(field);
    if (!rate) return missing(format("{} of a step are not known", noun));
    sum += *rate;
  }
  if (ranks.empty() || sum <= 0) return missing(format("{} of a step are not known", noun));
  const Measured& m = *step.measured;
  return {.measured = Measured{sum, m.half_width ? std::optional(sum * *m.half_width / m.value) : std::nullopt},
          .missing = {}};
}

Figure waiting_figure(const FactTable& facts, const RunFigures& run, const Figure& step) {
  if (!step.measured) return step;
  const auto share = run.document.steps.breakdown.data_wait;
  if (!share) return missing("the wait for data was not measured");
  std::optional<double> half;
  if (const Fact* steps = facts.find("steps.summary")) {
    if (const auto wait_half = steps->number("data_wait_half_width_ms")) {
      half = 100 * *wait_half / step.measured->value;
      if (step.measured->half_width) {
        half = std::hypot(*half, *share * *step.measured->half_width / step.measured->value);
      }
    }
  }
  return {.measured = Measured{*share, half}, .missing = {}};
}

void set_costs(const std::optional<Price>& price, RunFigures& run) {
  std::vector<Figure>& f = run.figures;
  if (!price) {
    for (const std::size_t i : {kCostPerStep, kCostPerSample, kCostPerEpoch}) {
      f[i] = missing("no price: --price USD/H");
    }
    return;
  }
  run.currency = price->currency;
  const double per_s = price->per_hour * static_cast<double>(run.document.nodes) / kSecondsPerHour;
  f[kCostPerStep] = scaled(f[kStep], per_s / kMsPerS);
  f[kCostPerSample] = over({.measured = Measured{per_s, 0.0}, .missing = {}}, f[kSamplesPerS]);
  if (f[kCostPerSample].measured && f[kSamplesPerS].measured) {
    // The price is exact: the relative error is that of the throughput.
    const Measured& rate = *f[kSamplesPerS].measured;
    f[kCostPerSample].measured->half_width =
        rate.half_width ? std::optional(f[kCostPerSample].measured->value * *rate.half_width / rate.value)
                        : std::nullopt;
  }
  const auto epoch = run.document.steps.epoch_steps;
  f[kCostPerEpoch] = epoch && *epoch >= 1 ? scaled(f[kCostPerStep], *epoch) : missing("no epoch has ended");
}

void set_resources(const FactTable& facts, RunReader& reader, RunFigures& run) {
  const Fact* steps = facts.find("steps.summary");
  std::optional<StepWindow> window;
  if (steps != nullptr && run.figures[kStep].measured) {
    const auto from_s = steps->number("from_s");
    const auto to_s = steps->number("to_s");
    if (from_s && to_s) {
      window = StepWindow{.node = steps->where.node,
                          .range = {.from_ns = static_cast<std::int64_t>(*from_s * 1e9),
                                    .to_ns = static_cast<std::int64_t>(*to_s * 1e9) + 1}};
    }
  }
  const ResourceMeans means = read_resource_means(reader, window);
  const auto take = [&](std::size_t place, const ResourceMean& mean) {
    run.figures[place] = mean.measured ? Figure{.measured = mean.measured, .missing = {}} : missing(mean.missing);
  };
  take(kCpuBusy, means.cpu_busy_pct);
  take(kGpuBusy, means.gpu_busy_pct);
  take(kSmActive, means.gpu_sm_active_pct);
  take(kMemory, means.memory_bytes);
  take(kGpuMemory, means.gpu_memory_bytes);
  take(kPower, means.gpu_power_w);
  const double nodes = static_cast<double>(run.document.nodes);
  run.figures[kEnergyPerStep] = times(run.figures[kPower], run.figures[kStep], nodes / kMsPerS);
  run.figures[kEnergyPerSample] = over(scaled(run.figures[kPower], nodes), run.figures[kSamplesPerS]);
}

}  // namespace

std::span<const FigureDesc> figure_descriptions() { return kFigures; }

std::optional<std::size_t> find_figure(std::string_view name) {
  for (std::size_t i = 0; i < kFigures.size(); ++i) {
    if (kFigures[i].name == name) return i;
  }
  return std::nullopt;
}

Result<RunFigures> read_run_figures(const RunFolder& folder, const RuleSettings& settings,
                                    const std::optional<Price>& price) {
  HOTLAP_TRY_ASSIGN(LiveAnalysis analysis, LiveAnalysis::open(folder, settings));
  HOTLAP_TRY(analysis.refresh());
  analysis.finish();
  const FactTable& facts = analysis.facts();
  RunFigures run;
  run.info = folder.info();
  run.is_live = is_live_run(folder, system_clock().read().wall_ns);
  run.document = analysis.document();
  run.steps = run.document.steps.count;
  run.steps_all = run.document.steps.count_all;
  run.is_inferred = run.document.steps.is_inferred;
  run.samples_per_step = run.document.steps.samples_per_step;
  run.figures.resize(kFigureCount);
  run.figures[kStep] = step_figure(run);
  run.figures[kSamplesPerS] = rate_figure(facts, "samples_per_s", run.figures[kStep], "the samples");
  run.figures[kTokensPerS] = rate_figure(facts, "tokens_per_s", run.figures[kStep], "the tokens");
  run.figures[kWaiting] = waiting_figure(facts, run, run.figures[kStep]);
  HOTLAP_TRY_ASSIGN(RunReader reader, RunReader::open(folder));
  set_resources(facts, reader, run);
  set_costs(price ? price : run.document.price, run);
  run.settings = read_run_settings(run.info, reader);
  return run;
}

}  // namespace hotlap
