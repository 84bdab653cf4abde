#!/bin/bash
# Start-up time: `hotlap version` from spawn to exit, and /bin/true in the same run as the floor (what the kernel and the
# loader take). Target: median <= 6 ms. Usage: bench/startup.sh [PROGRAM] [RUNS]
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/release/hotlap}
[ -x "$program" ] || { echo "$program is not there: make release" >&2; exit 2; }
/usr/bin/python3 - "$program" "${2:-300}" <<'PY'
import os
import statistics
import sys
import time

TARGET_MS = 6.0
program, runs = os.path.realpath(sys.argv[1]), int(sys.argv[2])
null = os.open(os.devnull, os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, null, n) for n in (0, 1, 2)]
commands = {"hotlap version": [program, "version"], "/bin/true (floor)": ["/bin/true"]}
taken = {name: [] for name in commands}
for round_number in range(runs + 10):
    for name, command in commands.items():  # interleaved: both see the same machine
        start = time.perf_counter()
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
        status = os.waitpid(pid, 0)[1]
        took = (time.perf_counter() - start) * 1e3
        if status != 0:
            sys.exit(f"{name}: exit status {os.waitstatus_to_exitcode(status)}")
        if round_number >= 10:
            taken[name].append(took)
for name, values in taken.items():
    values.sort()
    print(f"{name:18}  median {statistics.median(values):5.2f} ms  p90 {values[int(0.9 * len(values))]:5.2f} ms"
          f"  least {values[0]:5.2f} ms  ({runs} runs)")
median = statistics.median(taken["hotlap version"])
print(f"target {TARGET_MS} ms: {'met' if median <= TARGET_MS else 'MISSED'}")
sys.exit(0 if median <= TARGET_MS else 1)
PY
