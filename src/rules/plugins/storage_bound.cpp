// A disk is at its ceiling while training waits for data.
#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/gpu_findings.h"
#include "rules/page_cache_words.h"
#include "rules/step_findings.h"
#include "rules/step_period.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"ceilings.disk"}};
constexpr std::array kParams{
    ParamDesc{.name = "busy_pct",
              .default_text = "90",
              .min = 10,
              .max = 100,
              .unit = "%",
              .help = "share of time with an operation in flight from which on a disk is at its ceiling"},
    ParamDesc{.name = "wait_pct",
              .default_text = "3",
              .min = 0.1,
              .max = 100,
              .unit = "%",
              .help = "share of step time spent waiting for data from which on the rule speaks"},
    ParamDesc{.name = "gpu_pct",
              .default_text = "60",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "where no step says what waits: mean use of the GPUs up to which they may wait for the disk"},
    ParamDesc{.name = "iowait_cores",
              .default_text = "0.5",
              .min = 0.01,
              .max = 1e4,
              .unit = "{core}",
              .help = "where neither steps nor GPUs were seen: cores idle for the disk, mean, from which on it speaks"},
};
constexpr double kSmallReadBytes = 128 * 1024;
constexpr double kFullOfWait = 0.8;  // of the time that training waits a disk is full: it is what is waited for
constexpr double kFullMinPct = 20;   // below, one may be full by chance

// A disk that is busy all the time, or full for as long as training waits.
const Fact* busiest(const FactTable& facts, const Where& where, double busy_pct, double wait_pct) {
  const Fact* most = nullptr;
  for (const Fact* disk : facts.all("ceilings.disk")) {
    const double full = disk->number("full_pct").value_or(0);
    const bool is_full_meanwhile = full >= std::max(kFullMinPct, kFullOfWait * wait_pct);
    if (!same_place(disk->where, where)) continue;
    if (disk->number("busy_pct").value_or(0) < busy_pct && !is_full_meanwhile) continue;
    // One that is busy writing holds up no loader.
    if (disk->number("read_bytes_per_s").value_or(0) < disk->number("write_bytes_per_s").value_or(0)) continue;
    if (most == nullptr || *disk->number("busy_pct") > *most->number("busy_pct")) most = disk;
  }
  return most;
}

Finding head(const Fact& disk) {
  const double rate = disk.number("read_bytes_per_s").value_or(0);
  const double reads = disk.number("reads_per_s").value_or(0);
  const double size = disk.number("read_bytes").value_or(0);
  const bool by_count = size > 0 && size < kSmallReadBytes;
  Finding finding;
  finding.where.node = disk.where.node;
  finding.where.device = disk.where.device;
  finding.cause = format("Storage: disk {} is at its ceiling", disk.where.device);
  finding.certainty = Certainty::kLikely;
  finding.claims = "data_wait";
  finding.distance = -1;
  finding.evidence["busy_pct"] = disk.number("busy_pct").value_or(0);
  finding.evidence["read_bytes_per_s"] = rate;
  finding.evidence["reads_per_s"] = reads;
  finding.why.push_back(format("busy {} % of the time: {} MB/s, {} reads a second of {} kB, {} ms each",
                               figure(disk.number("busy_pct").value_or(0)), figure(rate / 1e6), figure(reads),
                               figure(size / 1e3), figure(disk.number("read_ms").value_or(0))));
  if (const auto queue = disk.number("queue"); queue && *queue >= 1.5) {
    finding.why.back() += format(", {} waiting", figure(*queue));
    finding.evidence["queue"] = *queue;
  }
  finding.advice.push_back(
      {.change = by_count ? "pack small files into shards (tar, webdataset, parquet), read in order"
                          : "a faster disk, a copy in memory, or smaller files (compressed, resized once)",
       .note = "workers and prefetch won't help; its speed then is not measured"});
  finding.look_alikes_excluded.emplace_back("too few workers");
  return finding;
}

void judge(const FactTable& facts, const Fact& disk, const Fact& steps, const Fact* loader, double wait,
           FindingSink& out) {
  Finding finding = head(disk);
  finding.where.rank = steps.where.rank;
  finding.severity = wait >= 30 ? Severity::kCritical : Severity::kWarning;
  set_step_loss(steps, wait, finding);
  if (loader != nullptr) {
    const double wall = loader->number("batch_wall_ms").value_or(0);
    const auto cpu = loader->number("batch_cpu_ms");
    if (wall > 0 && cpu)
      finding.why.push_back(format("workers on CPU {} % of a batch's time", figure(100 * std::min(*cpu / wall, 1.0))));
  }
  if (const std::string words = worker_period_words(facts, steps.where); !words.empty()) finding.why.push_back(words);
  add_page_cache(facts, steps.where, finding);
  out.add(std::move(finding));
}

