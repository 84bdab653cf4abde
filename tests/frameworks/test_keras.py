"""Keras 3, on its JAX and its PyTorch back end: small real trainings, the same without and with the hook."""
import importlib.util
import json

import pytest
from framework_harness import run
from harness import steps, w

if importlib.util.find_spec("keras") is None:  # importing keras without its back end fails
    pytest.skip("keras is not installed", allow_module_level=True)

PRELUDE = """
import os, sys
import numpy
import keras
keras.utils.set_random_seed(7)
def data(n):
    g = numpy.random.default_rng(3)
    return g.normal(size=(n, 8)).astype("float32"), g.integers(0, 2, n)
def net():
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
    model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
def say(history):
    print({name: [float(v).hex() for v in values] for name, values in history.history.items()})
"""


def keras_run(tmp_path, backend, body, **more):
    if backend == "torch":
        pytest.importorskip("torch")
    else:
        pytest.importorskip("jax")
    return run(tmp_path, body, prelude=PRELUDE, env={"KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"}, **more)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_fit_and_its_validation(tmp_path, backend):
    ring = keras_run(tmp_path, backend, """
model = net()
say(model.fit(*data(64), batch_size=8, epochs=3, verbose=0, validation_data=data(24), validation_batch_size=8))
""").main()
    found = steps(ring)
    assert len(found) == 24
    assert {s["flags"] for s in found} == {w.STEP_BY_PROGRAM}
    assert {s["a"] for s in found} == {8}
    assert [e["a"] for e in ring.spans(w.EPOCH)] == [0, 1, 2]
    evaluations = ring.spans(w.EVALUATION)
    assert [e["a"] for e in evaluations] == [3, 3, 3]
    for evaluation in evaluations:
        for step in found:  # outside of every step
            assert (evaluation["start"] >= step["start"] + step["duration"]
                    or evaluation["start"] + evaluation["duration"] <= step["start"])
    begin = found[0]["start"]  # before it a batch is read to build the model
    waits = [s for s in ring.spans(w.DATA_WAIT) if s["a"] > 0 and s["start"] >= begin]
    assert sum(s["step"] >= 0 for s in waits) == 24 and sum(s["step"] < 0 for s in waits) == 9
    for step in found:
        inside = [s for s in waits if s["step"] == step["step"]]
        assert len(inside) == 1 and inside[0]["duration"] <= step["duration"] and inside[0]["b"] > 0
    described = json.loads(ring.infos()["keras"])
    assert described["backend"] == backend and described["version"]
    phases = [r for r in ring.records if r["type"] == "phase"]
    assert [r["phase"] for r in phases] == [3] + [4, 3] * 3 + [5]
    assert [r["t"] for r in phases] == sorted(r["t"] for r in phases)
    if backend == "jax":
        assert ring.spans(w.COMPILE)
    else:
        assert len(ring.spans(w.BACKWARD)) == 24


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_output_callbacks_and_a_failing_one(tmp_path, backend):
    outcome = keras_run(tmp_path, backend, """
class Seen(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print(batch, sorted(logs), len(self.model.history.history))
        if batch == 5:
            raise ValueError("enough")
seen = keras.callbacks.CallbackList([Seen()], model=net())
print([type(c).__name__ for c in seen.callbacks])
try:
    net().fit(*data(64), batch_size=8, verbose=2, callbacks=[Seen()])
except ValueError as error:
    print(error, error.__traceback__.tb_next is not None)
model = net()
say(model.fit(*data(32), batch_size=8, verbose=0))
print(float(model.evaluate(*data(16), verbose=0)).hex(), model.predict(data(8)[0], verbose=0).shape)
""")
    ring = outcome.main()
    assert outcome.code == 0
    assert len(steps(ring)) == 5 + 4  # the step in which a callback failed did not end
    assert ring.errors == 0


def test_a_slow_generator_shows_as_waiting(tmp_path):
    ring = keras_run(tmp_path, "jax", """
import time
class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 10
    def __getitem__(self, i):
        time.sleep(0.02)
        x, y = data(8)
        return x + i, y
say(net().fit(Batches(), epochs=2, verbose=0, shuffle=False))
""").main()
    found = steps(ring)
    assert len(found) == 20
    waits = [s for s in ring.spans(w.DATA_WAIT) if s["step"] >= 0]
    assert len(waits) == 20 and sum(s["duration"] for s in waits) > 10 * 20_000_000


def test_marks_of_the_program_outrank_fit(tmp_path):
    ring = keras_run(tmp_path, "jax", """
import hotlap
class Mark(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % 2:
            hotlap.step()
say(net().fit(*data(64), batch_size=8, epochs=2, verbose=0, callbacks=[Mark()]))
""", compare=False).main()
    assert len(steps(ring)) in (8, 9)  # the first batch was over before the first mark came
