"""What counts as a step, an epoch, an evaluation: real loops of Debian's torch."""
import pytest
from harness import PRELUDE, SOURCE, Program, parts, steps, w

pytest.importorskip("torch")

LOOP = """
loader = DataLoader(data(), batch_size=8)
model, loss_of = net(), loss_of
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def check_breakdown(ring, found):
    """The parts of each step lie inside it and do not exceed it."""
    for step in found[1:]:
        total = parts(ring, step["step"])
        assert {w.DATA_WAIT, w.FORWARD, w.BACKWARD, w.OPTIMIZER} <= set(total)
        assert sum(total.values()) <= step["duration"]


def test_a_plain_loop(tmp_path):
    ring = Program(tmp_path, LOOP + """
for epoch in range(3):
    for x, y in loader:
        say(update(model, optimizer, x, y))
""").run().main()
    found = steps(ring)
    assert len(found) == 24
    assert {s["flags"] for s in found} == {w.STEP_BY_OPTIMIZER}
    assert {s["a"] for s in found} == {8}
    check_breakdown(ring, found)
    assert [e["a"] for e in ring.spans(w.EPOCH)] == [0, 1, 2]
    waits = ring.spans(w.DATA_WAIT)
    assert len(waits) == 24 and {v["b"] for v in waits} == {8 * 8 * 4 + 8 * 8}
    assert all(f["a"] == 2 for f in ring.spans(w.FORWARD))  # model and loss are called by the program
    assert ring.closed == 1
    assert '"batch_size": 8' in ring.infos()["loader.1"]
    assert '"initialised": false' in ring.infos()["accelerator"]
    assert '"autocast": null' in ring.infos()["precision"]
    assert '"parameters": "torch.float32"' in ring.infos()["precision"]
    own = sorted(h["duration"] for h in ring.spans(w.HOOK))
    assert own and own[len(own) // 2] < 2_000_000  # CPU time, so also on a busy machine
    assert len(ring.spans(w.WORKER_BATCH)) == 24  # no workers: the batch is made in next()


def test_the_precision_is_that_of_the_training_forward(tmp_path):
    ring = Program(tmp_path, LOOP + """
with torch.no_grad():
    model.eval()(torch.zeros(1, 8))
model.train()
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()
""").run().main()
    assert '"autocast": "torch.bfloat16"' in ring.infos()["precision"]


@pytest.mark.parametrize("batches,every,expected", [(8, 4, 2), (8, 3, 3), (8, 1, 8)])
def test_accumulation_counts_updates(tmp_path, batches, every, expected):
    ring = Program(tmp_path, LOOP + """
for i, (x, y) in enumerate(loader):
    loss = loss_of(model(x), y) / %d
    loss.backward()
    if (i + 1) %% %d == 0 or i == 7:
        optimizer.step()
        optimizer.zero_grad()
    say(loss)
""" % (every, every)).run().main()
    found = steps(ring)
    assert len(found) == expected
    assert sum(s["a"] for s in found) == 8 * batches
    assert len(ring.spans(w.BACKWARD)) == batches


def test_no_optimizer_counts_batches(tmp_path):
    ring = Program(tmp_path, """
model = net().eval()
with torch.no_grad():
    for x, y in DataLoader(data(), batch_size=8):
        say(model(x).sum())
""").run().main()
    found = steps(ring)
    assert len(found) == 8
    assert {s["flags"] for s in found} == {w.STEP_BY_LOADER}
    assert [s["a"] for s in found] == [8] * 8
    assert [f["step"] for f in ring.spans(w.FORWARD)] == list(range(8))
    assert not ring.spans(w.EVALUATION)


def test_a_loop_with_an_update_of_its_own_counts_batches(tmp_path):
    ring = Program(tmp_path, """