// Neither steps nor GPUs were seen: a disk that is full while cores wait for it holds up whoever reads from it.
void judge_disk(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* cores : facts.all("core_use.summary")) {
    const auto waiting = cores->number("iowait_cores");
    const Fact* disk = busiest(facts, {.node = cores->where.node}, params.number("busy_pct"), 100);
    if (disk == nullptr || !waiting || *waiting < params.number("iowait_cores")) continue;
    Finding finding = head(*disk);
    finding.loss = format("{} cores wait for it, mean", figure(*waiting));
    finding.severity = Severity::kWarning;
    finding.evidence["iowait_cores"] = *waiting;
    finding.look_alikes_excluded.clear();
    finding.limits.emplace_back("whether training waits for it: neither steps nor GPU figures were seen");
    out.add(std::move(finding));
  }
}

// Nobody saw what a step waits for: a GPU that is little used beside a disk that is full.
void judge_machine(const FactTable& facts, const Params& params, FindingSink& out) {
  double idle_pct = -1;
  const Fact* idle = nullptr;
  for (const Fact* use : job_gpus(facts, "gpu.use")) {
    const auto mean = use->number("mean_pct");
    if (!mean || *mean > params.number("gpu_pct") || !is_in_use(*use) || 100 - *mean <= idle_pct) continue;
    idle_pct = 100 - *mean;
    idle = use;
  }
  if (idle == nullptr) return;
  const Fact* disk = busiest(facts, {.node = idle->where.node}, params.number("busy_pct"), idle_pct);
  if (disk == nullptr) return;
  Finding finding = head(*disk);
  finding.loss = format("{} busy {} % of the time", idle->where.device, figure(100 - idle_pct));
  finding.severity = idle_pct >= 50 ? Severity::kCritical : Severity::kWarning;
  if (const std::string words = host_words(facts, *idle); !words.empty()) finding.why.push_back(words);
  // What else a GPU waits for is not known, so the loss has a bound and no figure. Samples that each hold many steps
  // never show it idle: then its mean tells the bound.
  finding.lost_pct = idle->number("idle_pct").value_or(0) > 0 ? *idle->number("idle_pct") : idle_pct;
  finding.limits.emplace_back("how much of a step is waiting: no step says it");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const std::vector<const Fact*> all_parts = facts.all("breakdown.parts");
  const auto is_measured = [](const Fact* parts) { return parts->number("data_wait").has_value(); };
  if (std::ranges::none_of(all_parts, is_measured)) judge_machine(facts, params, out);
  if (facts.find("gpu.use") == nullptr && facts.find("steps.summary") == nullptr) judge_disk(facts, params, out);
  for (const Fact* parts : all_parts) {
    const auto wait = parts->number("data_wait");
    if (!wait || *wait < params.number("wait_pct")) continue;
    const Fact* steps = fact_for(facts, "steps.summary", parts->where);
    const Fact* disk = busiest(facts, parts->where, params.number("busy_pct"), *wait);
    if (steps == nullptr || disk == nullptr) continue;
    // Workers that compute all the time do not wait for the disk, however busy it is.
    const Fact* loader = fact_for(facts, "loader.summary", parts->where);
    const auto wall = number_in(loader, "batch_wall_ms");
    const auto cpu = number_in(loader, "batch_cpu_ms");
    if (wall && cpu && *wall > 0 && *cpu / *wall > 0.7) continue;
    judge(facts, *disk, *steps, loader, *wait, out);
    return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_storage_bound{
    .id = "StorageBound",
    .title = "A disk is at its ceiling while training waits for data",
    .why =
        "Looks for a disk that is busy all the time with reading, while training waits for data and loader workers "
        "wait for I/O; or that is full for as long as it waits. Without steps a GPU that is little used stands for the "
        "wait, and without either the cores that wait for I/O. Busy is not the same as full for disks that do many "
        "things at once, so it is likely only.",
    .advice = "Fewer, larger reads, or a faster place.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
