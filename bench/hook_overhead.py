#!/usr/bin/env python3
"""What the hook costs in a training process, measured inside one job by shadow blocks.

Runs a small PyTorch loop with HOTLAP_SHADOW: the hook is on or off in random blocks of steps of one process, so
that load from elsewhere hits both alike. Prints microseconds per step (difference of the medians of the blocks' mean
step times, with a bootstrap interval), by the clock and by the thread's CPU time (for busy machines), and what the hook
says of itself.

    /usr/bin/python3 bench/hook_overhead.py [--steps 12000] [--width 64] [--workers 0] [--block 50] [--json]
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "src"

JOB = """
import json, sys, time, torch
from hotlap import _hook
core = _hook.parts()[1]
blocks = []  # [off, steps, CPU ns of this thread]
from torch.utils.data import DataLoader, TensorDataset
steps, width, workers = (int(a) for a in sys.argv[1:])
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(16 * 200, width), torch.randint(0, 10, (16 * 200,)))
loader = DataLoader(data, batch_size=16, num_workers=workers, persistent_workers=workers > 0)
model = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())],
                            torch.nn.Linear(width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()
done = 0
while done < steps:
    for x, y in loader:
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
        done += 1
        off, cpu = core.busy & 2, time.thread_time_ns()
        if blocks and blocks[-1][0] == off:
            blocks[-1][1] += 1
            blocks[-1][2] += cpu - last
        else:
            blocks.append([off, 0, 0])
        last = cpu
        if done == steps:
            break
print(json.dumps(blocks))
"""


def interval(on, off, rounds=2000):
    """Median of `on` minus median of `off`, with its 95 % bootstrap interval."""
    generator = random.Random(1)
    differences = sorted(
        statistics.median(generator.choices(on, k=len(on))) - statistics.median(generator.choices(off, k=len(off)))
        for _ in range(rounds))
    return statistics.median(on) - statistics.median(off), differences[rounds // 40], differences[-rounds // 40]


def drain(ring_path, seen):
    """Reads what is new and frees it, as the recorder would."""
    from hotlap import _wire

    ring = _wire.Ring(ring_path)
    seen.extend(ring.records)
    with open(ring_path, "r+b") as file:
        file.seek(_wire.TAIL * 8)
        file.write(ring.head.to_bytes(8, "little"))
    return ring


def run(args):
    sys.path.insert(0, str(PACKAGE))
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as folder:
        os.chmod(folder, 0o700)
        environ = dict(os.environ, HOTLAP_RING_DIR=folder, HOTLAP_RUN_ID="0" * 26, HOTLAP_SHADOW=str(args.block),
                       HOTLAP_RING_BYTES=str(4 << 20), PYTHONPATH=str(PACKAGE / "hotlap" / "_bootstrap"))
        environ.pop("HOTLAP", None)
        command = [args.python, "-c", JOB, str(args.steps), str(args.width), str(args.workers)]
        job = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE)
        path = pathlib.Path(folder)
        records, ring = [], None
        while True:
            try:
                out, _ = job.communicate(timeout=0.5)
                code = job.returncode
            except subprocess.TimeoutExpired:
                code = None
            for found in path.glob("%d-*.ring" % job.pid):
                ring = drain(str(found), records)
            if code is not None:
                return code, json.loads(out or b"[]"), records, ring


def report(cpu_blocks, records, ring, block):
    blocks = {0: [], 1: []}
    for r in records:
        if r["type"] == "span" and r["kind"] == 21 and r["b"] >= block:
            blocks[r["a"]].append(r["duration"] / r["b"] / 1000)
    own = [r["duration"] / r["b"] / 1000 for r in records if r["type"] == "span" and r["kind"] == 20]
    cost, low, high = interval(blocks[1], blocks[0])
    step = statistics.median(blocks[0])
    cpu = {off: [ns / n / 1000 for found, n, ns in cpu_blocks[1:-1] if found == off and n] for off in (0, 2)}
    cpu_cost, cpu_low, cpu_high = interval(cpu[0], cpu[2])
    return {"blocks_on": len(blocks[1]), "blocks_off": len(blocks[0]), "step_us": round(step, 1),
            "hook_us_per_step": round(cost, 2), "interval_us": [round(low, 2), round(high, 2)],
            "share_pct": round(100 * cost / step, 2),
            "cpu_us_per_step": round(cpu_cost, 2), "cpu_interval_us": [round(cpu_low, 2), round(cpu_high, 2)],
            "self_measured_us": round(statistics.median(own), 2),
            "dropped": ring.dropped, "errors": ring.errors, "parts_shed": ring.shed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--block", type=int, default=50)
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python whose torch is meant")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    code, cpu_blocks, records, ring = run(args)
    if code != 0 or ring is None:
        print("the job failed with %s" % code, file=sys.stderr)
        return 1
    result = report(cpu_blocks, records, ring, args.block)
    if args.json:
        print(json.dumps(result))
    else:
        print("step %(step_us)s us; hook %(hook_us_per_step)s us per step %(interval_us)s by the clock "
              "(%(share_pct)s %%), %(cpu_us_per_step)s us %(cpu_interval_us)s by CPU time; it says of "
              "itself %(self_measured_us)s us; %(blocks_on)s blocks on, %(blocks_off)s off; dropped "
              "%(dropped)s, errors %(errors)s" % result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
