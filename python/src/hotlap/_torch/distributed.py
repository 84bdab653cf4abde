"""Communication between ranks, by what shows it: calls of torch.distributed in the training thread, and the timers of
DistributedDataParallel's reducer. What neither shows is unseen, and said to be: it is never taken for none.

A call's span is the host's time in it. Where the backend works on the device (NCCL) that is the time to start it, so
that what it takes there is unseen. Each call is counted per group, in the order in which all ranks make them; the group that
is entered and the number of its call stand in the ring's page 0, for whoever asks why a job hangs.
"""
import functools
import inspect
import sys
import time
import weakref
from _thread import get_ident

from hotlap import _hook, _wire
from hotlap._events import OFF, SPAN
from hotlap._torch import is_compiling_of

now = time.monotonic_ns

# Function -> index of the argument that holds what this rank hands in; None: nothing, or objects. isend and irecv are
# left alone: torch compares them by identity, and what they take shows in wait().
CALLS = {
    "all_reduce": 0, "all_reduce_coalesced": 0, "broadcast": 0, "reduce": 0, "scatter": 0, "gather": 0,
    "gather_single": 0, "all_gather": 1, "all_gather_into_tensor": 1, "_all_gather_base": 1, "all_gather_single": 1,
    "all_gather_coalesced": 1, "reduce_scatter": 1, "reduce_scatter_tensor": 1, "reduce_scatter_single": 1,
    "_reduce_scatter_base": 1, "all_to_all": 1, "all_to_all_single": 1, "send": 0, "recv": 0, "barrier": None, "monitored_barrier": None,
    "all_gather_object": None, "gather_object": None, "broadcast_object_list": None, "scatter_object_list": None,
}
ON_HOST = ("gloo", "mpi")   # a call of theirs returns when its work is done
TENSORS_MAX = 64
GROUPS_MAX = 256
UNKNOWN_GROUP = 1_000_000   # groups that were made past us are numbered from here on
WAIT_SPAN_NS = 20_000       # a shorter wait() found the work done
LOOK_NS = 500_000_000
REDUCERS_MAX = 8
MS_PER_NS = 1e-6
_waiting = []               # for torch.distributed to be imported
# Metric -> torch's key. Times of one backward, of the last iteration in which the reducer had its timers on.
REDUCER = (("ddp.forward.ms", "forward_compute_time"), ("ddp.backward.ms", "backward_compute_time"),
           ("ddp.communication.ms", "backward_comm_time"), ("ddp.overlap.ms", "backward_compute_comm_overlap_time"))


class Group:
    """A process group as this process knows it."""

    __slots__ = ("number", "backend", "calls", "names")

    def __init__(self, number, backend):
        self.number, self.backend = number, backend
        self.calls = -1
        self.names = {}


