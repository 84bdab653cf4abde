"""Knowing what the hook costs (Cost), keeping it cheap (Governor), showing it (Shadow)."""
import os
import time

from hotlap import _wire
from hotlap._events import BUSY, OFF

now = time.monotonic_ns
cpu_now = time.thread_time_ns

# What is given up first. Steps and waits stay.
SHED_ORDER = (_wire.PART_EACH_STEP_FLUSH, _wire.PART_EACH_DETAIL, _wire.PART_QUEUE_DEPTH, _wire.PART_BATCH_CONTENT,
              _wire.PART_GARBAGE, _wire.PART_DEVICE, _wire.PART_WORKER_PARTS, _wire.PART_COLLECTIVES,
              _wire.PART_PHASES)
SHARE_MAX = 0.004          # of the step
STEP_FLOOR_NS = 15_000     # small steps: so much is always allowed
WINDOW_STEPS = 16
WINDOW_STEPS_IN_TURNS = 256  # both of those that are watched and those that are not
CALM_WINDOWS = 20          # until a part comes back


EVENT_NS = 1_500           # what noting an event costs, until it was measured
EVENT_WEIGHT = 1.0         # the mean event against the module's (bench/hook_overhead.py: self against bracket)
PROBE_DRAINS = 8           # of so many drains one measures it


class Cost:
    """What we spend outside of what drain() times: noting events in wrappers, and reading the clock.

    Noting is measured where it happens to be as dear as in the job: once in a while, before anything else of ours has
    warmed the caches, a wrapper like that of modules is called around nothing.
    """

    def __init__(self, probe):
        self.probe = probe  # notes an event of nothing, nowhere; None where no adapter has given one
        self.event_ns = EVENT_NS
        self.drains = 0
        readings = [cpu_now() for _ in range(5)]
        self.clock_ns = min(b - a for a, b in zip(readings, readings[1:]))  # half of either reading is not seen

    def measure(self):
        """At the start of a drain."""
        self.drains += 1
        if self.drains % PROBE_DRAINS or self.probe is None:
            return
        start = now()
        self.probe()
        took = int((now() - start) * EVENT_WEIGHT)
        # Bounded: being preempted in between is not our cost.
        self.event_ns += (min(took, 4 * self.event_ns) - self.event_ns) // 4


class Governor:
    """Sheds one part per window while our own time is above the bound, and takes parts back when there is room."""

    def __init__(self):
        self.own_ns = self.step_ns = self.steps = self.calm = 0

    def step(self, shed, own_ns, step_ns, steps):
        """`own_ns` was spent in `steps` steps that took `step_ns`; returns what is shed from now on."""
        self.own_ns += own_ns
        self.step_ns += step_ns
        self.steps += steps
        if self.steps < (WINDOW_STEPS_IN_TURNS if shed & _wire.PART_EACH_DETAIL else WINDOW_STEPS):
            return shed
        allowed_ns = max(self.step_ns * SHARE_MAX, STEP_FLOOR_NS * self.steps)
        if self.own_ns > allowed_ns:
            self.calm = 0
            for part in SHED_ORDER:
                if not shed & part:
                    shed |= part
                    break
        else:
            self.calm += 1 if self.own_ns < allowed_ns / 3 else 0
            if self.calm >= CALM_WINDOWS and shed:
                self.calm = 0
                for part in reversed(SHED_ORDER):
                    if shed & part:
                        shed &= ~part
                        break
        self.own_ns = self.step_ns = self.steps = 0
        return shed


class Shadow:
    """Pairs of blocks of steps with the hook on and off, which first by lot, inside one job: what it costs shows in the
    step times. While it is off, steps are still counted; the wrappers stay in place and pass through.
    """

    def __init__(self, block_steps):
        self.block_steps = block_steps
        self.seed = time.time_ns() ^ (os.getpid() << 20)  # our own generator: the job's random numbers stay its own
        self.on = True
        self.is_second = True
        self.first_step = 0
        self.start_ns = None

    @classmethod
    def from_environment(cls):
        text = os.environ.get("HOTLAP_SHADOW", "")
        return cls(int(text)) if text.isdigit() and int(text) > 0 else None

    def drained(self, core, t):
        """What was gathered is worked off, so a block may end here; returns whether one did."""
        if core.index == 0:
            return False  # the first step is warm-up
        if self.start_ns is None:
            self.start_ns, self.first_step = t, core.index
            return False
        if core.index - self.first_step < self.block_steps:
            return False
        self.close(core, t)
        self.start_ns, self.first_step = t, core.index
        self.is_second = not self.is_second
        if self.is_second:
            self.on = not self.on
        else:
            self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
            self.on = self.seed >> 63 == 0
        core.busy = core.busy & BUSY | (0 if self.on else OFF)
        return True

    def close(self, core, end):
        steps = core.index - self.first_step
        if self.start_ns is not None and steps > 0:
            core.span(_wire.SHADOW, self.start_ns, end - self.start_ns, 0, core.index - 1, int(self.on), steps)
