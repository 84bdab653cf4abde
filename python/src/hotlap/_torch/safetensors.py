"""safetensors.torch: how Transformers writes and reads weights."""
import functools
import time

from hotlap import _hook, _wire
from hotlap._events import OFF
from hotlap._torch.checkpoint import size_of

now = time.monotonic_ns


def attach(module):
    recorder, core = _hook.parts()
    for name, path_index, is_load in (("save_file", 1, 0), ("load_file", 0, 1)):
        plain = getattr(module, name, None)
        if plain is not None:
            setattr(module, name, wrapped(plain, name, path_index, is_load, recorder, core))


def wrapped(plain, name, path_index, is_load, recorder, core):
    @functools.wraps(plain)
    def call(*args, **kwargs):
        start = now()
        try:
            result = plain(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if not core.busy & OFF:
            try:
                path = args[path_index] if len(args) > path_index else kwargs.get("filename")
                text = recorder.name("safetensors." + name)
                core.note_span(_wire.CHECKPOINT, start, now(), text, size_of(path), is_load)
            except Exception:
                recorder.failed()
        return result

    return call
