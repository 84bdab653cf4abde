"""Compose of torchvision and albumentations: the recognisable transforms inside a fetch."""
import functools
import time
from _thread import get_ident

from hotlap import _hook
from hotlap._torch.fetch import transforms as running

now = time.monotonic_ns


def attach(module):
    compose = getattr(module, "Compose", None)
    if compose is None or "__call__" not in vars(compose):
        return
    recorder, _ = _hook.parts()
    plain_call = compose.__call__

    @functools.wraps(plain_call)
    def __call__(self, *args, **kwargs):
        outermost = running.thread == get_ident() and not running.depth and not recorder.off
        if outermost:
            running.depth = 1
            cpu = time.thread_time_ns()
        start = now()
        try:
            result = plain_call(self, *args, **kwargs)
        except BaseException as error:
            running.depth = 0
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if outermost:
            if not running.calls:
                running.start_ns, running.wall_ns, running.cpu_ns = start, 0, 0
            running.wall_ns += now() - start
            running.cpu_ns += time.thread_time_ns() - cpu
            running.calls += 1
            running.depth = 0
        return result

    compose.__call__ = __call__
