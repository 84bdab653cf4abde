"""Looking into some steps with the framework's profiler: when, how many, and what it cost.

Between two steps of the training thread boundary() is called, while something is wanted (Core.looking). One step is
looked into first, its trace is thrown away, and what it cost says how many steps a window may have (_budget.py). What
we do between two steps stops the job: that pause is timed, recorded as ours, and no part of any step; the steps of a
window are slower than others and are marked by the pauses around them.

Nothing here raises into the job. The first failure ends it for this process, with the reason said.
"""
import os
import time

from hotlap import _budget, _others, _plan, _start, _wire

now = time.monotonic_ns
IDLE, MEASURING, WINDOW = range(3)
TYPICAL_STEPS = 20           # before an outlier can be told
OUTLIER_RATIO = 2.5
OUTLIER_NS_MIN = 5_000_000   # beyond the typical step
OUTLIER_REST_NS = 60_000_000_000
RETRY_NS = 30_000_000_000    # after a refusal that may pass
REFUSALS_MAX = 16            # told
WINDOWS_MAX = 1_000


class Typical:
    """The usual length of a step, as a slowly moving median."""

    def __init__(self):
        self.recent = []
        self.at = 0
        self.count = 0

    def add(self, ns, steps):
        self.count += steps
        if len(self.recent) < 63:
            self.recent.append(ns)
        else:
            self.recent[self.at] = ns
            self.at = (self.at + 1) % 63

    def ns(self):
        return sorted(self.recent)[len(self.recent) // 2] if self.recent else 0


class Profile:
    """One per process. request() from any thread; the rest in the training thread or with nothing running."""

    def __init__(self, recorder, core, make_window, own_use, plan=None):
        self.recorder, self.core, self.make_window, self.own_use = recorder, core, make_window, own_use
        self.plan = plan if plan is not None else _plan.parse(os.environ.get("HOTLAP_PROFILE", ""))
        own_use.make_way = self.make_way
        self.begin()

    def begin(self):
        """As at the start of a process, after fork too."""
        self.state, self.window = IDLE, None
        self.budget = _budget.Budget(self.plan, now())
        self.typical = Typical()
        self.asked = 0           # steps asked for by command or program, and not looked into yet
        self.wanted = 0          # of the window that is being prepared
        self.first = 0           # step with which the profiler went on
        self.begun_ns = 0
        self.begin_cost_ns = 0
        self.memory = 0
        self.acted_ns = 0        # when the start or stop that is under way began
        self.windows = self.told = 0
        self.over = False        # nothing more in this process
        self.last_step, self.last_end = -1, 0
        self.retry_ns = 0
        self.next_ns = now() + int(self.plan.every_s * 1e9) if self.plan.every_s else None
        self.outlier_ns = 0      # before it none counts
        self.refusals = set()
        self.arm()

    # ---- what is wanted ----

    def arm(self):
        """Called between steps while anything may become due."""
        plan = self.plan
        wants = self.asked or self.state != IDLE or plan.wants_windows()
        self.core.looking = self if wants and not self.over else None
        self.core.choose_pace()

    def is_eager(self):
        """Whether each step's end is to be seen at once."""
        return bool(self.asked) or self.state != IDLE

    def request(self, steps):
        """From anywhere: the next steps. False when none will be looked into."""
        if self.over:
            return False
        self.asked = min(max(int(steps) or self.plan.count, 1), _plan.COUNT_MAX)
        self.retry_ns = 0
        self.arm()
        return True

    def command(self, argument):
        """A command of the recorder; whether it is understood and taken."""
        mode, steps, period_s, _ = _plan.unpack(argument)
        plan = self.plan
        if mode == _plan.NOW:
            return self.request(steps)
        if mode == _plan.OFF:
            plan.stop()
            self.asked = 0
        elif mode == _plan.ON_OUTLIER:
            plan.on_outlier = True
        elif mode == _plan.EVERY:
            plan.every_s = max(period_s, _plan.PERIOD_S_MIN)
            self.next_ns = now()
        else:
            return False
        if steps:
            plan.count = min(steps, _plan.COUNT_MAX)
        self.arm()
        return not self.over

    def is_meant(self):
        """Whether the plan is for this rank."""
        return self.plan.is_for(self.recorder.place[1] if self.recorder.place else -1)

    def due(self, index, t, is_outlier):
        """Steps to be looked into from now on; 0: none."""
        plan = self.plan
        if self.asked:
            return self.asked
        if not self.is_meant():
            return 0
        # The step before is the one that is measured.
        if plan.start is not None and index >= plan.start - (not self.budget.is_known):
            return plan.count
        if self.next_ns is not None and t >= self.next_ns:
            return plan.count
        return plan.count if is_outlier else 0

    def done(self, t):
        """What was due has been taken up, or refused for good."""
        if self.asked:
            self.asked = 0
        elif self.plan.start is not None and self.last_step + 1 >= self.plan.start:
            self.plan.start = None
        elif self.next_ns is not None and t >= self.next_ns:
            self.next_ns = t + int(self.plan.every_s * 1e9)
        self.outlier_ns = t + OUTLIER_REST_NS

    # ---- between two steps ----

    def boundary(self):
        """In the training thread, with all events so far worked off. Never raises."""
        core = self.core
        index = core.index
        try:
            if index == self.last_step + 1 or core.start_ns is None:
                if self.state != IDLE and self.memory_is_over():
                    self.give_up("it took more memory than its budget within a step")
                return
            end = core.recorder.ring.signed[_wire.LIVE_STEP_END] if core.recorder.ring is not None else now()
            # What an evaluation took is no part of the steps around it.
            took, steps = end - max(self.last_end, core.eval_last), index - 1 - self.last_step
            is_first = self.last_step < 0
            self.last_step, self.last_end = index - 1, end
            if self.state != IDLE:
                self.go_on(index)
            elif core.settled and not is_first and (not core.evaluating or core.inference()):
                self.look(index, took, steps)
        except Exception as error:
            self.failed(error)

    def look(self, index, took, steps):
        """Nothing is on: is something due?"""
        t = now()
        is_outlier = self.plan.on_outlier and self.is_outlier(took, steps, t)
        self.typical.add(took // steps, steps)
        wanted = self.due(index, t, is_outlier)
        if not wanted or t < self.retry_ns:
            self.core.own_ns += now() - t
            return
        usual = self.typical.ns()
        try:
            why = self.own_use.active() or _others.active() or self.budget.refusal(self.folder(), usual, t)
        except OSError as error:
            why = "there is no folder for it: %s" % (error.strerror or error)
        if why is None and self.own_use.busy():
            return  # for now
        if why is None and self.budget.is_known and not self.budget.steps(wanted, t):
            why = "its budget does not allow one step"
        if why is not None:
            self.refuse(why, t)
            return
        self.wanted = wanted
        self.start(WINDOW if self.budget.is_known else MEASURING, index, t)

    def is_outlier(self, took, steps, t):
        if self.typical.count < TYPICAL_STEPS or t < self.outlier_ns:
            return False
        usual = self.typical.ns()
        longest = took - (steps - 1) * usual  # of the steps since the last look, if one of them was long
        return longest > OUTLIER_RATIO * usual and longest > usual + OUTLIER_NS_MIN

    def start(self, state, index, t):
        self.acted_ns = t
        if state == WINDOW:
            self.wanted = self.budget.steps(self.wanted, t)
        self.memory = _budget.resident()
        if state == MEASURING:
            self.state = state
            self.window = self.make_window(self.plan.shapes)
            self.window.begin()  # what is done only once is not what a window costs
            self.window.end()
            self.budget.spent_ns += now() - t
        began = now()
        self.window = self.make_window(self.plan.shapes)
        self.window.begin()
        self.window.mark(index)
        self.state, self.first, self.begun_ns = state, index, now()
        self.begin_cost_ns = self.begun_ns - began
        self.core.choose_pace()
        self.pause(t, True)

    def go_on(self, index):
        """The profiler is on, and a step has ended."""
        count = index - self.first
        if self.own_use.active_beside():
            self.give_up("the program began to profile itself")
        elif self.state == MEASURING or count >= self.wanted or self.memory_is_over():
            self.stop(index, count)
        else:
            self.window.mark(index)

    def stop(self, index, count):
        t = self.acted_ns = now()
        state, window = self.state, self.window
        window.mark(None)
        window.end()
        ended_ns = now()
        self.window, self.state = None, IDLE
        memory = max(_budget.resident() - self.memory, 0)
        if not self.budget.may_write(memory):
            self.give_up("its trace would be larger than the disk budget")
            return
        path = "%s/%d-%d-%d.json" % (self.folder(), os.getpid(), _start.start_ticks(), self.windows + 1)
        size = window.export(path)
        written_ns = now()
        took = t - self.begun_ns
        longer = took - count * self.typical.ns() if self.typical.count else 0
        self.budget.learn(self.begin_cost_ns, count, longer, written_ns - t, memory, size)
        self.budget.spent_ns += self.begin_cost_ns + max(longer, 0) + written_ns - t
        told = {"first_step": self.first, "steps": count, "wanted": self.wanted, "start_ms": self.begin_cost_ns / 1e6,
                "stop_ms": (ended_ns - t) / 1e6, "export_ms": (written_ns - ended_ns) / 1e6, "ms": took / 1e6,
                "usual_step_ms": self.typical.ns() / 1e6 or None, "bytes": size, "memory_bytes": memory}
        if state == MEASURING:
            os.unlink(path)
            self.recorder.info("profile.measured", told)
            if not self.budget.steps(self.wanted, now()):
                self.pause(t, False)
                self.refuse("the step that was measured shows that its budget does not allow one", now())
                return
            self.start(WINDOW, index, t)  # one pause for both
            return
        self.windows += 1
        self.budget.disk_bytes += size
        told["file"] = os.path.basename(path)
        self.recorder.info("profile.window.%d" % self.windows, told)
        self.done(now())
        self.over |= self.windows >= WINDOWS_MAX
        self.arm()
        self.pause(t, False)

    def pause(self, start, is_on):
        """What we did since `start` is no part of a step: where none has begun yet, the next one begins now."""
        core, end = self.core, now()
        if core.pending is None and core.forward_start is None and core.last_event_ns <= core.start_ns <= start:
            core.start_ns = end
        core.span(_wire.PROFILE_PAUSE, start, end - start, 0, core.index, int(is_on), self.windows)
        core.last_drain_ns = end
        self.last_end += end - start
        self.acted_ns = 0
        self.recorder.flush()

    # ---- the end, and what goes wrong ----

    def memory_is_over(self):
        return _budget.resident() - self.memory > self.plan.memory_mb << 20

    def refuse(self, why, t):
        """Told once; tried again in a while, since most reasons pass."""
        if why not in self.refusals and len(self.refusals) < REFUSALS_MAX:
            self.refusals.add(why)
            self.recorder.info("profile.refused", {"why": why, "step": self.core.index})
        self.retry_ns, self.outlier_ns = t + RETRY_NS, t + OUTLIER_REST_NS
        self.arm()

    def give_up(self, why):
        """The profiler is on, or may be: off with it, nothing kept."""
        t = self.acted_ns or now()
        window, self.window, self.state = self.window, None, IDLE
        if window is not None:
            window.abandon()
        self.budget.spent_ns += now() - t + self.begin_cost_ns
        self.pause(t, False)
        self.refuse(why, now())

    def failed(self, error):
        """For good: whatever it was, it is not tried again in this process."""
        try:
            self.over = True
            self.recorder.failed()
            self.give_up("it failed: %s: %s" % (type(error).__name__, str(error)[:200]))
        except Exception:
            self.core.looking = None

    def make_way(self):
        """The program starts a profiler of its own: ours ends first, in whatever thread that is."""
        if self.state == IDLE:
            return
        if self.core.is_here():
            self.give_up("the program began to profile itself")
        else:
            self.own_use.beside = True

    def before_fork(self):
        """A child would inherit the profiler and gather events for ever."""
        try:
            if self.state != IDLE and self.core.is_here():
                if self.state == WINDOW and self.core.index > self.first:
                    self.stop(self.core.index, self.core.index - self.first)
                else:
                    self.give_up("the program forked within the first step")
        except Exception as error:
            self.failed(error)

    def close(self):
        """The program ends in order."""
        if self.state == IDLE:
            wanted = self.asked or (self.plan.start is not None and self.is_meant())
            if wanted and self.core.index and not self.refusals:
                self.refuse("the program ended before", now())
        elif self.core.is_here() and self.state == WINDOW and self.core.index > self.first:
            try:
                self.stop(self.core.index, self.core.index - self.first)
            except Exception as error:
                self.failed(error)
        elif self.core.is_here():
            self.give_up("the program ended before")

    def folder(self):
        """Where traces go: in the run's folder, 0700. Raises OSError."""
        folder = _start.profile_folder()
        fault = _start.ring_folder_fault(folder)
        if fault is not None:
            raise OSError(fault)
        return folder
