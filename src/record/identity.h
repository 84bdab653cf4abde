#pragma once
// Who and where: ids, the node's name, what a launcher says about this process, what "the same script" means.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "model/run.h"

namespace hotlap {

std::string new_ulid(const Clock& clock);

// FNV-1a, on from `hash`: tells versions and keys apart; no protection against anybody.
std::uint64_t hash_on(std::uint64_t hash, std::string_view text);
inline constexpr std::uint64_t kHashStart = 0xCBF29CE484222325U;

// HOTLAP_NODE, else the launcher's name of the node, else the machine's cloud id, else what the file "node" of the home
// says, else its host name.
std::string node_name(const Host& host);
// Makes that file, so that a machine that is renamed (DHCP, a container's next start) stays the same node. Not on a
// network file system, where several nodes may share the home. Thread: any; an error costs the file only.
void remember_node_name(const Host& host, const std::filesystem::path& home);
std::string boot_id(const Host& host);

// Notes `pid` as the run's job.
void note_job(const Host& host, std::int32_t pid, RunInfo& info);
// Whether the job of a run of this node still lives: that very process, not another of the same number.
bool is_job_alive(const Host& host, const RunInfo& info);
// cpu.model, cpu.count, memory.bytes, kernel: what a reader wants to know of the machine.
std::map<std::string, std::string> host_facts(const Host& host);

// Variables by name; for tests and for the environment of this process.
class EnvironmentView {
 public:
  explicit EnvironmentView(const char* const* entries) : entries_(entries) {}
  // Empty when it is not set.
  std::string_view get(std::string_view name) const;

 private:
  const char* const* entries_;
};

struct LauncherPlace {
  std::string launcher;  // "torchrun", "slurm", "openmpi" …; empty: none
  std::int32_t rank = -1;
  std::int32_t local_rank = -1;
  std::int32_t world_size = -1;
  std::int32_t attempt = 1;
  std::map<std::string, std::string> join_keys;  // recordings with equal ones belong to one run
  // Equal for all processes of this job on this node; empty when the launcher tells nothing that would do.
  std::string election_key;

  // Several processes of this job may each have been started under `hotlap run`.
  bool is_one_of_many() const { return rank >= 0 && world_size > 1 && !election_key.empty(); }
};
LauncherPlace launcher_place(const EnvironmentView& environment);

// The program that a command line runs, as a human names it: "/home/me/train.py", "-m torch.distributed.run".
std::string script_of(std::span<const std::string> command, std::string_view working_directory);
// Its short form for run names: "train.py".
std::string short_name_of(std::string_view script);

}  // namespace hotlap
