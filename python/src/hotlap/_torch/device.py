"""What the program's GPUs do, as torch knows it: memory of the allocator, GPU time of forward, backward and optimizer,
what goes from the loader to the device, and the settings that decide how fast it computes.

Looked at twice a second at most and in steps chosen for it; the wrappers call in here only while something is wanted
(Core.sampler is None else). Nothing waits for a device: GPU times are differences of events that are recorded in one
step and read in a later one, once query() says that they are over; nothing is recorded while a CUDA graph is captured,
and nothing of CUDA is started that the program has not started.
"""
import time
import weakref

from hotlap import _wire
from hotlap._torch import batch as content
from hotlap._torch import model_facts

now = time.monotonic_ns
LOOK_NS = 500_000_000
SETTINGS_NS = 10_000_000_000
OTHERS_LOOKS = 16   # every so many looks the devices that are not the current one are asked too
DEVICES_MAX = 16
ROOTS_MAX = 64
CALLS_MAX = 1_000   # of models, before the first steps are over
ARGUMENTS_MAX = 8
UNREAD_LOOKS_MAX = 20
CALLS_ARMED_MAX = 64  # of models, while something is wanted that does not come
FAILURES_MAX = 3    # of CUDA calls: then it is left alone in this process
PASS, UPDATE = 1, 2  # what the events of a sampled step are put around: forward and backward, or the optimizer

# Metric of the allocator -> where torch's figures have it.
MEMORY = (
    ("allocator.allocated.bytes", ("allocated_bytes", "all", "current")),
    ("allocator.allocated_max.bytes", ("allocated_bytes", "all", "peak")),
    ("allocator.reserved.bytes", ("reserved_bytes", "all", "current")),
    ("allocator.reserved_max.bytes", ("reserved_bytes", "all", "peak")),
    ("allocator.retries", ("num_alloc_retries",)),
    ("allocator.ooms", ("num_ooms",)),
)


