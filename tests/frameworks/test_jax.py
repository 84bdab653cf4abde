"""JAX: a training loop of its own, the same without and with the hook."""
import json

import pytest
from framework_harness import run
from harness import steps, w

pytest.importorskip("jax")

PRELUDE = """
import os, sys
import numpy
import jax
from jax import numpy as jnp
def data(n):
    g = numpy.random.default_rng(3)
    return g.normal(size=(n, 8)).astype("float32"), g.normal(size=(n, 2)).astype("float32")
def loss_of(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights["a"]) @ weights["b"] - y) ** 2)
@jax.jit
def train_step(weights, x, y):
    loss, slope = jax.value_and_grad(loss_of)(weights, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, weights, slope), loss
weights = {"a": jax.random.normal(jax.random.key(1), (8, 16)), "b": jax.random.normal(jax.random.key(2), (16, 2))}
x, y = data(64)
"""
ENVIRONMENT = {"JAX_PLATFORMS": "cpu"}


def test_steps_that_the_program_marks(tmp_path):
    program = """
hotlap = __import__("hotlap") if "HOTLAP_RING_DIR" in os.environ else None
for epoch in range(2):
    for i in range(0, 64, 8):
        weights, loss = train_step(weights, x[i:i + 8], y[i:i + 8])
        if hotlap:
            hotlap.step()
    print(float(loss).hex())
"""
    ring = run(tmp_path, program, prelude=PRELUDE, env=ENVIRONMENT).main()
    assert len(steps(ring)) == 16
    assert json.loads(ring.infos()["jax"])["version"]
    assert json.loads(ring.infos()["accelerator"]) == {"devices": None, "initialised": False, "kind": None}
    compiled = [ring.names.get(s["name"], "") for s in ring.spans(w.COMPILE)]
    assert any("train_step" in name for name in compiled)
    assert not [r for r in ring.records if r["type"] == "count"]  # a CPU tells nothing of its memory


def test_a_torch_loader_gives_the_steps(tmp_path):
    pytest.importorskip("torch")
    ring = run(tmp_path, """
import torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), batch_size=8)
for epoch in range(2):
    for u, v in loader:
        weights, loss = train_step(weights, u.numpy(), v.numpy())
    print(float(loss).hex())
""", prelude=PRELUDE, env=ENVIRONMENT).main()
    found = steps(ring)
    assert len(found) == 16
    assert {s["flags"] for s in found} == {w.STEP_BY_LOADER} and {s["a"] for s in found} == {8}


def test_without_marks_there_are_no_steps(tmp_path):
    outcome = run(tmp_path, """
for i in range(0, 64, 8):
    weights, loss = train_step(weights, x[i:i + 8], y[i:i + 8])
print(float(loss).hex())
try:
    train_step(weights, x, y[:3])
except TypeError as error:
    print(type(error).__name__)
""", prelude=PRELUDE, env=ENVIRONMENT)
    assert steps(outcome.main()) == []
    assert outcome.main().spans(w.COMPILE)
