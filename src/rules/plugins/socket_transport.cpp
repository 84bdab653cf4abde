// NCCL sends over sockets on a machine that has, or should have, something faster.
#include <array>

#include "rules/rule.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"log.transport"}};
constexpr std::array kParams{
    ParamDesc{.name = "idle_bytes_per_s",
              .default_text = "1000000",
              .min = 0,
              .max = 1e12,
              .unit = "By/s",
              .help = "traffic of RDMA ports up to which they count as unused"},
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* transport : facts.all("log.transport")) {
    if (transport->number("socket_used") != 1 || transport->number("rdma_used") == 1) continue;
    // NCCL names a network also where all ranks are on one machine.
    if (transport->number("local_only") == 1) continue;
    const auto ports = transport->text("rdma_devices");
    const auto traffic = transport->number("rdma_bytes_per_s");
    const bool found = transport->number("rdma_found") == 1;
    const bool looked = transport->number("rdma_found").has_value();
    const bool is_there = found || ports.has_value();
    if (traffic && *traffic > params.number("idle_bytes_per_s")) continue;
    Finding finding;
    finding.where = transport->where;
    finding.cause = "NCCL fell back to sockets";
    finding.loss = is_there ? "the RDMA ports are not used" : "between machines it copies through the kernel";
    finding.severity = is_there ? Severity::kCritical : Severity::kWarning;
    finding.certainty = is_there ? Certainty::kCertain : Certainty::kLikely;
    finding.claims = "communication";
    finding.distance = -1;
    finding.why.push_back(format("the log says NET/Socket{}",
                                 transport->text("devices") ? " over " + *transport->text("devices") : std::string()));
    if (ports) {
      finding.why.push_back(format("{} {} there", *ports, ports->find(',') == std::string::npos ? "is" : "are") +
                            (traffic ? format(" and carried {} MB/s", figure(*traffic / 1e6)) : std::string()));
    }
    if (looked && !found) finding.why.emplace_back("NET/IB found no device");
    finding.advice.push_back(
        {.change = "install the RDMA user-space libraries in the container (rdma-core, libibverbs; on AWS "
                   "aws-ofi-nccl), pass /dev/infiniband in, and see that NCCL_IB_DISABLE and NCCL_NET are not set",
         .note = is_there ? "" : "if the machine has such a network: none shows here"});
    finding.advice.push_back(
        {.change = "NCCL_DEBUG=INFO then says NET/IB", .note = "nccl-tests measures the bandwidth"});
    if (!is_there) finding.limits.emplace_back("whether there is a faster network");
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_socket_transport{.id = "SocketTransport",
                                                      .title = "NCCL sends over sockets",
                                                      .why =
                                                          "Reads the lines in which NCCL says which network it uses, "
                                                          "and looks for RDMA ports that carry nothing. Certain "
                                                          "where such ports are there.",
                                                      .advice = "What NCCL needs to find them.",
                                                      .needs = kNeeds,
                                                      .params = kParams,
                                                      .evaluate = evaluate};

}  // namespace hotlap
