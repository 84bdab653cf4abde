// What the kernel's log says of the machine: kills for want of memory, programs that crashed, mounts that did not
// answer, hardware that reports errors. Errors of GPUs are facts of gpu_limits.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "analysis/node_analyzer.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/log_message.h"

namespace hotlap {
namespace {

constexpr FactField kAt{"at_s", "s", "when the first came, on the recording's clock"};
constexpr FactField kBoot{"boot_s", "s", "the same since the machine was started, where that is all that is known"};
constexpr std::array kLogFields{
    FactField{"lines", "{line}", "that were read"},
    FactField{"earlier", "{event}", "things it says of more than ten minutes before the first step or after the last"},
};
constexpr std::array kKillFields{
    FactField{"pid", "1", "of the process"},
    FactField{"count", "1", "processes of this name that were killed"},
    FactField{"rss_bytes", "By", "that the first one held"},
    FactField{"limit_bytes", "By", "of its control group, where that ran out"},
    FactField{"by", "text", "group: its control group was full; host: the machine"},
    FactField{"group", "text", "the control group"},
    kAt,
    kBoot,
};
constexpr std::array kCrashFields{
    FactField{"pid", "1", "of the process"},
    FactField{"count", "1", "processes of this name that crashed"},
    FactField{"fault", "text", "segfault, protection, instruction or division"},
    FactField{"module", "text", "the library in which it was"},
    kAt,
    kBoot,
};
constexpr std::array kMountFields{
    FactField{"kind", "text", "NFS, Lustre, CIFS"},
    FactField{"server", "text", ""},
    FactField{"count", "1", "times that it did not answer"},
    FactField{"stuck_s", "s", "time until it did again, all together; what is still open is left out"},
    FactField{"open", "1", "1: the log ends before it answers"},
    FactField{"step_s", "s", "time by which steps that fell into it are longer than the typical one"},
    FactField{"hung", "{process}", "processes that the kernel saw waiting for minutes"},
    kAt,
    kBoot,
};
constexpr std::array kHardwareFields{
    FactField{"what", "text", "disk_error, hot, memory_error or machine_check"},
    FactField{"count", "1", "messages"},
    FactField{"devices", "{device}", "that report it"},
    FactField{"grave", "1", "1: it could not be corrected"},
    kAt,
    kBoot,
};
constexpr std::array kSchemas{
    FactSchema{"kernel.log", "a kernel's log that was read", kLogFields},
    FactSchema{"kernel.kill", "processes that the kernel killed for want of memory", kKillFields},
    FactSchema{"kernel.crash", "processes that died of a fault of their own", kCrashFields},
    FactSchema{"kernel.mount", "a server of files that did not answer", kMountFields},
    FactSchema{"kernel.hardware", "hardware that reports errors or heat", kHardwareFields},
};
constexpr std::size_t kEntriesMax = 256;
constexpr std::size_t kLongStepsMax = 64;
constexpr std::int64_t kNearNs = 600 * kNsPerS;  // of the steps
constexpr std::int64_t kUnixNs = 1'000'000'000 * kNsPerS;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

std::optional<double> word_number(const Event& event, std::string_view key) {
  return parse_f64(message_word(event.text, key));
}
bool is_placed(const Event& event) { return message_word(event.text, "boot_s").empty(); }

class KernelLogAnalyzer final : public NodeAnalyzer<KernelLogAnalyzer> {
 public:
  explicit KernelLogAnalyzer(const RunDescription& run) : NodeAnalyzer(run), recording_(run.recording) {}

  void on_event(const Event& event) override {
    if (!is_note_of(event, kKernelNote) || events_.size() >= kEventsMax) return;
    events_.push_back(event);
  }

