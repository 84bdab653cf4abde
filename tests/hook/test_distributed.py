"""What shows of communication: two ranks over gloo with Debian's torch."""
import json
import pathlib
import socket
import subprocess
import tempfile

import pytest
from harness import PYTHON, SOURCE, Program, collect, environment, steps, w

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

BEGIN = """
import torch.distributed as dist
if os.environ.get("HOTLAP_RING_DIR"):
    import hotlap._torch.distributed as adapter
    adapter.LOOK_NS = 0
dist.init_process_group("gloo")
rank = dist.get_rank()
"""
DDP = """
model = nn.parallel.DistributedDataParallel(net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data(), batch_size=8, sampler=torch.utils.data.DistributedSampler(data(), shuffle=False)):
    optimizer.zero_grad()
    loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()
    say(loss)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(tmp_path, body, compare=False):
    """The rings of both ranks, by rank. `compare`: output is the same as without the hook."""
    program = Program(tmp_path, BEGIN + body + "\ndist.destroy_process_group()\n")
    outputs = {}
    for hooked in (False, True) if compare else (True,):
        with tempfile.TemporaryDirectory(prefix="hotlap-rings-") as name:
            ring_dir = pathlib.Path(name) if hooked else None
            port = free_port()
            ranks = [subprocess.Popen(
                [PYTHON, str(program.path)], cwd=str(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment(ring_dir, {"RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": "2",
                                           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                                           "PYTHONPATH": str(SOURCE)})) for r in range(2)]
            results = [p.communicate(timeout=600) for p in ranks]
            assert [p.returncode for p in ranks] == [0, 0], results
            outputs[hooked] = results
            rings = collect(ring_dir)[0] if hooked else []
    assert not compare or outputs[True] == outputs[False]
    for ring in rings:
        assert ring.errors == 0, ring.infos()
    return sorted(rings, key=lambda ring: ring.rank)


def calls(ring):
    """(name, bytes, number in its group) of each."""
    return [(ring.names[s["name"]], s["a"], s["b"]) for s in ring.spans(w.COLLECTIVE)
            if ring.names[s["name"]] != "wait"]


def test_each_call_with_its_group_size_and_number(tmp_path):
    rings = run(tmp_path, """
t = torch.ones(10)
dist.all_reduce(t)
others = dist.new_group([0])
both = dist.new_group([0, 1])
dist.broadcast(t, 0, group=both)
dist.all_gather([torch.zeros(10), torch.zeros(10)], t, both)
found = [None, None]
dist.all_gather_object(found, {"rank": rank})
dist.barrier()
if rank == 0:
    dist.barrier(others)
print(float(t.sum()), found)
""", compare=True)
    expected = [("all_reduce (gloo, group 0)", 40, 0), ("broadcast (gloo, group 2)", 40, 0),
                ("all_gather (gloo, group 2)", 40, 1), ("all_gather_object (gloo, group 0)", -1, 1),
                ("barrier (gloo, group 0)", -1, 2)]
    assert calls(rings[1]) == expected
    assert calls(rings[0]) == expected + [("barrier (gloo, group 1)", -1, 0)]
    for ring in rings:
        assert all(s["duration"] > 0 for s in ring.spans(w.COLLECTIVE))
        assert (ring.group, ring.rank >= 0) == (-1, True)  # left
        assert json.loads(ring.infos()["communication"])["unseen"] is None


def test_calls_in_steps_belong_to_them(tmp_path):
    for ring in run(tmp_path, """
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data(), batch_size=8):
    optimizer.zero_grad()
    loss = loss_of(model(x), y)
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    say(loss)
"""):
        found = steps(ring)
        assert len(found) == 8
        inside = [s for s in ring.spans(w.COLLECTIVE)]
        assert [s["step"] for s in inside] == [i // 4 for i in range(32)]
        assert [s["b"] for s in inside] == list(range(32))
        for s in inside:
            step = found[s["step"]]
            assert step["start"] <= s["start"] and s["start"] + s["duration"] <= step["start"] + step["duration"]


def test_the_page_says_which_call_a_rank_is_in(tmp_path):
    """Rank 0 reads rank 1's ring while that waits in a barrier."""
    run(tmp_path, """
import glob, time
dist.all_reduce(torch.ones(1))
if rank == 1:
    dist.barrier()
elif os.environ.get("HOTLAP_RING_DIR"):
    from hotlap import _wire
    for _ in range(2000):
        rings = [_wire.Ring(p) for p in glob.glob(os.environ["HOTLAP_RING_DIR"] + "/*.ring")]
        inside = [(r.group, r.sequence) for r in rings if r.rank == 1]
        if inside == [(0, 1)]:
            break
        time.sleep(0.01)
    assert inside == [(0, 1)], inside
    assert [(r.group, r.sequence) for r in rings if r.rank == 0] == [(-1, 0)]
    dist.barrier()
else:
    dist.barrier()
""")


