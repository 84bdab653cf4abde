#include "rules/unknown_loader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rules/fact_number.h"
#include "rules/framework_words.h"
#include "rules/gpu_findings.h"
#include "rules/step_findings.h"
#include "rules/step_period.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr double kCoresFullPct = 90;
constexpr double kCoresIdlePct = 60;
constexpr double kJobShare = 0.75;  // of the usable cores
constexpr double kCoreHotPct = 85;
constexpr double kNextCoreCoolPct = 50;
constexpr double kCoresPerGpu = 4;  // a rule of thumb for image decoding
constexpr double kModelError = 0.25;

// "s3://bucket/train" and alike: objects that are fetched over the network.
bool is_remote(std::string_view data) {
  constexpr std::array kSchemes{std::string_view{"s3://"},   std::string_view{"gs://"},    std::string_view{"gcs://"},
                                std::string_view{"abfs://"}, std::string_view{"abfss://"}, std::string_view{"az://"},
                                std::string_view{"http://"}, std::string_view{"https://"}, std::string_view{"hdfs://"},
                                std::string_view{"s3a://"},  std::string_view{"oss://"}};
  return std::ranges::any_of(kSchemes, [&](std::string_view scheme) { return data.starts_with(scheme); });
}

bool describe_remote(const FactTable& facts, Finding& finding) {
  const Fact* told = facts.find("job.told");
  const std::string data = told == nullptr ? "" : told->text("data").value_or("");
  if (!is_remote(data)) return false;
  finding.cause = "Training waits for data that is fetched over the network";
  finding.why.push_back(format("the data lies at {}", data));
  for (const Fact* network : facts.all("ceilings.network")) {
    const auto mean = network->number("receive_bytes_per_s");
    const auto p95 = network->number("receive_p95_bytes_per_s");
    if (!mean || !p95 || *p95 < 1e6) continue;
    finding.why.push_back(format("{} receives {} MB/s, {} at most: {}", network->where.device, figure(*mean / 1e6),
                                 figure(*p95 / 1e6),
                                 network->number("receive_flat_pct").value_or(0) >= 60 ? "flat" : "in bursts"));
    break;
  }
  finding.advice.push_back({.change =
                                "copy it to a local disk first, or stream it in large pieces (SageMaker: FastFile "
                                "or Pipe mode; WebDataset, tf.data with prefetch)",
                            .note = "many small objects cost a round trip each: pack them into shards"});
  return true;
}

bool describe_full_cores(const FactTable& facts, const Where& where, Finding& finding) {
  const Fact* cores = fact_for(facts, "core_use.summary", where);
  const auto busy = number_in(cores, "busy_pct");
  const auto usable = number_in(cores, "usable_cores");
  if (!busy || !usable || *busy < kCoresFullPct) return false;
  // Where the job's processes were seen it must be they that fill the cores.
  if (const auto job = number_in(cores, "job_cores"); job && *job < kJobShare * *usable) return false;
  finding.cause = "All cores full: more loader workers will NOT help";
  std::string words = format("{} cores at {} %", cores_figure(*usable), figure(*busy));
  if (const auto runnable = number_in(cores, "runnable")) words += format(", {} runnable", figure(*runnable));
  finding.why.push_back(std::move(words));
  const std::size_t gpus = job_gpus(facts, "gpu.use").size();
  double wanted = 2 * *usable;
  if (gpus > 0) {
    finding.why.push_back(format("{} for {}: {} each", counted(std::lround(*usable), "core"),
                                 counted(static_cast<long>(gpus), "GPU"),
                                 cores_figure(*usable / static_cast<double>(gpus))));
    wanted = std::max(wanted, kCoresPerGpu * static_cast<double>(gpus));
  }
  finding.advice.push_back({.change = "cheaper transforms (smaller images, decoded once, on the GPU)", .note = {}});
  // The machine has more; it is the container that may not use them.
  const auto quota = number_in(cores, "quota_cores");
  const auto host = number_in(cores, "host_cores");
  const bool is_quota = quota && host && *quota <= *usable + 0.01 && *quota < *host - 0.01;
  if (is_quota) {
    std::string why =
        format("its CPU quota is {} of the machine's {} cores", cores_figure(*quota), cores_figure(*host));
    if (const auto throttled = number_in(cores, "throttled_pct"))
      why += format(", throttled in {} % of its periods", figure(*throttled));
    finding.why.push_back(std::move(why));
    wanted = std::min(wanted, *host);
  }
  finding.advice.push_back({.change = is_quota
                                          ? format("a CPU limit of the container of {} cores or more (docker --cpus, "
                                                   "resources.limits.cpu)",
                                                   cores_figure(wanted))
                                          : format("a machine with {} cores or more{}", cores_figure(wanted),
                                                   gpus > 0 ? " for these GPUs" : ""),
                            .note = "what a batch costs was not measured"});
  finding.limits.emplace_back("more workers (no core is left for them)");
  return true;
}