  // The longest ones are those in which something stood still, the time to the next one included.
  void on_step(const Step& given) override {
    Step step = given;
    const auto [last_end_ns, is_new] = last_ends_ns_.try_emplace(step.process, step.start_ns);
    const std::int64_t gap_ns = std::max<std::int64_t>(step.start_ns - last_end_ns->second, 0);
    last_end_ns->second = step.start_ns + step.duration_ns;
    step.start_ns -= gap_ns;
    step.duration_ns += gap_ns;
    const auto is_longer = [](const Step& a, const Step& b) { return a.duration_ns > b.duration_ns; };
    if (long_steps_.size() == kLongStepsMax && !is_longer(step, long_steps_.back())) return;
    long_steps_.insert(std::ranges::upper_bound(long_steps_, step, is_longer), step);
    if (long_steps_.size() > kLongStepsMax) long_steps_.pop_back();
  }

  std::int64_t seen_ns() const { return static_cast<std::int64_t>(events_.size()); }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const auto lines = attribute("kernel.lines");
    if (!lines && events_.empty()) return;
    Fact log{.kind = "kernel.log"};
    log.where.node = node;
    log.set("lines", lines);
    std::vector<const Event*> near;
    for (const Event& event : events_) {
      if (is_near(event)) near.push_back(&event);
    }
    log.set("earlier", static_cast<double>(events_.size() - near.size()));
    out.add(std::move(log));
    add_deaths("oom_kill", near, node, out);
    add_deaths("crash", near, node, out);
    add_mounts(near, node, out);
    for (const std::string_view what : {"disk_error", "hot", "memory_error", "machine_check"})
      add_hardware(what, near, node, out);
  }

 private:
  static constexpr std::size_t kEventsMax = 20'000;

  std::optional<double> attribute(const std::string& key) const {
    if (recording_ == nullptr) return std::nullopt;
    const auto found = recording_->attributes.find(key);
    return found == recording_->attributes.end() ? std::nullopt : parse_f64(found->second);
  }

  // Of the time of the job, where both are on Unix time; a kernel's log may reach back for weeks.
  bool is_near(const Event& event) const {
    const auto entries = table_->entries();
    if (entries.empty() || !is_placed(event) || event.t_ns < kUnixNs) return true;
    const StepStatistics& steps = *entries.front().steps;
    if (steps.begin_ns() < kUnixNs) return true;
    return event.t_ns >= steps.begin_ns() - kNearNs && event.t_ns <= steps.end_ns() + kNearNs;
  }

  static void set_time(const Event& event, Fact& fact) {
    if (is_placed(event)) {
      fact.set("at_s", seconds(event.t_ns));
    } else {
      fact.set("boot_s", word_number(event, "boot_s"));
    }
  }

  // Killed or crashed, by the name of the program.
  static void add_deaths(std::string_view what, const std::vector<const Event*>& events, const std::string& node,
                         FactTable& out) {
    const bool is_kill = what == "oom_kill";
    std::map<std::string, Fact> by_name;
    for (const Event* event : events) {
      if (message_word(event->text, "what") != what) continue;
      const std::string name(message_word(event->text, "process"));
      if (by_name.size() >= kEntriesMax && !by_name.contains(name)) continue;
      Fact& fact = by_name[name];
      if (const auto count = fact.number("count")) {
        fact.set("count", *count + 1);
        continue;
      }
      fact.kind = is_kill ? "kernel.kill" : "kernel.crash";
      fact.where.node = node;
      fact.where.process = name;
      fact.set("count", 1).set("pid", word_number(*event, "pid"));
      fact.set("rss_bytes", word_number(*event, "rss")).set("limit_bytes", word_number(*event, "limit"));
      for (const std::string_view key : {"by", "group", "fault", "module"}) {
        if (const std::string_view text = message_word(event->text, key); !text.empty())
          fact.set_text(key, std::string(text));
      }
      set_time(*event, fact);
    }
    for (auto& [name, fact] : by_name) out.add(std::move(fact));
  }

  struct Mount {
    Fact fact{.kind = "kernel.mount"};
    const Event* stuck = nullptr;
    double count = 0;
    double stuck_s = 0;
    double step_s = 0;
  };

