"""Keras 3: steps, epochs, evaluation and, where Keras shows it, the wait for data. Nothing of Keras is imported here.

Keras calls the list of callbacks at every turn of fit(), evaluate() and predict(); its methods are watched rather than
a callback added, so that what the program finds in its list stays its own. What the back end does inside a step is one
piece, except under PyTorch, whose own adapters see loader and backward.
"""
import functools
import sys
import time

from hotlap import _hook, _wire
from hotlap._events import BY_UPDATE, CALL, OFF, PROGRAM_STEP

now = time.monotonic_ns
TRAINING, EVALUATING = 1, 2
ITEMS_MAX = 64


class Loop:
    """What fit(), evaluate() or predict() is at. The methods that take an event run in the core's order of events."""

    def __init__(self, recorder, core):
        self.recorder, self.core = recorder, core
        self.doing = 0         # TRAINING | EVALUATING
        self.described = False
        self.epoch_start = 0
        self.batches = 0       # of the evaluation that runs
        self.reads = False     # Keras's own reading is timed

    def is_mine(self):
        core = self.core
        return not core.busy & OFF and core.is_training_thread(BY_UPDATE)

    def tell(self, handler, *details):
        t = now()
        self.core.events.append((CALL, t, t, handler) + details)

    # ---- as Keras calls its callbacks ----

    def train_begin(self):
        self.doing = TRAINING
        self.tell(self.training_began)
        if not self.described:
            self.described = True
            describe(self.recorder)

    def train_end(self):
        self.doing = 0
        self.core.drain()

    def epoch_begin(self, number=0):
        self.epoch_start = now()
        self.tell(self.epoch_began)

    def epoch_end(self, number=0):
        self.tell(self.epoch_ended, number, self.epoch_start)

    def train_batch_end(self, number=0):
        core = self.core
        if not core.marked:  # hotlap.step() decides
            t = now()
            core.events.append((PROGRAM_STEP, t, t))
            core.tick(t)

    def test_begin(self):
        self.doing |= EVALUATING
        self.batches = 0
        self.tell(self.evaluation_began)

    def test_batch_end(self, number=0):
        self.batches += 1
        if len(self.core.events) > 500:
            self.core.drain()

    def test_end(self):
        self.doing &= ~EVALUATING
        self.tell(self.evaluation_ended, self.batches)
        self.core.drain()

    # ---- in the order of events ----

    def training_began(self, event):
        core = self.core
        core.optimizers_made = True  # an evaluation is no longer the job's work
        if core.evaluating:  # an exception ended it
            core.switch(False, event[1])
        core.start_ns = event[1]     # what came before, another fit() too, belongs to no step
        core.samples = core.tokens = -1
        core.pending, core.batch_open = None, False  # Keras reads a batch to build the model

    def epoch_began(self, event):
        core = self.core
        self.first_index = core.index
        if core.pending is None and not core.forwards and not core.backwards:
            core.start_ns = event[1]

    def epoch_ended(self, event):
        core = self.core
        if core.index > self.first_index and not core.passes_shown:
            core.span(_wire.EPOCH, event[5], event[1] - event[5], 0, -1, event[4], -1)

    def evaluation_began(self, event):
        core = self.core
        if core.pending is not None:
            core.settle_pending(core.evaluating)
        if not core.evaluating:
            core.switch(True, event[1])

    def evaluation_ended(self, event):
        core = self.core
        if core.pending is not None:
            core.settle_pending(True)
        core.unsure = False
        if core.evaluating:
            core.eval_batches, core.eval_last, core.last_event_ns = event[4], event[1], event[1]
            core.switch(False, event[1])

    def waited(self, event):
        _, start, end, _, samples, size = event
        core = self.core
        step = core.step_now()
        if step >= 0 and samples >= 0:
            core.samples = max(core.samples, 0) + samples
        core.span(_wire.DATA_WAIT, start, end - start, self.recorder.name("data (Keras)"), step, samples, size)


def describe(recorder):
    keras = sys.modules.get("keras")
    config = sys.modules.get("keras.src.backend.config")
    recorder.info("keras", {"version": str(getattr(keras, "__version__", "")),
                            "backend": config.backend() if config is not None else None})


def attach(module):
    recorder, core = _hook.parts()
    if recorder.off:
        return
    loop = core.keras = core.keras or Loop(recorder, core)
    callbacks = getattr(module, "CallbackList", None)
    if callbacks is not None:
        for name in ("train_begin", "train_end", "epoch_begin", "epoch_end", "train_batch_end", "test_begin",
                     "test_batch_end", "test_end"):
            wrap_callback(callbacks, "on_" + name, getattr(loop, name), loop)
        for name in ("begin", "batch_end", "end"):  # predict() is a forward without an update, like an evaluation
            wrap_callback(callbacks, "on_predict_" + name, getattr(loop, "test_" + name), loop)
    iterator = getattr(module, "JAXEpochIterator", None)
    if iterator is not None:
        wrap_iterator(iterator, loop)


def wrap_callback(cls, name, told, loop):
    """Ours comes before the callbacks at a beginning and after them at an end: their time is the loop's."""
    plain = vars(cls).get(name)
    if plain is None or hasattr(plain, "_hotlap"):
        return
    first = name.endswith("_begin")
    numbered = "epoch" in name or "batch" in name

    def tell(arguments):
        try:
            if loop.is_mine():
                told(*[a for a in arguments[:1] if numbered and type(a) is int])
        except Exception:
            loop.recorder.failed()

    @functools.wraps(plain)
    def callback(self, *args, **kwargs):
        if first:
            tell(args)
        try:
            result = plain(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if not first:
            tell(args)
        return result

    callback._hotlap = True
    setattr(cls, name, callback)


def wrap_iterator(cls, loop):
    """JAX: batches come from a plain iterator of Keras's, read inside the step."""
    plain = cls._get_iterator

    @functools.wraps(plain)
    def _get_iterator(self, *args, **kwargs):
        try:
            found = plain(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        return Batches(found, loop)

    cls._get_iterator = _get_iterator


class Batches:
    """Keras's iterator of batches, next() timed."""

    def __init__(self, plain, loop):
        self.plain, self.loop = plain, loop

    def __getattr__(self, name):
        return getattr(self.__dict__["plain"], name)

    def __iter__(self):
        self.plain = iter(self.plain)
        return self

    def __next__(self):
        loop = self.loop
        start = now()
        try:
            batch = next(self.plain)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        try:
            if loop.doing and loop.is_mine():
                if not loop.reads:
                    loop.reads = True
                    loop.recorder.info("loader", {"known": False, "text": "Keras reads the data"})
                loop.core.events.append((CALL, start, now(), loop.waited) + content_of(batch))
        except Exception:
            loop.recorder.failed()
        return batch


def content_of(batch):
    """(samples, bytes) of the arrays in nested tuples, lists and dicts; -1: unknown."""
    samples, size, waiting = -1, 0, [batch]
    for item in waiting:
        if type(item) in (tuple, list):
            waiting.extend(item[:ITEMS_MAX])
        elif type(item) is dict:
            waiting.extend(list(item.values())[:ITEMS_MAX])
        else:
            shape, held = getattr(item, "shape", None), getattr(item, "nbytes", None)
            if shape and samples < 0:
                samples = int(shape[0])
            if type(held) is int:
                size += held
        if len(waiting) > 2 * ITEMS_MAX:
            break
    return samples, size or -1
