"""What the hook asks of GPUs, on a torch without one: its calls meet tests/hook/fake_cuda.py. The models, the loaders
and the tensors are real; "meta" stands for the device.
"""
import json
import pathlib
import tempfile

import pytest
from harness import PRELUDE, PYTHON, SOURCE, Program, collect, execute, steps, w

pytest.importorskip("torch")

HERE = str(pathlib.Path(__file__).resolve().parent)
# The pace of looks is real time: steps that last a little, and a hook that looks at each of them.
FAKE = PRELUDE + """
import time
import torch.nn.functional as F
seeded = torch.randn(1)
if os.environ.get("HOTLAP_RING_DIR"):
    import hotlap._torch.device as device_adapter
    device_adapter.LOOK_NS = int(os.environ.get("LOOK_NS", "0"))
import fake_cuda
class OnDevice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = net()
    def forward(self, x, copy=None):
        return self.inner(x)
"""
LOOP = """
loader = DataLoader(data(), batch_size=8)
model = OnDevice()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(%d):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_of(model(x, x.to("meta")), y)
        loss.backward()
        optimizer.step()
        say(loss)
"""


def run(tmp_path, body, prelude=FAKE, env=None, **more):
    more.setdefault("compare", False)  # two imports of torch for each; one test compares
    return Program(tmp_path, body, prelude).run(env=dict(env or {}, PYTHONPATH="%s:%s" % (HERE, SOURCE)), **more)


def figures(ring):
    """Metric and device -> values, of the hook's own."""
    found = {}
    for record in ring.records:
        if record["type"] == "count" and record["flags"] == w.COUNT_OF_HOOK:
            found.setdefault(ring.names[record["name"]], []).append(record["value"])
    return found


def test_memory_of_the_devices_that_the_process_uses(tmp_path):
    ring = run(tmp_path, LOOP % 3, compare=True).main()
    assert len(steps(ring)) == 24
    found = figures(ring)
    assert set(found["allocator.allocated.bytes cuda:1"]) == {1000}
    assert set(found["allocator.allocated_max.bytes cuda:1"]) == {3000}
    assert set(found["allocator.reserved.bytes cuda:1"]) == {4096}
    assert set(found["allocator.reserved_max.bytes cuda:1"]) == {8192}
    assert set(found["allocator.retries cuda:1"]) == {2} and set(found["allocator.ooms cuda:1"]) == {1}
    assert not any(name.endswith("cuda:0") for name in found)  # nothing of it is this process's


def test_another_device_is_seen_once_something_lies_there(tmp_path):
    ring = run(tmp_path, (LOOP % 6).replace("        say(loss)", """
        say(loss)
        fake_cuda.stats[0]["reserved_bytes"]["all"]["current"] = 512
""")).main()
    assert set(figures(ring)["allocator.reserved.bytes cuda:0"]) == {512}


def test_figures_come_at_most_twice_a_second(tmp_path):
    ring = run(tmp_path, LOOP % 12, env={"LOOK_NS": str(60_000_000_000)}).main()
    assert len(steps(ring)) == 96
    assert [len(values) for name, values in figures(ring).items() if name.startswith("allocator")] == [1] * 6


def test_gpu_times_come_from_three_events_that_are_over(tmp_path):
    outcome = run(tmp_path, LOOP % 6 + """
import hotlap._torch.device
print(len(fake_cuda.log) if os.environ.get("HOTLAP_RING_DIR") else 3)
""")
    assert outcome.out.split()[-1] == "3"  # events are made once
    found = figures(outcome.main())
    for part in ("forward", "backward", "optimizer"):
        values = found["gpu_time.%s.ms cuda:1" % part]
        assert len(values) > 5 and set(values) == {1.0}  # by the fake's clock each event is one tick later


