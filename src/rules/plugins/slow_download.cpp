// The job spends long on downloading before its first step.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"start_up.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "time",
              .type = ParamType::kDuration,
              .default_text = "2min",
              .min = 1e9,
              .max = 3.6e15,
              .unit = "ns",
              .help = "time of downloading before the first step from which on the rule speaks"},
    ParamDesc{.name = "share_pct",
              .default_text = "50",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "of the time up to the first step that downloading must take"},
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const double least_s = static_cast<double>(params.duration_ns("time")) * 1e-9;
  for (const Fact* start : facts.all("start_up.summary")) {
    const double told_s = start->number("download_s").value_or(0);
    // Where the two were not told apart the phase of downloading, if there was one, holds what was received.
    const auto inside_s = start->number("init_receive_s");
    const double seen_s = inside_s ? *inside_s : told_s > 0 ? 0 : start->number("receive_s").value_or(0);
    const double download_s = told_s + seen_s;
    const double before_s = start->number("before_step_s").value_or(0) + (told_s > 0 ? told_s : 0);
    if (download_s < least_s || download_s < params.number("share_pct") / 100 * before_s) continue;
    const bool is_told = told_s >= seen_s;
    const auto bytes =
        is_told ? start->number("transfer_bytes") : start->number(inside_s ? "init_received_bytes" : "received_bytes");
    Finding finding;
    finding.where = start->where;
    finding.cause = is_told ? "Starting up is downloading" : "Initialisation downloads";
    finding.loss = format("{} min before the first step", figure(download_s / 60));
    finding.severity = download_s >= 10 * least_s ? Severity::kWarning : Severity::kInfo;
    finding.certainty = is_told ? Certainty::kCertain : Certainty::kLikely;
    finding.claims = "start_up";
    finding.lost_s = download_s;
    finding.evidence["download_s"] = download_s;
    std::string why =
        is_told ? std::string("in the phase of downloading") : std::string("the network was busy receiving");
    if (bytes) {
      why +=
          format(": {} at {}/s", format_bytes(*bytes), format_bytes(*bytes / std::max(is_told ? told_s : seen_s, 0.1)));
      finding.evidence["bytes"] = *bytes;
    }
    finding.why.push_back(std::move(why));
    if (is_told && seen_s >= 0.1 * download_s)
      finding.why.push_back(format("and {} s of receiving during initialisation", figure(seen_s)));
    finding.evidence["init_receive_s"] = seen_s;
    finding.advice.push_back({.change = "keep data and weights on a disk that stays, or stream them during training",
                              .note = "FastFile or Pipe mode, webdataset, HF_HOME on a volume"});
    if (!is_told) finding.limits.emplace_back("what was received: the network was seen, not the program");
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_slow_download{
    .id = "SlowDownload",
    .title = "Starting up is mostly downloading",
    .why =
        "Adds up the phase of downloading and the time of initialisation in which the network received more than "
        "1 MB/s.",
    .advice = "Not downloading it each time.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
