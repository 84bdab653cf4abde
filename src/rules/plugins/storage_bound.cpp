// A disk is at its ceiling while training waits for data.
#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"ceilings.disk"}, std::string_view{"breakdown.parts"},
                            std::string_view{"steps.summary"}};
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
};
constexpr double kSmallReadBytes = 128 * 1024;

const Fact* busiest(const FactTable& facts, const Where& where, double busy_pct) {
  const Fact* most = nullptr;
  for (const Fact* disk : facts.all("ceilings.disk")) {
    if (!same_place(disk->where, where) || disk->number("busy_pct").value_or(0) < busy_pct) continue;
    // One that is busy writing holds up no loader.
    if (disk->number("read_bytes_per_s").value_or(0) < disk->number("write_bytes_per_s").value_or(0)) continue;
    if (most == nullptr || *disk->number("busy_pct") > *most->number("busy_pct")) most = disk;
  }
  return most;
}

void judge(const Fact& disk, const Fact& steps, const Fact* loader, double wait, FindingSink& out) {
  const double rate = disk.number("read_bytes_per_s").value_or(0);
  const double reads = disk.number("reads_per_s").value_or(0);
  const double size = disk.number("read_bytes").value_or(0);
  const bool by_count = size > 0 && size < kSmallReadBytes;
  Finding finding;
  finding.where = steps.where;
  finding.where.device = disk.where.device;
  finding.cause = format("Storage: disk {} is at its ceiling", disk.where.device);
  finding.severity = wait >= 30 ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "data_wait";
  finding.distance = -1;
  set_step_loss(steps, wait, finding);
  finding.evidence["busy_pct"] = disk.number("busy_pct").value_or(0);
  finding.evidence["read_bytes_per_s"] = rate;
  finding.evidence["reads_per_s"] = reads;
  finding.why.push_back(format("busy {} % of the time: {} MB/s, {} reads a second of {} kB, {} ms each",
                               figure(disk.number("busy_pct").value_or(0)), figure(rate / 1e6), figure(reads),
                               figure(size / 1e3), figure(disk.number("read_ms").value_or(0))));
  if (loader != nullptr) {
    const double wall = loader->number("batch_wall_ms").value_or(0);
    const auto cpu = loader->number("batch_cpu_ms");
    if (wall > 0 && cpu)
      finding.why.push_back(format("workers on CPU {} % of a batch's time", figure(100 * std::min(*cpu / wall, 1.0))));
  }
  finding.advice.push_back(
      {.change = by_count ? "pack small files into shards (tar, webdataset, parquet), read in order"
                          : "a faster disk, a copy in memory, or smaller files (compressed, resized once)",
       .note = "workers and prefetch won't help; its speed then is not measured"});
  finding.look_alikes_excluded.emplace_back("too few workers");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* parts : facts.all("breakdown.parts")) {
    const auto wait = parts->number("data_wait");
    if (!wait || *wait < params.number("wait_pct")) continue;
    const Fact* steps = fact_for(facts, "steps.summary", parts->where);
    const Fact* disk = busiest(facts, parts->where, params.number("busy_pct"));
    if (steps == nullptr || disk == nullptr) continue;
    // Workers that compute all the time do not wait for the disk, however busy it is.
    const Fact* loader = fact_for(facts, "loader.summary", parts->where);
    const auto wall = number_in(loader, "batch_wall_ms");
    const auto cpu = number_in(loader, "batch_cpu_ms");
    if (wall && cpu && *wall > 0 && *cpu / *wall > 0.7) continue;
    judge(*disk, *steps, loader, *wait, out);
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
        "wait "
        "for I/O. Busy is not the same as full for disks that do many things at once, so it is likely only.",
    .advice = "Fewer, larger reads, or a faster place.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
