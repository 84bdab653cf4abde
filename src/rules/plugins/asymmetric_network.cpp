// What is sent leaves by another interface than what is received comes in by: one of them is the slow one.
#include <array>

#include "rules/gpu_findings.h"
#include "rules/link_ceiling.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"ceilings.network"}};
constexpr std::array kParams{
    percent_param("one_way_pct", "10",
                  "the weaker direction, of the stronger one, below which an interface is used one way"),
    ParamDesc{.name = "least_bytes_per_s",
              .default_text = "10000000",
              .min = 1e3,
              .max = 1e12,
              .unit = "By/s",
              .help = "rate below which an interface does not count"},
};

struct OneWay {
  const Fact* network = nullptr;
  double rate = 0;
};

std::string words(const OneWay& one, std::string_view verb) {
  return format("{} {} {} MB/s", one.network->where.device, verb, figure(one.rate / 1e6));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  OneWay sender;
  OneWay receiver;
  const double weak = params.number("one_way_pct") / 100;
  const double least = params.number("least_bytes_per_s");
  for (const Fact* network : facts.all("ceilings.network")) {
    const double received = network->number("receive_bytes_per_s").value_or(0);
    const double sent = network->number("transmit_bytes_per_s").value_or(0);
    if (sent >= least && received < weak * sent && sent > sender.rate) sender = {network, sent};
    if (received >= least && sent < weak * received && received > receiver.rate) receiver = {network, received};
  }
  if (sender.network == nullptr || receiver.network == nullptr) return {};
  if (sender.network->where.node != receiver.network->where.node) return {};
  // Data that comes in and checkpoints that go out need not be as much as each other; one exchange is.
  if (sender.rate < 0.5 * receiver.rate || receiver.rate < 0.5 * sender.rate) return {};
  const auto link = full_link(facts, sender.network->where, 80, 60);
  Finding finding;
  finding.where.node = sender.network->where.node;
  finding.where.device = sender.network->where.device;
  finding.cause = format("What is sent leaves by {}, what is received comes in by {}", sender.network->where.device,
                         receiver.network->where.device);
  finding.loss = "the slower of the two sets the pace";
  finding.severity = Severity::kCritical;
  finding.certainty = Certainty::kLikely;
  finding.claims = "communication";
  finding.distance = -1;
  finding.why.push_back(words(sender, "sends") + " and receives next to nothing");
  finding.why.push_back(words(receiver, "receives") + " and sends nearly nothing");
  if (link) finding.why.push_back(link_words(*link));
  finding.evidence["sent_bytes_per_s"] = sender.rate;
  finding.evidence["received_bytes_per_s"] = receiver.rate;
  finding.advice.push_back(
      {.change = format("one subnet per interface, or policy routing (ip rule), for {}; NCCL_SOCKET_IFNAME={}",
                        receiver.network->where.device, receiver.network->where.device),
       .note = "in one subnet the kernel sends by the first route"});
  finding.look_alikes_excluded.emplace_back("a full network (each interface is used in one direction only)");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_asymmetric_network{
    .id = "AsymmetricNetwork",
    .title = "Sending and receiving take different interfaces",
    .why =
        "Looks for one interface that only sends and another that only receives, about as much: an exchange whose ways "
        "differ. Likely: it may be meant.",
    .advice = "Routes.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
