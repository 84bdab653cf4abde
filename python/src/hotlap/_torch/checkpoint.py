"""torch.save and torch.load."""
import functools
import os
import time

from hotlap import _wire
from hotlap._events import OFF

now = time.monotonic_ns


def size_of(target):
    """Bytes of the file that was written or read; -1 when it cannot be told."""
    try:
        if isinstance(target, (str, bytes)) or hasattr(target, "__fspath__"):
            return os.stat(target).st_size
        return target.tell()
    except Exception:
        return -1


def attach_area(torch, recorder, core):
    wrap_save(torch, recorder, core)
    wrap_load(torch.serialization, recorder, core)


def record(recorder, core, start, end, size, is_load):
    name = recorder.name("torch.load" if is_load else "torch.save")
    core.note_span(_wire.CHECKPOINT, start, end, name, size, int(is_load))


def wrap_save(torch, recorder, core):
    plain_save = torch.save

    @functools.wraps(plain_save)
    def save(obj, f, *args, **kwargs):
        start = now()
        try:
            result = plain_save(obj, f, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if not core.busy & OFF:
            try:
                record(recorder, core, start, now(), size_of(f), False)
            except Exception:
                recorder.failed()
        return result

    torch.save = torch.serialization.save = save


def wrap_load(serialization, recorder, core):
    """The two readers behind torch.load, which itself warns with a stacklevel that an outer frame would shift."""
    for name in ("_load", "_legacy_load"):
        plain = getattr(serialization, name, None)
        if plain is not None:
            setattr(serialization, name, wrapped_reader(plain, recorder, core))


def wrapped_reader(plain, recorder, core):
    @functools.wraps(plain)
    def read(source, *args, **kwargs):
        start = now()
        try:
            result = plain(source, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if not core.busy & OFF:
            try:
                record(recorder, core, start, now(), read_size(source), True)
            except Exception:
                recorder.failed()
        return result

    return read


def read_size(source):
    """`source` is torch's zip reader or a file object."""
    name = getattr(source, "name", None)
    return size_of(name) if isinstance(name, str) else -1
