// Memory of the machine grows step by step and will run out: a leak, or copies that loader workers make.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "rules/step_findings.h"
#include "rules/time_to_limit.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"host_memory.summary"}};
constexpr std::array kParams{
    kTimeToLimitParam,
    ParamDesc{.name = "rise_pct",
              .default_text = "1",
              .min = 0.1,
              .max = 100,
              .unit = "%",
              .help = "of the limit that must have been taken so far"},
};
constexpr double kSoonS = 1800;
// Where nobody recorded how much there is: so much must have been taken, of what the process has now and at all.
constexpr double kTakenShare = 0.1;
constexpr double kTakenBytes = 256 * 1024 * 1024.0;
constexpr double kWindowMinS = 60;
constexpr double kOthersMinS = 1800;  // programs that come and go look like growth for a while

// The process whose memory grows most, where one does.
const Fact* grower(const FactTable& facts, const Where& where) {
  const Fact* most = nullptr;
  for (const Fact* process : facts.all("host_memory.process")) {
    const auto rate = process->number("growth_bytes_per_s");
    if (!rate || !same_place(process->where, where)) continue;
    if (most == nullptr || *rate > *most->number("growth_bytes_per_s")) most = process;
  }
  return most;
}

// Asked where no process of the job was seen to grow: what grows is another program's then, if the job was looked at.
// (Workers' PSS is looked at so rarely that a short run says nothing of them.)
bool is_of_others(const FactTable& facts, const Fact& memory) {
  if (memory.text("limited_by") == "group") return false;
  return std::ranges::any_of(facts.all("host_memory.process"), [&](const Fact* process) {
    return same_place(process->where, memory.where) && process->text("role") != "loader";
  });
}

// Of a machine that fills up though no process of the job grows: it must have been looked at for so long.
double window_needed_s(bool by_others) { return by_others ? kOthersMinS : kWindowMinS; }

Advice advice_for(bool by_others, bool by_workers, bool is_stairs) {
  if (by_others) {
    return {.change = "see which program it is (ps -eo rss,args --sort=-rss): none of the job's processes grows",
            .note = {}};
  }
  if (by_workers) {
    return {.change = "keep the samples' list in one array (numpy, pyarrow), not in Python objects; fewer workers",
            .note = "each worker copies the pages of objects whose reference counts it touches"};
  }
  if (is_stairs) {
    return {.change = "look at what each epoch keeps: iterators, open pipes, results of evaluations", .note = {}};
  }
  return {.change = "look for what is kept across steps: lists of losses, of outputs, of metrics",
          .note = "tracemalloc shows where it was allocated"};
}

std::string cause_of(const std::string& process, bool by_others, bool is_stairs) {
  const std::string whose = by_others ? "other programs" : process.empty() ? "the machine" : process;
  return format("Memory of {} grows{}", whose, is_stairs ? " by stairs" : "");
}

// `to_limit_s` is nothing where how much there is was not recorded.
void judge(const Fact& memory, const Fact* who, bool by_others, double per_s, std::optional<double> to_limit_s,
           FindingSink& out) {
  const double limit = memory.number("limit_bytes").value_or(0);
  const double used = (to_limit_s ? memory : *who).number("used_bytes").value_or(0);
  const bool is_stairs = (who != nullptr ? who->text("shape") : memory.text("shape")) == "stairs";
  const bool is_workers = who != nullptr && who->text("role") == "loader";
  Finding finding;
  finding.where = memory.where;
  if (who != nullptr) finding.where.process = who->text("process").value_or("");
  finding.cause = cause_of(finding.where.process, by_others, is_stairs);
  finding.loss =
      to_limit_s ? format("full in ~{}", time_words(*to_limit_s)) : format("{}/min", format_bytes(60 * per_s));
  finding.severity = to_limit_s ? severity_of_limit(*to_limit_s, kSoonS) : Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "host_memory";
  finding.evidence["growth_bytes_per_s"] = per_s;
  if (to_limit_s) finding.evidence["to_limit_s"] = *to_limit_s;
  std::string why;
  if (const Fact& grows = who != nullptr ? *who : memory; is_stairs && grows.number("rises")) {
    why = format("{} rises of {}", std::lround(*grows.number("rises")),
                 format_bytes(grows.number("rise_bytes").value_or(0)));
  } else if (who != nullptr && who->number("growth_bytes_per_step")) {
    why = format("+{} every step", format_bytes(*who->number("growth_bytes_per_step")));
  } else {
    why = format("+{}/s", format_bytes(per_s));
  }
  if (who != nullptr) why += format(" ({} of {})", who->text("measure").value_or("RSS"), finding.where.process);
  finding.why.push_back(std::move(why));
  if (to_limit_s) {
    finding.why.push_back(format("{} of {} in use{}", format_bytes(used), format_bytes(limit),
                                 memory.text("limited_by") == "group" ? ", the limit of its group" : ""));
  } else {
    finding.why.push_back(format("it has {} now", format_bytes(used)));
    finding.limits.emplace_back("when the memory is full: how much the machine has was not recorded");
  }
  finding.advice.push_back(advice_for(by_others, is_workers, is_stairs));
  finding.look_alikes_excluded.emplace_back("page cache");
  finding.look_alikes_excluded.emplace_back("a cache that fills up");
  if (memory.number("oom_kills").value_or(0) > 0) finding.why.emplace_back("processes were killed for memory already");
  out.add(std::move(finding));
}

bool is_large(const Fact& memory, const Fact& who) {
  const double window_s = memory.number("window_s").value_or(0);
  const double per_s = who.number("growth_bytes_per_s").value_or(0);
  const double least = std::max(kTakenBytes, kTakenShare * who.number("used_bytes").value_or(0));
  // A slope that its own interval does not part from none is none.
  const bool is_sure = who.text("shape") != "leak" || who.number("growth_half_width").value_or(0) < per_s;
  return window_s >= kWindowMinS && per_s * window_s >= least && is_sure;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const double latest_s = static_cast<double>(params.duration_ns("time_to_limit")) * 1e-9;
  for (const Fact* memory : facts.all("host_memory.summary")) {
    const auto limit = memory->number("limit_bytes");
    const auto headroom = memory->number("headroom_bytes");
    const Fact* who = grower(facts, memory->where);
    if (!limit && who != nullptr && is_large(*memory, *who)) {
      judge(*memory, who, false, *who->number("growth_bytes_per_s"), std::nullopt, out);
    }
    if (!limit || !headroom || *limit <= 0) continue;
    // The machine's own figure holds what all do; a process' is nearer to the cause.
    const double of_process = who == nullptr ? 0 : *who->number("growth_bytes_per_s");
    const double of_machine = memory->number("growth_bytes_per_s").value_or(0);
    const double per_s = of_process > 0 ? of_process : of_machine;
    const bool by_others = of_process <= 0 && is_of_others(facts, *memory);
    const double window_s = memory->number("window_s").value_or(0);
    if (per_s <= 0 || (of_process <= 0 && window_s < window_needed_s(by_others))) continue;
    const double taken = per_s * window_s;
    if (taken < params.number("rise_pct") / 100 * *limit) continue;
    const double to_limit_s = *headroom / per_s;
    if (to_limit_s <= latest_s) judge(*memory, of_process > 0 ? who : nullptr, by_others, per_s, to_limit_s, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_host_memory_growth{
    .id = "HostMemoryGrowth",
    .title = "Memory of the machine grows until it is full",
    .why =
        "Looks at the floor of each process' memory, PSS where it is known, over the typical steps, and at the limit "
        "that "
        "binds. A cache that fills up, one step and peaks do not count.",
    .advice = "Where to look, by what grows and how.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
