// A file system is full, or will be soon: what is saved next fails, and the job with it.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "rules/step_findings.h"
#include "rules/time_to_limit.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"filesystem.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "fill_pct",
              .default_text = "99",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "fill from which on the rule speaks, whether it grows or not"},
    ParamDesc{.name = "time_to_limit",
              .type = ParamType::kDuration,
              .default_text = "6h",
              .min = 60e9,
              .max = 3.6e15,
              .unit = "ns",
              .help = "growth that fills it later than this is not spoken of"},
};
constexpr double kSoonS = 3600;
constexpr double kCriticalPct = 99;
constexpr double kWindowMinS = 60;
constexpr double kLeastTotalBytes = 1e9;

// Images and pseudo file systems are full by their nature.
bool is_written(std::string_view mount) {
  constexpr std::array<std::string_view, 6> kOthers{"/snap", "/boot", "/run", "/sys", "/proc", "/dev"};
  return std::ranges::none_of(kOthers, [&](std::string_view one) { return mount.starts_with(one); });
}

void judge(const Fact& filesystem, std::optional<double> left_s, FindingSink& out) {
  const double total = filesystem.number("total_bytes").value_or(0);
  const double left = filesystem.number("available_bytes").value_or(0);
  const double fill_pct = filesystem.number("fill_pct").value_or(0);
  Finding finding;
  finding.where = filesystem.where;
  finding.cause = left_s && *left_s > 0 ? format("{} will be full in ~{}", filesystem.where.device, time_words(*left_s))
                                        : format("{} is full", filesystem.where.device);
  finding.loss = "what is saved then is lost, and the job may die of it";
  const bool is_soon = fill_pct >= kCriticalPct || (left_s && *left_s <= kSoonS);
  finding.severity = is_soon ? Severity::kCritical : Severity::kWarning;
  finding.certainty = left_s ? Certainty::kLikely : Certainty::kCertain;
  finding.claims = "filesystem";
  finding.evidence["fill_pct"] = fill_pct;
  finding.evidence["available_bytes"] = left;
  finding.why.push_back(
      format("{} of {} left ({} % taken)", format_bytes(left), format_bytes(total), figure(fill_pct)));
  if (left_s) {
    const double per_s = filesystem.number("growth_bytes_per_s").value_or(0);
    finding.evidence["to_limit_s"] = *left_s;
    finding.why.push_back(format("+{} a minute, over {}", format_bytes(60 * per_s),
                                 time_words(filesystem.number("window_s").value_or(0))));
  }
  finding.advice.push_back({.change = "keep fewer checkpoints (save_total_limit), write logs and caches elsewhere",
                            .note = "du -xh --max-depth=2 says what takes it"});
  if (left_s) finding.look_alikes_excluded.emplace_back("one write that is done (it goes on)");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const double latest_s = static_cast<double>(params.duration_ns("time_to_limit")) * 1e-9;
  for (const Fact* filesystem : facts.all("filesystem.summary")) {
    if (!is_written(filesystem->where.device)) continue;
    if (filesystem->number("total_bytes").value_or(0) < kLeastTotalBytes) continue;
    auto left_s = filesystem->number("to_limit_s");
    if (left_s && (*left_s > latest_s || filesystem->number("window_s").value_or(0) < kWindowMinS)) left_s.reset();
    if (left_s || filesystem->number("fill_pct").value_or(0) >= params.number("fill_pct"))
      judge(*filesystem, left_s, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_filesystem_full{
    .id = "FilesystemFull",
    .title = "A file system is full, or will be soon",
    .why =
        "Looks at what is left of each file system and whether it shrinks all the time or at intervals. Images and "
        "pseudo file systems are left out. Certain when it is full; when it will be is likely.",
    .advice = "What to keep less of.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
