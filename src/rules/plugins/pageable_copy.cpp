// Batches are copied to the GPU from memory that is not pinned: slower, and nothing runs meanwhile.
#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/trace_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"device.time"}, std::string_view{"copies.copy"}};
constexpr std::array kParams{
    share_param("3", "share of the device's time in such copies, with nothing beside them, from which on it speaks")};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const auto c = trace_case(facts);
  if (!c) return {};
  double unnamed_ms = 0;
  double calls = 0;
  double bytes = 0;
  double pageable_ms = 0;
  const Fact* most = nullptr;
  for (const Fact* copy : facts.all("copies.copy")) {
    const std::string direction = copy->text("direction").value_or("");
    if (direction.find("host") == std::string::npos) continue;
    const auto pageable = copy->number("pageable");
    const double total_ms = copy->number("total_ms").value_or(0);
    if (!pageable) unnamed_ms += total_ms;
    if (pageable.value_or(0) == 0) continue;
    pageable_ms += total_ms;
    calls += copy->number("calls").value_or(0);
    bytes += copy->number("bytes").value_or(0);
    if (most == nullptr || total_ms > most->number("total_ms").value_or(0)) most = copy;
  }
  const auto exposed_ms = c->device->number("exposed_pageable_ms");
  const double share_min = params.number("share_pct");
  if (most == nullptr || !exposed_ms || c->share_pct(*exposed_ms) < share_min) {
    const double other_ms = std::min(unnamed_ms, c->device->number("exposed_copy_ms").value_or(0));
    if (c->share_pct(other_ms) >= share_min) {
      out.cannot_tell(
          format("{} % of the GPU's time are copies from or to the host that nothing hides; the trace does "
                 "not say whether their memory is pinned",
                 figure(c->share_pct(other_ms))));
    }
    return {};
  }
  const bool is_to_device = most->text("direction") == "host to device";
  Finding finding =
      trace_finding(*c, {.cause = "Copies from memory that is not pinned",
                         .loss = format("GPU computes nothing during them, {} %", figure(c->share_pct(*exposed_ms))),
                         .claims = "copies",
                         .lost_ms = *exposed_ms});
  if (!is_to_device) finding.cause = "Copies to memory that is not pinned";
  std::string why = format("{}, {} ms", counted_per_step(*c, calls, "copy", "copies"), figure(pageable_ms));
  if (bytes > 0 && pageable_ms > 0) {
    const double gb_per_s = bytes / 1e6 / pageable_ms;
    why += format(", {} MB at {} GB/s", figure(bytes / 1e6), figure(gb_per_s));
    finding.evidence["bytes"] = bytes;
    finding.evidence["gb_per_s"] = gb_per_s;
  }
  finding.why.push_back(std::move(why));
  finding.why.push_back(
      format("{} ms of it with nothing else on the GPU; such a copy also holds up the host", figure(*exposed_ms)));
  Advice advice{.change = is_to_device ? "DataLoader(pin_memory=True) and .to(device, non_blocking=True)"
                                       : "a pinned buffer and copy_(…, non_blocking=True), or copying less often"};
  const double share = c->share_pct(*exposed_ms);
  set_gain(*c, share, 0.4 * share, Basis::kArithmetic, advice);
  advice.note = "all of it where the copy runs beside computing, 40 % where it is only faster";
  finding.advice.push_back(std::move(advice));
  finding.limits.emplace_back("pinned memory cannot be swapped out: it takes the batches' size of RAM");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_pageable_copy{
    .id = "PageableCopy",
    .title = "Batches are copied from memory that is not pinned",
    .why =
        "Looks at copies whose names say that the host's memory is pageable, and at how long nothing else ran on the "
        "device meanwhile. Certain: the profiler names the memory.",
    .advice = "Pinned memory and copies that do not block, with the step time without what nothing hides as the limit.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
