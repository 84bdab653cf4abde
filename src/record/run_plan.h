#pragma once
// What `hotlap run` decides before it starts the job: where to record, under which id, with or without the hook.
// Nothing here may keep the job from starting: what fails is a reason that is told, and the run goes on with less.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/run.h"
#include "record/identity.h"
#include "record/job_environment.h"
#include "record/observers.h"
#include "record/runtime_folder.h"
#include "store/run_folder.h"

namespace hotlap {

// Training steps of the whole job, as `--steps N` or the user's own environment say: kept with the run's environment.
inline constexpr std::string_view kStepsVariable = "HOTLAP_STEPS";

struct RunOptions {
  std::vector<std::string> command;
  std::optional<std::string> name;
  std::optional<std::string> run_id;  // joins recordings of several nodes
  std::int64_t interval_ns = 0;
  std::optional<Price> price;
  std::optional<std::int64_t> steps_total;  // of the whole job
  std::optional<std::string> instance_type;
  std::optional<std::int64_t> grace_ns;
  std::optional<std::string> download;
  std::optional<std::string> upload;
  bool wants_hook = true;
  bool wants_horovod_timeline = false;         // HOROVOD_TIMELINE for the job: a file in the run's folder
  std::vector<const ObserverSpec*> observers;  // native ones that the job is to carry
  bool is_quiet = false;
  std::string profile;                     // for the hook (record/profile_plan.h); empty: nothing was asked for
  std::vector<std::string> watcher_words;  // handed to the watcher as they are
};

struct RunPlan {
  RunInfo info;
  std::filesystem::path home;
  std::optional<RuntimeFolder> runtime;  // absent: no rings, no lock
  bool records = true;                   // false: another process of this node does, or nothing can be written
  HookDelivery delivery;
  std::vector<std::string> environment;
  std::vector<std::string> notes;  // for the user
};

RunPlan plan_run(const RunOptions& options);

// Puts what the user says of a run into it: name, price, instance, join key.
void take_options(const RunOptions& options, RunInfo& info);

RunInfo describe_run(const std::vector<std::string>& command, std::int64_t interval_ns);
// The run of a process that is there already (`hotlap record`). kNotFound when it is not, kIo when it may not be seen.
Result<RunInfo> describe_process(std::int32_t pid, std::int64_t interval_ns);

}  // namespace hotlap
