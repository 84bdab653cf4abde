"""Several data loaders in one process: each keeps its own settings, waits and batch costs."""
import json

import pytest
from harness import Program, steps, w

pytest.importorskip("torch")

# Training on one loader, evaluation on another that costs more; settings and work of both are the test's.
TWO = """
import time
class Slow(Dataset):
    def __init__(self, n, seconds):
        self.n, self.seconds = n, seconds
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        time.sleep(self.seconds)
        return torch.full((8,), i / self.n), i %% 2
class Pictures(Slow):
    pass
class Proofs(Slow):
    pass
def main():
    train = DataLoader(Pictures(32, 0.0005), batch_size=4, %(settings)s)
    validation = DataLoader(Proofs(12, 0.002), batch_size=2, %(settings)s)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(%(epochs)d):
        model.train()
        for x, y in train:
            loss = update(model, optimizer, x, y)
        say(loss)
        model.eval()
        with torch.no_grad():
            for x, y in validation:
                say(loss_of(model(x), y))
if __name__ == "__main__":
    main()
"""
TRAIN, PROOF = "loader 1 (Pictures)", "loader 2 (Proofs)"


def names(ring, spans):
    return [ring.names.get(s["name"]) for s in spans]


def loader_infos(ring):
    return {key: json.loads(text) for key, text in ring.infos().items() if key.startswith("loader")}


def test_each_loader_keeps_its_settings_and_costs(tmp_path):
    ring = Program(tmp_path, TWO % {"settings": "num_workers=0", "epochs": 2}).run().main()
    assert len(steps(ring)) == 16
    infos = loader_infos(ring)
    assert set(infos) == {"loader.1", "loader.2"}
    assert (infos["loader.1"]["dataset"], infos["loader.1"]["batch_size"]) == ("Pictures", 4)
    assert (infos["loader.2"]["dataset"], infos["loader.2"]["batch_size"]) == ("Proofs", 2)
    assert (infos["loader.1"]["batches"], infos["loader.2"]["batches"]) == (8, 6)  # of a pass, before the first ends
    for kind in (w.WORKER_BATCH, w.WORKER_FETCH, w.WORKER_COLLATE):
        found = names(ring, ring.spans(kind))
        assert found.count(TRAIN) == 16 and found.count(PROOF) == 12 and len(found) == 28
    waits = [s for s in ring.spans(w.DATA_WAIT) if s["a"] > 0]
    assert {name for name, s in zip(names(ring, waits), waits) if s["step"] >= 0} == {TRAIN}
    assert {name for name, s in zip(names(ring, waits), waits) if s["step"] < 0} == {PROOF}


@pytest.mark.parametrize("settings,epochs", [
    ("num_workers=2", 2),
    ("num_workers=2, persistent_workers=True", 2),
    ("num_workers=1, multiprocessing_context='spawn'", 1),  # each worker imports torch anew
    ("num_workers=1, multiprocessing_context='forkserver'", 1),
])
def test_workers_know_whose_they_are(tmp_path, settings, epochs):
    outcome = Program(tmp_path, TWO % {"settings": settings, "epochs": epochs}).run()
    assert len(steps(outcome.main())) == 8 * epochs
    batches = {TRAIN: 0, PROOF: 0}
    for ring in outcome.workers():
        found = set(names(ring, ring.spans(w.WORKER_BATCH)))
        assert len(found) == 1
        batches[found.pop()] += len(ring.spans(w.WORKER_BATCH))
    assert batches == {TRAIN: 8 * epochs, PROOF: 6 * epochs}
    depths = {r["name"] for r in outcome.main().records if r["type"] == "count"}
    assert {outcome.main().names[n] for n in depths} == {"loader.queue_depth " + TRAIN, "loader.queue_depth " + PROOF}


def test_a_loader_made_anew_for_each_epoch_is_one(tmp_path):
    ring = Program(tmp_path, """
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
held = data()
for epoch in range(4):
    for x, y in DataLoader(held if epoch % 2 else data(), batch_size=8, shuffle=epoch < 9):
        loss = update(model, optimizer, x, y)
    say(loss)
""").run().main()
    assert len(steps(ring)) == 32
    assert set(loader_infos(ring)) == {"loader.1"}
    assert [e["a"] for e in ring.spans(w.EPOCH)] == [0, 1, 2, 3]


def test_loaders_that_live_together_are_told_apart_however_alike(tmp_path):
    ring = Program(tmp_path, """
loaders = [DataLoader(data(), batch_size=8) for _ in range(3)]
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for loader in loaders:
    for x, y in loader:
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
""").run().main()
    assert len(steps(ring)) == 24
    assert set(loader_infos(ring)) == {"loader.1", "loader.2", "loader.3"}


def test_without_end_new_loaders_are_bounded(tmp_path):
    ring = Program(tmp_path, """
kept = []
for i in range(100):
    kept.append(DataLoader(data(16), batch_size=8))
    for x, y in kept[-1]:
        pass
""").run().main()
    assert len(steps(ring)) == 200
    assert len(loader_infos(ring)) == 64


def test_a_forked_child_says_its_loader_again(tmp_path):
    outcome = Program(tmp_path, """
loader = DataLoader(data(), batch_size=8)
def train():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
train()
pid = os.fork()
if not pid:
    train()
    sys.exit(0)
os.waitpid(pid, 0)
""").run()
    assert len(outcome.rings) == 2
    for ring in outcome.rings:
        assert len(steps(ring)) == 8
        assert set(loader_infos(ring)) == {"loader.1"}
        assert set(names(ring, ring.spans(w.WORKER_BATCH))) == {"loader 1 (TensorDataset)"}
        assert set(names(ring, [s for s in ring.spans(w.DATA_WAIT) if s["a"] > 0])) == {"loader 1 (TensorDataset)"}
