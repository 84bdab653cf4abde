"""Optimizers: every class whose instances are made gets its step() wrapped, and the gradient scaler is asked whether it
left a step out.
"""
import functools
import gc
import time
from _thread import get_ident

from hotlap._events import BY_UPDATE, OPTIMIZER
from hotlap._torch import is_compiling_of

now = time.monotonic_ns


def attach_area(torch, recorder, core):
    base = torch.optim.Optimizer
    is_compiling = is_compiling_of(torch)

    def wrap_class(cls):
        owner = next((c for c in cls.__mro__ if "step" in vars(c)), None)
        step = vars(owner)["step"] if owner is not None and owner is not base else None
        if callable(step) and not hasattr(step, "_hotlap"):
            owner.step = wrapped_step(step, core, is_compiling)

    name = "_patch_step_function" if hasattr(base, "_patch_step_function") else "_hook_for_profile"
    plain_patch = getattr(base, name)

    @functools.wraps(plain_patch)
    def patch(self, *args, **kwargs):
        try:
            result = plain_patch(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if not recorder.off:
            try:
                core.optimizers_made = True
                wrap_class(type(self))
            except Exception:
                recorder.failed()
        return result

    setattr(base, name, patch)
    attach_existing(base, wrap_class, core, is_compiling)
    for module in (torch.cuda.amp.grad_scaler, getattr(torch.amp, "grad_scaler", None)):
        scaler = getattr(module, "GradScaler", None)
        if scaler is not None and "step" in vars(scaler) and not hasattr(vars(scaler)["step"], "_hotlap"):
            wrap_scaler(scaler, core)


def attach_existing(base, wrap_class, core, is_compiling):
    """Optimizers that were made before the hook came (notebooks): torch has marked their classes as `hooked`. A
    scheduler has put a step of its own on the instance."""
    classes, found = [base], False
    while classes:
        cls = classes.pop()
        classes.extend(cls.__subclasses__())
        if cls is not base and hasattr(vars(cls).get("step"), "hooked"):
            wrap_class(cls)
            found = True
    if not found:
        return
    core.optimizers_made = True
    for candidate in gc.get_objects():
        if issubclass(type(candidate), base) and "step" in vars(candidate):
            plain_step = vars(candidate)["step"]
            step = wrapped_step(without_self(plain_step), core, is_compiling)
            candidate.step = functools.wraps(plain_step)(functools.partial(step, candidate))


def without_self(bound):
    def step(self, *args, **kwargs):
        return bound(*args, **kwargs)

    return step


def wrapped_step(plain_step, core, is_compiling):
    append = core.events.append

    @functools.wraps(plain_step)
    def step(self, *args, **kwargs):
        if is_compiling is not None and is_compiling():
            return plain_step(self, *args, **kwargs)
        if core.optimizer_depth or not (
                (get_ident() == core.thread and core.thread_rank == BY_UPDATE) or core.is_training_thread(BY_UPDATE)):
            try:
                return plain_step(self, *args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next
                raise
        if core.sampler is not None:
            core.sampler.optimizer_begins()
        start = now()
        try:
            core.optimizer_depth = 1
            result = plain_step(self, *args, **kwargs)
            core.optimizer_depth = 0
        except BaseException as error:
            core.optimizer_depth = 0
            core.raised(error)
            error.__traceback__ = error.__traceback__.tb_next
            raise
        end = now()
        if core.sampler is not None:
            core.sampler.optimizer_ended()
        core.optimizer_calls += 1
        append((OPTIMIZER, start, end, id(self), False))
        core.tick(end)
        return result

    step._hotlap = True
    return step


def wrap_scaler(scaler, core):
    """GradScaler.step(optimizer) leaves optimizer.step() out when gradients are not finite: no update."""
    plain_step = scaler.step

    @functools.wraps(plain_step)
    def step(self, optimizer, *args, **kwargs):
        calls = core.optimizer_calls
        start = now()
        try:
            result = plain_step(self, optimizer, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if core.optimizer_calls == calls and get_ident() == core.thread and not core.optimizer_depth:
            end = now()
            core.events.append((OPTIMIZER, start, end, id(optimizer), True))
            core.tick(end)
        return result

    step._hotlap = True
    scaler.step = step
