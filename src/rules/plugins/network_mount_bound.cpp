// Training waits for data that comes over a network mount which gives no more.
#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/link_ceiling.h"
#include "rules/mount_kinds.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"breakdown.parts"}, std::string_view{"steps.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "wait_pct",
              .default_text = "3",
              .min = 0.1,
              .max = 100,
              .unit = "%",
              .help = "share of step time spent waiting for data from which on the rule speaks"},
    ParamDesc{.name = "link_pct",
              .default_text = "80",
              .min = 10,
              .max = 100,
              .unit = "%",
              .help = "of the link's speed from which on it is full"},
    ParamDesc{.name = "flat_pct",
              .default_text = "60",
              .min = 10,
              .max = 100,
              .unit = "%",
              .help = "share of time near the highest rate from which on that is a ceiling"},
    ParamDesc{.name = "read_ms",
              .default_text = "20",
              .min = 0.1,
              .max = 1e5,
              .unit = "ms",
              .help = "time of one read from which on the mount is slow to answer"},
};
constexpr double kLeastBytesPerS = 1e6;

struct Ceiling {
  std::string words;
  bool is_link = false;
};

// A steady job reads at a steady rate: that is a ceiling only where somebody waits for the reads, and not where the
// cores are what is full.
bool is_awaited(const FactTable& facts, const Fact& mount) {
  constexpr double kInFlightMin = 0.5;  // reads, mean
  constexpr double kCoresFullPct = 95;
  const auto reads = mount.number("reads_per_s");
  const auto read_ms = mount.number("read_ms");
  if (reads && read_ms && *reads * *read_ms / 1e3 < kInFlightMin) return false;
  return number_in(fact_for(facts, "core_use.summary", mount.where), "busy_pct").value_or(0) < kCoresFullPct;
}

// Where the limit is: the link, the mount's own ceiling, or how long one read takes.
std::optional<Ceiling> ceiling_of(const FactTable& facts, const std::string& mount, const Where& where,
                                  const Params& params) {
  if (const auto link = full_link(facts, where, params.number("link_pct"), params.number("flat_pct"));
      link && link->is_receive && link->speed != LinkSpeed::kGuessed) {
    return Ceiling{link_words(*link), true};
  }
  for (const Fact* one : facts.all("ceilings.mount")) {
    if (one->text("mount") != mount || !same_place(one->where, where) || !is_awaited(facts, *one)) continue;
    const double p95 = one->number("read_p95_bytes_per_s").value_or(0);
    const auto read_ms = one->number("read_ms");
    if (p95 >= kLeastBytesPerS && one->number("read_flat_pct").value_or(0) >= params.number("flat_pct"))
      return Ceiling{format("reads flat at {} MB/s", figure(p95 / 1e6)) +
                     (read_ms ? format(", {} ms each", figure(*read_ms)) : "")};
    if (read_ms && *read_ms >= params.number("read_ms"))
      return Ceiling{
          format("{} ms for one read, {} a second", figure(*read_ms), figure(one->number("reads_per_s").value_or(0)))};
  }
  // Of other network file systems only the interfaces tell.
  const auto is_told = [&](const Fact* one) { return one->text("mount") == mount && same_place(one->where, where); };
  if (std::ranges::any_of(facts.all("ceilings.mount"), is_told)) return std::nullopt;
  for (const Fact* network : facts.all("ceilings.network")) {
    const double p95 = network->number("receive_p95_bytes_per_s").value_or(0);
    if (p95 < 10 * kLeastBytesPerS || !same_place(network->where, where)) continue;
    if (network->number("receive_flat_pct").value_or(0) >= params.number("flat_pct"))
      return Ceiling{format("{} receives, flat at {} MB/s", network->where.device, figure(p95 / 1e6))};
  }
  return std::nullopt;
}

// Where the data lies, and how that is known.
struct DataMount {
  std::string mount;
  std::string type;
  bool is_told = false;  // in meta.json: nobody saw which files are read
};

