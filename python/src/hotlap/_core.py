"""What the adapters see becomes steps, waits, phases and epochs: the state machine of the training thread.

Adapters only append tuples to `events` (cheap, any thread; _events.py) and call tick() at the end of a step or a wait;
drain() then works them off in order, the usual ones by a short cut (_usual.py). A step ends with the optimizer: a group
of optimizer.step() calls in which none appears twice (two optimizers that take turns in one iteration are one step;
gradient accumulation is one step because backward does not count). Programs that call hotlap.step() decide for
themselves; where no optimizer was made, a batch of the loader is a step.
"""
import sys
import time
from collections import deque
from _thread import allocate_lock, get_ident

from hotlap import _usual, _wire
from hotlap._events import (
    BATCH_EVENTS,
    BUSY,
    EAGER_STEPS,
    EVENTS_MAX,
    GRAD,
    IDLE_NS,
    IN_OPTIMIZER,
    OFF,
    PARAMETERS,
    SPAN,
    TAKEN_OVER,
    TRAINING,
)
from hotlap._rest import Rest
from hotlap._shadow import Cost, Governor, Shadow

now = time.monotonic_ns
cpu_now = time.thread_time_ns
GATHER_NS = 20_000_000     # then small steps gather: our code comes into the caches once for all of them
GATHER_SHED_NS = 200_000_000
CANDIDATES_MAX = 1024      # batches without an optimizer step until we believe that none will come
FORWARD_CALLS_MAX = 10_000
QUIET_CALLS_MAX = 3        # without a loader: so many forwards in eval mode in a row are an evaluation
DISCOVERY_STEPS = 3
OOMS_MAX, OOM_TEXT_MAX = 8, 1_000
NAMED_MAX = 64  # of the program's own spans, the last ones


def said_already(error):
    """One exception passes through several wrappers. The mark is on it: kept here it would keep the frames and their
    tensors alive, and its id is soon another's."""
    if getattr(error, "_hotlap_said", False):
        return True
    error._hotlap_said = True
    return False