model = net()
for x, y in DataLoader(data(), batch_size=8):
    loss = loss_of(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    say(loss)
""").run().main()
    assert len(steps(ring)) == 8


def test_an_optimizer_that_never_steps_leaves_batches_as_steps(tmp_path):
    ring = Program(tmp_path, LOOP + """
for x, y in loader:
    loss = loss_of(model(x), y)
    loss.backward()
    say(loss)
""").run().main()
    found = steps(ring)
    assert len(found) == 8 and {s["flags"] for s in found} == {w.STEP_BY_LOADER}


EVALUATION = LOOP + """
validation = DataLoader(data(40), batch_size=8)
def evaluate():
    %(enter)s
    with %(grad)s:
        total = 0.0
        for x, y in validation:
            total += float(loss_of(model(x), y).detach())
    print(total.hex())
    model.train()
if %(first)s:
    evaluate()
for epoch in range(2):
    for x, y in loader:
        say(update(model, optimizer, x, y))
    evaluate()
"""


@pytest.mark.parametrize("enter", ["model.eval()", "pass"])
@pytest.mark.parametrize("grad", ["torch.no_grad()", "torch.enable_grad()"])
@pytest.mark.parametrize("first", [True, False])
def test_evaluation_is_no_step(tmp_path, enter, grad, first):
    if enter == "pass" and "enable" in grad:
        pytest.skip("nothing tells this evaluation from training")
    ring = Program(tmp_path, EVALUATION % {"enter": enter, "grad": grad, "first": first}).run().main()
    found = steps(ring)
    assert len(found) == 16
    evaluations = ring.spans(w.EVALUATION)
    assert [e["a"] for e in evaluations] == [5] * (3 if first else 2)
    for evaluation in evaluations:
        for step in found:  # outside of every step
            assert (evaluation["start"] >= step["start"] + step["duration"]
                    or evaluation["start"] + evaluation["duration"] <= step["start"])
    # A pass's end that took a millisecond is a wait of its own, without samples.
    waits = [v for v in ring.spans(w.DATA_WAIT) if v["step"] == -1 and v["a"] != 0]
    assert len(waits) == 5 * len(evaluations)
    assert sum(s["a"] for s in found) == 128
    assert len(ring.spans(w.EPOCH)) == 2
    phases = [r["phase"] for r in ring.records if r["type"] == "phase"]
    expected = [3, 4, 3, 4, 5] if not first else [4, 3, 4, 3, 4, 5]
    assert phases == expected


def test_evaluation_inside_an_epoch(tmp_path):
    ring = Program(tmp_path, LOOP + """
validation = DataLoader(data(16), batch_size=8)
for i, (x, y) in enumerate(loader):
    loss = update(model, optimizer, x, y)
    if i % 3 == 2:
        model.eval()
        with torch.no_grad():
            for u, v in validation:
                say(loss_of(model(u), v))
        model.train()
""").run().main()
    assert len(steps(ring)) == 8
    assert [e["a"] for e in ring.spans(w.EVALUATION)] == [2, 2]
    assert len(ring.spans(w.EPOCH)) == 1


def test_roll_outs_are_seen_while_small_steps_rest(tmp_path):
    """Ten forwards without gradients before every fifth update; two beside a training forward are part of its step."""
    ring = Program(tmp_path, LOOP + """
def rest():
    if "HOTLAP_RING_DIR" in os.environ:
        from hotlap import _hook
        core = _hook.parts()[1]
        core.drain()
        core.rest.put(True)
        core.rest.next_step = 1 << 60
def forwards(count):
    with torch.no_grad():
        for _ in range(count):
            model(x)
x, y = torch.randn(8, 8), torch.zeros(8, dtype=torch.long)
for i in range(40):
    if i == 20:
        rest()
    if i % 5 == 4:
        forwards(10)
    elif i % 5 == 2:
        out = model(x)
        forwards(5)
    say(update(model, optimizer, x, y))
""").run().main()
    assert len(steps(ring)) == 40
    assert [v["a"] for v in ring.spans(w.EVALUATION)] == [0] * 8
    assert not [f for f in ring.spans(w.FORWARD) if f["step"] >= 20]
    assert not ring.infos().get("error")


def test_fine_tuning_in_eval_mode_is_training(tmp_path):
    ring = Program(tmp_path, LOOP + """
model.eval()
for x, y in loader:
    say(update(model, optimizer, x, y))
""").run().main()
    found = steps(ring)
    assert len(found) == 8
    assert set(parts(ring, 5)) == {w.DATA_WAIT, w.FORWARD, w.BACKWARD, w.OPTIMIZER}


@pytest.mark.parametrize("order", ["teacher first", "student first"])
@pytest.mark.parametrize("known", [True, False])
def test_a_frozen_teacher_is_part_of_the_step(tmp_path, order, known):
    ring = Program(tmp_path, """
teacher, student = net().eval(), net()
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
loader = DataLoader(data(), batch_size=8)
validation = DataLoader(data(24), batch_size=8)
def ask(x):
    with torch.no_grad():
        return teacher(x)
for epoch in range(2):
    for x, y in (loader if %s else list(data().tensors[0].reshape(8, 1, 8, 8).repeat(1, 2, 1, 1))):
        if %s:
            goal = ask(x)
            out = student(x)
        else:
            out = student(x)
            goal = ask(x)
        loss = (out - goal).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        say(loss)
    student.eval()
    for x, y in (validation if %s else [(x, 0) for x in data(24).tensors[0].split(8)]):
        print(float(ask(x).sum()), float((student(x).detach() - ask(x)).sum()))
    student.train()
""" % (known, order == "teacher first", known)).run().main()
    found = steps(ring)
    assert len(found) == 16
    assert len(ring.spans(w.EVALUATION)) == 2
    forwards = [f for f in ring.spans(w.FORWARD) if f["step"] >= 0]
    assert [f["step"] for f in forwards] == list(range(16))
    if known:
        assert {f["a"] for f in forwards} == {2}
        assert {s["a"] for s in found} == {8}
        assert sum(e["a"] for e in ring.spans(w.EVALUATION)) == 6
    for step in found[1:]:
        assert sum(parts(ring, step["step"]).values()) <= step["duration"]


GAN = """
loader = DataLoader(data(), batch_size=8)
g, d = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 1))
og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
for i, (x, _) in enumerate(loader):
    for _ in range(%d):
        with torch.no_grad():
            fake = g(torch.randn(8, 4))
        od.zero_grad()
        loss = d(fake).mean() - d(x).mean()
        loss.backward()
        od.step()
    og.zero_grad()
    loss = -d(g(torch.randn(8, 4))).mean()
    loss.backward()
    og.step()
    say(loss)
