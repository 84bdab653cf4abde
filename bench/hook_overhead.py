#!/usr/bin/env python3
"""What the hook costs in a training process: one job, in which it is taken out and put back in pairs of blocks.

    /usr/bin/python3 bench/hook_overhead.py                                   # steps of less than a millisecond
    /usr/bin/python3 bench/hook_overhead.py --job images                      # the steps of `make demo`, caches cold
    /usr/bin/python3 bench/hook_overhead.py --under build/release/hotlap      # recorder and watcher switched as well

Microseconds per step, each with its 95 % interval over the pairs (bench/shadow_statistics.py):
  clock    difference of the step times
  CPU      the same by the training thread's CPU time: what else runs on the machine is left out
  bracket  difference of the time spent in the hook's functions and not in torch's functions that they call
           (bench/shadow_job.py); by far the narrowest interval, without the hook's effect on the training's caches
and what the hook says of itself (self). With --under, `clock` holds all of ours that disturbs the job.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading

from shadow_statistics import shift, spread

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "src"
JOB = ROOT / "bench" / "shadow_job.py"
DEFAULTS = {"small": {"pairs": 120, "block": 128, "warm_up": 1000}, "images": {"pairs": 60, "block": 4, "warm_up": 80}}


def command_of(args, folder):
    command = [args.python, str(JOB), "--job", args.job, "--pairs", str(args.pairs), "--block", str(args.block),
               "--warm-up", str(args.warm_up), "--width", str(args.width), "--workers", str(args.workers),
               "--folder", folder]
    return command + ["--all-parts"] * args.all_parts


def environment():
    environ = {key: value for key, value in os.environ.items() if not key.startswith("HOTLAP")}
    # Threads of the arithmetic spin at the end of each operation: their noise is larger than what is measured.
    environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    return environ


class Reader(threading.Thread):
    """Stands in for the recorder: reads the job's ring and frees it, ten times a second."""

    def __init__(self, ring_dir):
        super().__init__(daemon=True)
        self.ring_dir, self.over, self.records, self.ring = ring_dir, threading.Event(), [], None

    def run(self):
        while not self.over.wait(0.1):
            self.drain()
        self.drain()

    def drain(self):
        from hotlap import _wire

        for path in pathlib.Path(self.ring_dir).glob("*.ring"):
            ring = _wire.Ring(str(path))
            if ring.role == _wire.ROLE_LOADER:
                continue
            self.ring = ring
            self.records += [r for r in ring.records if r["type"] == "span" and r["kind"] == _wire.HOOK]
            with open(path, "r+b") as file:
                file.seek(_wire.TAIL * 8)
                file.write(ring.head.to_bytes(8, "little"))


def run_alone(args, folder):
    """(exit status, the hook's own figures)"""
    ring_dir = os.path.join(folder, "rings")
    os.mkdir(ring_dir, 0o700)
    environ = environment()
    environ.update(HOTLAP_RING_DIR=ring_dir, HOTLAP_RUN_ID="0" * 26, HOTLAP_RING_BYTES=str(32 << 20),
                   PYTHONPATH=str(PACKAGE / "hotlap" / "_bootstrap"))
    reader = Reader(ring_dir)
    reader.start()
    code = subprocess.run(command_of(args, folder), env=environ).returncode
    reader.over.set()
    reader.join()
    own = {}
    if reader.ring is not None:
        settled = reader.records[len(reader.records) // 10:]  # the first steps look for modules
        steps = sum(r["b"] for r in settled)
        own = {"self_us": round(sum(r["duration"] for r in settled) / steps / 1000, 2) if steps else None,
               "dropped": reader.ring.dropped, "errors": reader.ring.errors}
    else:
        own["errors"] = "no ring"
    return code, own


def run_under(args, folder):
    """The same below a whole `hotlap run`; what the verdict says of the overhead."""
    environ = environment()
    environ["HOTLAP_HOME"] = os.path.join(folder, "home")
    program = str(pathlib.Path(args.under).resolve())
    command = [program, "run", "--", *command_of(args, folder), "--stop-companions"]
    code = subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    analysed = subprocess.run([program, "analyze", "last", "--json"], env=environ, stdout=subprocess.PIPE)
    own = {}
    if analysed.returncode == 0:
        own["self_us"] = round(json.loads(analysed.stdout)["self"]["hook_us_per_step"], 2)
    return code, own


def figures(blocks):
    """Per measure (estimate, low, high) in microseconds per step, and what describes the job."""

    def per_step(block, key):
        return block[key] / block["steps"] / 1000

    pairs = list(zip(blocks[::2], blocks[1::2]))
    result = {"pairs": len(pairs), "block": blocks[0]["steps"]}
    for name, key in (("clock", "wall_ns"), ("cpu", "cpu_ns"), ("bracket", "bracket_ns")):
        differences = []
        for first, second in pairs:
            on, off = (first, second) if first["on"] else (second, first)
            differences.append(per_step(on, key) - per_step(off, key))
        result[name + "_us"] = [round(x, 2) for x in shift(differences)]
    off = [per_step(b, "wall_ns") for b in blocks if not b["on"]]
    result["step_us"] = round(statistics.median(off), 1)
    result["spread_pct"] = round(spread(off), 1)
    result["share_pct"] = [round(100 * x / result["step_us"], 3) for x in result["bracket_us"]]
    result["blocks_with_parts_shed"] = sum(1 for b in blocks if b["on"] and b["shed"])
    result["parts_shed"] = blocks[-1]["shed"]
    return result


TEXT = """step {step_us} us without the hook ({pairs} pairs of blocks of {block} steps; blocks differ by {spread_pct} %)
hook, us per step:  clock {clock_us[0]} [{clock_us[1]}, {clock_us[2]}]  CPU {cpu_us[0]} [{cpu_us[1]}, {cpu_us[2]}]  \
bracket {bracket_us[0]} [{bracket_us[1]}, {bracket_us[2]}]  self {self_us}
share of the step by bracket: {share_pct[0]} %; parts shed in {blocks_with_parts_shed} of {pairs} blocks"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", choices=sorted(DEFAULTS), default="small")
    parser.add_argument("--pairs", type=int, help="pairs of blocks")
    parser.add_argument("--block", type=int, help="steps in a block")
    parser.add_argument("--warm-up", type=int, help="steps before the first block")
    parser.add_argument("--width", type=int, default=64, help="of the small job's layers")
    parser.add_argument("--workers", type=int, default=0, help="of the loader")
    parser.add_argument("--under", metavar="HOTLAP", help="run below `HOTLAP run`, switching recorder and watcher too")
    parser.add_argument("--all-parts", action="store_true", help="let the hook shed nothing")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python whose torch is meant")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name, value in DEFAULTS[args.job].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    sys.path.insert(0, str(PACKAGE))
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as folder:
        os.chmod(folder, 0o700)
        code, own = (run_under if args.under else run_alone)(args, folder)
        try:
            blocks = json.loads(pathlib.Path(folder, "blocks.json").read_text())
        except OSError:
            print("the job failed with %s" % code, file=sys.stderr)
            return 1
    if own.get("errors") or own.get("dropped"):
        print("the hook failed: %s" % own, file=sys.stderr)
        return 1
    result = dict({"self_us": None}, **own, **figures(blocks))
    print(json.dumps(result) if args.json else TEXT.format(**result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
