"""Processes of every kind: loader workers, ranks, threads, forks, and every way to end."""
import json
import os
import pathlib
import socket
import subprocess
import tempfile

import pytest
from harness import PRELUDE, PYTHON, ROOT, SOURCE, Program, collect, environment, steps, w

pytest.importorskip("torch")

LOADER = PRELUDE + """
class Slow(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.randn(8, generator=g)
        for _ in range(20):
            x = x + 0.0 * torch.randn(8, generator=g)
        return x, i % 2
"""
TRAIN = """
    for epoch in range(2):
        for x, y in loader:
            say(update(model, optimizer, x, y))
"""
WORKERS = """
if __name__ == "__main__":
    loader = DataLoader(Slow(), batch_size=8, shuffle=True, %s)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""" + TRAIN


@pytest.mark.parametrize("settings,processes", [
    ("num_workers=2, multiprocessing_context='fork'", 4),
    ("num_workers=2, multiprocessing_context='spawn'", 4),
    ("num_workers=2, multiprocessing_context='forkserver'", 4),
    ("num_workers=2, persistent_workers=True, prefetch_factor=4", 2),
])
def test_loader_workers(tmp_path, settings, processes):
    outcome = Program(tmp_path, WORKERS % settings, LOADER).run()
    ring = outcome.main()
    found = steps(ring)
    assert len(found) == 16
    assert [e["a"] for e in ring.spans(w.EPOCH)] == [0, 1]
    workers = outcome.workers()
    assert len(workers) == processes
    assert sorted({r.worker_id for r in workers}) == [0, 1]
    batches = [b for r in workers for b in r.spans(w.WORKER_BATCH)]
    assert len(batches) == 16
    assert all(b["a"] > 0 and b["b"] == 8 * 8 * 4 + 8 * 8 for b in batches)
    for kind in (w.WORKER_FETCH, w.WORKER_COLLATE):
        assert [s["b"] for r in workers for s in r.spans(kind)] == [8] * 16
    starts = ring.spans(w.WORKER_START)
    assert len(starts) == (1 if "persistent" in settings else 2) and {s["a"] for s in starts} == {2}
    described = json.loads(ring.infos()["loader.1"])
    assert described["num_workers"] == 2 and described["persistent_workers"] == ("persistent" in settings)
    counted = {ring.names[c["name"]] for c in ring.records if c["type"] == "count"}
    assert "loader.queue_depth loader 1 (Slow)" in counted


def test_a_model_inside_a_worker_is_no_training(tmp_path):
    outcome = Program(tmp_path, """
class Features(Dataset):
    def __init__(self):
        self.model = net().eval()
    def __len__(self):
        return 32
    def __getitem__(self, i):
        with torch.no_grad():
            return self.model(torch.full((8,), float(i)))
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in DataLoader(Features(), batch_size=8, num_workers=int(sys.argv[1])):
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    say(loss)
""")
    for workers in "0", "2":
        ran = outcome.run(arguments=[workers])
        assert len(steps(ran.main())) == 4
        assert not ran.main().spans(w.EVALUATION)
        assert sum(len(r.spans(w.WORKER_BATCH)) for r in ran.rings) == 4
        assert not any(r.spans(w.FORWARD) for r in ran.workers())


def test_forward_alone_is_bounded(tmp_path):
    ring = Program(tmp_path, """
model = net().eval()
x = torch.zeros(1, 8)
with torch.no_grad():
    for i in range(25000):
        model(x)
""").run().main()
    assert sum(f["a"] for f in ring.spans(w.FORWARD)) == 25000
    assert len(ring.spans(w.FORWARD)) < 10


def test_a_dataset_that_fails_in_a_worker(tmp_path):
    outcome = Program(tmp_path, """
class Failing(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        if i == 20:
            raise ValueError("no such picture: %d" % i)
        return torch.zeros(8), 0
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(Failing(), batch_size=8, num_workers=int(sys.argv[1])):
    optimizer.zero_grad()
    loss_of(model(x), y).backward()
    optimizer.step()
""")
    for workers in "0", "1":
        ran = outcome.run(arguments=[workers])
        assert ran.code == 1 and "no such picture: 20" in ran.err
        assert len(steps(ran.main())) == 2


