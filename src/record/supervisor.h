#pragma once
// `hotlap run`: starts the job first, passes signals on, waits for it and ends as it ended. Beside it, and never in its
// way, a recorder and a watcher. One thread. Whatever of ours fails, the job runs.
#include "record/run_plan.h"

namespace hotlap {

// The exit code to return with. When the job was killed by a signal this process dies by the same one and does not
// return.
int run_supervised(const RunOptions& options);

}  // namespace hotlap
