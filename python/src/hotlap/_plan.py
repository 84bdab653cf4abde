"""When the job is looked into: what `hotlap run --profile` asked for (HOTLAP_PROFILE) and what `hotlap set RUN
--profile` sends through the ring's command word. src/record/profile_plan.h writes both.
"""
COUNT_DEFAULT = 3
COUNT_MAX = 1_000
PERIOD_S_MIN = 10
HZ_MAX = 100
BUDGET_PCT = 1.0
BUDGET_MB = 256
# Modes of the command's argument: bits 0-15 steps (0: as planned), 16-19 mode, 20-51 period in s, 52-63 Hz.
NOW, OFF, ON_OUTLIER, EVERY, FUNCTIONS = range(5)


class Plan:
    """What is wanted of this process; a field of None is not wanted."""

    def __init__(self):
        self.start = None         # step at which the first window begins
        self.count = COUNT_DEFAULT
        self.every_s = None
        self.on_outlier = False
        self.ranks = (0,)         # None: all
        self.functions_hz = None
        self.shapes = False
        self.budget_pct = BUDGET_PCT
        self.memory_mb = self.disk_mb = BUDGET_MB

    def wants_windows(self):
        return self.start is not None or self.every_s is not None or self.on_outlier

    def stop(self):
        self.start = self.every_s = self.functions_hz = None
        self.on_outlier = False

    def is_for(self, rank):
        """Of a job without ranks its one process."""
        return rank < 0 or self.ranks is None or rank in self.ranks


def _set(plan, key, value):
    if key == "steps":
        start, _, count = value.partition(":")
        plan.start = max(int(start), 0)
        if count:
            plan.count = min(max(int(count), 1), COUNT_MAX)
    elif key == "count":
        plan.count = min(max(int(value), 1), COUNT_MAX)
    elif key == "every_s":
        plan.every_s = max(float(value), PERIOD_S_MIN)
    elif key == "on_outlier":
        plan.on_outlier = value != "0"
    elif key == "ranks":
        plan.ranks = None if value == "all" else tuple(int(rank) for rank in value.split("+"))
    elif key == "functions_hz":
        plan.functions_hz = min(float(value), HZ_MAX) if float(value) > 0 else None
    elif key == "shapes":
        plan.shapes = value != "0"
    elif key == "budget_pct":
        plan.budget_pct = min(max(float(value), 0.0), 100.0)
    elif key == "memory_mb":
        plan.memory_mb = max(int(value), 0)
    elif key == "disk_mb":
        plan.disk_mb = max(int(value), 0)


def parse(text):
    """The plan of a text like "steps=10:3,every_s=600,budget_pct=1"; what is not understood is left out: the program
    that wrote it has checked it."""
    plan = Plan()
    for item in text.split(","):
        key, _, value = item.partition("=")
        try:
            _set(plan, key, value)
        except ValueError:
            pass
    return plan


def unpack(argument):
    """(mode, steps or 0, period in s, Hz) of a command's argument."""
    return argument >> 16 & 0xF, argument & 0xFFFF, argument >> 20 & 0xFFFFFFFF, argument >> 52
