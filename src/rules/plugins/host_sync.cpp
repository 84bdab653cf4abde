// The host waits for the GPU inside the step and has nothing queued when it goes on: the GPU stands idle meanwhile.
#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/trace_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"device.time"}, std::string_view{"sync.summary"}};
constexpr std::array kParams{
    share_param("5", "share of the device's time that it idles after such waits from which on the rule speaks")};

struct Source {
  std::string_view part;  // of the operator's name
  std::string_view words;
  std::string_view change;
};
// By what usually makes such a call; the first that fits counts.
constexpr std::array kSources{
    Source{"local_scalar_dense", "reading a value",
           "keep the value on the GPU and read it every N steps (.item(), float(), print)"},
    Source{"aten::item", "reading a value",
           "keep the value on the GPU and read it every N steps (.item(), float(), print)"},
    Source{"nonzero", "a boolean index", "torch.where or a multiplied mask in the place of tensor[mask] and nonzero()"},
    Source{"aten::index", "a boolean index",
           "torch.where or a multiplied mask in the place of tensor[mask] and nonzero()"},
    Source{"masked_select", "a boolean index", "torch.where or a multiplied mask in the place of masked_select()"},
    Source{"aten::to", "a copy that blocks", "pin_memory=True in the loader and .to(device, non_blocking=True)"},
    Source{"aten::copy_", "a copy that blocks", "pin_memory=True in the loader and .to(device, non_blocking=True)"},
    Source{"_to_copy", "a copy that blocks", "pin_memory=True in the loader and .to(device, non_blocking=True)"},
    Source{"unique", "an operator whose result has a size that the host must know",
           "a form with a fixed size, or less often"},
};
constexpr Source kNoOperator{"", "code outside of operators",
                             "no torch.cuda.synchronize() in the loop: events measure time without waiting"};
constexpr Source kOtherOperator{"", "an operator that reads a value", "keep its arguments and result on the GPU"};

const Source& source_of(std::string_view caller) {
  if (caller.empty()) return kNoOperator;
  const auto found = std::ranges::find_if(
      kSources, [&](const Source& source) { return caller.find(source.part) != std::string_view::npos; });
  return found == kSources.end() ? kOtherOperator : *found;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const auto c = trace_case(facts);
  if (!c) return {};
  const double idle_ms = c->device->number("idle_sync_ms").value_or(0);
  if (c->share_pct(idle_ms) < params.number("share_pct")) return {};
  if (!c->sync_ms) {
    out.cannot_tell(
        format("the GPU idles {} % of its time after waits of the host: whether it would be busy without "
               "them cannot be told of this trace",
               figure(c->share_pct(idle_ms))));
    return {};
  }
  if (c->share_pct(*c->sync_ms) < params.number("share_pct")) return {};  // LaunchBound's
  const Fact* summary = facts.find("sync.summary");
  const Fact* caller = facts.find("sync.caller");
  const std::string name = caller == nullptr ? std::string() : caller->text("name").value_or("");
  const Source& source = source_of(name);

  Finding finding = trace_finding(*c, {.cause = "The host waits for the GPU",
                                       .loss = format("GPU idle {} % after it", figure(c->share_pct(*c->sync_ms))),
                                       .claims = "host_sync",
                                       .lost_ms = *c->sync_ms});
  finding.certainty = Certainty::kLikely;
  const double calls = number_in(summary, "calls").value_or(0);
  finding.evidence["sync_calls"] = calls;
  finding.evidence["idle_sync_ms"] = idle_ms;
  std::string why = format("{} ({} ms in all)", counted_per_step(*c, calls, "wait", "waits"),
                           figure(number_in(summary, "total_ms").value_or(0)));
  if (caller != nullptr) {
    why += format(", most of that in {}: {}", name.empty() ? "no operator" : name, source.words);
  }
  finding.why.push_back(std::move(why));
  finding.why.push_back(format("nothing is queued when a wait ends: {} of {} ms pass until the GPU has work again",
                               figure(idle_ms), figure(c->wall_ms)));
  Advice advice{.change = std::string(source.change)};
  const double saved = saved_pct(facts, *c, "waits").value_or(0);
  set_gain(*c, saved, 0.3 * saved, Basis::kModel, advice);
  advice.note = "as if no wait were needed; values that steer the program are";
  finding.advice.push_back(std::move(advice));
  if (c->share_pct(c->device->number("idle_data_ms").value_or(0)) < 3)
    finding.look_alikes_excluded.emplace_back("data");
  if (c->share_pct(c->launch_ms) < 3) finding.look_alikes_excluded.emplace_back("launch-bound");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_host_sync{
    .id = "HostSync",
    .title = "The host waits for the GPU inside the step",
    .why =
        "Looks at the GPU's idle time behind calls that wait for it, as far as a replay of the trace without those "
        "waits confirms that it would be busy then. Waits during which the GPU works cost nothing and are not meant.",
    .advice = "By the operator that waits most: how to do without it, with the step time of the replay.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