class Sampler:
    """One per process; the methods that wrappers call run in the training thread."""

    def __init__(self, torch, recorder, core):
        self.torch, self.recorder, self.core = torch, recorder, core
        self.tensor_type, self.strided = torch.Tensor, torch.strided
        self.settings = model_facts.Settings(torch, recorder)
        self.begin()

    def begin(self):
        """As at the start of a process, after fork too."""
        self.roots = []           # the first models that are called, held weakly
        self.met = set()
        self.events = None        # three, made with the first sampled step
        self.watched = set()      # devices that this process has used
        self.looks = self.failures = self.calls = 0
        self.next_ns = self.settings_ns = 0
        self.spent_ns = 0         # in the calls of wrappers, since the last look
        self.pass_next = True
        self.around = 0           # PASS or UPDATE, while events are to be recorded
        self.stage = 0            # how many of them are
        self.unread = 0           # PASS or UPDATE: recorded and not read yet
        self.unread_looks = 0
        self.wants_settings = self.wants_batch = False
        self.batch_seen = None    # (bytes, of these pinned) of the batch that the loader has given
        self.device = -1
        self.core.sampler = self  # in the first steps for the models that are called

    # ---- once in a while ----

    def look(self, t):
        """At the end of each step, in whatever thread works off the events."""
        if self.spent_ns:
            self.core.own_ns += self.spent_ns
            self.spent_ns = 0
        if t < self.next_ns or not self.core.settled:
            return
        self.next_ns = t + LOOK_NS
        if self.core.shed & _wire.PART_DEVICE or self.failures >= FAILURES_MAX:
            self.core.sampler = None
            return
        try:
            if t >= self.settings_ns:
                self.settings_ns = t + SETTINGS_NS
                self.wants_settings = True
            if self.has_cuda():
                self.read_memory(t)
                self.read_times(t)
                if self.device >= 0 and not self.unread:
                    self.around, self.stage = PASS if self.pass_next else UPDATE, 0
                    self.pass_next = not self.pass_next
                self.wants_batch, self.batch_seen = True, None
            if self.wants_settings or self.wants_batch or self.around:
                self.core.sampler, self.calls = self, 0
        except Exception:
            self.failed()

    def has_cuda(self):
        cuda = self.torch.cuda
        return bool(cuda.is_initialized())

    def read_memory(self, t):
        """Torch's own counts; asking waits for nothing."""
        self.looks += 1
        if self.device >= 0:
            self.watched.add(self.device)
        if self.looks % OTHERS_LOOKS == 1:
            devices = range(min(self.torch.cuda.device_count(), DEVICES_MAX))
        else:
            devices = sorted(self.watched)
        for device in devices:
            held = self.torch.cuda.memory_stats_as_nested_dict(device)
            if device not in self.watched:
                if not value_at(held, ("reserved_bytes", "all", "current")):
                    continue  # this process does not use it
                self.watched.add(device)
            about = "cuda:%d" % device
            for metric, path in MEMORY:
                value = value_at(held, path)
                if value is not None:
                    self.recorder.figure(metric, about, value, t)

    def read_times(self, t):
        """The events of a step before, if the device has come to the last of them by now."""
        if not self.unread:
            return
        events = self.events
        if not events[2 if self.unread == PASS else 1].query():
            self.unread_looks += 1
            if self.unread_looks >= UNREAD_LOOKS_MAX:  # of a stream that hangs, or was destroyed
                self.events, self.unread = None, 0
            return
        about = "cuda:%d" % self.device
        if self.unread == PASS:
            self.recorder.figure("gpu_time.forward.ms", about, events[0].elapsed_time(events[1]), t)
            self.recorder.figure("gpu_time.backward.ms", about, events[1].elapsed_time(events[2]), t)
        else:
            self.recorder.figure("gpu_time.optimizer.ms", about, events[0].elapsed_time(events[1]), t)
        self.unread = 0

    def failed(self):
        self.failures += 1
        self.around = self.unread = 0
        self.events = None
        self.recorder.failed()

    # ---- in a sampled step ----

    def batch(self, batch):
        """The loader has given a batch."""
        if not self.wants_batch:
            return
        start = now()
        try:
            size, pinned = 0, 0
            for tensor in self.tensors_of(batch):
                if tensor.device.type == "cpu" and tensor.layout is self.strided:
                    held = tensor.numel() * tensor.element_size()
                    size += held
                    if tensor.is_pinned():
                        pinned += held
            self.batch_seen = (size, pinned) if size else None
        except Exception:
            self.wants_batch = False
            self.recorder.failed()
        self.spent_ns += now() - start

    def tensors_of(self, batch):
        found, waiting = [], [batch]
        for item in waiting:
            if type(item) is self.tensor_type:
                found.append(item)
            elif isinstance(item, (list, tuple)):
                waiting.extend(item[:content.ITEMS_MAX])
            else:
                items = content.mapping_of(item)
                if items:
                    waiting.extend(list(items.values())[:content.ITEMS_MAX])
            if len(waiting) > 4 * content.ITEMS_MAX:
                break
        return found

    def forward(self, module, args, kwargs):
        """A root module is about to be called."""
        start = now()
        try:
            self.calls += 1
            if not self.core.settled:
                self.meet(module)
            elif self.wants_settings and (module.training or not self.core.optimizers_made):
                self.wants_settings = False
                self.settings.look()
            if self.wants_batch:  # a loader that we know would have given it by now
                self.wants_batch = False
                if self.batch_seen is not None:
                    self.arrived(args, kwargs, start)
            if self.around == PASS and self.stage == 0 and self.torch.is_grad_enabled():
                self.mark()
            elif self.calls > CALLS_ARMED_MAX:  # no gradients, no optimizer
                self.around, self.wants_settings = 0, False
            self.rest_if_done()
        except Exception:
            self.failed()
        self.spent_ns += now() - start

    def arrived(self, args, kwargs, t):
        """What the loader gave lay in the host's memory; where it lies now says whether it was copied."""
        for item in self.tensors_of(list(args[:ARGUMENTS_MAX]) + list(kwargs.values())[:ARGUMENTS_MAX]):
            if item.device.type != "cpu":
                size, pinned = self.batch_seen
                about = "%s:%d" % (item.device.type, item.device.index or 0)
                self.recorder.figure("transfer.to_device.bytes", about, size, t)
                self.recorder.figure("transfer.to_device.pinned.bytes", about, pinned, t)
                return

    def backward_begins(self):
        if self.around == PASS and self.stage == 1:
            self.mark()

    def backward_ended(self):
        if self.around == PASS and self.stage == 2:
            self.mark()
            self.taken()

    def optimizer_begins(self):
        if self.around == UPDATE:
            self.stage = 0
            self.mark()
        elif self.stage:  # forward without a backward
            self.stage = 0
        if self.core.settled:
            self.rest_if_done()

    def optimizer_ended(self):
        if self.around == UPDATE and self.stage == 1:
            self.mark()
            self.taken()

    def mark(self):
        start = now()
        try:
            cuda = self.torch.cuda
            if cuda.is_current_stream_capturing():
                self.around = self.stage = 0
            else:
                if self.events is None:
                    self.events = [cuda.Event(enable_timing=True) for _ in range(3)]
                self.events[self.stage].record()
                self.stage += 1
        except Exception:
            self.failed()
        self.spent_ns += now() - start

    def taken(self):
        if self.around:
            self.unread, self.unread_looks, self.around, self.stage = self.around, 0, 0, 0
        self.rest_if_done()

    def rest_if_done(self):
        if self.core.settled and not (self.wants_settings or self.wants_batch or self.around):
            self.core.sampler = None

    # ---- the first steps ----

    def meet(self, module):
        if self.calls > CALLS_MAX:  # a program without steps
            self.core.sampler = None
        if id(module) not in self.met and len(self.roots) < ROOTS_MAX:
            self.met.add(id(module))
            self.roots.append(weakref.ref(module))

    def settle(self):
        """The first steps are over."""
        self.wants_settings = True
        self.settings_ns = now() + SETTINGS_NS
        self.core.sampler = self
        torch, recorder = self.torch, self.recorder
        models = [model for model in (root() for root in self.roots) if model is not None]
        self.roots, self.met = [], set()
        started = self.has_cuda()
        if started:
            self.device = torch.cuda.current_device()
        try:
            recorder.info("accelerator", accelerator(torch, started, self.device))
        except Exception:
            recorder.failed()
        try:
            described = model_facts.describe(torch, models)
            if described is not None:
                recorder.info("model", described)
        except Exception:
            recorder.failed()

    def close(self):
        """The program ends in order."""
        if self.settings.said is None and self.core.settled:
            self.settings.look()


def value_at(figures, path):
    for key in path:
        figures = figures.get(key) if figures else None
    return figures


def accelerator(torch, started, current):
    """Whether the program uses one, without asking for one: nothing is started by looking."""
    kind = "hip" if getattr(torch.version, "hip", None) else "cuda" if getattr(torch.version, "cuda", None) else None
    if not started:
        return {"kind": kind, "initialised": False, "devices": None}
    count = torch.cuda.device_count()
    names, sizes = [], []
    for device in range(min(count, DEVICES_MAX)):
        properties = torch.cuda.get_device_properties(device)
        names.append(str(getattr(properties, "name", "")))
        sizes.append(getattr(properties, "total_memory", None))
    return {"kind": kind or "cuda", "initialised": True, "devices": count, "current": current, "names": names,
            "memory_bytes": sizes}


def attach_area(torch, recorder, core):
    sampler = Sampler(torch, recorder, core)
    core.at_settle.append(sampler.settle)
    core.at_step.append(sampler.look)
    core.at_fork.append(sampler.begin)
    core.at_end.append(sampler.close)