def test_work_that_runs_meanwhile_shows_where_it_is_waited_for(tmp_path):
    rings = run(tmp_path, """
import time
hotlap_thread = torch.optim.SGD(net().parameters(), lr=0.1).step()
t = torch.ones(1000)
is_waiting = os.path.abspath(__file__) + ".waiting"
while rank == 0 and not os.path.exists(is_waiting):  # ranks start at different times
    time.sleep(0.01)
if rank == 0:
    time.sleep(0.3)
work = dist.all_reduce(t, async_op=True)
if rank == 1:
    open(is_waiting, "w").close()
work.wait()
if rank == 1:
    os.remove(is_waiting)
print(float(t.sum()))
""")
    names = [rings[1].names[s["name"]] for s in rings[1].spans(w.COLLECTIVE)]
    assert names == ["all_reduce (gloo, group 0)", "wait"]
    assert rings[1].spans(w.COLLECTIVE)[1]["duration"] > 100_000_000


def test_an_error_passes_and_the_call_is_left(tmp_path):
    for ring in run(tmp_path, """
import traceback
try:
    dist.all_reduce("no tensor")
except Exception as error:
    print(type(error).__name__, len(traceback.extract_tb(error.__traceback__)) > 0)
dist.barrier()
"""):
        assert [name for name, _, _ in calls(ring)] == ["barrier (gloo, group 0)"]
        assert ring.group == -1


def test_the_reducers_own_times_and_what_is_unseen(tmp_path):
    for ring in run(tmp_path, DDP, compare=True):
        assert len(steps(ring)) == 4
        found = {}
        for record in ring.records:
            if record["type"] == "count" and record["flags"] == w.COUNT_OF_HOOK:
                found.setdefault(ring.names[record["name"]], []).append(record["value"])
        for metric in ("ddp.forward.ms", "ddp.backward.ms", "ddp.communication.ms", "ddp.overlap.ms"):
            assert found[metric] and all(0 <= value < 10_000 for value in found[metric])
        assert all(a >= b for a, b in zip(found["ddp.communication.ms"], found["ddp.overlap.ms"]))
        assert json.loads(ring.infos()["communication_unseen"]) == "DistributedDataParallel"
        said = json.loads(ring.infos()["communication"])
        assert said["world_size"] == 2 and said["reducer_times"] is True


def test_a_world_of_one_has_nothing_unseen(tmp_path):
    ring = Program(tmp_path, BEGIN + DDP + "dist.destroy_process_group()\n").run(env={
        "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port())}, compare=False).main()
    assert "communication_unseen" not in ring.infos()


def test_what_is_too_dear_is_given_up_but_still_counted(tmp_path):
    for ring in run(tmp_path, """
if os.environ.get("HOTLAP_RING_DIR"):
    from hotlap import _hook, _wire
    _hook.parts()[1].shed = _wire.PART_COLLECTIVES
dist.barrier()
dist.barrier()
if os.environ.get("HOTLAP_RING_DIR"):
    _hook.parts()[1].shed = 0
dist.barrier()
"""):
        assert calls(ring) == [("barrier (gloo, group 0)", -1, 2)]
