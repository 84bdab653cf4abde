#include "view/analyze.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/format.h"
#include "cost/machine_price.h"
#include "cost/price.h"
#include "rules/registry.h"
#include "store/joined_reader.h"
#include "view/job_hours.h"
#include "view/previous_run.h"
#include "view/recording_gaps.h"
#include "view/run_document.h"
#include "view/small_findings.h"
#include "view/sql_rules.h"
#include "view/verdict_kind.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

// The recorder gives a reason wherever it expected a hook.
constexpr std::string_view kHookOff = "the hook was switched off";

void set_steps(const FactTable& facts, AnalysisDocument& d) {
  const Fact* steps = facts.find("steps.summary");
  if (steps == nullptr) return;
  d.steps.count = static_cast<std::int64_t>(steps->number("steady_count").value_or(0));
  d.steps.count_all = static_cast<std::int64_t>(steps->number("count").value_or(0));
  d.steps.mean_ms = steps->number("mean_ms");
  d.steps.half_width_ms = steps->number("half_width_ms");
  d.steps.median_ms = steps->number("median_ms");
  d.steps.p90_ms = steps->number("p90_ms");
  d.steps.p99_ms = steps->number("p99_ms");
  d.steps.samples_per_step = steps->number("samples_per_step");
  d.steps.epoch_steps = epoch_steps_of(facts);
  d.steps.is_inferred = steps->number("inferred") == 1;
  if (const Fact* loader = facts.find("loader.summary")) d.steps.loader_workers = loader->number("workers");
  if (const Fact* throughput = facts.find("throughput.summary")) {
    d.steps.samples_per_s = throughput->number("samples_per_s");
    d.steps.tokens_per_s = throughput->number("tokens_per_s");
  }
  const Fact* parts = facts.find("breakdown.parts");
  if (parts == nullptr) return;
  Breakdown& b = d.steps.breakdown;
  b.data_wait = parts->number("data_wait");
  b.forward = parts->number("forward");
  b.backward = parts->number("backward");
  b.optimizer = parts->number("optimizer");
  b.communication = parts->number("communication");
  b.checkpoint = parts->number("checkpoint");
  b.gc = parts->number("gc");
  b.evaluation = parts->number("evaluation");
  b.compile = parts->number("compile");
  b.hook = parts->number("hook");
  b.other = parts->number("other");
  for (const Fact* named : facts.all("breakdown.named")) {
    if (named->where == parts->where)
      b.named.emplace_back(named->text("name").value_or(""), named->number("share_pct").value_or(0));
  }
}

// Facts that answers show as they are.
bool is_shown(const Fact& fact) {
  constexpr std::array<std::string_view, 7> kKinds{
      "job.model",       "job.settings", "compute.efficiency", "communication.summary",
      "profile.summary", "ranges.range", "operators.sampled"};
  return fact.kind.starts_with("device.") || std::ranges::find(kKinds, fact.kind) != kKinds.end();
}

// Facts that only a trace gives.
constexpr std::array kInside{
    std::string_view{"operators.summary"}, std::string_view{"operators.operator"}, std::string_view{"kernels.summary"},
    std::string_view{"kernels.kernel"},    std::string_view{"kernels.sort"},       std::string_view{"kernels.matrix"},
    std::string_view{"copies.copy"},       std::string_view{"device.time"},        std::string_view{"launch.summary"},
    std::string_view{"sync.summary"},      std::string_view{"sync.caller"},        std::string_view{"replay.scenario"},
    std::string_view{"path.part"},         std::string_view{"memory.timeline"},    std::string_view{"operators.shape"},
    std::string_view{"operators.stack"},   std::string_view{"operators.flops"},    std::string_view{"pipeline.summary"},
    std::string_view{"pipeline.stage"},
};

constexpr std::size_t kInsideRowsMax = 50;  // of a kind, those that take most