def test_an_event_that_is_not_over_is_not_read(tmp_path):
    found = figures(run(tmp_path, """
class Late:
    def __contains__(self, event):
        return True
fake_cuda.late = Late()
""" + LOOP % 6).main())
    assert "allocator.retries cuda:1" in found
    assert not any(name.startswith("gpu_time") for name in found)


def test_nothing_is_recorded_while_a_graph_is_captured(tmp_path):
    outcome = run(tmp_path, "fake_cuda.capturing = True\n" + LOOP % 4 + """
import hotlap
print(len(fake_cuda.log))
""")
    assert outcome.out.split()[-1] == "0"
    assert not any(name.startswith("gpu_time") for name in figures(outcome.main()))


def test_forward_without_backward_makes_no_times(tmp_path):
    found = figures(run(tmp_path, """
loader = DataLoader(data(), batch_size=8)
model = OnDevice()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    for x, y in loader:
        model(x)
        optimizer.step()
""").main())
    assert "gpu_time.optimizer.ms cuda:1" in found and "gpu_time.backward.ms cuda:1" not in found


@pytest.mark.parametrize("pinned", [False, True])
def test_what_goes_to_the_device_and_whether_it_is_pinned(tmp_path, pinned):
    found = figures(run(tmp_path, ("torch.Tensor.is_pinned = lambda self: True\n" if pinned else "") + LOOP % 4).main())
    size = 8 * 8 * 4 + 8 * 8
    assert set(found["transfer.to_device.bytes meta:0"]) == {size}
    assert set(found["transfer.to_device.pinned.bytes meta:0"]) == {size if pinned else 0}


def test_a_batch_that_stays_where_it_is_is_no_transfer(tmp_path):
    found = figures(run(tmp_path, (LOOP % 4).replace(', x.to("meta")', "")).main())
    assert "allocator.retries cuda:1" in found
    assert not any(name.startswith("transfer") for name in found)


def test_without_a_device_nothing_is_asked(tmp_path):
    ring = Program(tmp_path, """
def never(*_, **__):
    raise AssertionError("asked")
for name in ("Event", "current_device", "device_count", "memory_stats_as_nested_dict", "synchronize", "_lazy_init"):
    setattr(torch.cuda, name, never)
""" + (LOOP % 2).replace("OnDevice()", "net()").replace(', x.to("meta")', "")).run().main()
    assert len(steps(ring)) == 16 and not figures(ring)
    described = json.loads(ring.infos()["accelerator"])  # "kind" is what this torch was built for
    assert described["initialised"] is False and described["devices"] is None


def test_a_cuda_that_fails_is_left_alone(tmp_path):
    program = Program(tmp_path, "fake_cuda.stats.clear()\n" + LOOP % 4, FAKE)
    with tempfile.TemporaryDirectory(prefix="hotlap-rings-") as name:
        env = {"LOOK_NS": "0", "PYTHONPATH": "%s:%s" % (HERE, SOURCE)}
        code, _, err = execute(program.command(PYTHON, (), ()), tmp_path, pathlib.Path(name), env)
        ring = collect(pathlib.Path(name))[0][0]
    assert code == 0 and not err
    assert ring.errors == 3 and len(steps(ring)) == 32


OOM = """
class OutOfMemoryError(RuntimeError):
    pass
"""


def test_running_out_of_memory_is_told_where_it_passes(tmp_path):
    outcome = run(tmp_path, OOM + """
class Large(nn.Module):
    def forward(self, x):
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
for x, y in DataLoader(data(16), batch_size=8):
    try:
        Large()(x)
    except OutOfMemoryError as error:
        print(error)
""")
    said = [json.loads(r["json"]) for r in outcome.main().records if r["type"] == "info" and r["key"] == "oom"]
    assert [s["text"] for s in said] == ["CUDA out of memory. Tried to allocate 2.00 GiB"] * 2


