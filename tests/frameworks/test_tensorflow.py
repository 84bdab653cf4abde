"""Keras 3 on its TensorFlow back end, and tf.keras, which is the same code: small real trainings, the same without and
with the hook. TensorFlow reads its data inside a compiled function: what it waits for there nobody sees.
"""
import importlib.util
import json

import pytest
from framework_harness import run
from harness import steps, w

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("tensorflow is not installed", allow_module_level=True)

PRELUDE = """
import os, sys
import numpy
%s
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
KERAS = "import keras"
TF_KERAS = "import tensorflow as tf\nkeras = tf.keras"


def tensorflow_run(tmp_path, body, imports=KERAS, **more):
    env = {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1",
           "TF_ENABLE_ONEDNN_OPTS": "0", "TF_NUM_INTEROP_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1"}
    return run(tmp_path, body, prelude=PRELUDE % imports, env=env, **more)


@pytest.mark.parametrize("imports", [KERAS, TF_KERAS], ids=["keras", "tf.keras"])
def test_fit_and_its_validation(tmp_path, imports):
    ring = tensorflow_run(tmp_path, """
model = net()
say(model.fit(*data(64), batch_size=8, epochs=3, verbose=0, validation_data=data(24), validation_batch_size=8))
""", imports).main()
    found = steps(ring)
    assert len(found) == 24
    assert {s["flags"] for s in found} == {w.STEP_BY_PROGRAM}
    assert [e["a"] for e in ring.spans(w.EPOCH)] == [0, 1, 2]
    evaluations = ring.spans(w.EVALUATION)
    assert [e["a"] for e in evaluations] == [3, 3, 3]
    for evaluation in evaluations:
        for step in found:  # outside of every step
            assert (evaluation["start"] >= step["start"] + step["duration"]
                    or evaluation["start"] + evaluation["duration"] <= step["start"])
    assert json.loads(ring.infos()["keras"])["backend"] == "tensorflow"
    phases = [r["phase"] for r in ring.records if r["type"] == "phase"]
    assert phases == [3] + [4, 3] * 3 + [5]
    assert not ring.spans(w.DATA_WAIT) and not ring.spans(w.FORWARD)  # unseen, and not of no time


def test_a_dataset_of_tensorflow_and_a_failing_callback(tmp_path):
    outcome = tensorflow_run(tmp_path, """
import tensorflow as tf
class Failing(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 5:
            raise ValueError("enough")
dataset = tf.data.Dataset.from_tensor_slices(data(64)).batch(8).prefetch(2)
try:
    net().fit(dataset, verbose=0, callbacks=[Failing()])
except ValueError as error:
    print(error)
model = net()
say(model.fit(dataset, epochs=2, verbose=0))
print(float(model.evaluate(dataset, verbose=0)).hex(), model.predict(data(8)[0], verbose=0).shape)
""")
    assert outcome.code == 0
    assert len(steps(outcome.main())) == 5 + 16  # the step in which a callback failed did not end


def test_a_loop_of_ones_own_with_marks(tmp_path):
    ring = tensorflow_run(tmp_path, """
import tensorflow as tf
import hotlap
model = net()
optimizer = keras.optimizers.SGD(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
x, y = data(8)
for i in range(6):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    hotlap.step()
    print(float(loss).hex())
""", compare=False).main()
    assert len(steps(ring)) == 6
