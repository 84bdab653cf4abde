"""Stacks that a thread counts, and those of a step that does not end."""
import json
import os
import time

import harness  # noqa: F401  puts the package on the path
import pytest
from harness import Program, w

from hotlap import _functions


def infos(ring, start):
    return [json.loads(r["json"]) for r in ring.records if r["type"] == "info" and r["key"].startswith(start)]


class Code:
    def __init__(self, name, file="/somewhere/job.py"):
        self.co_name = self.co_qualname = name
        self.co_filename, self.co_firstlineno = file, 7


class Frame:
    def __init__(self, name, back=None, file="/somewhere/job.py"):
        self.f_code, self.f_back = Code(name, file), back


def test_a_stack_is_folded_outermost_first():
    stacks = _functions.Stacks()
    main = Frame("main")
    for _ in range(3):
        stacks.add("training", "MainThread", Frame("in;ner\n", main))
    stacks.add("evaluation", "MainThread", main)
    assert stacks.text("training") == ("evaluation;MainThread;main (job.py:7) 1\n"
                                       "training;MainThread;main (job.py:7);in,ner? (job.py:7) 3\n")


def test_counting_is_bounded(monkeypatch):
    monkeypatch.setattr(_functions, "STACKS_MAX", 5)
    monkeypatch.setattr(_functions, "LABELS_MAX", 5)
    stacks, frame = _functions.Stacks(), None
    for i in range(500):
        frame = Frame("f%d" % i, frame)
        stacks.add("training", "MainThread", frame)
    assert len(stacks.counts) == len(stacks.labels) == 5 and stacks.other == 495
    assert stacks.text("training").endswith("training;other;other stacks 495\n")
    deep = stacks.of_frame(frame)
    assert len(deep) == _functions.DEPTH_MAX + 1 and deep[0] == "..." and deep[-1].startswith("f499 ")


def run(folder, body, plan, **kwargs):
    pytest.importorskip("torch")
    env = {"HOTLAP_PROFILE": plan, "HOTLAP_PROFILE_DIR": str(folder / "stacks")}
    return Program(folder / "job", body).run(env=env, compare=False, **kwargs)


BUSY = """
import time
def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 8), torch.tensor([0, 1, 0, 1])
for i in range(40):
    update(model, optimizer, x, y)
    burn(3.0 if i == 30 else 0.03)
"""


def test_the_function_that_takes_the_time_is_on_top(tmp_path):
    ring = run(tmp_path, BUSY, "functions_hz=50").main()
    (told,) = infos(ring, "profile.functions")
    assert told["samples"] > 20 and told["own_pct"] < 5 and told["other"] == 0
    (path,) = (tmp_path / "stacks").iterdir()
    assert path.suffix == ".folded" and path.stat().st_mode & 0o777 == 0o600
    counts = {}
    for line in path.read_text().splitlines():
        stack, _, samples = line.rpartition(" ")
        phase, thread, *frames = stack.split(";")
        assert thread == "MainThread" and frames
        counts[phase, "burn (job.py:" in stack] = counts.get((phase, "burn (job.py:" in stack), 0) + int(samples)
    assert sum(counts.values()) == told["samples"]
    assert counts["training", True] > 0.6 * told["samples"]


def test_an_outlier_shows_where_it_hangs(tmp_path):
    ring = run(tmp_path, BUSY, "on_outlier=1,ranks=all").main()
    dumps = infos(ring, "stacks.outlier")
    assert any(d["step"] == 31 and d["threads"][0]["thread"] == "MainThread" and "burn (job.py:"
               in d["threads"][0]["stack"] for d in dumps), dumps
    assert not infos(ring, "profile.functions")


def test_workers_of_a_loader_and_children_of_a_fork_count_nothing(tmp_path):
    ring_of = run(tmp_path, """
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in DataLoader(data(), batch_size=4, num_workers=2):
            update(model, optimizer, x, y)
        if os.fork() == 0:
            import time
            time.sleep(0.3)
            sys.exit(0)
        os.wait()
        """, "functions_hz=100")
    assert len(list((tmp_path / "stacks").iterdir())) == 1
    assert sum(len(infos(ring, "profile.functions")) for ring in ring_of.rings) == 1


class Recorder:
    def __init__(self):
        self.said, self.off = [], False
        self.ring = type("Ring", (), {"signed": {}})()
        self.ring.signed = {w.LIVE_STEP: -1, w.LIVE_STEP_END: 0}

    def info(self, key, value):
        self.said.append((key, value))

    def flush(self):
        pass


class Core:
    phase, thread = w.PHASE_TRAINING, None


def test_a_hang_is_dumped_once_and_none_while_it_evaluates():
    recorder, core, second = Recorder(), Core(), 1_000_000_000
    watch = _functions.Watch(recorder, core)
    signed, t = recorder.ring.signed, second
    for step in range(40):
        t += second
        signed[w.LIVE_STEP], signed[w.LIVE_STEP_END] = step, t
        watch.watch_step(t)
    watch.watch_step(t + 50 * second)
    assert not recorder.said
    core.phase = w.PHASE_EVALUATION
    watch.watch_step(t + 100 * second)
    assert not recorder.said
    core.phase = w.PHASE_TRAINING
    for later in (70, 80, 200):
        watch.watch_step(t + later * second)
    ((key, told),) = recorder.said
    assert key == "stacks.hang.1" and told["step"] == 40 and told["usual_ms"] == 1000
    assert len(json.dumps(told)) < 16384


def test_a_folder_that_cannot_be_used_costs_the_file(tmp_path, monkeypatch):
    watch = _functions.Watch(Recorder(), Core())
    watch.stacks.add("training", "MainThread", Frame("main"))
    for folder in (None, "/proc/none", str(tmp_path / "open")):
        if folder is None:
            monkeypatch.delenv("HOTLAP_PROFILE_DIR", raising=False)
        else:
            monkeypatch.setenv("HOTLAP_PROFILE_DIR", folder)
        if folder and folder.endswith("open"):
            os.mkdir(folder)
            os.chmod(folder, 0o777)
        watch.write()
    assert not list((tmp_path / "open").iterdir())
    monkeypatch.setenv("HOTLAP_PROFILE_DIR", str(tmp_path / "own"))
    before = time.monotonic_ns()
    watch.write()
    assert watch.written_ns >= before and len(list((tmp_path / "own").iterdir())) == 1