def test_exceptions_pass_unchanged_and_training_goes_on(tmp_path):
    ring = Program(tmp_path, """
import traceback
class Moody(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = net()
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        if self.calls % 3 == 0:
            raise RuntimeError("mood")
        return self.inner(x)
class Batches:
    def __init__(self):
        self.it = iter(loader)
    def __iter__(self):
        return self
    def __next__(self):
        return next(self.it)
loader = DataLoader(data(), batch_size=8, collate_fn=lambda items: items if len(items) == 99 else 1 / 0)
try:
    next(Batches())
except ZeroDivisionError:
    traceback.print_exc()
loader = DataLoader(data(), batch_size=8)
model = Moody()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    try:
        loss = loss_of(model(x), y)
    except RuntimeError:
        traceback.print_exc()
        continue
    optimizer.zero_grad()
    loss.backward()
    try:
        loss.backward()
    except RuntimeError:
        traceback.print_exc()
    try:
        optimizer.step(closure=lambda: 1 / 0)
    except ZeroDivisionError:
        traceback.print_exc()
    optimizer.step()
    say(loss)
loss_of(nn.Linear(8, 2)(torch.zeros(1, 9)), y)
""").run()
    assert ring.code == 1 and "mat1 and mat2" in ring.err
    assert len(steps(ring.main())) == 6


ENDS = """
import signal
loader = DataLoader(data(), batch_size=8)
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    say(update(model, optimizer, x, y))
    if i == 4:
        %s
"""


@pytest.mark.parametrize("end,code", [
    ("os._exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", -9), ("sys.exit(3)", 3),
    ("os.kill(os.getpid(), signal.SIGTERM)", -15), ("raise KeyboardInterrupt", -2), ("os.abort()", -6),
])
def test_every_way_to_end(tmp_path, end, code):
    outcome = Program(tmp_path, ENDS % end).run()
    assert outcome.code == code
    ring = outcome.main()
    assert len(steps(ring)) == 5
    assert ring.closed == (1 if code in (3, -2) else 0)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_two_ranks_by_environment(tmp_path):
    program = Program(tmp_path, """
import torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(1)
model = nn.parallel.DistributedDataParallel(net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = torch.utils.data.DistributedSampler(data(), shuffle=False)
for x, y in DataLoader(data(), batch_size=8, sampler=sampler):
    say(update(model, optimizer, x, y))
dist.destroy_process_group()
""")
    outputs = {}
    for hooked in (False, True):
        with tempfile.TemporaryDirectory(prefix="hotlap-rings-") as name:
            ring_dir = pathlib.Path(name) if hooked else None
            port = free_port()
            ranks = [subprocess.Popen(
                [PYTHON, str(program.path)], cwd=str(tmp_path), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(ring_dir, {"RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": "2",
                                           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})) for r in range(2)]
            results = [p.communicate(timeout=600) for p in ranks]
            assert [p.returncode for p in ranks] == [0, 0], results
            outputs[hooked] = [out for out, _ in results]
            rings = collect(ring_dir)[0] if hooked else []
    assert outputs[True] == outputs[False]
    assert sorted((r.role, r.rank, r.local_rank, r.world_size) for r in rings) == [(2, 0, 0, 2), (2, 1, 1, 2)]
    for ring in rings:
        assert len(steps(ring)) == 4 and ring.errors == 0
        assert json.loads(ring.infos()["launcher"])["environment"]["WORLD_SIZE"] == "2"


def test_ranks_by_mp_spawn_learn_their_rank_from_the_group(tmp_path):
    outcome = Program(tmp_path, """
import torch.distributed as dist
import torch.multiprocessing as mp
def work(rank, port):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%d" % port, rank=rank, world_size=2)
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data().tensors
    for _ in range(6):
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
if __name__ == "__main__":
    mp.spawn(work, (int(sys.argv[1]),), nprocs=2)
    print("done")
""").run(arguments=[str(free_port())])
    ranks = [r for r in outcome.rings if r.rank >= 0]
    assert sorted((r.rank, r.world_size) for r in ranks) == [(0, 2), (1, 2)]
    assert all(len(steps(r)) == 6 for r in ranks)


def test_training_in_a_thread_and_in_two(tmp_path):
    ring = Program(tmp_path, """
import threading
def train(seed):
    torch.manual_seed(seed)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data(), batch_size=8):
        loss = update(model, optimizer, x, y)
    losses[seed] = float(loss.detach())
losses = {}
for seed in (1, 2):
    thread = threading.Thread(target=train, args=(seed,))
    thread.start()
    thread.join()
print(losses[1], losses[2])
""").run().main()
    assert len(steps(ring)) == 16  # one thread after the other: the first has ended
    together = Program(tmp_path, """
import threading
def train(seed, barrier=threading.Barrier(2)):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data(), batch_size=8):
        barrier.wait()
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
    barrier.wait()
threads = [threading.Thread(target=train, args=(i,)) for i in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
print("done")
""").run().main()
    assert len(steps(together)) == 8  # of one of them


