"""`hotlap run --observe operators`: PyTorch's operators by sampling, without its profiler."""
import os
import sys

import pytest
from observed import Place

pytest.importorskip("torch")

PYTHON = os.environ.get("HOTLAP_TEST_PYTHON", sys.executable)
JOB = """
import os, sys, torch
from torch import nn
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 32), torch.zeros(8, dtype=torch.long)
for i in range(3000):
    optimizer.zero_grad()
    with torch.autograd.profiler.record_function("my part %d" % (i % 2)):
        out = model(x)
    nn.functional.cross_entropy(out, y).backward()
    optimizer.step()
"""
FORKED = JOB + """
if os.fork() == 0:
    for i in range(3000):
        model(x)
    sys.exit(0)
os.wait()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("operators"), "operators")


def run(place, script, flags=()):
    (place.folder / "job.py").write_text(script, encoding="utf-8")
    return place.run(PYTHON, str(place.folder / "job.py"), flags=flags)


def test_calls_and_time_of_operators_are_estimated(place):
    done = run(place, JOB)
    assert done.returncode == 0, done.stderr
    calls, time_ns = place.totals("operator.calls"), place.totals("operator.time.ns")
    # 6,000 calls, of which one in a hundred is looked at: 60 on average, and never fewer than 20 in a lifetime of tests.
    assert 2_000 < calls["main/aten::linear"] < 12_000, calls
    assert calls["main/aten::linear"] % 100 == 0
    assert time_ns["main/aten::linear"] > 0
    assert set(calls) == set(time_ns)
    assert place.rows("SELECT count(*) FROM span WHERE kind = 'operator'") == [(0,)]


def test_ranges_of_the_program_are_spans(place):
    names = dict(place.rows("SELECT name, count(*) FROM span WHERE kind = 'user' GROUP BY name"))
    assert set(names) == {"my part 0", "my part 1"}, names
    calls = place.totals("range.calls")
    assert calls == {"main/my part 0": 1500, "main/my part 1": 1500}
    version = place.attributes()["process.main.observer.operators"]
    assert version.startswith('"') and "." in version


def test_steps_are_seen_by_the_hook_as_ever(place):
    assert place.rows("SELECT count(*) FROM step") == [(3000,)]


def test_a_forked_process_goes_on_by_itself(place):
    assert run(place, FORKED).returncode == 0
    owners = {instance.split("/")[0] for instance in place.totals("operator.calls")}
    assert len(owners) == 2 and "main" in owners, owners


def test_without_the_hook_it_is_not_loaded(place):
    done = run(place, "import torch", ["--no-hook"])
    assert done.returncode == 0
    assert "hotlap: no observer operators: it is loaded by the hook, which is off" in done.stderr


ASK = """
import ctypes, sys
{before}
begin = ctypes.CDLL(sys.argv[1]).hotlap_observe_operators
begin.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
reason = ctypes.create_string_buffer(100)
print(begin(sys.argv[2].encode(), reason, 100), reason.value.decode())
"""


@pytest.mark.parametrize("before, version, said", [
    ("import torch", "9.1", "1 this version of PyTorch has not been tried (9.1)"),
    ("import torch", "1.12.1", "1 this version of PyTorch has not been tried (1.12.1)"),
    ("import torch", "nonsense", "1 this version of PyTorch has not been tried (nonsense)"),
    ("", "1.13.1", "1 libtorch_cpu.so is not loaded (1.13.1)"),
    ("import torch", "1.13.1", "1 the process is not recorded (1.13.1)"),
])
def test_what_it_does_not_know_it_refuses(place, before, version, said):
    library = str(place.library("libhotlap_operators.so"))
    done = place.plain(PYTHON, "-c", ASK.format(before=before), library, version)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, said, "")