std::optional<DataMount> mount_of(const FactTable& facts, const Where& where) {
  if (const Fact* storage = fact_for(facts, "storage.summary", where)) {
    const auto mount = storage->text("data_mount");
    if (mount) return DataMount{*mount, storage->text("data_mount_type").value_or(""), false};
  }
  // A network mount from which much is read is where the data lies.
  const Fact* most = nullptr;
  for (const Fact* one : facts.all("ceilings.mount")) {
    if (!same_place(one->where, where) || one->number("read_bytes_per_s").value_or(0) < kLeastBytesPerS) continue;
    if (most == nullptr || *one->number("read_bytes_per_s") > *most->number("read_bytes_per_s")) most = one;
  }
  if (most != nullptr) return DataMount{most->text("mount").value_or("?"), most->text("type").value_or("nfs"), false};
  const Fact* told = facts.find("job.told");
  if (told == nullptr || !told->text("mount")) return std::nullopt;
  return DataMount{told->text("data").value_or("the data"), *told->text("mount"), true};
}

Finding head(const Fact& steps, double wait, std::string cause) {
  Finding finding;
  finding.where = steps.where;
  finding.cause = std::move(cause);
  finding.severity = wait >= 30 ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "data_wait";
  finding.distance = -2;
  set_step_loss(steps, wait, finding);
  finding.advice.push_back(
      {.change = "copy the data once to a local disk",
       .note = "workers and prefetch won't help; whether there is room, and its speed, was not looked at"});
  finding.look_alikes_excluded.emplace_back("too few workers");
  return finding;
}

// Nobody saw where the data lies: a link that is full of what is received, beside local disks that are idle.
std::optional<Finding> by_link(const FactTable& facts, const Fact& steps, double wait, const Params& params) {
  const auto link = full_link(facts, steps.where, params.number("link_pct"), params.number("flat_pct"));
  if (!link || !link->is_receive || link->is_both) return std::nullopt;
  if (!are_disks_idle(facts, steps.where, link->rate_bytes_per_s)) return std::nullopt;
  Finding finding =
      head(steps, wait, format("Storage: the data comes over {}, which is full", link->network->where.device));
  finding.why.push_back(link_words(*link));
  finding.why.emplace_back("local disks are idle, and little is sent");
  if (const auto waiting = number_in(fact_for(facts, "core_use.summary", steps.where), "iowait_cores");
      waiting && *waiting >= 0.2) {
    finding.why.push_back(format("{} cores wait for I/O", figure(*waiting)));
  }
  finding.limits.emplace_back("which mount it is: open files were not seen");
  return finding;
}

void add_workers(const Fact* loader, Finding& finding) {
  const auto wall = number_in(loader, "batch_wall_ms");
  const auto cpu = number_in(loader, "batch_cpu_ms");
  if (wall && cpu && *wall > 0)
    finding.why.push_back(format("workers on CPU {} % of a batch's time", figure(100 * std::min(*cpu / *wall, 1.0))));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* parts : facts.all("breakdown.parts")) {
    const auto wait = parts->number("data_wait");
    if (!wait || *wait < params.number("wait_pct")) continue;
    const Fact* steps = fact_for(facts, "steps.summary", parts->where);
    if (steps == nullptr) continue;
    const Fact* loader = fact_for(facts, "loader.summary", parts->where);
    const auto wall = number_in(loader, "batch_wall_ms");
    const auto cpu = number_in(loader, "batch_cpu_ms");
    if (wall && cpu && *wall > 0 && *cpu / *wall > 0.7) continue;  // workers that compute do not wait for it
    const auto data = mount_of(facts, parts->where);
    if (!data) {
      if (auto finding = by_link(facts, *steps, *wait, params)) {
        out.add(std::move(*finding));
        return {};
      }
      continue;
    }
    if (!is_network_mount(data->type)) continue;
    const auto ceiling = ceiling_of(facts, data->mount, parts->where, params);
    if (!ceiling) continue;
    Finding finding = head(*steps, *wait, format("Storage: {} ({}) is at its ceiling", data->mount, data->type));
    finding.certainty = ceiling->is_link && !data->is_told ? Certainty::kCertain : Certainty::kLikely;
    finding.why.push_back(ceiling->words);
    const auto bytes = number_in(fact_for(facts, "storage.summary", parts->where), "read_bytes_per_step");
    if (bytes) finding.why.push_back(format("{} MB a step", figure(*bytes / 1e6)));
    add_workers(loader, finding);
    out.add(std::move(finding));
    return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_network_mount_bound{
    .id = "NetworkMountBound",
    .title = "Training waits for data over a network mount that gives no more",
    .why =
        "Speaks when the data lies on a network file system, workers wait for I/O, and the link is full, the mount's "
        "rate is flat, or one read takes long. Where nobody saw which files are read: a link that is full of what is "
        "received, beside local disks that are idle. Certain about the link, likely about the rest.",
    .advice = "A local copy.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
