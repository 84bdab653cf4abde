"""Keeping the hook cheap (Governor) and measuring what it costs (Shadow)."""
import os
import time

from hotlap import _wire

# What is given up first. Steps and waits stay.
SHED_ORDER = (_wire.PART_EACH_STEP_FLUSH, _wire.PART_QUEUE_DEPTH, _wire.PART_BATCH_CONTENT, _wire.PART_GARBAGE,
              _wire.PART_WORKER_PARTS, _wire.PART_PHASES)
SHARE_MAX = 0.004          # of the step
STEP_FLOOR_NS = 15_000     # small steps: so much is always allowed
WINDOW_STEPS = 16
CALM_WINDOWS = 20          # until a part comes back


class Governor:
    """Sheds one part per window while our own time is above the bound, and takes parts back when there is room."""

    def __init__(self):
        self.own_ns = self.step_ns = self.steps = self.calm = 0

    def step(self, shed, own_ns, step_ns, steps):
        """`own_ns` was spent in `steps` steps that took `step_ns`; returns what is shed from now on."""
        self.own_ns += own_ns
        self.step_ns += step_ns
        self.steps += steps
        if self.steps < WINDOW_STEPS:
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
    """Blocks of steps with the hook on or off at random, inside one job: what it costs shows in the step times."""

    def __init__(self, block_steps):
        self.block_steps = block_steps
        self.seed = time.time_ns() ^ (os.getpid() << 20)  # our own generator: the job's random numbers stay its own
        self.on = True
        self.steps = 0
        self.start_ns = None

    @classmethod
    def from_environment(cls):
        text = os.environ.get("HOTLAP_SHADOW", "")
        return cls(int(text)) if text.isdigit() and int(text) > 0 else None

    def step(self, core, end):
        """A step ended; returns whether a block ended with it."""
        self.steps += 1
        if self.start_ns is None:
            self.start_ns, self.steps = end, 0  # the first step is warm-up
            return False
        if self.steps < self.block_steps:
            return False
        self.close(core, end)
        self.start_ns, self.steps = end, 0
        self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        self.on = self.seed >> 63 == 0
        core.busy = 0 if self.on else 2
        return True

    def close(self, core, end):
        if self.start_ns is not None and self.steps:
            core.span(_wire.SHADOW, self.start_ns, end - self.start_ns, 0, core.index - 1, int(self.on), self.steps)