void set_inside(const FactTable& facts, AnalysisDocument& d) {
  for (const std::string_view kind : kInside) {
    const std::vector<const Fact*> all = facts.all(kind);
    for (std::size_t i = 0; i < all.size() && i < kInsideRowsMax; ++i) d.inside.push_back(*all[i]);
  }
  // Of a job that was recorded otherwise, and looked into for some of its steps, they are no measure of the whole.
  d.is_trace = !d.inside.empty() && facts.find("profile.summary") == nullptr && facts.find("device.windows") == nullptr;
  if (facts.find("device.time") == nullptr) return;
  d.has_gpu = true;
  if (!d.is_trace) return;
  double wall_ms = 0;
  double idle_ms = 0;
  for (const Fact* device : facts.all("device.time")) {
    wall_ms += device->number("wall_ms").value_or(0);
    idle_ms += device->number("idle_ms").value_or(0);
  }
  if (wall_ms > 0) d.idle_pct = 100 * idle_ms / wall_ms;
}

void set_self(const FactTable& facts, AnalysisDocument& d) {
  const Fact* self = facts.find("self.overhead");
  if (self == nullptr) return;
  d.self.overhead_pct_low = self->number("low_pct");
  d.self.overhead_pct_high = self->number("high_pct");
  d.self.hook_us_per_step = self->number("hook_us_per_step");
}

bool is_python(const ProcessInfo& process) {
  if (process.has_hook) return true;
  const std::string_view program = std::string_view(process.command).substr(0, process.command.find(' '));
  return program.substr(program.rfind('/') + 1).starts_with("python");
}

HookCoverage coverage(const std::vector<ProcessInfo>& processes) {
  HookCoverage out;
  std::map<std::string, int> reasons;
  for (const ProcessInfo& process : processes) {
    if (!is_python(process)) continue;
    ++out.python_processes;
    if (process.has_hook) {
      ++out.hooked;
    } else {
      ++reasons[process.hook_absent_reason.empty() ? std::string(kHookOff) : process.hook_absent_reason];
    }
  }
  int most = 0;
  for (const auto& [reason, count] : reasons) {
    if (count > most) out.because = reason;
    most = std::max(most, count);
  }
  return out;
}

void add_losses(const std::vector<Loss>& losses, std::map<std::string, Loss>& sums) {
  for (const Loss& loss : losses) {
    if (loss.count == 0) continue;
    const auto [found, is_new] = sums.try_emplace(loss.counter, loss);
    if (!is_new) found->second.count += loss.count;
  }
}

}  // namespace

AnalysisDocument make_document(const RunInfo& run, const FactTable& facts, const RulesOutcome& outcome,
                               const RunExtent& extent) {
  AnalysisDocument d;
  d.run_id = run.id;
  d.run_name = run.name;
  d.attempts = run.attempt;
  d.status = run.status;
  d.nodes = extent.nodes;
  d.duration_s = extent.duration_s;
  d.price = extent.price ? extent.price : run.price;
  d.grade = facts.find("steps.summary") != nullptr ? "A" : "B";
  set_inside(facts, d);
  if (const Fact* software = facts.find("job.software")) d.has_gpu = d.has_gpu || software->number("gpu") == 1;
  set_steps(facts, d);
  set_self(facts, d);
  std::ranges::copy_if(facts.facts(), std::back_inserter(d.facts), is_shown);
  d.findings = outcome.findings;
  // All machines are paid for while training waits.
  const auto price = price_of_nodes(d.price, d.nodes);
  for (Finding& finding : d.findings) {
    if (finding.lost_s && price) finding.money = money_for(*finding.lost_s, *price);
  }
  if (extent.is_live) d.remaining = remaining_of(run, facts, d.findings);
  set_small(d);
  d.rules_run = outcome.run;
  for (const SkippedRule& rule : outcome.not_run) d.rules_not_run.push_back({rule.rule, rule.missing});
  for (const Error& error : outcome.errors) d.problems.push_back(error.message);
  decide_verdict(facts, outcome, d);
  return d;
}

struct LiveAnalysis::State {
  State(std::vector<std::unique_ptr<RunReader>> run_readers, RuleSettings rule_settings, SqlRules rules_in_sql)
      : readers(std::move(run_readers)),
        settings(std::move(rule_settings)),
        sql_rules(std::move(rules_in_sql)),
        analysis(readers.front()->info(), all_analyzers()),
        previous(readers.front()->folder()) {}
  std::vector<RecordingReader*> recordings() const {
    std::vector<RecordingReader*> out;
    for (const auto& reader : readers) {
      for (const auto& recording : reader->recordings()) out.push_back(recording.get());
    }
    return out;
  }
  // The same with files of one machine that were imported together as one each.
  std::vector<RecordingReader*> joined_recordings() {
    std::vector<RecordingReader*> out;
    for (std::vector<RecordingReader*>& group : JoinedReader::group(recordings())) {
      if (group.size() == 1) {
        out.push_back(group.front());
        continue;
      }
      // Imported files do not grow: what was put together stays so.
      auto& joined = joined_by_first[group.front()];
      if (joined == nullptr) joined = std::make_unique<JoinedReader>(std::move(group));
      out.push_back(joined.get());
    }
    return out;
  }