def test_a_thread_that_prefetches(tmp_path):
    ring = Program(tmp_path, """
import queue, threading, time
ready = queue.Queue(maxsize=2)
def feed():
    for batch in DataLoader(data(), batch_size=8):
        ready.put(batch)
    ready.put(None)
model = net()
threading.Thread(target=feed, daemon=True).start()
time.sleep(0.1)  # the loader is seen before there is an optimizer
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    batch = ready.get()
    if batch is None:
        break
    say(update(model, optimizer, batch[0], batch[1]))
""").run().main()
    assert len(steps(ring)) == 8
    waits = ring.spans(w.DATA_WAIT)
    gaps = [v for v in waits if v["flags"] == w.WAIT_BEFORE_FORWARD]
    assert len(gaps) >= 7  # before the loop the other thread's waits were all that was known
    assert waits[-len(gaps):] == gaps


def test_training_in_a_forked_child(tmp_path):
    outcome = Program(tmp_path, """
def train(n):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data().tensors
    for _ in range(n):
        loss = update(model, optimizer, x, y)
    say(loss)
train(3)
pid = os.fork()
if pid == 0:
    train(5)
    os._exit(0)
os.waitpid(pid, 0)
train(2)
""").run()
    assert sorted(len(steps(r)) for r in outcome.rings) == [5, 5]
    parent, child = sorted(outcome.rings, key=lambda r: r.pid)
    assert child.parent_pid == parent.pid


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_the_last_steps_of_a_process_of_multiprocessing(tmp_path, method):
    """Small steps gather for a while; a forked child ends without the functions of atexit."""
    outcome = Program(tmp_path, """
import torch.multiprocessing as mp
def train(n):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data().tensors
    for _ in range(n):
        loss = update(model, optimizer, x, y)
    say(loss)
def work(rank, n):
    train(n)
if __name__ == "__main__":
    for n in (203, 204):
        mp.start_processes(work, (n,), nprocs=1, start_method=%r)
""" % method).run()
    assert sorted(len(steps(r)) for r in outcome.rings if steps(r)) == [203, 204]
    assert [r.closed for r in outcome.rings if steps(r)] == [1, 1]


def test_programs_that_train_nothing_leave_no_ring(tmp_path):
    outcome = Program(tmp_path, "print('hello')", prelude="").run()
    assert outcome.rings == [] and len(outcome.ons) == 1 and outcome.offs == {}


@pytest.mark.parametrize("flags", [["-W", "error"], ["-X", "dev"], ["-bb"], ["-O"], ["-OO"], ["-s"], ["-u"]])
def test_flags_of_the_interpreter(tmp_path, flags):
    # torch itself warns on import under -W error with some versions: then both runs end alike, before the loop.
    ran = Program(tmp_path, ENDS % "sys.exit(3)", PRELUDE.replace("import torch\n", """
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
""", 1)).run(flags=flags)
    assert ran.code == 3
    assert len(steps(ran.main())) == 5


def test_run_as_a_module(tmp_path):
    package = tmp_path / "trainer"
    Program(package, ENDS % "sys.exit(3)", name="__main__.py")
    (package / "__init__.py").write_text("")
    ran = Program(tmp_path, "", prelude="").run(command=[PYTHON, "-m", "trainer"])
    assert ran.code == 3 and len(steps(ran.main())) == 5


def make_venv(folder):
    command = [PYTHON, "-m", "venv", "--system-site-packages", "--without-pip", str(folder)]
    subprocess.run(command, check=True)


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    """A virtual environment that sees Debian's torch and has what the wheel installs."""
    folder = tmp_path_factory.mktemp("venv")
    make_venv(folder)
    site = next((folder / "lib").glob("python3*/site-packages"))
    os.symlink(SOURCE / "hotlap", site / "hotlap")
    autoload = (ROOT / "tools" / "make_dist.py").read_text()
    line = next(part for part in autoload.splitlines() if part.startswith("AUTOLOAD = "))
    scope = {}
    exec(line, scope)
    (site / "hotlap_autoload.pth").write_text(scope["AUTOLOAD"])
    return str(folder / "bin" / "python")


@pytest.mark.parametrize("flags", [[], ["-I"], ["-E"]])
def test_a_virtual_environment_with_the_wheel(tmp_path, venv, flags):
    ran = Program(tmp_path, ENDS % "sys.exit(3)").run(python=venv, flags=flags)
    assert ran.code == 3 and len(steps(ran.main())) == 5


def test_a_virtual_environment_without_it_sees_pythonpath(tmp_path):
    make_venv(tmp_path / "v")
    ran = Program(tmp_path, ENDS % "sys.exit(3)").run(python=str(tmp_path / "v" / "bin" / "python"))
    assert ran.code == 3 and len(steps(ran.main())) == 5


def test_hotlap_0_turns_it_off(tmp_path):
    ran = Program(tmp_path, ENDS % "sys.exit(3)").run(env={"HOTLAP": "0"})
    assert ran.code == 3 and ran.rings == [] and ran.ons == []