def test_running_out_of_memory_outside_of_models_shows_at_the_end(tmp_path):
    outcome = run(tmp_path, OOM + LOOP % 1 + """
raise OutOfMemoryError("CUDA out of memory. " + "x" * 5000)
""")
    assert outcome.code == 1
    said = json.loads(outcome.main().infos()["oom"])
    assert said["text"].startswith("CUDA out of memory. xx") and len(said["text"]) == 1000


def test_devices_and_settings_and_the_model(tmp_path):
    infos = run(tmp_path, """
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = False
table = nn.Embedding(100, 8)
head = nn.Linear(8, 100, bias=False)
head.weight = table.weight
lookup = nn.Embedding(10, 8)
class MultiheadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.lookup, self.head = table, lookup, head
        self.convolution = nn.Conv2d(4, 4, 3).to(memory_format=torch.channels_last)
        self.frozen = nn.Linear(3, 5).requires_grad_(False)
    def forward(self, x):
        return self.head(self.table(x) + self.lookup(x % 10))
model = MultiheadAttention().bfloat16()
loss_module = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
for i in range(6):
    x = torch.arange(8) + i
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_module(model(x).float(), x)
    loss.backward()
    optimizer.step()
""").main().infos()
    model = json.loads(infos["model"])
    assert model["classes"] == ["MultiheadAttention"]
    parameters = 100 * 8 + 10 * 8 + 4 * 4 * 9 + 4 + 3 * 5 + 5
    assert model["parameters"] == parameters and model["trainable"] == parameters - 20
    assert model["bytes"] == 2 * parameters and model["dtypes"] == {"bfloat16": parameters}
    assert model["lookup_parameters"] == 80 and model["attention"] is True and model["experts"] is False
    assert model["channels_last"] is True and model["devices"] == ["cpu"] and model["reason"] is None
    settings = json.loads(infos["settings"])
    assert settings["autocast"] is True and settings["autocast_dtype"] == "bfloat16"
    assert settings["tf32_matmul"] is True and settings["tf32_cudnn"] is False
    assert settings["cudnn_benchmark"] is True and settings["compile"] is None
    devices = json.loads(infos["accelerator"])
    assert devices["names"] == ["NVIDIA H100 80GB HBM3"] * 2 and devices["current"] == 1 and devices["devices"] == 2


def test_settings_are_told_again_when_they_change_and_not_else(tmp_path):
    ring = run(tmp_path, """
if os.environ.get("HOTLAP_RING_DIR"):
    device_adapter.SETTINGS_NS = 0
""" + (LOOP % 4).replace("        optimizer.zero_grad()", """
        torch.backends.cudnn.benchmark = epoch > 1
        optimizer.zero_grad()""")).main()
    said = [json.loads(r["json"])["cudnn_benchmark"] for r in ring.records
            if r["type"] == "info" and r["key"] == "settings"]
    assert said == [False, True]


def test_a_model_whose_parameters_are_elsewhere_has_no_size(tmp_path):
    infos = run(tmp_path, """
class FullyShardedDataParallel(OnDevice):
    pass
""" + (LOOP % 1).replace("OnDevice()", "FullyShardedDataParallel()")).main().infos()
    model = json.loads(infos["model"])
    assert model["parameters"] is None and model["reason"] == "parameters are spread over ranks"


def test_a_scripted_model_has_its_facts(tmp_path):
    infos = run(tmp_path, """
model = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(6):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
""").main().infos()
    model = json.loads(infos["model"])
    assert model["parameters"] == 8 * 8 + 8 + 8 * 2 + 2 and model["lookup_parameters"] == 0
    assert "hook.error" not in infos


def test_a_child_of_a_fork_looks_for_itself(tmp_path):
    rings = run(tmp_path, """
def train(n):
    model = OnDevice()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data().tensors
    for _ in range(n):
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
train(8)
pid = os.fork()
if pid == 0:
    train(9)
    os._exit(0)
os.waitpid(pid, 0)
""").rings
    for ring in rings:
        assert len(steps(ring)) in (8, 9) and "model" in ring.infos()
        assert figures(ring)["allocator.retries cuda:1"]