  std::vector<std::unique_ptr<RunReader>> readers;
  RuleSettings settings;
  SqlRules sql_rules;
  bool is_finished = false;
  std::map<RecordingReader*, std::unique_ptr<JoinedReader>> joined_by_first;
  RunAnalysis analysis;
  std::optional<FactTable> facts;  // made when they are asked for, until more is read
  std::vector<Loss> stored_losses;
  PreviousRuns previous;
};

LiveAnalysis::LiveAnalysis(std::unique_ptr<State> state) : state_(std::move(state)) {}
LiveAnalysis::LiveAnalysis(LiveAnalysis&&) noexcept = default;
LiveAnalysis& LiveAnalysis::operator=(LiveAnalysis&&) noexcept = default;
LiveAnalysis::~LiveAnalysis() = default;

Result<LiveAnalysis> LiveAnalysis::open(RunFolder folder, RuleSettings settings, bool has_sql_rules) {
  std::vector<RunFolder> folders;
  folders.push_back(std::move(folder));
  return open(std::move(folders), std::move(settings), has_sql_rules);
}

Result<LiveAnalysis> LiveAnalysis::open(std::vector<RunFolder> folders, RuleSettings settings, bool has_sql_rules) {
  HOTLAP_CHECK(!folders.empty());
  std::vector<std::unique_ptr<RunReader>> readers;
  for (RunFolder& folder : folders) {
    HOTLAP_TRY_ASSIGN(RunReader reader, RunReader::open(std::move(folder)));
    readers.push_back(std::make_unique<RunReader>(std::move(reader)));
  }
  return LiveAnalysis(
      std::make_unique<State>(std::move(readers), std::move(settings), has_sql_rules ? SqlRules::load() : SqlRules()));
}

Result<void> LiveAnalysis::refresh() {
  state_->facts.reset();
  for (const auto& reader : state_->readers) HOTLAP_TRY(reader->refresh());
  const std::vector<RecordingReader*> recordings = state_->recordings();
  std::map<std::string, Loss> losses;
  for (RecordingReader* recording : recordings) {
    const Result<std::vector<Loss>> stored = recording->read_losses();
    if (stored.ok()) add_losses(*stored, losses);
    add_losses(losses_of_clock(*recording), losses);
  }
  state_->stored_losses.clear();
  for (auto& [counter, loss] : losses) state_->stored_losses.push_back(std::move(loss));
  const std::vector<RecordingReader*> joined = state_->joined_recordings();
  Result<void> read = state_->analysis.advance(joined);
  // One of several costs itself; where none can be read there is nothing to judge.
  return state_->analysis.damaged().size() < joined.size() ? Result<void>() : std::move(read);
}

void LiveAnalysis::finish() {
  state_->facts.reset();
  state_->analysis.finish();
  state_->is_finished = true;
}

const RunInfo& LiveAnalysis::info() const { return state_->readers.front()->info(); }

const FactTable& LiveAnalysis::facts() const {
  if (!state_->facts) state_->facts = state_->analysis.facts();
  return *state_->facts;
}

std::int64_t LiveAnalysis::steps_seen() const {
  const Fact* steps = facts().find("steps.summary");
  return steps == nullptr ? 0 : static_cast<std::int64_t>(steps->number("steady_count").value_or(0));
}

