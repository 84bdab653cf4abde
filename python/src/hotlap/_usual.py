"""Steps that are like most steps of a training loop, worked off whole: one pass over their events, few records to pack.

The state machine of _core decides what a step is and handles everything; this is a short cut through it for the one
course of events that makes up nearly all of them: a batch, forward in training mode, backward (any number of times),
then one update by the one optimizer, and what is left of that once parts are shed. The records are the same
(tests/hook/test_core.py compares). Anything else in a step, and the whole step goes the long way.
"""
import struct

from hotlap import _wire
from hotlap._events import (
    BACKWARD,
    COUNT,
    FETCHED,
    FORWARD,
    GRAD,
    IN_OPTIMIZER,
    OFF,
    OPTIMIZER,
    SPAN,
    TRAINING,
    WAITED,
)

TRAINS = TRAINING | GRAD
MODE = TRAINING | GRAD | IN_OPTIMIZER
BEGUN, HAS_BATCH, HAS_FORWARD, HAS_BACKWARD = range(4)

_two_spans = struct.Struct("<" + 2 * _wire.SPAN_FIELDS).pack
_span = _wire.pack_span_raw


def begins(core):
    """Whether the state is that between two usual steps."""
    return (core.source == _wire.STEP_BY_OPTIMIZER and core.settled and core.start_ns is not None
            and core.index != core.unwatched
            and core.pending is None and core.forward_start is None
            and not (core.unsure or core.evaluating or core.group_open or core.late or core.candidates or core.skipped
                     or core.nested or core.forwards or core.backwards or core.busy & OFF)
            and len(core.expected) == 1 and core.group == core.expected and core.samples < 0 and core.tokens < 0
            and not core.after_backward_ns and not core.gap_end_ns and core.pass_from is None
            and core.forwards_ever > 0 and core.backwards_ever > 0 and core.phase == _wire.PHASE_TRAINING)


def work_off(core, batch, at):
    """Works off the usual steps from batch[at] on; returns where the first event is that is not part of one."""
    recorder = core.recorder
    (key,) = core.expected
    thread, here = core.thread_number, recorder.thread()
    begun_at, without_phases = at, core.no_phases
    while True:
        try:
            taken = whole_step(core, batch, at, key, thread, here)
        except Exception:
            break  # an event that cannot be packed: the long way finds it
        if taken is None:
            break
        at, records, start, end, samples, tokens, waited = taken
        index = core.index
        records.append(_span(1, _wire.STEP_BY_OPTIMIZER, 56, _wire.STEP, 0, core.start_ns, end - core.start_ns, thread,
                             0, index, samples, tokens))
        recorder.queue.extend(records)
        core.steps_since += 1
        core.step_ns_since += end - core.start_ns
        if core.own_ns:
            core.account(index, core.start_ns, core.shed)
        core.index = index + 1
        core.start_ns = end
        if core.no_phases is not without_phases:
            break
    if at != begun_at:
        if waited is not None:
            core.batch_open = core.forward_since_batch = True
            core.last_iterator, core.train_loader = waited[3], waited[4]
            core.last_wait_step = core.index - 1
        core.last_event_ns = core.group_end = end
        core.publish(core.index - 1, end)
    return at


def whole_step(core, batch, at, key, thread, here):
    """None when the step is not usual or not whole; else (where the next begins, records, …)."""
    index = core.index
    records = []
    samples = tokens = -1
    stage = BEGUN
    last = BEGUN if core.resting else HAS_BATCH if core.no_phases else HAS_BACKWARD
    waited = None
    forward_start = forward_ns = calls = 0
    for i in range(at, len(batch)):
        event = batch[i]
        code = event[0]
        if code == FORWARD:
            _, start, end, bits = event
            if bits & MODE != TRAINS:
                return None
            if last != HAS_BACKWARD:
                return None
            if stage == HAS_FORWARD:
                forward_ns += end - start
                calls += 1
            elif stage == HAS_BATCH:
                stage, forward_start, forward_ns, calls = HAS_FORWARD, start, end - start, 1
            else:
                return None
        elif code == WAITED:
            if stage in (HAS_BATCH, HAS_FORWARD) or event[4] is None:
                return None
            _, start, end, _, loader, size, size_bytes, found, depth = waited = event
            if depth >= 0:
                records.append(_wire.pack_count(loader.depth_name, start, depth, index))
            if size >= 0:
                samples = size if samples < 0 else samples + size
            if found >= 0:
                tokens = found if tokens < 0 else tokens + found
            records.append(_span(1, 0, 56, _wire.DATA_WAIT, 0, start, end - start, thread, loader.name, index, size,
                                 size_bytes))
            stage = HAS_BATCH
        elif code == BACKWARD:
            if stage != HAS_FORWARD:
                return None
            _, start, end = event
            records.append(_two_spans(
                1, 0, 56, _wire.FORWARD, 0, forward_start, forward_ns, thread, 0, index, calls, -1,
                1, 0, 56, _wire.BACKWARD, 0, start, end - start, thread, 0, index, -1, -1))
            stage = HAS_BACKWARD
        elif code == OPTIMIZER:
            _, start, end, found, skipped = event
            if skipped or found != key or end <= start:
                return None
            if stage != last:
                return None
            if stage == HAS_BACKWARD:
                records.append(_span(1, 0, 56, _wire.OPTIMIZER, 0, start, end - start, thread, 0, index, -1, -1))
            return i + 1, records, start, end, samples, tokens, waited
        elif code == FETCHED:
            if stage in (HAS_BATCH, HAS_FORWARD):
                return None
            records.append(_wire.pack_fetched(event, index, here))
        elif code == SPAN:
            _, start, end, kind, name, a, b, by = event
            records.append(_span(1, 0, 56, kind, 0, start, end - start, by, name, index, a, b))
        elif code == COUNT:
            records.append(_wire.pack_count(event[3], event[1], event[4], index))
        else:
            return None
    return None
