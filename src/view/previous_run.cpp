#include "view/previous_run.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/host.h"
#include "base/json_reader.h"
#include "view/analyze.h"

namespace hotlap {
namespace {

// Runs differ by so much for no reason that we could name: clocks, placement, neighbours.
constexpr double kFloorPct = 2;
constexpr double kSameBatch = 0.02;
constexpr std::size_t kVerdictBytesMax = std::size_t{4} << 20U;
constexpr std::size_t kRunsLookedAt = 500;
constexpr std::size_t kRunsOfScript = 50;

}  // namespace

StepsOfRun steps_of(const AnalysisDocument& d) {
  StepsOfRun out;
  out.id = d.run_id;
  out.name = d.run_name;
  out.count = d.steps.count;
  out.mean_ms = d.steps.mean_ms.value_or(0);
  out.half_width_ms = d.steps.half_width_ms.value_or(0);
  out.samples_per_step = d.steps.samples_per_step;
  out.workers = d.steps.loader_workers;
  if (!d.findings.empty() && !d.findings.front().advice.empty()) {
    const Finding& finding = d.findings.front();
    const Advice& advice = finding.advice.front();
    out.advised_change = advice.change;
    out.advised_ms_low = advice.step_ms_low;
    out.advised_ms_high = advice.step_ms_high;
    if (const auto found = finding.evidence.find("advised_workers"); found != finding.evidence.end()) {
      if (const double* number = std::get_if<double>(&found->second)) out.advised_workers = *number;
    }
  }
  return out;
}

Result<StepsOfRun> steps_from_json(std::string_view verdict_json_untrusted) {
  HOTLAP_TRY_ASSIGN(const JsonDocument document, JsonDocument::parse(verdict_json_untrusted));
  const JsonValue root = document.root();
  if (root["schema"].integer() != kAnalysisSchema) {
    return Error{ErrorCode::kUnsupported, "verdict.json: of another schema than this version reads"};
  }
  StepsOfRun out;
  out.id = root["run"]["id"].text().value_or("");
  out.name = root["run"]["name"].text().value_or("");
  const JsonValue steps = root["steps"];
  out.count = steps["count"].integer().value_or(0);
  const auto mean = steps["mean_ms"].number();
  if (!mean) return Error{ErrorCode::kNotFound, "verdict.json: no step times"};
  out.mean_ms = *mean;
  out.half_width_ms = steps["half_width_ms"].number().value_or(0);
  out.samples_per_step = steps["samples_per_step"].number();
  out.workers = steps["loader_workers"].number();
  const auto findings = root["findings"].items();
  if (findings.empty()) return out;
  out.advised_workers = findings.front()["evidence"]["advised_workers"].number();
  const auto advice = findings.front()["advice"].items();
  if (advice.empty()) return out;
  out.advised_change = advice.front()["change"].text().value_or("");
  out.advised_ms_low = advice.front()["step_ms_low"].number();
  out.advised_ms_high = advice.front()["step_ms_high"].number();
  return out;
}

Result<PreviousRun> compare_runs(const StepsOfRun& before, const StepsOfRun& after) {
  for (const StepsOfRun* run : {&before, &after}) {
    if (run->count < kStepsToJudge || run->mean_ms <= 0) {
      return Error{ErrorCode::kInvalidInput,
                   format("run {} has {} typical steps, {} are needed to compare", run->id, run->count, kStepsToJudge)};
    }
  }
  if (before.samples_per_step && after.samples_per_step && *before.samples_per_step > 0 &&
      std::abs(*after.samples_per_step / *before.samples_per_step - 1) > kSameBatch) {
    return Error{ErrorCode::kInvalidInput,
                 format("a step of {} has {:.0f} samples, one of {} has {:.0f}: their times cannot be compared",
                        before.id, *before.samples_per_step, after.id, *after.samples_per_step)};
  }
  PreviousRun out;
  out.id = before.id;
  out.name = before.name;
  out.step_ms = before.mean_ms;
  const double ratio = after.mean_ms / before.mean_ms;
  out.change_pct = 100 * (ratio - 1);
  // Relative errors of both means, as independent; never finer than the floor.
  const double error =
      100 * ratio * std::hypot(before.half_width_ms / before.mean_ms, after.half_width_ms / after.mean_ms);
  const double half = std::max(error, kFloorPct);
  out.change_pct_low = out.change_pct - half;
  out.change_pct_high = out.change_pct + half;
  out.word = out.change_pct_high < 0 ? "faster" : out.change_pct_low > 0 ? "slower" : "no difference";
  const bool was_followed = before.advised_workers && after.workers && *before.advised_workers == *after.workers;
  if (was_followed && before.advised_ms_low && before.advised_ms_high) {
    out.predicted_ms_low = before.advised_ms_low;
    out.predicted_ms_high = before.advised_ms_high;
    out.predicted_change = before.advised_change;
  }
  return out;
}

// <home>/runs/<run id>
PreviousRuns::PreviousRuns(const RunFolder& folder)
    : home_(folder.path().parent_path().parent_path()), script_(folder.info().script) {
  if (script_.empty()) return;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(home_ / "runs", failed)) {
    std::string id = entry.path().filename().string();
    if (is_ulid(id) && id < folder.info().id) ids_.push_back(std::move(id));
  }
  std::ranges::sort(ids_);  // ids begin with their time
  if (ids_.size() > kRunsLookedAt) ids_.erase(ids_.begin(), ids_.end() - static_cast<std::ptrdiff_t>(kRunsLookedAt));
}

// Reads on until another run of this script is found whose answer was kept.
bool PreviousRuns::find_another() {
  while (!ids_.empty() && found_.size() < kRunsOfScript) {
    const std::filesystem::path path = home_ / "runs" / ids_.back();
    ids_.pop_back();
    const Result<RunFolder> run = RunFolder::open(path);
    if (!run.ok() || run->info().script != script_) continue;
    const Result<std::string> text = system_host().read_text((path / "verdict.json").string(), kVerdictBytesMax);
    if (!text.ok()) continue;
    Result<StepsOfRun> steps = steps_from_json(*text);
    if (!steps.ok()) continue;
    found_.push_back(std::move(steps).value());
    return true;
  }
  return false;
}

std::optional<PreviousRun> PreviousRuns::compare(const AnalysisDocument& document) {
  if (document.steps.count < kStepsToJudge) return std::nullopt;
  const StepsOfRun now = steps_of(document);
  for (std::size_t i = 0; i < found_.size() || find_another(); ++i) {
    Result<PreviousRun> compared = compare_runs(found_[i], now);
    if (compared.ok()) return std::move(compared).value();
  }
  return std::nullopt;
}

}  // namespace hotlap