"""


def test_two_optimizers_in_turn_are_one_step(tmp_path):
    ring = Program(tmp_path, GAN % 1).run().main()
    found = steps(ring)
    assert len(found) == 8
    assert len(ring.spans(w.OPTIMIZER)) == 16
    assert not ring.spans(w.EVALUATION)
    assert len([s for s in ring.spans(w.OPTIMIZER) if s["step"] == 5]) == 2


def test_a_critic_that_steps_more_often_sets_the_pace(tmp_path):
    ring = Program(tmp_path, GAN % 3).run().main()
    assert len(steps(ring)) == 24


def test_models_trained_one_after_the_other(tmp_path):
    ring = Program(tmp_path, """
kept = []
for rate in (0.1, 0.2, 0.3):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    kept.append(optimizer)
    for x, y in DataLoader(data(), batch_size=8):
        loss = update(model, optimizer, x, y)
    say(loss)
""").run().main()
    assert len(steps(ring)) == 24


def test_a_closure_that_runs_many_times_is_one_step(tmp_path):
    ring = Program(tmp_path, """
x, y = data().tensors
model = net()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=6)
def closure():
    optimizer.zero_grad()
    loss = loss_of(model(x), y)
    loss.backward()
    return loss
for i in range(5):
    say(optimizer.step(closure))
""").run().main()
    found = steps(ring)
    assert len(found) == 5
    assert len(ring.spans(w.BACKWARD)) > 5
    for step in found:
        total = parts(ring, step["step"])
        assert sum(total.values()) <= step["duration"]


def test_schedulers_and_closures_of_wrapped_optimizers(tmp_path):
    ring = Program(tmp_path, """