class Groups:
    """The process groups and what goes on in them."""

    def __init__(self, dist, recorder, core):
        self.dist, self.recorder, self.core = dist, recorder, core
        self.begin()

    def begin(self):
        self.known = {}           # id of the group, or None for the default -> Group
        self.made = self.unknown = 0
        self.inside = False
        self.calls_seen = False   # any explicit call
        self.backends = set()     # of groups in which calls were made
        self.reducers = []        # DistributedDataParallel modules, held weakly
        self.reducer_times = False
        self.last = None          # the reducer's figures as last recorded
        self.next_ns = 0
        self.said = None

    # ---- groups ----

    def world_made(self):
        self.known.clear()
        self.made = 0
        self.group_of(None)
        self.recorder.update_place()
        self.recorder.flush()  # from now on page 0 is there, also when the first call hangs

    def group_made(self, group):
        self.made += 1
        if group is not None and len(self.known) < GROUPS_MAX and type(group) is not int and not (
                group is self.dist.GroupMember.NON_GROUP_MEMBER):
            self.known[id(group)] = Group(self.made, self.backend_of(group))

    def group_of(self, group):
        if group is None or group is self.dist.GroupMember.WORLD:
            found = self.known.get(None)
            if found is None:
                found = self.known[None] = Group(0, self.backend_of(None))
            return found
        found = self.known.get(id(group))
        if found is None:
            if len(self.known) >= GROUPS_MAX:
                self.known.clear()
            found = self.known[id(group)] = Group(UNKNOWN_GROUP + self.unknown, self.backend_of(group))
            self.unknown += 1
        return found

    def backend_of(self, group):
        try:
            return str(self.dist.get_backend(group))
        except Exception:
            return "?"

    # ---- calls ----

    def entered(self, group):
        """The number of this call in its group."""
        self.inside = True
        group.calls = number = group.calls + 1
        ring = self.recorder.ring
        if ring is not None:
            ring.signed[_wire.LIVE_SEQUENCE] = number
            ring.signed[_wire.LIVE_GROUP] = group.number
        return number

    def left(self):
        self.inside = False
        ring = self.recorder.ring
        if ring is not None:
            ring.signed[_wire.LIVE_GROUP] = -1

    def note(self, name, group, number, start, end, size):
        text = group.names.get(name)
        if text is None:
            text = group.names[name] = "%s (%s, group %d)" % (name, group.backend, group.number)
            self.backends.add(group.backend)
            self.calls_seen = True
        core, recorder = self.core, self.recorder
        core.note((SPAN, start, end, _wire.COLLECTIVE, recorder.name(text), size, number, recorder.thread()))

    def watches(self):
        core = self.core
        return not (core.busy & OFF or core.resting or core.shed & _wire.PART_COLLECTIVES)

    # ---- the reducer, and what is unseen ----

    def look(self, t):
        """At the end of a step."""
        if t < self.next_ns:
            return
        self.next_ns = t + LOOK_NS
        try:
            if self.reducers and not self.core.shed & _wire.PART_DEVICE:
                self.read_reducers(t)
            self.say()
        except Exception:
            self.reducers = []
            self.recorder.failed()

    def read_reducers(self, t):
        """Sums over the modules; torch takes these times itself, in the first iterations and in one of a hundred."""
        sums, found = dict.fromkeys((metric for metric, _ in REDUCER), 0), False
        for reducer in self.reducers:
            module = reducer()
            if module is None:
                continue
            figures = module._get_ddp_logging_data()
            if not figures.get("backward_comm_time"):
                continue
            found = True
            for metric, key in REDUCER:
                sums[metric] += figures.get(key) or 0
        if found and sums != self.last:
            self.last, self.reducer_times = sums, True
            for metric, value in sums.items():
                self.recorder.figure(metric, "", value * MS_PER_NS, t)

    def say(self):
        dist = self.dist
        if not dist.is_initialized():
            return
        world = dist.get_world_size()
        self.reducers = [each for each in self.reducers if each() is not None]
        on_device = sorted(backend for backend in self.backends if backend not in ON_HOST)
        unseen = None
        if world > 1:
            if self.reducers:
                unseen = "DistributedDataParallel"
            elif on_device:
                unseen = "on the device (%s)" % ", ".join(on_device)
        found = {"world_size": world, "backends": sorted(self.backends), "groups": len(self.known),
                 "explicit_calls": self.calls_seen, "reducer_times": self.reducer_times, "unseen": unseen}
        if found != self.said:
            if unseen != (self.said or {}).get("unseen"):
                self.recorder.info("communication_unseen", unseen)
            self.said = found
            self.recorder.info("communication", found)


def attach(module):
    """Where torch.distributed is imported after torch."""
    if "distributed" in _waiting:
        attach_area(sys.modules["torch"], *_hook.parts())


def attach_area(torch, recorder, core):
    dist = sys.modules.get("torch.distributed")
    if dist is None or "torch.distributed.distributed_c10d" not in sys.modules:
        _waiting.append("distributed")
        return
    _waiting.clear()
    if not dist.is_available():
        return
    groups = Groups(dist, recorder, core)
    core.at_settle.append(lambda: groups.look(now()))
    core.at_step.append(groups.look)
    core.at_end.append(groups.say)
    core.at_fork.append(groups.begin)
    c10d = sys.modules["torch.distributed.distributed_c10d"]
    wrap_group_makers(dist, c10d, groups)
    for name, content in CALLS.items():
        wrap_call(torch, dist, c10d, name, content, groups)
    wrap_wait(torch, groups)
    wrap_reducer(torch, groups)


def put(modules, name, plain, wrapper):
    for module in modules:
        if getattr(module, name, None) is plain:
            setattr(module, name, wrapper)


