"""Where Python is: stacks counted by a thread, opt-in (`--profile functions=20hz`), and those of a step that hangs or
is far longer than others (`--profile on-outlier`).

The thread looks at all threads' frames (sys._current_frames) and counts each stack under the phase of the job. It
holds the interpreter while it looks, so it measures its own time and looks less often when that is more than SHARE_MAX.
Counts go to a file of the run's folder, whole, now and then and at the end.
"""
import os
import sys
import time
from _thread import allocate_lock, get_ident, start_new_thread

from hotlap import _start, _wire

now = time.monotonic_ns
cpu_now = time.thread_time_ns
SHARE_MAX = 0.004
STACKS_MAX = 20_000        # different ones; the rest is counted together
DEPTH_MAX = 64
THREADS_MAX = 32
LABELS_MAX = 20_000
WRITE_NS = 15_000_000_000
HANG_NS = 60_000_000_000   # without the end of a step, and far longer than any before
HANG_RATIO = 20
OUTLIER_RATIO = 2.5
OUTLIER_NS_MIN = 20_000_000
DUMPS_MAX = 8
DUMP_REST_NS = 60_000_000_000
DUMP_BYTES_MAX = 15_000    # of a ring's INFO record
PHASES = {_wire.PHASE_INITIALISATION: "initialisation", _wire.PHASE_TRAINING: "training",
          _wire.PHASE_EVALUATION: "evaluation", _wire.PHASE_FINALISATION: "finalisation"}


class Stacks:
    """Counts of stacks; one thread at a time."""

    def __init__(self):
        self.counts = {}
        self.labels = {}
        self.samples = self.other = 0

    def label(self, code):
        found = self.labels.get(code)
        if found is None:
            name = getattr(code, "co_qualname", code.co_name)
            text = "%s (%s:%d)" % (name, os.path.basename(code.co_filename), code.co_firstlineno)
            found = "".join("," if c == ";" else c if c.isprintable() else "?" for c in text)
            if len(self.labels) < LABELS_MAX:
                self.labels[code] = found
        return found

    def of_frame(self, frame):
        """Labels, outermost first; the innermost DEPTH_MAX of them."""
        found = []
        while frame is not None and len(found) < DEPTH_MAX:
            found.append(self.label(frame.f_code))
            frame = frame.f_back
        if frame is not None:
            found.append("...")
        found.reverse()
        return found

    def add(self, phase, thread, frame):
        key = "%s;%s;%s" % (phase, thread, ";".join(self.of_frame(frame)))
        self.samples += 1
        if key in self.counts:
            self.counts[key] += 1
        elif len(self.counts) < STACKS_MAX:
            self.counts[key] = 1
        else:
            self.other += 1

    def text(self, phase):
        lines = ["%s %d" % item for item in sorted(self.counts.items())]
        if self.other:
            lines.append("%s;other;other stacks %d" % (phase, self.other))
        return "\n".join(lines) + "\n" if lines else ""