class Wrapping(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
model = net()
optimizer = Wrapping(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for epoch in range(3):
    for x, y in DataLoader(data(), batch_size=16):
        def closure():
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            return loss
        say(optimizer.step(closure))
    scheduler.step()
print(optimizer.param_groups[0]["lr"])
""").run().main()
    found = steps(ring)
    assert len(found) == 12
    assert sum(parts(ring, 5).values()) <= found[5]["duration"]


def test_iterated_by_hand(tmp_path):
    ring = Program(tmp_path, LOOP + """
it = iter(loader)
for i in range(20):
    try:
        x, y = next(it)
    except StopIteration:
        it = iter(loader)
        x, y = next(it)
    say(update(model, optimizer, x, y))
""").run().main()
    assert len(steps(ring)) == 20
    assert len(ring.spans(w.EPOCH)) == 3


def test_a_loop_left_early(tmp_path):
    ring = Program(tmp_path, LOOP + """
for epoch in range(3):
    for i, (x, y) in enumerate(loader):
        if i == 5:
            break
        loss = update(model, optimizer, x, y)
    say(loss)
""").run().main()
    assert len(steps(ring)) == 15
    assert [e["a"] for e in ring.spans(w.EPOCH)] == [0, 1, 2]


def test_two_loaders_in_one_step(tmp_path):
    ring = Program(tmp_path, LOOP + """
for (x, y), (u, v) in zip(loader, DataLoader(data(), batch_size=4)):
    optimizer.zero_grad()
    loss = loss_of(model(x), y) + loss_of(model(u), v)
    loss.backward()
    optimizer.step()
    say(loss)
""").run().main()
    found = steps(ring)
    assert len(found) == 8
    assert {s["a"] for s in found} == {12}


def test_an_iterable_dataset_and_dicts_with_tokens(tmp_path):
    ring = Program(tmp_path, """
class Stream(IterableDataset):
    def __iter__(self):
        for i in range(36):
            yield {"input_ids": torch.arange(10) + i, "labels": torch.tensor(i % 2)}
model = nn.Sequential(nn.Embedding(64, 4), nn.Flatten(), nn.Linear(40, 2))
optimizer = torch.optim.AdamW(model.parameters())
for batch in DataLoader(Stream(), batch_size=8):
    say(update(model, optimizer, batch["input_ids"], batch["labels"]))
""").run().main()
    found = steps(ring)
    assert [s["a"] for s in found] == [8, 8, 8, 8, 4]
    assert [s["b"] for s in found] == [80, 80, 80, 80, 40]


def test_an_unknown_loader_shows_as_the_gap_before_forward(tmp_path):
    ring = Program(tmp_path, """
import time
def batches():
    for i in range(8):
        time.sleep(0.02)
        yield torch.full((4, 8), float(i)), torch.zeros(4, dtype=torch.int64)
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches():
    say(update(model, optimizer, x, y))
""").run().main()
    assert len(steps(ring)) == 8
    waits = ring.spans(w.DATA_WAIT)
    assert [v["step"] for v in waits] == list(range(1, 8))  # before the first there is no end to measure from
    assert {v["flags"] for v in waits} == {w.WAIT_BEFORE_FORWARD}
    assert all(v["duration"] >= 20_000_000 for v in waits)
    assert "loader unknown" in ring.infos()["loader"]


def test_marks_of_the_program(tmp_path):
    ring = Program(tmp_path, """
import hotlap
assert hotlap.recorded() == bool(os.environ.get("HOTLAP_RING_DIR"))
@hotlap.span("shuffle")
def shuffle():
    return 3
for i in range(6):
    with hotlap.span("work"):
        shuffle()
    hotlap.count("loss", 0.5 * i)
    hotlap.count("tensor", torch.tensor(2.0))
    hotlap.count("nonsense", object())
    hotlap.step()
""").run(env={"PYTHONPATH": str(SOURCE)}).main()
    found = steps(ring)
    assert len(found) == 6 and {s["flags"] for s in found} == {w.STEP_BY_PROGRAM}
    users = ring.spans(w.USER)
    assert [ring.names[u["name"]] for u in users] == ["shuffle", "work"] * 6
    assert [u["step"] for u in users[::2]] == list(range(6))
    counts = [r for r in ring.records if r["type"] == "count"]
    assert [c["value"] for c in counts if ring.names[c["name"]] == "loss"] == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    assert {ring.names[c["name"]] for c in counts} == {"loss", "tensor"}


def test_marked_steps_outrank_the_optimizer(tmp_path):
    ring = Program(tmp_path, """
import hotlap
""" + LOOP + """
for x, y in loader:
    say(update(model, optimizer, x, y))
    hotlap.step()
""").run(env={"PYTHONPATH": str(SOURCE)}).main()
    assert len(steps(ring)) == 8


@pytest.mark.parametrize("inside", ["forward", "backward"])
def test_switched_off_inside_a_call_it_stays_off(tmp_path, inside):
    """A drain comes where it comes, also inside forward; a command or a shadow block may switch the hook off there."""
    ring = Program(tmp_path, LOOP + """
import hotlap
def switch_off(where):
    if i == 4 and where == "%s" and hotlap.recorded():
        from hotlap import _hook
        recorder, core = _hook.parts()
        recorder.ring.words[64] = 1 << 16 | 1
        hotlap.count("off", 1)
        core.drain()
class Switch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        switch_off("forward")
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        switch_off("backward")
        return gradient
class Off(nn.Module):
    def forward(self, x):
        return Switch.apply(x)
model = nn.Sequential(model, Off())
for i, (x, y) in enumerate(loader):
    say(update(model, optimizer, x, y))
""" % inside).run(env={"PYTHONPATH": str(SOURCE)}).main()
    assert len(steps(ring)) == 8
    assert ring.answer == (1 << 16 | w.COMMAND_OFF, w.ANSWER_DONE)
    for kind in (w.FORWARD, w.BACKWARD, w.OPTIMIZER):
        assert {s["step"] for s in ring.spans(kind)} <= {0, 1, 2, 3, 4}


def test_checkpoints(tmp_path):
    ring = Program(tmp_path, LOOP + """
import io
for i, (x, y) in enumerate(loader):
    loss = update(model, optimizer, x, y)
    if i == 3:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "state.pt")
        torch.save(model, io.BytesIO())
        model.load_state_dict(torch.load("state.pt")["model"])
    say(loss)
""").run().main()
    found = ring.spans(w.CHECKPOINT)
    assert [ring.names[c["name"]] for c in found] == ["torch.save", "torch.save", "torch.load"]
    assert [c["b"] for c in found] == [0, 0, 1]
    assert found[0]["a"] > 1000 and found[1]["a"] > 1000
    assert {c["step"] for c in found} == {4}


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_notebook_attaches_after_the_fact(tmp_path, scheduled):
    """The hook was not loaded at start: torch, model and optimizer are there before hotlap is imported."""
    program = Program(tmp_path, """
loader = DataLoader(data(), batch_size=8)
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""" + ("scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n" if scheduled else "") + """
sys.path.append(os.environ["SOURCE"])
import hotlap
print(hotlap.attach())
for x, y in loader:
    say(update(model, optimizer, x, y))
""", PRELUDE.replace("import os, sys\n", """import os, sys
sys.meta_path[:] = [f for f in sys.meta_path if not hasattr(f, 'adapters')]
sys.modules.pop('_hotlap_start', None)
"""))
    outcome = program.run(env={"SOURCE": str(SOURCE)}, compare=False)
    assert outcome.code == 0 and outcome.out.startswith("True"), outcome.err
    ring = outcome.main()
    assert len(steps(ring)) == 8
    assert {w.DATA_WAIT, w.FORWARD, w.BACKWARD, w.OPTIMIZER} <= set(parts(ring, 5))
