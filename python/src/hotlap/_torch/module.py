"""Forward and backward. Root modules are found by the nesting of calls in the first steps; then only their classes are
watched, so that the modules inside them cost nothing. Instances are never touched: they get copied, pickled, compiled.
"""
import functools
import time
from _thread import get_ident

from hotlap._events import (
    BACKWARD,
    BATCH_EVENTS,
    BUSY,
    BY_FORWARD,
    BY_UPDATE,
    FORWARD,
    GRAD,
    IN_OPTIMIZER,
    OFF,
    PARAMETERS,
    TRAINING,
)
from hotlap._torch import is_compiling_of
from hotlap._torch.model_facts import autocast_of

now = time.monotonic_ns
ROOT_CLASSES_MAX = 64
DISCOVERY_CALLS_MAX = 5_000   # root calls until the search ends even where no step was seen
RESTARTS_MAX = 8


def capture_check(torch):
    """Whether a CUDA graph is being captured: what runs then is no step. None where there is no CUDA to ask."""
    raw = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
    if raw is None or not (getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None)):
        return None
    cuda = torch.cuda

    def capturing():
        try:
            return cuda._initialized and raw()  # never the first call into CUDA
        except Exception:
            return False

    return capturing


class Roots:
    """The classes whose instances are called by the program itself, and the search for them."""

    def __init__(self, torch, recorder, core):
        self.module = torch.nn.Module
        self.plain_call = self.module.__call__
        self.recorder, self.core = recorder, core
        self.is_compiling = is_compiling_of(torch)
        self.is_grad_enabled = torch.is_grad_enabled
        self.capturing = capture_check(torch)
        self.classes = set()
        self.calls = 0
        self.searching = False
        self.for_good = False
        self.torch = torch
        self.told_precision = False
        self.search = self.make_search()

    # ---- the search ----

    def begin(self):
        if not self.searching and not self.for_good and self.module.__call__ is self.plain_call:
            self.searching = True
            self.calls = 0
            self.module.__call__ = self.search

    def end(self, for_good=False):
        """Takes the search out of nn.Module again. `for_good`: dynamo has begun to look at modules."""
        self.searching = False
        self.for_good |= for_good
        if self.module.__call__ is self.search:
            self.module.__call__ = self.plain_call

    def make_search(self):
        plain_call, core, is_compiling = self.plain_call, self.core, self.is_compiling

        @functools.wraps(plain_call)
        def __call__(self, *args, **kwargs):
            if is_compiling is not None and is_compiling():
                return plain_call(self, *args, **kwargs)
            if roots.searching and not core.busy and (
                    get_ident() == core.thread or core.is_training_thread(BY_FORWARD)):
                roots.found(type(self))
                call = type(self).__call__  # of its class by now
            else:
                call = plain_call
            if call is search:
                call = plain_call
            try:
                return call(self, *args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next
                raise

        roots, search = self, __call__
        return __call__

    def found(self, cls):
        try:
            self.calls += 1
            if cls not in self.classes and len(self.classes) < ROOT_CLASSES_MAX:
                self.watch(cls)
            if self.calls > DISCOVERY_CALLS_MAX:
                self.end()
        except Exception:
            self.recorder.failed()

    def tell_precision(self, module):
        """Once, while the first root that trains is called: the types of its parameters and of the autocast around it."""
        try:
            parameter = next(module.parameters(), None)
            if parameter is None:
                return
            self.told_precision = True
            matmul = getattr(self.torch, "get_float32_matmul_precision", None)
            self.recorder.info("precision", {"parameters": str(parameter.dtype),
                                             "autocast": autocast_of(self.torch, parameter.device.type),
                                             "float32_matmul": matmul() if matmul is not None else None})
        except Exception:
            self.recorder.failed()

    # ---- the watch ----

    def watch(self, cls):
        if cls in self.classes:
            return
        self.classes.add(cls)
        owner = next(c for c in cls.__mro__ if "__call__" in vars(c))
        own_call = None if owner is self.module else vars(owner)["__call__"]
        there = vars(cls).get("__call__")
        cls.__call__ = self.make_call(own_call)
        # Below a class that is watched itself nothing need be left: that one's wrapper is found then.
        self.core.rest.add(cls, "__call__", self.make_quiet_call(there) if there is own_call else None)

    def make_call(self, own_call, events=None):
        """`own_call`: the class's __call__ if it is not nn.Module's, which tracers replace and is therefore asked for
        anew each time. `events`: where it notes them; the core's."""
        module_class, plain_call, search = self.module, self.plain_call, self.search
        core = self.core
        events = core.events if events is None else events
        append = events.append
        roots = self
        is_compiling, is_grad_enabled, capturing = self.is_compiling, self.is_grad_enabled, self.capturing
        parameters = []  # [PARAMETERS or 0], as the first instance has it

        @functools.wraps(own_call or plain_call)
        def __call__(self, *args, **kwargs):
            if is_compiling is not None and is_compiling():
                return (own_call or plain_call)(self, *args, **kwargs)
            call = own_call
            if call is None:
                call = module_class.__call__
                if call is search:
                    call = plain_call
            # Below another root, or nothing to see: nothing is timed.
            if core.busy or core.no_phases or (
                    get_ident() != core.thread and not core.is_training_thread(BY_FORWARD)) or (
                    capturing is not None and capturing()):
                try:
                    return call(self, *args, **kwargs)
                except BaseException as error:
                    error.__traceback__ = error.__traceback__.tb_next
                    raise
            if core.sampler is not None:
                core.sampler.forward(self, args, kwargs)
            start = now()
            try:
                core.busy |= BUSY
                result = call(self, *args, **kwargs)
                core.busy &= OFF  # which a drain inside may have set
            except BaseException as error:
                core.busy &= OFF
                core.raised(error)
                error.__traceback__ = error.__traceback__.tb_next
                raise
            end = now()
            if not parameters:
                parameters.append(has_parameters(self))
            if not roots.told_precision and self.training:
                roots.tell_precision(self)
            bits = parameters[0]
            if self.training:
                bits += TRAINING
            if is_grad_enabled():
                bits += GRAD
            if core.optimizer_depth:
                bits += IN_OPTIMIZER
            append((FORWARD, start, end, bits))
            if len(events) >= BATCH_EVENTS:
                core.drain()
            return result

        return __call__

    def make_quiet_call(self, own_call):
        """What stands in for the watch while small steps rest: forwards without gradients are noted, many as one event,
        unless something of a step came before them since the last update."""
        module_class, plain_call, search, core = self.module, self.plain_call, self.search, self.core
        events, rest = core.events, core.rest
        is_compiling, is_grad_enabled, capturing = self.is_compiling, self.is_grad_enabled, self.capturing

        @functools.wraps(own_call or plain_call)
        def __call__(self, *args, **kwargs):
            if is_compiling is not None and is_compiling():
                return (own_call or plain_call)(self, *args, **kwargs)
            call = own_call
            if call is None:
                call = module_class.__call__
                if call is search:
                    call = plain_call
            updates = core.optimizer_calls
            is_noted = not (rest.worked == updates or core.busy or core.optimizer_depth)
            if is_noted and (is_grad_enabled() or get_ident() != core.thread or (
                    capturing is not None and capturing())):
                if get_ident() == core.thread:
                    rest.worked = updates
                is_noted = False
            start = now()
            try:
                if is_noted:
                    core.busy |= BUSY
                result = call(self, *args, **kwargs)
                if is_noted:
                    core.busy &= OFF
            except BaseException as error:
                if is_noted:
                    core.busy &= OFF
                    core.raised(error)
                error.__traceback__ = error.__traceback__.tb_next
                raise
            if is_noted:
                rest.quiet(updates, start, now(), events)
            return result

        return __call__


def attach_area(torch, recorder, core):
    roots = Roots(torch, recorder, core)
    core.discovery = roots
    core.set_probe(probe_of(roots))
    roots.begin()
    wrap_backward(torch, core)


def probe_of(roots):
    """A call of a module's wrapper with nothing in it, whose event goes nowhere: what noting an event costs."""
    nowhere = []
    call = roots.make_call(Nothing.nothing, nowhere)
    nothing = Nothing()

    def probe():
        sampler, roots.core.sampler = roots.core.sampler, None  # it takes what it meets for a model
        call(nothing)
        roots.core.sampler = sampler
        nowhere.clear()

    return probe


class Nothing:
    """In place of a module."""

    training = True

    def parameters(self):
        return iter(())

    def nothing(self):
        pass


def has_parameters(module):
    try:
        return PARAMETERS if next(module.parameters(), None) is not None else 0
    except Exception:
        return PARAMETERS


def wrap_backward(torch, core):
    plain_backward = torch.autograd.backward
    is_compiling = is_compiling_of(torch)
    append = core.events.append

    @functools.wraps(plain_backward)
    def backward(*args, **kwargs):
        if is_compiling is not None and is_compiling():
            return plain_backward(*args, **kwargs)
        if core.busy or core.no_phases or not (
                (get_ident() == core.thread and core.thread_rank == BY_UPDATE) or core.is_training_thread(BY_UPDATE)):
            try:
                return plain_backward(*args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next
                raise
        if core.sampler is not None:
            core.sampler.backward_begins()
        start = now()
        try:
            core.busy |= BUSY
            result = plain_backward(*args, **kwargs)
            core.busy &= OFF
        except BaseException as error:
            core.busy &= OFF
            core.raised(error)
            error.__traceback__ = error.__traceback__.tb_next
            raise
        append((BACKWARD, start, now()))
        if core.sampler is not None:
            core.sampler.backward_ended()
        if len(core.events) >= BATCH_EVENTS:
            core.drain()
        return result

    torch.autograd.backward = backward
    core.rest.add(torch.autograd, "backward", plain_backward)