// Nodes, time and price of what the recordings say.
RunExtent LiveAnalysis::extent() const {
  const RunInfo& run = info();
  RunExtent out;
  std::set<std::string> nodes;
  std::map<std::string, std::string> attributes;
  std::optional<std::int64_t> from_ns;
  std::optional<std::int64_t> to_ns;
  for (RecordingReader* recording : state_->recordings()) {
    nodes.insert(recording->info().node);
    if (Result<std::map<std::string, std::string>> read = recording->read_attributes(); read.ok())
      attributes.merge(*read);
    const Result<TimeRange> range = recording->extent();
    if (!range.ok() || range->from_ns > range->to_ns) continue;
    from_ns = std::min(from_ns.value_or(range->from_ns), range->from_ns);
    to_ns = std::max(to_ns.value_or(range->to_ns), range->to_ns);
  }
  out.nodes = std::max<std::int64_t>(static_cast<std::int64_t>(nodes.size()), 1);
  if (run.start_wall_ns >= 0 && run.end_wall_ns >= run.start_wall_ns) {
    out.duration_s = static_cast<double>(run.end_wall_ns - run.start_wall_ns) / static_cast<double>(kNsPerS);
  } else if (from_ns && to_ns) {
    out.duration_s = static_cast<double>(*to_ns - *from_ns) / static_cast<double>(kNsPerS);
  }
  out.is_live = is_live_run(state_->readers.front()->folder(), system_clock().read().wall_ns);
  out.price = machine_price(run, attributes);
  return out;
}

AnalysisDocument LiveAnalysis::document() const {
  const RunInfo& run = info();
  const FactTable& facts = this->facts();
  RulesOutcome outcome = run_rules(all_rules(), facts, state_->settings);
  if (!state_->sql_rules.empty()) {
    const std::vector<RecordingReader*> recordings = state_->recordings();
    state_->sql_rules.ask(query_place(state_->readers.front()->folder()), recordings, facts, state_->is_finished);
    state_->sql_rules.add_to(outcome);
  }
  AnalysisDocument d = make_document(run, facts, outcome, extent());
  set_hours(facts, d);
  if (run.status != RunStatus::kRunning) d.oom_kills = oom_kills_of(state_->recordings());
  d.hook = coverage(state_->analysis.processes());
  // Of files that were brought nobody asks for our hook.
  const bool is_imported = std::ranges::all_of(
      state_->recordings(), [](const RecordingReader* recording) { return recording->info().boot_id.empty(); });
  if (d.grade == "B" && !is_imported && d.hook.python_processes > d.hook.hooked) {
    d.cannot_tell.push_back(d.hook.because == kHookOff
                                ? format("{}; run under `hotlap run` without --no-hook to know", kHookOff)
                                : format("no hook in its Python: {}", d.hook.because));
  }

  if (state_->recordings().empty()) d.cannot_tell = {std::string(why_no_recording(run.status))};

  const Resolution resolution = state_->analysis.resolution();
  if (resolution.minutes_ns > 0) {
    d.resolution =
        SampleResolution{.full_s = static_cast<double>(resolution.full_ns) / static_cast<double>(kNsPerS),
                         .minutes_s = static_cast<double>(resolution.minutes_ns) / static_cast<double>(kNsPerS)};
  }
  std::map<std::string, Loss> losses;
  add_losses(state_->stored_losses, losses);
  add_losses(state_->analysis.losses(), losses);
  for (auto& [counter, loss] : losses) d.losses.push_back(std::move(loss));
  for (const auto& reader : state_->readers) {
    for (const Error& problem : reader->problems()) d.problems.push_back(problem.message);
  }
  for (const Error& problem : state_->analysis.damaged()) {
    d.problems.push_back(problem.message + "; what could be read of it counts");
  }
  for (std::string& problem : state_->sql_rules.problems()) d.problems.push_back(std::move(problem));
  d.previous = state_->previous.compare(d);
  d.verdict_text = verdict_text(d);
  return d;
}

Result<AnalysisDocument> analyze_run(const RunFolder& folder, const RuleSettings& settings, bool has_sql_rules) {
  HOTLAP_TRY_ASSIGN(LiveAnalysis analysis, LiveAnalysis::open(folder, settings, has_sql_rules));
  HOTLAP_TRY(analysis.refresh());
  analysis.finish();
  return analysis.document();
}

Result<void> write_verdict(const RunFolder& folder, const AnalysisDocument& document) {
  HOTLAP_TRY(folder.write_text("verdict.txt", full_text(document)));
  return folder.write_text("verdict.json", to_json(document));
}

std::string verdict_identity(const AnalysisDocument& d) {
  std::string text(to_string(d.verdict));
  if (d.verdict != VerdictKind::kFinding || d.findings.empty()) return text;
  text += " " + d.findings.front().id() + " " + d.findings.front().cause;
  for (const Advice& advice : d.findings.front().advice) text += " " + advice.change;
  return text;
}

}  // namespace hotlap
