// Every collector, sampled for real.
#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/format.h"
#include "cli/doctor/doctor.h"

namespace hotlap {
namespace {

constexpr std::int64_t kBetweenSamplesNs = 50 * kNsPerMs;
constexpr auto kBlockedAfter = std::chrono::seconds(3);

// Keeps the last value of every series, in its unit.
class ReadingSink final : public SampleSink {
 public:
  explicit ReadingSink(const CollectorSpec& spec) : spec_(spec) {}

  SeriesHandle series(std::uint16_t metric, std::string_view instance) override {
    HOTLAP_CHECK(metric < spec_.metrics.size());
    std::string name(spec_.metrics[metric].name);
    if (!instance.empty()) name += " " + std::string(instance);
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const Series& s) { return s.name == name; });
    const auto index = static_cast<std::uint32_t>(found - all_.begin());
    if (found == all_.end()) all_.push_back({std::move(name), spec_.metrics[metric].scale});
    return {index};
  }
  void add(SeriesHandle series, Value value) override {
    if (!series.valid()) return;
    const Series& known = all_[series.index];
    const std::optional<double> number = value.number();
    readings[known.name] = number ? Value::of(*number * known.scale) : value;
  }
  void event(EventKind, std::int64_t, std::string_view) override {}
  void attribute(std::string_view key, std::string_view text) override {
    texts.insert_or_assign(std::string(key), std::string(text));
  }
  void count_loss(std::string_view, std::uint64_t) override {}

  Readings readings;
  Texts texts;

 private:
  struct Series {
    std::string name;
    double scale;
  };
  const CollectorSpec& spec_;
  std::vector<Series> all_;
};

struct Sampled {
  bool is_absent = false;  // this machine has none of it
  std::string failure;     // of opening or sampling
  bool has_data = false;
  Readings readings;
  Texts texts;
};

Sampled sample(const Host& host, const CollectorSpec& spec, std::int32_t job_pid) {
  Sampled sampled;
  const auto fail = [&](const Error& error) {
    sampled.is_absent = error.code == ErrorCode::kUnsupported || error.code == ErrorCode::kNotFound;
    sampled.failure = error.message;
  };
  Result<std::unique_ptr<Collector>> collector = spec.open(host);
  if (!collector.ok()) {
    fail(collector.error());
    return sampled;
  }
  ReadingSink sink(spec);
  const JobProcess job{.pid = job_pid, .slot = "main"};
  for (std::uint64_t number = 0; number < 2; ++number) {
    if (number > 0) system_clock().sleep_until(system_clock().mono_ns() + kBetweenSamplesNs, -1);
    const TickInfo tick{.t_ns = system_clock().mono_ns(),
                        .number = number,
                        .job = {.root_pid = job.pid, .processes = std::span(&job, 1)}};
    const Result<Outcome> outcome = (*collector)->sample(tick, sink);
    if (!outcome.ok()) {
      fail(outcome.error());
      return sampled;
    }
    sampled.has_data = sampled.has_data || *outcome == Outcome::kSampled;
  }
  sampled.readings = std::move(sink.readings);
  sampled.texts = std::move(sink.texts);
  return sampled;
}

// What may block runs on a thread that is given up when it does: a call into a dead server cannot be ended.
bool sample_with_limit(const Host& host, const CollectorSpec& spec, std::int32_t job_pid, Sampled& sampled) {
  auto promise = std::make_shared<std::promise<Sampled>>();
  std::future<Sampled> future = promise->get_future();
  auto worker = std::make_unique<std::jthread>(
      [&host, &spec, job_pid, promise] { promise->set_value(sample(host, spec, job_pid)); });
  if (future.wait_for(kBlockedAfter) != std::future_status::ready) {
    (void)worker.release();  // still in the kernel: it ends with the process
    return false;
  }
  sampled = future.get();
  return true;
}

std::string missing_text(const Readings& readings, bool& lacks_permission) {
  std::map<MissingReason, std::size_t> reasons;
  for (const auto& [name, value] : readings) {
    if (value.is_missing()) ++reasons[value.reason()];
  }
  lacks_permission = reasons.contains(MissingReason::kNoPermission);
  std::string text;
  for (const auto& [reason, count] : reasons) text += format("; {} {}", count, to_string(reason));
  return text;
}

Check describe(const CollectorSpec& spec, const Sampled& sampled) {
  Check check{.area = "collectors", .name = std::string(spec.name), .health = Health::kGood, .text = {}, .mend = {}};
  if (!sampled.failure.empty()) {
    check.health = sampled.is_absent ? Health::kAbsent : Health::kWarning;
    check.text = sampled.failure;
    return check;
  }
  if (!sampled.has_data) {
    check.health = Health::kAbsent;
    check.text = "nothing to say here now";
    return check;
  }
  bool lacks_permission = false;
  const std::string missing = missing_text(sampled.readings, lacks_permission);
  check.text = format("{} series{}", sampled.readings.size(), missing);
  if (lacks_permission) {
    check.health = Health::kWarning;
    check.mend = "record as the user that runs the job, or as root";
  }
  return check;
}

}  // namespace

Readings check_collectors(const Host& host, std::span<const CollectorSpec* const> collectors, std::int32_t job_pid,
                          Checks& out, Texts& texts) {
  // Without these there is no recording worth its name.
  constexpr std::array<std::string_view, 3> kNeeded{"cpu", "memory", "process"};
  Readings readings;
  for (const CollectorSpec* spec : collectors) {
    Sampled sampled;
    if (spec->lane == Lane::kFast) {
      sampled = sample(host, *spec, job_pid);
    } else if (!sample_with_limit(host, *spec, job_pid, sampled)) {
      out.push_back({.area = "collectors",
                     .name = std::string(spec->name),
                     .health = Health::kWarning,
                     .text = "does not answer: a file system or device of this machine hangs",
                     .mend = "find it with: timeout 5 df -a"});
      continue;
    }
    Check check = describe(*spec, sampled);
    const bool is_needed = std::find(kNeeded.begin(), kNeeded.end(), spec->name) != kNeeded.end();
    if (is_needed && !sampled.failure.empty()) check.health = Health::kBroken;
    out.push_back(std::move(check));
    readings.merge(sampled.readings);
    texts.merge(sampled.texts);
  }
  return readings;
}

}  // namespace hotlap