class Core:
    def __init__(self, recorder):
        self.recorder = recorder
        self.events = []        # always this object: adapters hold its append
        self.probe = None       # an adapter's call around nothing, see Cost
        self.discovery = None   # the module adapter, told when the first steps are over
        self.at_end = []        # adapters' functions for an orderly end
        self.at_settle = []     # and for when the first steps are over
        self.resting = False    # see _rest.py
        self.index = 0
        self.rest = Rest(self)
        self.at_step = []       # and for each of them, with its end
        self.at_fork = []       # and for the child of a fork
        self.sampler = None     # the device adapter, while it wants something of the wrappers (_torch/device.py)
        self.keras = None
        self.profile = None     # looks into steps when asked to (_profile.py)
        self.looking = None     # the same, while something of that is wanted
        self.functions = None   # counts stacks when asked to (_functions.py)
        self.handlers = [self.waited, self.exhausted, self.forward, self.backward, self.optimizer, self.program_step,
                         self.fetched, self.other_span, self.count, self.iterator, self.taken_over, self.call, self.quiet]
        recorder.obey = self.obey
        self.reset()

    def reset(self, child=False):
        """`child`: as after fork."""
        self.rest.reset()
        self.started_ns = now()
        self.events.clear()
        self.lock = allocate_lock()
        self.thread = None
        self.thread_number = 0
        self.thread_rank = 0
        self.in_main_thread = True
        self.busy = 0           # BUSY: inside something measured as a whole; OFF: by command or in a shadow block
        self.no_phases = False  # forward and backward were shed
        self.optimizer_depth = 0
        self.optimizer_calls = 0
        self.optimizers_made = False
        self.marked = False     # the program calls hotlap.step()
        self.passes_shown = False  # epochs come from a loader's passes
        self.index = 0          # the step that runs
        self.unwatched = None   # a step that was not watched from its begin on: it has no parts
        self.start_ns = None    # when it began; None until something happened
        self.source = 0
        self.group, self.group_open, self.group_end, self.expected = set(), False, 0, frozenset()
        self.late, self.late_end = set(), 0
        self.skipped = False
        self.candidates = []
        self.batch_open = False
        self.forward_since_batch = False
        self.last_iterator = None
        self.pending = None     # a wait that is not yet known to be for training or evaluation
        self.pass_from = None   # when making the iterator began whose first batch this will be
        self.unsure = False     # quiet forwards used it: what follows will tell
        self.unsure_calls, self.unsure_grad = 0, False
        self.train_loader = None
        self.last_wait_step = -10
        self.samples = self.tokens = -1
        self.forget_forward()
        self.forwards = self.forwards_ever = 0
        self.backwards = self.backwards_ever = 0
        self.after_backward_ns = self.gap_end_ns = 0
        self.named = deque(maxlen=NAMED_MAX)  # (start, end) of the program's own spans in this step
        self.nested = []        # (start, duration) of forwards and backwards in this step, for an optimizer's closure
        self.evaluating = False
        self.eval_start = self.eval_last = self.eval_batches = 0
        self.eval_mode_trains = False
        self.phase = _wire.PHASE_INITIALISATION
        self.last_event_ns = self.last_drain_ns = 0
        self.own_ns = 0         # our time since the last HOOK span
        self.cost = Cost(self.probe)
        self.steps_since = self.step_ns_since = 0
        self.loader_unknown_said = False
        self.settled = False
        self.governor = Governor()
        self.shadow = None if child else Shadow.from_environment()
        self.shed = 0
        self.gather_ns = 0      # a tick drains when the last one is so long ago
        self.ooms_said = 0
        self.content = None     # (id, (samples, bytes, tokens)) of the batch that next() is just making

    def set_probe(self, probe):
        self.probe = self.cost.probe = probe

    # ---- called by adapters as things happen ----

    def is_training_thread(self, rank):
        """Whether events of the current thread count; the surest kind of event so far decides which thread that is."""
        ident = get_ident()
        if ident == self.thread:
            if rank > self.thread_rank:
                self.thread_rank = rank
            return True
        if self.thread is None or rank > self.thread_rank or not self.alive(self.thread):
            if self.thread is not None:
                self.events.append((TAKEN_OVER,))
            threading = sys.modules.get("threading")
            self.in_main_thread = threading is None or ident == threading.main_thread().ident
            self.thread, self.thread_rank, self.busy = ident, rank, self.busy & OFF
            self.thread_number = self.recorder.thread()
            return True
        return False

    def is_here(self):
        """Whether this is the training thread."""
        return get_ident() == self.thread

    @staticmethod
    def alive(ident):
        threading = sys.modules.get("threading")
        return threading is None or ident in threading._active

    def tick(self, t):
        """After an optimizer step or a wait."""
        if t - self.last_drain_ns >= self.gather_ns or len(self.events) >= BATCH_EVENTS:
            self.drain()

    def note(self, event):
        """An event from anywhere: user marks, collections, checkpoints."""
        if len(self.events) >= EVENTS_MAX:
            self.drain()
        self.events.append(event)
        if len(self.events) >= BATCH_EVENTS or now() - self.last_drain_ns > IDLE_NS:
            self.drain()

    def note_span(self, kind, start, end, name, a, b):
        self.note((SPAN, start, end, kind, name, a, b, self.recorder.thread()))

    def raised(self, error):
        """An exception that passes through a wrapper, or ended the program. Never raises."""
        try:
            if type(error).__name__ == "OutOfMemoryError" and self.ooms_said < OOMS_MAX and not said_already(error):
                self.ooms_said += 1
                self.recorder.info("oom", {"text": str(error)[:OOM_TEXT_MAX], "step": self.step_now()})
                self.recorder.flush()  # what follows is often the end
        except Exception:
            self.recorder.failed()

    def drain(self):
        """Works off what happened. Returns at once when another thread is at it. Never raises."""
        lock = self.lock
        if not lock.acquire(False):
            if len(self.events) > 4 * EVENTS_MAX:  # whoever drains is stuck: bounded, and counted
                del self.events[:EVENTS_MAX]
                self.recorder.dropped += EVENTS_MAX
            return
        try:
            began = cpu_now()  # of this thread: being preempted is not our doing
            cost, events = self.cost, self.events
            here = get_ident() == self.thread
            if here:
                cost.measure()
            batch = events[:]
            del events[:len(batch)]
            self.work_off(batch)
            recorder = self.recorder
            recorder.flush()
            if recorder.off:
                self.busy |= OFF
            self.own_ns += cpu_now() - began + cost.clock_ns + cost.event_ns * len(batch)
            self.last_drain_ns = t = now()
            if self.shadow is not None and self.shadow.drained(self, t):
                self.pending = None
                self.forget_forward()
            if here:
                self.rest.turn()
                if self.looking is not None:
                    self.looking.boundary()  # its time is told as a pause, not as our share of the step
        except Exception:
            self.recorder.failed()
        finally:
            lock.release()

    def work_off(self, batch):
        at, count, handlers = 0, len(batch), self.handlers
        looked_at = -1
        while at < count:
            try:
                while at < count:
                    if self.index != looked_at and _usual.begins(self):
                        looked_at = self.index
                        at = _usual.work_off(self, batch, at)
                        looked_at = self.index
                        continue
                    looked_at = self.index
                    event = batch[at]
                    at += 1
                    handlers[event[0]](event)
            except Exception:  # costs this event, not those behind it
                self.recorder.failed()

    # ---- waiting for data ----

    def waited(self, event):
        """next() gave a batch."""
        _, start, end, iterator, loader, samples, size, tokens, depth = event
        if self.unsure:
            self.was_evaluation()
        if self.forward_start is not None:
            self.close_forward()
        self.loader_boundary(iterator, start)
        if self.pending is not None:
            self.settle_pending(self.evaluating)
        if self.start_ns is None:
            self.start_ns = start
        self.batch_open, self.last_iterator, self.last_event_ns = True, iterator, end
        if loader is None:  # the hook is off: only the cadence counts
            self.forward_since_batch = True
            return
        self.forward_since_batch = False
        self.pending = start, end - start, samples, size, tokens, loader
        if depth >= 0:
            self.recorder.count(loader.depth_name, depth, self.step_now(), start)

    def taken_over(self, _):
        """A thread turned out to be the training one; what another one only waited for is not its own."""
        self.pending, self.unsure, self.batch_open, self.last_iterator = None, False, False, None
        self.pass_from = None
        self.candidates = []
        self.samples = self.tokens = -1
        self.forget_forward()
        self.last_wait_step = -10
        if not self.index:
            self.start_ns = None

    def loader_boundary(self, iterator, t):
        """Without an optimizer a batch is a step, once something was done with it."""
        if self.batch_open and self.source in (0, _wire.STEP_BY_LOADER) and (
                self.forward_since_batch or (
                    not self.forwards_ever and iterator == self.last_iterator and self.in_main_thread)):
            self.loader_step(t)

    def exhausted(self, event):
        """next() said that there is no more."""
        _, start, end, iterator, loader = event
        if self.unsure:
            self.was_evaluation()
        if self.forward_start is not None:
            self.close_forward()
        self.loader_boundary(iterator, start)
        if self.pending is not None:
            self.settle_pending(self.evaluating)
        self.batch_open = False
        if loader is not None and end - start > 1_000_000:  # stopping workers: otherwise nobody's time
            self.span(_wire.DATA_WAIT, start, end - start, loader.name, self.step_now(), 0, -1)
            if self.evaluating and loader is not self.train_loader:
                self.eval_last = max(self.eval_last, end)

    def iterator(self, event):
        """An iterator was made: samplers shuffle, workers start."""
        _, start, end, loader, workers = event
        if self.pending is not None:
            self.settle_pending(self.evaluating)
        self.pass_from = start
        if end - start > 1_000_000:
            self.close_forward()
            if self.start_ns is None:
                self.start_ns = start
            self.span(_wire.DATA_WAIT, start, end - start, loader.name, self.step_now(), 0, -1)

    def settle_pending(self, evaluating):
        start, duration, samples, size, tokens, loader = self.pending
        self.pending, self.pass_from, self.unsure = None, None, False
        step = self.index
        if evaluating and not self.inference():
            step = -1
            self.eval_batches += 1
            self.eval_last = start + duration
        else:
            if self.phase == _wire.PHASE_INITIALISATION:
                self.enter_phase(_wire.PHASE_TRAINING, start)
            self.last_wait_step = step
            if samples >= 0:
                self.samples = samples if self.samples < 0 else self.samples + samples
            if tokens >= 0:
                self.tokens = tokens if self.tokens < 0 else self.tokens + tokens
            self.train_loader = loader
        self.span(_wire.DATA_WAIT, start, duration, loader.name, step, samples, size)

    def pending_from(self):
        """When the wait for this batch began; of the first one with its workers' start."""
        return self.pending[0] if self.pass_from is None else min(self.pass_from, self.pending[0])

    def inference(self):
        """A job without training: its evaluation is its work."""
        return not self.optimizers_made and not self.backwards_ever

    def step_now(self):
        return -1 if self.evaluating and not self.inference() else self.index

    def fetched(self, event):
        """A batch was made inside next() itself: there are no workers."""
        self.recorder.fetched(event, self.step_now())

    # ---- forward, backward ----

    def forward(self, event):
        """A root module returned."""
        _, start, end, bits = event
        if bits & TRAINING and bits & GRAD:
            if self.unsure and bits & PARAMETERS:
                self.end_doubt(start)
            evaluating = self.evaluating and self.pending is None and not bits & PARAMETERS
        else:
            evaluating = self.quiet_forward(bits)
        if not self.unsure:
            pending = self.pending
            if evaluating is not self.evaluating:
                self.switch(evaluating, start if pending is None else self.pending_from())
            if pending is not None:
                self.settle_pending(evaluating)
        if self.start_ns is None:
            self.start_ns = start
        if self.forward_start is None:
            if not (self.unsure or evaluating or self.pending) and (not bits & IN_OPTIMIZER or not self.forwards):
                self.wait_before_forward(start)
            self.forward_start = start
        duration = end - start
        self.forward_ns += duration
        self.forward_calls += 1
        self.nested.append((start, duration))
        self.forward_since_batch = True
        self.forwards_ever += 1
        self.last_event_ns = end
        if self.unsure:
            self.unsure_calls += bool(bits & PARAMETERS)
        elif evaluating:
            self.eval_last = end
        else:
            self.forwards += 1
            if self.phase == _wire.PHASE_INITIALISATION:
                self.enter_phase(_wire.PHASE_TRAINING, start)
        if self.forward_calls >= FORWARD_CALLS_MAX:
            self.close_forward()
            self.nested.clear()

    def quiet(self, event):
        """Small steps rest: forwards without gradients, one after the other, and nothing of a step before them."""
        _, start, end, calls = event
        if not self.evaluating:
            if calls < QUIET_CALLS_MAX or self.unsure:
                return
            self.switch(True, start)
        self.eval_last = self.last_event_ns = end

    def quiet_forward(self, bits):
        """In eval mode or without gradients: an evaluation, or a frozen model that takes part in training. Whether it
        evaluates; `unsure` when only what follows on the same batch can tell."""
        if self.unsure or self.inference():
            return not self.unsure and not bits & TRAINING
        if bits & GRAD and self.eval_mode_trains:
            return False
        if self.evaluating and (self.pending is None or self.pending[5] is not self.train_loader):
            return True
        if not self.evaluating and self.pending is None and self.forwards:
            return False  # beside the model that trains
        self.unsure, self.unsure_calls, self.unsure_grad = True, 0, bool(bits & GRAD)
        return self.evaluating

    def end_doubt(self, t):
        """A forward of a model that trains, a backward or an update follows: the quiet forwards were part of a step.
        Without a loader to tell batches apart, several of them are taken for an evaluation."""
        if self.pending is None and self.unsure_calls >= QUIET_CALLS_MAX:
            self.was_evaluation()
            return
        self.unsure = False
        if self.evaluating:
            self.end_evaluation()
            self.evaluating = False
            self.enter_phase(_wire.PHASE_TRAINING, t)
        if self.pending is not None:
            self.settle_pending(False)
        elif self.forward_start is not None:
            self.wait_before_forward(self.forward_start)
        self.forwards += 1

    def close_forward(self):
        """One span for the root calls since the last boundary (a model and its loss are two roots)."""
        start = self.forward_start
        if start is not None:
            self.span(_wire.FORWARD, start, self.forward_ns, 0, self.step_now(), self.forward_calls, -1)
            self.forget_forward()

    def forget_forward(self):
        self.forward_start = None
        self.forward_ns = self.forward_calls = 0

    def wait_before_forward(self, start):
        """No loader that we know brought this batch: the gap before forward is the wait (at most)."""
        if self.index - self.last_wait_step <= 2 or self.start_ns is None:
            return
        if self.forwards == 0:
            begin = self.start_ns
        elif self.after_backward_ns:
            begin = self.after_backward_ns
        else:
            return
        if start <= begin:
            return
        if not self.loader_unknown_said:
            self.loader_unknown_said = True
            self.recorder.info("loader", {"known": False, "text": "loader unknown: the gap before forward counts"})
        self.gap_end_ns = start
        name = self.recorder.name("before forward (loader unknown)")
        for named_start, named_end in sorted(self.named):  # what the program has named itself is no wait
            if named_end <= begin or named_start >= start:
                continue
            if named_start > begin:
                self.span(_wire.DATA_WAIT, begin, named_start - begin, name, self.index, 0, -1,
                          _wire.WAIT_BEFORE_FORWARD)
            begin = max(begin, named_end)
        if begin < start:
            self.span(_wire.DATA_WAIT, begin, start - begin, name, self.index, -1, -1, _wire.WAIT_BEFORE_FORWARD)

    def backward(self, event):
        _, start, end = event
        if self.unsure:
            self.eval_mode_trains |= self.unsure_grad
            self.end_doubt(start)
        if self.evaluating:
            self.eval_mode_trains = True
            self.switch(False, start)
        if self.pending is not None:
            self.settle_pending(False)
        if self.forward_start is not None:
            self.close_forward()
        if self.start_ns is None:
            self.start_ns = start
        if self.phase == _wire.PHASE_INITIALISATION:
            self.enter_phase(_wire.PHASE_TRAINING, start)
        duration = end - start
        self.span(_wire.BACKWARD, start, duration, 0, self.index, -1, -1)
        self.nested.append((start, duration))
        self.backwards += 1
        self.backwards_ever += 1
        self.after_backward_ns = self.last_event_ns = end

    # ---- phases ----

    def switch(self, evaluating, t):
        """Between training and evaluation. The step that follows an evaluation begins where that ended."""
        self.close_forward()
        if evaluating:
            self.eval_start, self.eval_last, self.eval_batches = t, t, 0
        elif not self.inference():
            self.end_evaluation()
        self.evaluating = evaluating
        self.enter_phase(_wire.PHASE_EVALUATION if evaluating else _wire.PHASE_TRAINING, t)

    def was_evaluation(self):
        """The quiet forwards were one: nothing else was done with their batch."""
        t = self.pending_from() if self.pending is not None else self.forward_start
        last = self.last_event_ns
        self.unsure = False
        if not self.evaluating:
            self.eval_start, self.eval_last, self.eval_batches = t, t, 0
            self.evaluating = True
            self.enter_phase(_wire.PHASE_EVALUATION, t)
        if self.pending is not None:
            self.settle_pending(True)
        self.close_forward()
        self.eval_last = max(self.eval_last, last)

    def end_evaluation(self):
        self.span(_wire.EVALUATION, self.eval_start, self.eval_last - self.eval_start, 0, -1, self.eval_batches, -1)
        if not self.forwards and not self.backwards:
            self.start_ns = self.eval_last

    def enter_phase(self, phase, t):
        if self.phase == phase:
            return
        if self.phase == _wire.PHASE_INITIALISATION:
            self.span(_wire.INITIALISATION, self.started_ns, t - self.started_ns, 0, -1, -1, -1)
        self.phase = phase
        self.recorder.phase(phase, t, self.index)

    # ---- steps ----

    def optimizer(self, event):
        """optimizer.step() returned (or the scaler left it out). What its closure called is not its own time."""
        _, start, end, key, skipped = event
        if self.unsure:
            self.end_doubt(start)
        if self.evaluating:
            self.switch(False, start)
        if self.pending is not None:
            self.settle_pending(False)
        if self.forward_start is not None:
            self.close_forward()
        if self.start_ns is None or (not self.index and start < self.start_ns):
            self.start_ns = start
        if self.phase == _wire.PHASE_INITIALISATION:
            self.enter_phase(_wire.PHASE_TRAINING, self.start_ns)
        own = end - max(start, self.gap_end_ns)  # in a closure the gap before forward reaches into it
        for nested_start, duration in reversed(self.nested):
            if nested_start < start:
                break
            own -= duration
        self.last_event_ns = end
        self.after_backward_ns = 0
        if skipped:
            self.skipped = True
        elif own > 0 and not (self.no_phases or self.resting or self.busy & OFF):
            self.span(_wire.OPTIMIZER, end - own, own, 0, self.index, -1, -1)
        if self.source == _wire.STEP_BY_OPTIMIZER:
            self.optimizer_group(key, end)
        elif self.source != _wire.STEP_BY_PROGRAM:
            self.source = _wire.STEP_BY_OPTIMIZER
            self.take_back_candidates()
            self.optimizer_group(key, end)

    def optimizer_group(self, key, end):
        if self.group_open:
            if key in self.group:  # the cycle began anew before all that were expected had their turn
                self.expected = frozenset(self.group)
                self.end_step(self.group_end)
                self.group = set()
            self.group.add(key)
        elif not self.group or key in self.group:
            if self.late:  # they belong to the cycle of the others
                self.expected = frozenset(self.group | self.late)
                self.start_ns = max(self.start_ns, self.late_end)
                self.late = set()
            self.group = {key}
            self.group_open = True
        elif key in self.late:  # a cycle of their own: the others are done
            self.expected = frozenset(self.late)
            self.end_step(self.late_end)
            self.group, self.late, self.group_open = {key}, set(), True
        else:
            self.late.add(key)
            self.late_end = end
            return
        self.group_end = end
        if self.group >= self.expected:
            if len(self.group) != len(self.expected):
                self.expected = frozenset(self.group)
            self.group_open = False
            self.end_step(end)

    def loader_step(self, end):
        """A batch is over and no optimizer has stepped so far."""
        if self.evaluating and not self.inference():
            return
        if not self.optimizers_made or self.source:
            self.source = _wire.STEP_BY_LOADER
            self.end_step(end)
            return
        if self.pending is not None:
            self.settle_pending(self.evaluating)
        self.candidates.append((self.start_ns, end, self.samples, self.tokens))
        self.start_ns, self.samples, self.tokens = end, -1, -1
        if len(self.candidates) >= CANDIDATES_MAX:
            self.believe_candidates()

    def take_back_candidates(self):
        """The batches so far were accumulated for this first update."""
        if self.candidates:
            self.start_ns = self.candidates[0][0]
            for _, _, samples, tokens in self.candidates:
                self.samples = max(self.samples, 0) + samples if samples >= 0 else self.samples
                self.tokens = max(self.tokens, 0) + tokens if tokens >= 0 else self.tokens
            self.candidates = []

    def believe_candidates(self):
        self.source = _wire.STEP_BY_LOADER
        candidates, self.candidates = self.candidates, []
        for self.start_ns, end, self.samples, self.tokens in candidates:
            self.end_step(end)

    def program_step(self, event):
        """hotlap.step()."""
        t = event[2]
        if self.pending is not None:
            self.settle_pending(self.evaluating)
        self.close_forward()
        if self.source != _wire.STEP_BY_PROGRAM:
            counted = self.source == _wire.STEP_BY_OPTIMIZER and self.index > 0 and not self.group_open
            self.source = _wire.STEP_BY_PROGRAM
            self.group_open, self.candidates = False, []
            if counted:  # the optimizer has just ended this first step
                self.start_ns = t
                return
        if self.start_ns is None:
            self.start_ns = self.started_ns
        if self.phase == _wire.PHASE_INITIALISATION:
            self.enter_phase(_wire.PHASE_TRAINING, self.start_ns)
        self.end_step(t)

    def end_step(self, end):
        index, start, shed = self.index, self.start_ns, self.shed
        if self.pending is not None and self.source == _wire.STEP_BY_LOADER:
            self.settle_pending(self.evaluating)
        flags = self.source | _wire.STEP_SKIPPED if self.skipped else self.source
        self.span(_wire.STEP, start, end - start, 0, index, self.samples, self.tokens, flags)
        self.index = index + 1
        self.start_ns = end
        self.samples = self.tokens = -1
        self.forwards = self.backwards = self.after_backward_ns = self.gap_end_ns = 0
        self.nested.clear()
        self.named.clear()
        self.skipped = False
        self.steps_since += 1
        self.step_ns_since += end - start
        if self.own_ns:
            self.account(index, start, shed)
        if not self.settled and index >= DISCOVERY_STEPS:
            self.settle()
        self.publish(index, end)

    def publish(self, index, end):
        """The step that ended last, for who waits for steps and in page 0."""
        for each in self.at_step:
            try:
                each(end)
            except Exception:
                self.recorder.failed()
        ring = self.recorder.ring
        if ring is not None:
            signed = ring.signed
            signed[_wire.LIVE_STEP] = index
            signed[_wire.LIVE_STEP_END] = end

    def account(self, index, start, shed):
        """Our own time since the last account, and what follows from it."""
        own = self.own_ns
        recorder = self.recorder
        recorder.own_ns += own
        if not self.busy & OFF:
            self.span(_wire.HOOK, start, own, 0, index, shed, self.steps_since)
            self.shed = self.governor.step(shed, own, self.step_ns_since, self.steps_since)
            self.no_phases = bool(self.shed & _wire.PART_PHASES)
        self.choose_pace()
        self.own_ns = self.steps_since = self.step_ns_since = 0
        ring = recorder.ring
        if ring is not None:
            ring.signed[_wire.LIVE_OWN_TIME] = recorder.own_ns
            ring.signed[_wire.LIVE_SHED] = self.shed

    def choose_pace(self):
        """How long events may gather. Turns (_rest.py) end with a drain, so those of watching stay short."""
        if self.index >= EAGER_STEPS:
            late = self.shed & _wire.PART_EACH_STEP_FLUSH and (
                self.resting or not self.shed & _wire.PART_EACH_DETAIL)
            self.gather_ns = GATHER_SHED_NS if late else GATHER_NS
        if self.looking is not None and self.looking.is_eager():
            self.gather_ns = 0

    def settle(self):
        """The first steps are over: roots are known, and so is the process group."""
        self.settled = True
        self.recorder.update_place()
        if self.discovery is not None:
            self.discovery.end()
        for each in self.at_settle:
            each()

    def obey(self, ring):
        """A command of the recorder, looked for with each flush. Its answer tells what became of it."""
        word = ring.words[_wire.COMMAND_WORD]
        code, result = word & 0xFFFF, _wire.ANSWER_DONE
        if code in (_wire.COMMAND_OFF, _wire.COMMAND_ON):
            self.busy = self.busy & BUSY | (OFF if code == _wire.COMMAND_OFF else 0)
        elif code == _wire.COMMAND_SAY_AGAIN:
            self.recorder.say_again()
        elif code == _wire.COMMAND_PROFILE:
            result = self.look_into(ring.words[_wire.COMMAND_ARGUMENT])
        elif code != _wire.COMMAND_PING:
            result = _wire.ANSWER_UNKNOWN
        ring.words[_wire.ANSWER_RESULT] = result
        ring.words[_wire.ANSWER_WORD] = word

    def look_into(self, argument):
        """A command to look into steps; which answer it gets."""
        from hotlap import _plan

        mode, _, _, hz = _plan.unpack(argument)
        if mode == _plan.FUNCTIONS or (mode == _plan.OFF and self.functions is not None):
            self.count_stacks(min(hz, _plan.HZ_MAX), False)
            if mode == _plan.FUNCTIONS or self.profile is None:
                return _wire.ANSWER_DONE
        if self.profile is None:
            return _wire.ANSWER_UNSUPPORTED
        return _wire.ANSWER_DONE if self.profile.command(argument) else _wire.ANSWER_FAILED

    def count_stacks(self, hz, on_outlier):
        if self.functions is None:
            from hotlap import _functions

            self.functions = _functions.Watch(self.recorder, self)
            self.at_fork.append(self.functions.reset)
            self.at_end.append(self.functions.close)
        self.functions.begin(hz, on_outlier)

    # ---- the rest ----

    def span(self, kind, start, duration, name, step, a, b, flags=0, pack=_wire.pack_span_raw):
        if step == self.unwatched and _wire.DATA_WAIT <= kind <= _wire.OPTIMIZER:
            return
        self.recorder.append(pack(1, flags, 56, kind, 0, start, duration, self.thread_number, name, step, a, b))

    def other_span(self, event):
        _, start, end, kind, name, a, b, thread = event
        step = -1 if kind == _wire.GARBAGE and self.start_ns is None else self.step_now()
        self.recorder.append(_wire.pack_span(kind, start, end - start, thread, name, step, a, b))
        if kind == _wire.USER and thread == self.thread_number:
            self.named.append((start, end))

    def call(self, event):
        """An adapter's own handler."""
        event[3](event)

    def count(self, event):
        _, t, _, name, value = event
        self.recorder.count(name, value, self.step_now(), t)

    def epoch(self, number, start, end, first_index):
        """A loader was gone through (or left); an epoch if steps came of it."""
        if self.index + self.group_open > first_index or self.candidates:
            self.passes_shown = True
            self.span(_wire.EPOCH, start, end - start, 0, -1, number, -1)
            return True
        return False

    def at_exit(self):
        """The interpreter ends in order."""
        self.drain()
        if self.unsure:
            self.was_evaluation()
        if self.pending is not None:
            self.settle_pending(self.evaluating)
        self.close_forward()
        end = self.last_event_ns or now()
        if self.group_open:
            self.end_step(self.group_end)
        if self.source == 0 and self.batch_open and self.start_ns is not None:
            self.loader_step(end)  # the program left its loop in the middle of a batch
        elif self.source == _wire.STEP_BY_LOADER and self.batch_open:
            self.end_step(end)
        if self.candidates:
            self.believe_candidates()
        if self.evaluating and not self.inference():
            self.end_evaluation()
        if self.shadow is not None:
            self.shadow.close(self, now())
        if not self.settled:
            self.settle()
        self.recorder.close(end)
