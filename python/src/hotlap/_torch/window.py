"""torch's profiler around some steps: on, off, and what it saw as a trace file. And the program's own use of it, which
goes first whenever it comes.

Everything here is called in the thread that trains, between two steps: the profiler belongs to its thread. With Kineto
the file is Kineto's; a build without it (Debian's) keeps the same events and they are written here.
"""
import functools
import json
import os

from hotlap import _place

EVENTS_MAX = 500_000  # written by us: a build without Kineto
EVENT = ',\n{"ph": "X", "cat": "%s", "name": %s, "pid": %d, "tid": %d, "ts": %d, "dur": %d, "args": {%s}}'


class Quiet:
    """Kineto says on standard error what it does, and that is the job's. The level below which it is silent is a
    variable of its library. Where that is not found its lines are seen.
    """

    LEVEL = "_ZN9libkineto6Logger14severityLevel_E"
    SILENT = 99

    def __init__(self, torch):
        self.torch, self.level, self.before = torch, None, None
        self.looked = False

    def look(self):
        self.looked = True
        try:
            import ctypes

            path = os.path.join(os.path.dirname(self.torch.__file__), "lib", "libtorch_cpu.so")
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            self.level = ctypes.c_int.in_dll(library, self.LEVEL)
        except (ImportError, OSError, ValueError):
            pass

    def is_set(self):
        """Whether Kineto has begun and given the level its value."""
        if not self.looked:
            self.look()
        return self.level is not None and self.level.value != 0

    def begin(self):
        if not self.looked:
            self.look()
        if self.level is not None and self.before is None:
            self.before, self.level.value = self.level.value, self.SILENT

    def end(self):
        if self.before is not None:
            self.level.value, self.before = self.before, None


