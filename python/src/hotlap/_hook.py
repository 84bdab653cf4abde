"""The hook of this process: one recorder, one core, and what they need from the interpreter (exit, fork, collector)."""
import atexit
import gc
import os
import platform
import sys
import time

from hotlap import _core, _place, _record, _start, _wire

now = time.monotonic_ns
GARBAGE_SPAN_NS = 50_000  # shorter collections of young objects are noise
_parts = None


def parts():
    """(recorder, core) of this process, made with the first call."""
    global _parts
    if _parts is None:
        recorder = _record.Recorder()
        core = _core.Core(recorder)
        _parts = recorder, core
        os.register_at_fork(after_in_child=_child)
        atexit.register(_exit)
        gc.callbacks.append(_collector(recorder, core))
        _watch_target()  # in a server that forks, the server itself has no hook
        recorder.info("python", {"version": platform.python_version(), "implementation": sys.implementation.name,
                                 "flags": _flags()})
        recorder.info("launcher", _place.description())
        if os.environ.get("HOTLAP_PROFILE") and os.environ.get("HOTLAP_PROFILE_DIR"):
            _count_stacks(core)
    return _parts


def _count_stacks(core):
    from hotlap import _plan

    plan, place = _plan.parse(os.environ["HOTLAP_PROFILE"]), _place.place()
    if (plan.functions_hz or plan.on_outlier) and plan.is_for(place[1]) and place[0] != _wire.ROLE_LOADER:
        core.count_stacks(plan.functions_hz, plan.on_outlier)


def _flags():
    names = ("isolated", "no_site", "optimize", "dev_mode", "ignore_environment")
    return [name for name in names if getattr(sys.flags, name, 0)]


def _child():
    """After fork, in the child: nothing recorded yet, a ring of its own with the first record."""
    recorder, core = _parts
    try:
        recorder.reset()
        core.reset(child=True)
        for again in core.at_fork:
            again()
        _watch_target()
    except Exception:
        recorder.off = True


def _watch_target():
    """A process that multiprocessing forked ends without the functions of atexit: with its finalizers. They are forgotten
    when it begins, before it tells who registered for that."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(_parts[1], _end_with_target)


def _end_with_target(core):
    from multiprocessing import util

    def end():
        if core.index:  # it trained; what loader workers record leaves at once
            _exit()

    util.Finalize(None, end, exitpriority=-1000)  # the last one


def _exit():
    """At the end of the interpreter, or of a process of multiprocessing; of a spawned one, both."""
    recorder, core = _parts
    try:
        if recorder.pid == os.getpid() and not recorder.off and not recorder.closed:
            # What the interpreter has just shown belongs to the job's end.
            for last in [*core.at_end, lambda: core.raised(getattr(sys, "last_value", None)), core.at_exit]:
                try:
                    last()
                except Exception:
                    recorder.failed()
    except Exception:
        recorder.failed()


def _collector(recorder, core):
    """For gc.callbacks: called at the start and the end of each collection, on whatever thread set it off."""
    state = [0]

    def collected(phase, info):
        if phase == "start":
            state[0] = 0 if core.busy & _core.OFF or core.shed & _wire.PART_GARBAGE else now()
            return
        start = state[0]
        if start:
            end = now()
            if end - start >= GARBAGE_SPAN_NS and len(core.events) < _core.EVENTS_MAX:
                core.events.append((_core.SPAN, start, end, _wire.GARBAGE, 0, info["generation"], info["collected"],
                                    recorder.thread()))

    return collected


def attach():
    """For programs that imported torch before the hook came (notebooks). True when the hook is on."""
    if not _start.wanted():
        return False
    for name, adapter in _start.ADAPTERS.items():
        module = sys.modules.get(name)
        if module is not None:
            _start.adapter_call(adapter, "attach", module)
    finder = _start.installed()
    if finder is None:
        sys.meta_path.insert(0, _start.Finder(os.path.dirname(os.path.abspath(__file__))))
    return True
