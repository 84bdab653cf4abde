#!/usr/bin/env python3
"""How much later a job starts under `hotlap run`, and how much longer the whole takes: median over interleaved runs.

    bench/start_delay.py [PROGRAM] [RUNS]      target: start < 50 ms later

The job is date(1): it prints the time at which it runs. Started directly and under us in turn, so that both see the
same machine.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

TARGET_MS = 50.0


def start(words, environment):
    begin = time.time_ns()
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return (int(done.stdout) - begin) / 1e6, (time.time_ns() - begin) / 1e6


def main():
    program = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else "build/release/hotlap")
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    job = ["/bin/date", "+%s%N"]
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/runtime", 0o700)
        environment = dict(os.environ, HOTLAP_HOME=folder + "/home", XDG_RUNTIME_DIR=folder + "/runtime")
        words = {"directly": job, "hotlap run": [program, "run", "--", *job], "hotlap run --no-hook":
                 [program, "run", "--no-hook", "--", *job]}
        taken = {name: [] for name in words}
        first = start(words["hotlap run"], environment)[0]  # lays the hook out
        for _ in range(runs):
            for name, command in words.items():
                taken[name].append(start(command, environment))
    base = statistics.median(t[0] for t in taken["directly"])
    print("| how | job runs after, ms (p90) | later than directly, ms | whole command, ms |")
    print("|---|---|---|---|")
    for name, values in taken.items():
        starts = sorted(t[0] for t in values)
        start_ms, whole_ms = statistics.median(starts), statistics.median(t[1] for t in values)
        print("| %s | %.2f (%.2f) | %.2f | %.1f |" % (name, start_ms, starts[int(0.9 * len(starts))], start_ms - base,
                                                      whole_ms))
    print("first run of a new version (writes the hook's files): %.1f ms later" % (first - base))
    delay = statistics.median(t[0] for t in taken["hotlap run"]) - base
    return 0 if delay < TARGET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