  // A server says once for each request that it does not answer: what counts is from the first to its answer.
  void add_mounts(const std::vector<const Event*>& events, const std::string& node, FactTable& out) const {
    std::map<std::string, Mount> by_server;
    double hung = 0;
    for (const Event* event : events) {
      const std::string_view what = message_word(event->text, "what");
      if (what == "hung") hung += 1;
      const bool is_stuck = what == "mount_stuck";
      if (!is_stuck && what != "mount_back") continue;
      const std::string server(message_word(event->text, "server"));
      if (!by_server.contains(server) && (!is_stuck || by_server.size() >= kEntriesMax)) continue;
      Mount& mount = by_server[server];
      if (is_stuck && mount.stuck == nullptr) {
        if (mount.count == 0) {
          set_time(*event, mount.fact);
          mount.fact.set_text("kind", std::string(message_word(event->text, "kind"))).set_text("server", server);
        }
        mount.count += 1;
        mount.stuck = event;
      } else if (!is_stuck && mount.stuck != nullptr) {
        mount.stuck_s += std::max(0.0, seconds(event->t_ns - mount.stuck->t_ns));
        mount.step_s += longer_steps_s(mount.stuck->t_ns, event->t_ns);
        mount.stuck = nullptr;
      }
    }
    for (auto& [server, mount] : by_server) {
      mount.fact.where.node = node;
      mount.fact.set("count", mount.count).set("stuck_s", mount.stuck_s).set("open", mount.stuck == nullptr ? 0 : 1);
      if (mount.step_s > 0) mount.fact.set("step_s", mount.step_s);
      if (hung > 0) mount.fact.set("hung", hung);
      out.add(std::move(mount.fact));
    }
  }

  // Of the steps at least half of whose extra time, or of the stall, lies in the other.
  double longer_steps_s(std::int64_t from_ns, std::int64_t to_ns) const {
    const auto entries = table_->entries();
    if (entries.empty() || to_ns <= from_ns) return 0;
    const double typical_ns = entries.front().steps->steady().durations_ns.quantile(0.5).value_or(0);
    double sum_ns = 0;
    for (const Step& step : long_steps_) {
      if (step.rank != entries.front().steps->rank()) continue;  // the others wait in the same step
      const std::int64_t end_ns = step.start_ns + step.duration_ns;
      const auto shared = static_cast<double>(std::min(end_ns, to_ns) - std::max(step.start_ns, from_ns));
      const double extra_ns = static_cast<double>(step.duration_ns) - typical_ns;
      if (extra_ns <= typical_ns || shared < 0.5 * std::min(extra_ns, static_cast<double>(to_ns - from_ns))) continue;
      sum_ns += std::min(extra_ns, 1.2 * static_cast<double>(to_ns - from_ns));
    }
    return sum_ns / static_cast<double>(kNsPerS);
  }

  static void add_hardware(std::string_view what, const std::vector<const Event*>& events, const std::string& node,
                           FactTable& out) {
    Fact fact{.kind = "kernel.hardware"};
    fact.where.node = node;
    std::map<std::string, int> devices;
    double count = 0;
    bool is_grave = false;
    for (const Event* event : events) {
      if (message_word(event->text, "what") != what) continue;
      if (count == 0) set_time(*event, fact);
      count += 1;
      is_grave = is_grave || message_word(event->text, "grave") == "1";
      const std::string device(message_word(event->text, "device"));
      if (!device.empty() && devices.size() < kEntriesMax) ++devices[device];
    }
    if (count == 0) return;
    const auto worst = std::ranges::max_element(devices, {}, [](const auto& one) { return one.second; });
    if (worst != devices.end()) fact.where.device = worst->first;
    fact.set_text("what", std::string(what));
    fact.set("count", count).set("devices", static_cast<double>(devices.size())).set("grave", is_grave ? 1 : 0);
    out.add(std::move(fact));
  }

  const RecordingInfo* recording_;
  std::vector<Event> events_;
  std::vector<Step> long_steps_;                        // the longest first
  std::map<std::uint32_t, std::int64_t> last_ends_ns_;  // by process
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<KernelLogAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_kernel_log{
    .id = "kernel_log",
    .summary = "What the kernel's log says: kills, crashes, mounts that did not answer, errors of hardware.",
    .produces = kSchemas,
    .metrics = {},
    .spans = {},
    .open = open};

}  // namespace hotlap