class OwnUse:
    """Whether the program profiles itself: torch.profiler, torch.autograd.profiler, emit_nvtx, a schedule that
    waits."""

    def __init__(self, torch):
        self.torch = torch
        self.quiet = Quiet(torch)
        self.entered = 0       # torch.profiler.profile objects between start() and stop()
        self.prepared = False
        self.ours = False      # inside calls of ours
        self.make_way = None   # called before the program's profiler starts
        module = torch.autograd.profiler
        self.wrap(module, "_prepare_profiler", before=self.prepares)
        self.wrap(module, "_enable_profiler", before=self.starts)
        self.wrap(module, "_disable_profiler", after=self.ended)
        legacy = getattr(torch.autograd, "profiler_legacy", None)
        if legacy is not None:
            self.wrap(legacy, "_enable_profiler_legacy", before=self.starts)
        kept = getattr(getattr(torch, "profiler", None), "profile", None)
        if kept is not None:
            self.wrap(kept, "start", before=self.enters)
            self.wrap(kept, "stop", after=self.leaves)

    def wrap(self, owner, name, before=None, after=None):
        plain = vars(owner).get(name)
        if plain is None:
            return
        own = self

        @functools.wraps(plain)
        def wrapper(*args, **kwargs):
            if before is not None and not own.ours:
                before()
            try:
                result = plain(*args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next
                raise
            if after is not None and not own.ours:
                after()
            return result

        setattr(owner, name, wrapper)

    def enters(self):
        self.entered += 1
        self.starts()

    def leaves(self):
        self.entered = max(self.entered - 1, 0)

    def prepares(self):
        self.prepared = True
        self.starts()

    def starts(self):
        """Never raises."""
        if self.make_way is not None:
            try:
                self.make_way()
            except Exception:
                pass

    def ended(self):
        self.prepared = False

    def active(self):
        """Its name, or None."""
        if self.entered or self.prepared or self.torch.autograd._profiler_enabled():
            return "torch's profiler, started by the program"
        return None


class Window:
    """One stretch of steps with the profiler on. Any method may raise; abandon() then leaves the thread without it."""

    def __init__(self, torch, use, shapes):
        self.torch, self.use, self.quiet = torch, use, use.quiet
        self.marker = None
        self.profiler = self.make(shapes)

    def make(self, shapes):
        profile = self.torch.autograd.profiler.profile
        names = profile.__init__.__code__.co_varnames
        settings = {"record_shapes": shapes, "use_kineto": True}
        if self.on_device():
            if "use_device" in names:
                settings["use_device"] = "cuda"
            else:
                settings["use_cuda"] = True
        made = profile(**{key: value for key, value in settings.items() if key in names})
        made._parse_kineto_results = lambda result: []  # a Python object per event; the file has what we want
        return made

    def on_device(self):
        """Whether kernels can be seen: the program uses a GPU and this build knows how to look."""
        torch = self.torch
        if not torch.cuda.is_initialized():
            return False
        return torch.profiler.ProfilerActivity.CUDA in torch.profiler.supported_activities()

    def begin(self):
        self.use.ours = True
        try:
            if hasattr(self.profiler, "_prepare_trace"):
                if self.quiet.is_set():
                    self.quiet.begin()
                self.profiler._prepare_trace()  # the first one sets Kineto's level
                self.quiet.begin()
                self.profiler._start_trace()
            else:
                self.profiler.__enter__()
            rank = _place.from_framework()
            if rank is not None and self.torch.autograd.kineto_available():
                self.torch.autograd._add_metadata_json("distributedInfo", json.dumps(distributed(rank)))
        finally:
            self.use.ours = False
            self.quiet.end()

    def mark(self, step):
        """A step begins; None: the last one has ended."""
        marker, self.marker = self.marker, None
        if marker is not None:
            marker.__exit__(None, None, None)
        if step is not None:
            self.marker = self.torch.autograd.profiler.record_function("ProfilerStep#%d" % step)
            self.marker.__enter__()

    def end(self):
        self.use.ours = True
        self.quiet.begin()
        try:
            self.profiler.__exit__(None, None, None)
        finally:
            self.use.ours = False
            self.quiet.end()

    def abandon(self):
        """Whatever state it is in: off, nothing kept. Never raises."""
        self.marker = None
        self.use.ours = True
        self.quiet.begin()
        try:
            if self.torch.autograd._profiler_enabled():
                self.torch.autograd._disable_profiler()
        except Exception:
            pass
        finally:
            self.use.ours = False
            self.quiet.end()
            self.profiler = None

    def export(self, path):
        """Writes the trace; the file is there whole or not at all. Returns its bytes."""
        results = self.profiler.kineto_results
        making = path + ".part"
        self.quiet.begin()
        try:
            if hasattr(results, "save") and self.torch.autograd.kineto_available():
                results.save(making)
            else:
                write_events(results, making, _place.from_framework())
            os.chmod(making, 0o600)
            size = os.stat(making).st_size
            os.rename(making, path)
        except BaseException:
            try:
                os.unlink(making)
            except OSError:
                pass
            raise
        finally:
            self.quiet.end()
        return size


def distributed(rank):
    return {"rank": rank[0], "world_size": rank[1]}


def write_events(results, path, rank):
    """The events of a profiler without Kineto, in Kineto's form. Times are Unix time in whole microseconds."""
    pid, quote = os.getpid(), json.dumps
    events = results.events()
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, ')
        if rank is not None:
            file.write('"distributedInfo": %s, ' % quote(distributed(rank)))
        file.write('"traceEvents": [\n')
        file.write('{"ph": "M", "name": "process_name", "pid": %d, "tid": 0, "args": {"name": "python"}}' % pid)
        for event in events[:EVENTS_MAX]:
            name = event.name()
            scope = event.scope()  # at::RecordScope: 7 is the program's own
            shapes = event.shapes()
            arguments = '"External id": %d' % event.correlation_id()
            if event.sequence_nr() >= 0:
                arguments += ', "Sequence number": %d, "Fwd thread id": %d' % (event.sequence_nr(),
                                                                              event.fwd_thread_id())
            if shapes:
                arguments += ', "Input Dims": %s' % quote(shapes)
            file.write(EVENT % (
                "user_annotation" if scope == 7 else "cpu_op", quote(name), pid, event.start_thread_id(),
                event.start_us(), event.duration_us(), arguments))
        file.write("\n]}\n")
    return len(events)