class Watch:
    """The thread of one process."""

    def __init__(self, recorder, core):
        self.recorder, self.core = recorder, core
        self.reset()

    def reset(self):
        """As at the start, after fork too: no thread, nothing counted."""
        self.lock = allocate_lock()
        self.hz = None
        self.on_outlier = False
        self.running = False
        self.stacks = Stacks()
        self.own_ns = self.begun_ns = 0
        self.written_ns = self.written_samples = 0
        self.dumps = 0
        self.dump_ns = 0
        self.dumped_step = -1
        self.usual_ns = self.longest_ns = self.step = self.step_ns = 0

    def begin(self, hz, on_outlier):
        """From any thread; what is asked for last counts. A process of a loader has no thread of ours."""
        self.hz, self.on_outlier = hz, on_outlier
        if (hz or on_outlier) and not self.running:
            self.running = True
            self.begun_ns = self.written_ns = now()
            start_new_thread(self.run, (os.getpid(),))

    def run(self, pid):
        """Never raises: what fails ends the thread."""
        try:
            while (self.hz or self.on_outlier) and os.getpid() == pid and not self.recorder.off:
                time.sleep(self.pause_s())
                began = cpu_now()
                t = now()
                if self.hz:
                    self.look()
                self.watch_step(t)
                if t - self.written_ns > WRITE_NS:
                    self.write()
                self.own_ns += cpu_now() - began
        except Exception:
            self.recorder.failed()
        self.running = False

    def pause_s(self):
        """Between two looks; longer when they cost more than their share."""
        wanted = 1 / self.hz if self.hz else 0.1
        if self.stacks.samples:
            each = self.own_ns / max(self.stacks.samples, 1) / 1e9
            wanted = max(wanted, each / SHARE_MAX)
        return min(wanted, 10.0)

    def look(self):
        threading = sys.modules.get("threading")
        active = getattr(threading, "_active", {})
        own, phase = get_ident(), PHASES.get(self.core.phase, "starting")
        with self.lock:
            for ident, frame in list(sys._current_frames().items())[:THREADS_MAX]:
                if ident == own:
                    continue
                thread = getattr(active.get(ident), "name", None) or "thread"
                self.stacks.add(phase, thread.replace(";", ","), frame)

    # ---- steps that do not end ----

    def watch_step(self, t):
        ring = self.recorder.ring
        if ring is None:
            return
        step, end = ring.signed[_wire.LIVE_STEP], ring.signed[_wire.LIVE_STEP_END]
        if step < 0:
            return
        if step != self.step:
            took = (end - self.step_ns) // (step - self.step) if self.step_ns and step > self.step else 0
            if took > 0:
                self.usual_ns = self.usual_ns + (took - self.usual_ns) // 8 if self.usual_ns else took
                self.longest_ns = max(self.longest_ns, took)
            self.step, self.step_ns = step, end
            return
        age = t - end
        phase_is_quiet = self.core.phase != _wire.PHASE_TRAINING
        if step == self.dumped_step or step < 10 or self.dumps >= DUMPS_MAX or phase_is_quiet:
            return
        is_hang = age > max(HANG_NS, HANG_RATIO * self.longest_ns)
        is_outlier = (self.on_outlier and age > OUTLIER_RATIO * self.usual_ns and age > self.usual_ns + OUTLIER_NS_MIN
                      and t >= self.dump_ns)
        if is_hang or is_outlier:
            self.dump("hang" if is_hang else "outlier", step, age)
            self.dumped_step, self.dump_ns = step, t + DUMP_REST_NS

    def dump(self, why, step, age):
        """The stacks of all threads, the training one first."""
        self.dumps += 1
        frames = sys._current_frames()
        threading = sys.modules.get("threading")
        active = getattr(threading, "_active", {})
        first = self.core.thread
        order = sorted(frames, key=lambda ident: (ident != first, ident))
        found, size = [], 0
        with self.lock:
            for ident in order:
                if ident == get_ident() or len(found) >= THREADS_MAX:
                    continue
                stack = ";".join(self.stacks.of_frame(frames[ident]))
                size += len(stack) + 100
                if size > DUMP_BYTES_MAX:
                    break
                found.append({"thread": getattr(active.get(ident), "name", None), "stack": stack})
        self.recorder.info("stacks.%s.%d" % (why, self.dumps),
                           {"step": step + 1, "after_ms": age / 1e6, "usual_ms": self.usual_ns / 1e6,
                            "threads": found, "threads_all": len(frames) - 1})
        self.recorder.flush()

    # ---- what was counted ----

    def write(self):
        """Replaces the file. Never raises."""
        self.written_ns = now()
        if self.stacks.samples == self.written_samples:
            return
        try:
            folder = _start.profile_folder()
            if _start.ring_folder_fault(folder) is not None:
                return
            with self.lock:
                text = self.stacks.text(PHASES.get(self.core.phase, "starting"))
                self.written_samples = self.stacks.samples
            path = "%s/%d-%d.folded" % (folder, os.getpid(), _start.start_ticks())
            fd = os.open(path + ".part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            os.rename(path + ".part", path)
        except (OSError, KeyError):
            return

    def close(self):
        """The program ends in order."""
        if not self.begun_ns:
            return
        hz, self.hz, self.on_outlier = self.hz, None, False
        self.write()
        if self.stacks.samples:
            seconds = (now() - self.begun_ns) / 1e9
            self.recorder.info("profile.functions", {
                "hz": hz, "samples": self.stacks.samples, "stacks": len(self.stacks.counts),
                "other": self.stacks.other, "own_ms": self.own_ns / 1e6, "s": seconds,
                "own_pct": self.own_ns / 1e7 / seconds if seconds > 0 else None})