def wrap_group_makers(dist, c10d, groups):
    def safely(told, *details):
        if told is not None and not groups.recorder.off:
            try:
                told(*details)
            except Exception:
                groups.recorder.failed()

    def wrapped(plain, before, after):
        @functools.wraps(plain)
        def make(*args, **kwargs):
            safely(before)
            try:
                result = plain(*args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next
                raise
            safely(after, result)
            return result

        return make

    for name, before, after in (("init_process_group", None, lambda _: groups.world_made()),
                                ("new_group", None, groups.group_made),
                                ("destroy_process_group", groups.say, lambda _: groups.known.clear())):
        plain = getattr(c10d, name, None)
        if plain is not None:
            put((c10d, dist), name, plain, wrapped(plain, before, after))


def place_of(plain, name):
    """Index of a parameter, or a large one when it can only be given by name."""
    names = list(inspect.signature(plain).parameters)
    return names.index(name) if name in names else sys.maxsize


def size_of(held, tensor_type):
    """Bytes of a tensor or a list of them; -1: unknown."""
    if type(held) is tensor_type or isinstance(held, tensor_type):
        return held.numel() * held.element_size()
    if isinstance(held, (list, tuple)) and len(held) <= TENSORS_MAX:
        return sum(each.numel() * each.element_size() for each in held if isinstance(each, tensor_type)) or -1
    return -1


def wrap_call(torch, dist, c10d, name, content, groups):
    plain = getattr(c10d, name, None)
    if plain is None or hasattr(plain, "__deprecated__"):  # that one warns where its caller stands, and calls its heir
        return
    group_at = place_of(plain, "group")
    content_name = None if content is None else list(inspect.signature(plain).parameters)[content]
    core, tensor_type, is_compiling = groups.core, torch.Tensor, is_compiling_of(torch)

    @functools.wraps(plain)
    def call(*args, **kwargs):
        if is_compiling is not None and is_compiling():
            return plain(*args, **kwargs)
        if groups.inside or groups.recorder.off or not (core.thread is None or get_ident() == core.thread):
            try:
                return plain(*args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next
                raise
        group, size, start = None, -1, now()
        try:
            try:
                group = groups.group_of(args[group_at] if len(args) > group_at else kwargs.get("group"))
                if content is not None:
                    size = size_of(args[content] if len(args) > content else kwargs.get(content_name), tensor_type)
                number = groups.entered(group)
            except Exception:
                group = None
                groups.recorder.failed()
            result = plain(*args, **kwargs)
        except BaseException as error:
            groups.left()
            core.raised(error)
            error.__traceback__ = error.__traceback__.tb_next
            raise
        end = now()
        groups.left()
        if group is not None and groups.watches():
            try:
                groups.note(name.lstrip("_"), group, number, start, end, size)
            except Exception:
                groups.recorder.failed()
        return result

    put((c10d, dist), name, plain, call)


def wrap_wait(torch, groups):
    """Work of async_op=True: the host waits for it here."""
    work = getattr(getattr(torch._C, "_distributed_c10d", None), "Work", None)
    plain = getattr(work, "wait", None)
    if plain is None:
        return
    core, is_compiling = groups.core, is_compiling_of(torch)

    @functools.wraps(plain)
    def wait(self, *args, **kwargs):
        if groups.inside or (is_compiling is not None and is_compiling()) or get_ident() != core.thread:
            try:
                return plain(self, *args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next
                raise
        start = now()
        try:
            result = plain(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        end = now()
        if end - start >= WAIT_SPAN_NS and groups.watches():
            try:
                recorder = groups.recorder
                core.note((SPAN, start, end, _wire.COLLECTIVE, recorder.name("wait"), -1, -1, recorder.thread()))
            except Exception:
                groups.recorder.failed()
        return result

    work.wait = wait


def wrap_reducer(torch, groups):
    """DistributedDataParallel: its reducer communicates inside backward, past Python."""
    ddp = torch.nn.parallel.DistributedDataParallel
    plain_init = ddp.__init__

    @functools.wraps(plain_init)
    def __init__(self, *args, **kwargs):
        try:
            plain_init(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if len(groups.reducers) < REDUCERS_MAX:
            groups.reducers.append(weakref.ref(self))
            groups.next_ns = 0

    ddp.__init__ = __init__
