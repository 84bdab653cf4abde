"""torch._dynamo: how long compilations take, and that the hook keeps out of them."""
import functools
import time

from hotlap import _hook, _wire
from hotlap._torch import skip_own_code

now = time.monotonic_ns


def prepare():
    """Before torch._dynamo runs: it keeps nn.Module.__call__ as the plain one, so that must be it."""
    core = _hook.parts()[1]
    core.rest.watch()
    if core.discovery is not None:
        core.discovery.end()


def attach(dynamo):
    recorder, core = _hook.parts()
    roots = core.discovery
    if roots is None or recorder.off:
        return
    optimized = getattr(dynamo.eval_frame, "OptimizedModule", None)
    if optimized is not None:
        wrap_optimized(optimized, roots)
        if "__call__" in vars(optimized) or hasattr(optimized, "__mro__"):
            roots.watch(optimized)
    wrap_compile(dynamo.convert_frame, recorder, core, roots)
    if not core.settled:
        roots.begin()
    skip_own_code(dynamo)


def wrap_optimized(optimized, roots):
    """An OptimizedModule keeps the __call__ of its module as it is when it is made: it must not be the search."""
    plain_init = optimized.__init__

    @functools.wraps(plain_init)
    def __init__(self, *args, **kwargs):
        searching = roots.searching
        roots.end()
        try:
            plain_init(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        finally:
            if searching:
                roots.begin()

    optimized.__init__ = __init__


def wrap_compile(convert_frame, recorder, core, roots):
    plain_compile = convert_frame._compile

    @functools.wraps(plain_compile)
    def _compile(code, *args, **kwargs):
        roots.end(for_good=True)
        core.rest.watch()
        start = now()
        try:
            return plain_compile(code, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        finally:
            if not recorder.off:
                try:
                    name = recorder.name("compile %s" % getattr(code, "co_qualname", code.co_name))
                    core.note_span(_wire.COMPILE, start, now(), name, -1, -1)
                except Exception:
                    recorder.failed()

    convert_frame._compile = _compile