bool describe_hot_core(const FactTable& facts, const Where& where, Finding& finding) {
  const Fact* cores = fact_for(facts, "core_use.summary", where);
  const auto busy = number_in(cores, "busy_pct");
  const auto hottest = number_in(cores, "hottest_core_pct");
  const auto next = number_in(cores, "next_core_pct");
  if (!busy || !hottest || *busy > kCoresIdlePct || *hottest < kCoreHotPct) return false;
  if (next && *next > kNextCoreCoolPct) return false;
  finding.cause = "Data is prepared on one core";
  finding.why.push_back(format("{} at {} %, all together at {} %", cores->text("hottest_core").value_or("one core"),
                               figure(*hottest), figure(*busy)));
  finding.advice.push_back({.change = "loader workers (num_workers > 0), so that other cores prepare batches too",
                            .note = "how many would do is not known"});
  return true;
}

// One batch a step: what all workers together give, since all of them are waited for.
bool describe_few_workers(const FactTable& facts, const Where& where, const UnknownLoad& load, Finding& finding) {
  const auto workers = loader_workers(facts, where);
  const Fact* cores = fact_for(facts, "core_use.summary", where);
  const auto busy = number_in(cores, "busy_pct");
  const auto usable = number_in(cores, "usable_cores");
  const double compute_ms = load.step_ms - load.wait_ms;
  if (!workers || *workers < 1 || compute_ms <= 0 || (busy && *busy > kCoresIdlePct)) return false;
  const double batch_ms = *workers * load.step_ms;
  const double wanted = std::ceil(batch_ms / compute_ms);
  if (usable && wanted > *usable) return false;
  finding.cause = "Loader too slow, too few workers";
  finding.why.push_back(format("{} give a batch per {} ms, the step itself needs {} ms",
                               counted(std::lround(*workers), "worker"), figure(load.step_ms), figure(compute_ms)));
  if (busy && usable) {
    finding.why.push_back(
        format("{} of {} cores idle", cores_figure(*usable * (1 - *busy / 100)), cores_figure(*usable)));
  }
  finding.advice.push_back(
      {.change = format("{} (now {})", workers_change(facts, std::lround(wanted)), count_figure(*workers)),
       .step_ms_low = compute_ms * (1 - 0.2 * kModelError),
       .step_ms_high = std::min(load.step_ms, compute_ms * (1 + kModelError)),
       .basis = Basis::kModel,
       .note = "if workers wait for a core and not for storage; what a batch costs was not measured"});
  return true;
}

// Nobody handed a batch over: it may be loading, logging or anything else.
void describe_gap(const FactTable& facts, const Where& where, const UnknownLoad& load, Finding& finding) {
  constexpr double kReadsPerS = 1e6;
  finding.cause = "Unknown code before each forward pass";
  finding.loss = format("{} % of each step", figure(100 * load.wait_ms / load.step_ms));
  finding.certainty = Certainty::kPossible;
  finding.why.push_back(format("{} of {} ms pass there; no loader was seen: one of your own, or other code",
                               figure(load.wait_ms), figure(load.step_ms)));
  const Fact* storage = fact_for(facts, "storage.summary", where);
  if (const auto rate = number_in(storage, "read_storage_bytes_per_s"); rate && *rate >= kReadsPerS) {
    finding.certainty = Certainty::kLikely;
    finding.why.push_back(format("{} MB/s are read from storage", figure(*rate / 1e6)));
  }
  const Fact* steps = fact_for(facts, "steps.summary", where);
  const Fact* process = steps == nullptr ? nullptr : process_of(facts, *steps);
  if (const auto cores = number_in(process, "main_thread_cores")) {
    finding.why.push_back(format("its thread is on a core {} % of the time", figure(100 * std::min(*cores, 1.0))));
  }
  finding.advice.push_back({.change = "see which code it is: hotlap run --profile functions=20hz", .note = {}});
  finding.advice.push_back({.change = "if it makes batches: do so in the background", .note = {}});
  finding.limits.emplace_back("which code it is");
}

}  // namespace

void describe_unknown_loader(const FactTable& facts, const Where& where, const UnknownLoad& load, Finding& finding) {
  if (load.is_gap && !describe_remote(facts, finding)) return describe_gap(facts, where, load, finding);
  if (load.is_gap) return;
  finding.cause = load.has_loader ? "Training waits for data" : "Time passes before each forward pass";
  finding.certainty = load.has_loader ? Certainty::kLikely : Certainty::kPossible;
  finding.why.push_back(load.has_loader
                            ? format("{} of {} ms wait for data; what a batch costs its loader was not seen",
                                     figure(load.wait_ms), figure(load.step_ms))
                            : format("{} of {} ms pass before the forward pass begins; no loader was seen: it is "
                                     "loading, or other code there",
                                     figure(load.wait_ms), figure(load.step_ms)));
  const std::string period = worker_period_words(facts, where);
  if (!period.empty()) finding.why.push_back(period);
  const bool is_described = describe_remote(facts, finding) || describe_full_cores(facts, where, finding) ||
                            (period.empty() && describe_few_workers(facts, where, load, finding)) ||
                            describe_hot_core(facts, where, finding);
  if (is_described) return;
  finding.advice.push_back({.change = "load and prepare batches in the background, ahead of the step",
                            .note = "what a batch costs is not known"});
  finding.limits.emplace_back("how many workers would do is not known");
}

}  // namespace hotlap
