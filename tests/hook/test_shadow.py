"""What the hook knows and shows of its cost: shadow blocks, the calibrated cost of an event, the bench's statistics."""
import random
import sys

import harness
import pytest

from hotlap import _shadow, _wire
from hotlap._events import OFF

sys.path.insert(0, str(harness.ROOT / "bench"))

import shadow_statistics as statistics_of_pairs


def pairs(truth, count, outliers, seed):
    """Differences with noise, and blocks now and then in which something else ran."""
    choose = random.Random(seed)
    found = [truth + choose.gauss(0, 20) for _ in range(count)]
    for i in choose.sample(range(count), outliers):
        found[i] += choose.choice((-1, 1)) * choose.uniform(500, 5000)
    return found


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    held = 0
    for seed in range(200):
        estimate, low, high = statistics_of_pairs.shift(pairs(15.0, 40, 4, seed))
        assert low <= estimate <= high and high - low < 60
        held += low <= 15.0 <= high
    assert 180 <= held <= 200


def test_too_few_pairs_have_no_interval():
    with pytest.raises(ValueError):
        statistics_of_pairs.shift([1.0] * 5)
    assert statistics_of_pairs.shift([1.0] * 6) == (1.0, 1.0, 1.0)


class Core:
    def __init__(self):
        self.index, self.busy, self.spans = 0, 0, []

    def span(self, kind, start, duration, name, step, a, b):
        assert kind == _wire.SHADOW
        self.spans.append((start, duration, a, b))


def test_shadow_blocks_come_in_pairs_and_end_with_a_drain():
    core, shadow, t = Core(), _shadow.Shadow(10), 0
    choose = random.Random(4)
    while len(core.spans) < 400:
        core.index += choose.randrange(1, 7)  # so many were gathered
        t += 1000 * choose.randrange(1, 5)
        ended = shadow.drained(core, t)
        assert ended or core.busy == (0 if shadow.on else OFF)
    kinds = [a for _, _, a, _ in core.spans]
    assert kinds[0] == 1  # what was before the first pair
    assert all(sorted(kinds[i:i + 2]) == [0, 1] for i in range(1, 399, 2))
    assert {tuple(kinds[i:i + 2]) for i in range(1, 399, 2)} == {(0, 1), (1, 0)}
    assert all(10 <= steps < 17 for _, _, _, steps in core.spans)
    for (start, duration, _, _), (following, *_) in zip(core.spans, core.spans[1:]):
        assert start + duration == following


def test_the_cost_of_an_event_follows_what_is_measured_and_no_single_reading(monkeypatch):
    clock, took = [0], [3000]

    def now():
        return clock[0]

    def probe():
        clock[0] += took[0]

    monkeypatch.setattr(_shadow, "now", now)
    cost = _shadow.Cost(probe)
    for _ in range(50 * _shadow.PROBE_DRAINS):
        cost.measure()
    settled = cost.event_ns
    assert 2990 <= settled <= 3010 and type(settled) is int
    took[0] = 50_000_000  # somebody else had the processor
    for _ in range(_shadow.PROBE_DRAINS):
        cost.measure()
    assert cost.event_ns < 2 * settled
    assert _shadow.Cost(None).event_ns == _shadow.EVENT_NS


def test_dear_steps_go_into_turns_before_parts_are_lost():
    governor, shed, order = _shadow.Governor(), 0, []
    for _ in range(10_000):
        before, shed = shed, governor.step(shed, 100_000, 800_000, 1)
        if shed != before:
            order.append(shed & ~before)
    assert order[:2] == [_wire.PART_EACH_STEP_FLUSH, _wire.PART_EACH_DETAIL]
    assert order == list(_shadow.SHED_ORDER)
    for _ in range(100_000):
        shed = governor.step(shed, 100, 800_000, 1)
    assert shed == 0
