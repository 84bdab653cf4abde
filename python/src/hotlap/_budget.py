"""What looking into steps may cost the job: time as a share of the job so far, memory, disk. Asked before anything is
started; what it would not allow is not begun.
"""
import os
import time

now = time.monotonic_ns
GRACE_NS = 5_000_000_000       # at first, so that a short job can be looked into at all
MEMORY_FREE_MIN = 512 << 20    # of the machine or the container, whatever the budget
DISK_FREE_MIN = 1 << 30
STEP_NS_MAX = 120_000_000_000  # of a step that is looked into whole: what it gathers is not known before its end


def read(path):
    try:
        with open(path) as file:
            return file.read(65536)
    except (OSError, ValueError):
        return ""


def number(text):
    text = text.strip()
    return int(text) if text.isdigit() else None


def memory_free():
    """Bytes until the machine or the container runs out; None where that is not told."""
    free = None
    for line in read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) << 10
    for limit, used in (("memory.max", "memory.current"),
                        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        most, taken = number(read("/sys/fs/cgroup/" + limit)), number(read("/sys/fs/cgroup/" + used))
        if most is not None and taken is not None and most < 1 << 60:
            left = max(most - taken, 0)
            free = left if free is None else min(free, left)
    return free


def resident():
    """Bytes of this process in memory; 0 where that is not told."""
    parts = read("/proc/self/statm").split()
    return int(parts[1]) * os.sysconf("SC_PAGE_SIZE") if len(parts) > 1 else 0


def disk_free(folder):
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class Budget:
    """Of one process over its whole life."""

    def __init__(self, plan, started_ns):
        self.plan, self.started_ns = plan, started_ns
        self.spent_ns = 0      # pauses, and what steps took longer
        self.disk_bytes = 0    # written so far
        # What a window costs, by the last one: whole pauses, and by step.
        self.is_known = False
        self.fixed_ns = self.step_ns = 0
        self.step_memory = self.step_disk = 0

    def time_left_ns(self, t):
        share = (t - self.started_ns) * self.plan.budget_pct / 100
        return int(GRACE_NS * min(self.plan.budget_pct, 1.0) + share) - self.spent_ns

    def learn(self, fixed_ns, steps, longer_ns, per_step_ns, memory_bytes, disk_bytes):
        """`fixed_ns`: pauses whatever the steps; `per_step_ns`: of pauses that grow with them; `longer_ns`: what the
        steps took more than others."""
        self.is_known = True
        self.fixed_ns = fixed_ns
        self.step_ns = (max(longer_ns, 0) + per_step_ns) // steps
        self.step_memory = max(memory_bytes // steps, 0)
        self.step_disk = max(disk_bytes // steps, 1)

    def refusal(self, folder, typical_ns, t):
        """Why nothing may be started now, or None."""
        left_ns = self.time_left_ns(t)
        if left_ns <= (2 * (self.fixed_ns + self.step_ns) if self.is_known else 0):
            return "the time budget of %g %% is used up" % self.plan.budget_pct
        if typical_ns > STEP_NS_MAX:
            return "steps of %.0f s are too long to be looked into whole" % (typical_ns / 1e9)
        free = memory_free()
        if free is not None and free < MEMORY_FREE_MIN:
            return "only %d MB of memory are free" % (free >> 20)
        if not self.plan.memory_mb:
            return "no memory is allowed for it"
        if self.disk_bytes + max(self.step_disk, 1) > self.plan.disk_mb << 20:
            return "the disk budget of %d MB is used up" % self.plan.disk_mb
        if disk_free(folder) < DISK_FREE_MIN + (self.plan.disk_mb << 20):
            return "the disk of the run's folder is nearly full"
        return None

    def may_write(self, gathered_bytes):
        """Whether a trace may be written: as text it is at most half of what it is in memory."""
        return self.disk_bytes + gathered_bytes // 2 <= self.plan.disk_mb << 20

    def steps(self, wanted, t):
        """How many of `wanted` steps it allows, by what is known; each estimate is doubled."""
        most = wanted
        left_ns = self.time_left_ns(t) - 2 * self.fixed_ns
        if self.step_ns:
            most = min(most, left_ns // (2 * self.step_ns))
        elif left_ns <= 0:
            most = 0
        if self.step_memory:
            most = min(most, (self.plan.memory_mb << 20) // (2 * self.step_memory))
        if self.step_disk:
            most = min(most, ((self.plan.disk_mb << 20) - self.disk_bytes) // (2 * self.step_disk))
        return max(int(most), 0)
