#pragma once
// What `hotlap doctor` looks at. Each part adds its checks; nothing here changes the machine but for files of its own
// that go again.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "collect/collector.h"
#include "model/value.h"

namespace hotlap {

enum class Health : std::uint8_t {
  kGood,
  kNote,     // worth knowing, nothing to mend
  kAbsent,   // this machine has none of it
  kWarning,  // recorded less, or less well, than it could be
  kBroken,   // something needed does not work: exit code 1
};
std::string_view to_string(Health health);

struct Check {
  std::string_view area;  // "machine", "GPUs", "collectors", "home", "clocks", "observers", "python"
  std::string name;
  Health health = Health::kGood;
  std::string text;
  std::string mend;  // the line that mends it, or says what to do; empty: nothing to do
};
using Checks = std::vector<Check>;

// Values of the collectors' last sample in the metrics' units, by metric and instance ("load.1min", "disk.reads sda").
using Readings = std::map<std::string, Value>;

// What the collectors' devices are, in words, by the recording's attributes ("gpu0.name").
using Texts = std::map<std::string, std::string>;

// Samples every collector of `collectors` twice, one that may block with a time limit. `job_pid` stands for the job.
// `host` must outlive the process where a collector hangs.
Readings check_collectors(const Host& host, std::span<const CollectorSpec* const> collectors, std::int32_t job_pid,
                          Checks& out, Texts& texts);
// Cores, memory, limits, container, scheduler, permissions. `environment` as in environ.
void check_machine(const Host& host, const Readings& readings, const char* const* environment, Checks& out);
// Each GPU, its driver, what of it cannot be recorded. `collectors` is what check_collectors() found.
void check_gpus(const Host& host, const Readings& readings, const Texts& texts, const Checks& collectors,
                const char* const* environment, Checks& out);
void check_clocks(const Host& host, Checks& out);
// Where runs are kept: kind of file system, space, permissions, and a recording written and read back.
void check_home(const Host& host, Checks& out);
// Which native observers a job could carry. Loads their libraries. `environment` as in environ.
void check_observers(const char* const* environment, Checks& out);
// `python` empty: python3 on PATH. Runs it with the hook and looks for what it recorded.
void check_python(const std::string& python, const char* const* environment, Checks& out);

}  // namespace hotlap
