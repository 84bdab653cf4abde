"""hotlap inside a training program: optional marks. All of them do nothing when the program is not recorded.

    import hotlap
    hotlap.step()                    # the end of a training step, where neither optimizer nor loader shows it
    with hotlap.span("augment"): ... # a named stretch of time; also a decorator
    hotlap.count("loss", value)      # a figure over time
    hotlap.profile()                 # look into the next steps: operators and kernels
    hotlap.attach()                  # in a notebook that imported torch before hotlap

And reading what was recorded, from any Python that can start the program `hotlap`:

    run = hotlap.open("last")        # an id, a name, a path
    run.steps()["ms"]                # NumPy arrays where NumPy is installed
    run.samples("cpu.busy.seconds")
    run.sql("SELECT …")              # docs/reference/sql.md

Steps, data loading, forward, backward and optimizer of PyTorch are seen without any of this.
"""
from __future__ import annotations

import os as _os

TYPE_CHECKING = False
if TYPE_CHECKING:  # nothing is imported for it at run time
    from types import TracebackType
    from typing import Any, Callable, TypeVar

    from hotlap._reader import Run

    Function = TypeVar("Function", bound=Callable[..., Any])

__version__ = "0.1.0"
__all__ = ["attach", "count", "open", "profile", "recorded", "span", "step"]

_parts: Any = None  # (recorder, core) once asked for; False: not recorded


def _recorder() -> Any:
    global _parts
    if _parts is None:
        _parts = False
        if _os.environ.get("HOTLAP_RING_DIR") and _os.environ.get("HOTLAP") != "0":
            try:
                from hotlap import _hook

                _parts = _hook.parts()
            except Exception:
                pass
    return _parts


def recorded() -> bool:
    """Whether what this process marks is recorded."""
    found = _recorder()
    return bool(found) and not found[0].off


def step() -> None:
    """Marks the end of a training step. From the first call on, only these calls count as steps."""
    found = _recorder()
    if found:
        try:
            from hotlap._record import now

            t = now()
            found[1].marked = True
            found[1].events.append((5, t, t))
            found[1].tick(t)
        except Exception:
            found[0].failed()


def count(name: str, value: float) -> None:
    """Records a number under a name. A tensor on an accelerator is left out: reading it would wait for the device."""
    found = _recorder()
    if not found:
        return
    recorder, core = found
    try:
        if type(value) is not float:
            device = getattr(value, "device", None)
            if device is not None and getattr(device, "type", "cpu") != "cpu":
                return
            value = float(value)
        from hotlap._record import now

        t = now()
        number = recorder.name(str(name))
        if number:  # else refused, and counted there
            core.note((8, t, t, number, value))
    except (TypeError, ValueError, OverflowError):
        pass
    except Exception:
        recorder.failed()


class span:  # noqa: N801  used like a function
    """`with hotlap.span("name"):` or `@hotlap.span("name")`."""

    __slots__ = ("_name", "_start")

    def __init__(self, name: str) -> None:
        self._name = name
        self._start = 0

    def __enter__(self) -> span:
        found = _recorder()
        if found:
            from hotlap._record import now

            self._start = now()
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._start:
            recorder, core = _recorder()
            try:
                from hotlap._record import now

                core.note_span(18, self._start, now(), recorder.name(str(self._name)), -1, -1)
            except Exception:
                recorder.failed()
            self._start = 0

    def __call__(self, function: Function) -> Function:
        import functools

        name = self._name

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with span(name):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def profile(steps: int = 3) -> bool:
    """Has the next steps looked into by the framework's profiler, within the budget that the recording has for that.

    False when it will not be done: not recorded, no framework whose profiler is known, or an earlier attempt failed.
    """
    found = _recorder()
    if not found or found[0].off or found[1].profile is None:
        return False
    try:
        return bool(found[1].profile.request(max(int(steps), 1)))
    except Exception:
        found[0].failed()
        return False


def attach() -> bool:
    """Attaches to frameworks that are already imported; for notebooks. True when the program is recorded."""
    try:
        from hotlap import _hook

        return bool(_hook.attach())
    except Exception:
        return False


def open(run: str | _os.PathLike[str] = "last", timeout_s: float | None = None) -> Run:  # noqa: A001  hotlap.open, as gzip.open
    """A recorded run, to be read: .sql(…) .samples(…) .spans(…) .steps() .findings() .answer().

    `run`: id, start of an id, name, path, or "last". Raises hotlap.Error when there is none.
    """
    from hotlap import _reader

    return _reader.open_run(run, timeout_s)


def __getattr__(name: str) -> Any:  # imported when it is asked for: a job that is recorded never does
    if name == "Error":
        from hotlap import _reader

        return _reader.Error
    raise AttributeError("module 'hotlap' has no attribute %r" % name)
