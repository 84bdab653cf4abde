"""`--profile` end to end with real PyTorch: the windows are in the run, in its answer, and in no step's time."""
import json
import os
import re
import subprocess
import sys
import time

import pytest

HOTLAP = os.environ["HOTLAP"]
OPERATORS = "SELECT name, count(*) FROM span WHERE kind = 'operator' GROUP BY name"
JOB = """
import sys, time, torch
from torch import nn
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(16, 64), torch.zeros(16, dtype=torch.long)
def slow_function(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(500))
for i in range(int(sys.argv[1])):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    slow_function(0.02)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    return folder


def hotlap(place, *words, **settings):
    environment = {**os.environ, "HOTLAP_HOME": str(place / "home")}
    environment.pop("PYTHONPATH", None)
    return subprocess.run([HOTLAP, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=240, **settings)


def job(place, steps):
    return [sys.executable, str(place / "job.py"), str(steps)]


def rows(place, run, text):
    done = hotlap(place, "sql", run, text, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


@pytest.fixture(scope="module")
def looked(place):
    """A run with one window."""
    done = hotlap(place, "run", "--name", "looked", "--profile", "steps=20:3", "--", *job(place, 120))
    assert done.returncode == 0, done.stderr
    return done


def test_operators_of_the_window_are_in_the_run(place, looked):
    names = dict(rows(place, "looked", OPERATORS))
    assert names["aten::linear"] == 6, names
    document = json.loads(hotlap(place, "analyze", "looked", "--json").stdout)
    (summary,) = document["facts"]["profile.summary"]
    assert (summary["windows"], summary["steps"], summary["first_step"]) == (1, 3, 20)
    assert summary["pause_ms"] > 0 and "refused" not in summary
    assert "operators.operator" in json.dumps(document["inside"])
    assert re.search(r"looked into 3 steps in 1 window: the job stood still [\d.]+ ms", looked.stderr)


def test_the_steps_are_those_of_the_job_once_each(place, looked):
    found = rows(place, "looked", "SELECT step, profiled FROM step ORDER BY step")
    assert [step for step, _ in found] == list(range(120))
    assert [step for step, profiled in found if profiled] == [19, 20, 21, 22]
    assert json.loads(hotlap(place, "analyze", "looked", "--json").stdout)["steps"]["count_all"] == 116


def test_a_live_run_is_asked(place):
    environment = {**os.environ, "HOTLAP_HOME": str(place / "home")}
    environment.pop("PYTHONPATH", None)
    with subprocess.Popen([HOTLAP, "run", "--name", "live", "--", *job(place, 400)], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        until = time.monotonic() + 60
        while time.monotonic() < until and not re.search(r"(?m)^  step +\d", hotlap(place, "show", "live").stdout):
            time.sleep(0.5)
        asked = hotlap(place, "set", "live", "--profile", "now,steps=2")
        assert asked.returncode == 0 and "is asked" in asked.stderr, asked.stderr
        assert running.wait(120) == 0
    shown = hotlap(place, "show", "live").stdout
    assert "profile: main will do as asked" in shown
    assert dict(rows(place, "live", OPERATORS))["aten::linear"] == 4
    assert hotlap(place, "set", "live", "--profile", "now").returncode != 0


def test_stacks_are_counted_by_phase(place):
    done = hotlap(place, "run", "--name", "stacks", "--profile", "functions=50hz", "--", *job(place, 150))
    assert done.returncode == 0, done.stderr
    found = rows(place, "stacks", "SELECT process, phase, sum(samples) FROM stack WHERE stack LIKE '%slow_function%' "
                                  "GROUP BY 1, 2")
    training = [samples for process, phase, samples in found if (process, phase) == ("main", "training")]
    assert training and training[0] > 20
    folded = hotlap(place, "export", "stacks", "-f", "stacks").stdout
    assert re.search(r"(?m)^main;training;MainThread;.*slow_function \(job\.py:\d+\) \d+$", folded)


@pytest.mark.parametrize("words", [["run", "--profile", "step=3", "--", "true"],
                                   ["run", "--profile", "now", "--", "true"],
                                   ["set", "last", "--profile", "steps=1:2"]])
def test_wrong_use_is_told_before_anything_starts(place, words):
    done = hotlap(place, *words)
    assert done.returncode == 2 and "--profile" in done.stderr and not done.stdout
