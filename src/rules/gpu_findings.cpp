#include "rules/gpu_findings.h"

#include <algorithm>

#include "base/text.h"
#include "rules/words.h"

namespace hotlap {
namespace {
constexpr double kInUsePct = 5;
constexpr double kLittleUsePct = 1.5;  // in the mean: something runs, if little
constexpr double kTenth = 10;
}  // namespace

std::vector<const Fact*> job_gpus(const FactTable& facts, std::string_view kind) {
  std::vector<const Fact*> out = facts.all(kind);
  std::erase_if(out, [](const Fact* fact) { return fact->number("is_of_job") == 0; });
  return out;
}

const Fact* same_device(const FactTable& facts, std::string_view kind, const Fact& gpu) {
  for (const Fact* fact : facts.all(kind)) {
    if (fact->where.device == gpu.where.device && fact->where.node == gpu.where.node) return fact;
  }
  return nullptr;
}

bool is_in_use(const Fact& use) {
  return use.number("ever_pct").value_or(0) >= kInUsePct || use.number("mean_pct").value_or(0) >= kLittleUsePct;
}

bool is_seen_for(const Fact& use, double samples) {
  return use.number("observed_s").value_or(0) * kSamplesPerS >= samples;
}

std::string devices_words(const std::vector<const Fact*>& gpus) {
  if (gpus.empty()) return {};
  if (gpus.size() == 1) return gpus[0]->where.device;
  if (gpus.size() == 2) return format("{} and {}", gpus[0]->where.device, gpus[1]->where.device);
  return format("{} GPUs", gpus.size());
}

Where place_of(const std::vector<const Fact*>& gpus) {
  Where where;
  if (gpus.empty()) return where;
  where.node = gpus[0]->where.node;
  for (const Fact* gpu : gpus) {
    if (gpu->where.node != where.node) where.node.clear();
  }
  if (gpus.size() == 1) where.device = gpus[0]->where.device;
  return where;
}

std::string host_words(const FactTable& facts, const Fact& gpu) {
  const Fact* host = same_device(facts, "gpu.host", gpu);
  if (host == nullptr || host->number("idle_s").value_or(0) < 1) return {};
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const auto core = host->number("idle_core_pct")) add(format("hottest core {} %", figure(*core)));
  if (const auto cores = host->number("idle_busy_cores")) add(format("{} cores busy", cores_figure(*cores)));
  if (const auto waiting = host->number("idle_iowait_cores"); waiting && *waiting >= 0.2)
    add(format("{} waiting for I/O", cores_figure(*waiting)));
  for (const auto& [field, verb] :
       {std::pair{"idle_read_bytes_per_s", "read"}, std::pair{"idle_write_bytes_per_s", "written"},
        std::pair{"idle_receive_bytes_per_s", "received"}}) {
    if (const auto rate = host->number(field); rate && *rate >= 1e6)
      add(format("{} MB/s {}", figure(*rate / 1e6), verb));
  }
  return text.empty() ? text : "while it is idle: " + text;
}

double joint_pct(std::string_view joint, double gpu_pct, double host_pct) {
  double sum = 0;
  while (!joint.empty()) {
    const std::size_t end = std::min(joint.find(' '), joint.size());
    const std::string_view cell = joint.substr(0, end);
    joint.remove_prefix(std::min(end + 1, joint.size()));
    const std::size_t colon = cell.find(':');
    const std::size_t equals = cell.find('=');
    if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon) continue;
    const auto gpu = parse_f64(cell.substr(0, colon));
    const auto host = parse_f64(cell.substr(colon + 1, equals - colon - 1));
    const auto share = parse_f64(cell.substr(equals + 1));
    if (!gpu || !host || !share) continue;
    // The part of a tenth that lies beyond a limit inside it.
    const double below = std::clamp((gpu_pct - kTenth * *gpu) / kTenth, 0.0, 1.0);
    const double above = std::clamp((kTenth * (*host + 1) - host_pct) / kTenth, 0.0, 1.0);
    sum += *share * below * above;
  }
  return sum;
}

std::optional<IdleMeeting> idle_meeting(const FactTable& facts, const Params& params, std::string_view joint,
                                        std::string_view host_param) {
  std::optional<IdleMeeting> most;
  for (const Fact* host : facts.all("gpu.host")) {
    const Fact* use = same_device(facts, "gpu.use", *host);
    const auto cells = host->text(joint);
    // One that nothing runs on is idle whatever the cores do.
    if (!cells || use == nullptr || use->number("is_of_job") == 0 || !is_in_use(*use)) continue;
    if (host->number("seconds").value_or(0) * kSamplesPerS < params.number("patience")) continue;
    const double share = joint_pct(*cells, params.number("gpu_threshold"), params.number(host_param));
    if (share > params.number("threshold") && (!most || share > most->share_pct)) most = {host, use, share};
  }
  return most;
}

Finding idle_finding(const Fact& host, std::string_view cause, double share_pct) {
  Finding finding;
  finding.where = place_of({&host});
  finding.cause = cause;
  finding.loss = format("{} % of the time", figure(share_pct));
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = kClaimsGpuIdle;
  finding.lost_pct = share_pct;
  finding.evidence["share_pct"] = share_pct;
  finding.evidence["seconds"] = host.number("seconds").value_or(0);
  return finding;
}

}  // namespace hotlap
