"""Runs a program without and with the hook: the same output and exit, and rings to look into."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(os.environ.get("HOTLAP_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
SOURCE = ROOT / "python" / "src"
BOOTSTRAP = SOURCE / "hotlap" / "_bootstrap"
sys.path.insert(0, str(SOURCE))

from hotlap import _wire as w

PYTHON = os.environ.get("HOTLAP_TEST_PYTHON") or "/usr/bin/python3"  # Debian's: its torch is meant
RUN_ID = "01J0000000000000000000TEST"

# What most programs of the tests begin with. Losses are printed to the last bit.
PRELUDE = """
import os, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
torch.manual_seed(7)
torch.set_num_threads(1)
def data(n=64):
    g = torch.Generator().manual_seed(3)
    return TensorDataset(torch.randn(n, 8, generator=g), torch.randint(0, 2, (n,), generator=g))
def net():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
loss_of = nn.CrossEntropyLoss()
def say(loss):
    print(float(loss.detach()).hex(), flush=True)
def update(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()
    return loss
"""


class Outcome:
    def __init__(self, code, out, err, rings, offs, ons):
        self.code, self.out, self.err, self.rings, self.offs, self.ons = code, out, err, rings, offs, ons

    def main(self):
        """The ring of the first process."""
        found = [r for r in self.rings if r.role != w.ROLE_LOADER]
        assert len(found) == 1, "%d rings that are no loader's" % len(found)
        return found[0]

    def workers(self):
        return [r for r in self.rings if r.role == w.ROLE_LOADER]


def environment(ring_dir, extra):
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("HOTLAP", "PYTHON")) and k not in (
        "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
    environ.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    environ.update(extra)
    if ring_dir is not None:
        environ.update(HOTLAP_RING_DIR=str(ring_dir), HOTLAP_RUN_ID=RUN_ID)
        path = environ.get("PYTHONPATH")
        environ["PYTHONPATH"] = str(BOOTSTRAP) + (os.pathsep + path if path else "")
    return environ


def collect(ring_dir):
    rings = [w.Ring(str(p)) for p in sorted(ring_dir.glob("*.ring"))]
    return rings, {p.name: p.read_text() for p in ring_dir.glob("*.off")}, sorted(p.name for p in ring_dir.glob("*.on"))


def execute(command, cwd, ring_dir=None, env=None, timeout=600):
    done = subprocess.run(command, cwd=str(cwd), env=environment(ring_dir, env or {}), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=timeout)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def same_text(text):
    """Output with what differs between any two runs taken out: pids, addresses, speeds."""
    text = re.sub(r"\b0x[0-9a-f]{6,}\b(?!\.)", "0xADDRESS", text)
    text = re.sub(r"(?m)^([WE])\d{4} [\d:.]+ \d+ ", r"\1 ", text)
    text = re.sub(r"'(train|eval)_(runtime|(samples|steps)_per_second)': '?[\d.]+'?", "SPEED", text)
    return re.sub(r"\(pid\(s\) [\d, ]+\)|\(pid: \d+\)|pid=\d+|process \d+", "PID", text)


class Program:
    """A script in a folder of its own."""

    def __init__(self, folder, body, prelude=PRELUDE, name="job.py"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.path = self.folder / name
        self.path.write_text(prelude + textwrap.dedent(body))

    def command(self, python, flags, arguments):
        return [python, *flags, str(self.path), *arguments]

    def run(self, python=PYTHON, flags=(), arguments=(), env=None, compare=True, timeout=600, command=None):
        """Runs it with the hook, and before that without it, and compares what can be seen from outside."""
        command = command or self.command(python, flags, arguments)
        plain = execute(command, self.folder, None, env, timeout) if compare else None
        with tempfile.TemporaryDirectory(prefix="hotlap-rings-") as name:
            ring_dir = pathlib.Path(name)
            code, out, err = execute(command, self.folder, ring_dir, env, timeout)
            rings, offs, ons = collect(ring_dir)
        if compare:
            assert code == plain[0], "exit %s, without hook %s\n%s" % (code, plain[0], err)
            assert same_text(out) == same_text(plain[1])
            assert same_text(err) == same_text(plain[2])
        for ring in rings:
            assert ring.errors == 0, [r for r in ring.records if r["type"] == "info"]
            assert ring.frames_damaged == 0
            assert ring.run_id == RUN_ID
        return Outcome(code, out, err, rings, offs, ons)


def steps(ring):
    """The step spans, checked for what always holds: numbered without a gap, in order, not overlapping."""
    found = ring.spans(w.STEP)
    assert [s["step"] for s in found] == list(range(len(found)))
    for before, after in zip(found, found[1:]):
        assert after["start"] >= before["start"] + before["duration"]
    assert all(s["duration"] >= 0 for s in found)
    assert ring.step == len(found) - 1
    return found


def parts(ring, step):
    """Kind -> summed duration of what lies in one step on the training thread."""
    kinds = (w.DATA_WAIT, w.FORWARD, w.BACKWARD, w.OPTIMIZER)
    total = {}
    for record in ring.records:
        if record["type"] == "span" and record["kind"] in kinds and record["step"] == step:
            total[record["kind"]] = total.get(record["kind"], 0) + record["duration"]
    return total
