"""What a batch costs where it is made: in a loader worker, or in next() itself when there are no workers."""
import functools
import time
from _thread import get_ident

from hotlap import _place, _wire
from hotlap._events import BUSY, EAGER_STEPS, FETCHED, OFF
from hotlap._torch import batch as content

now = time.monotonic_ns
thread_cpu_now, process_cpu_now = time.thread_time_ns, time.process_time_ns
SAMPLED = 16


class Transforms:
    """Time inside recognisable transforms during the fetch that runs: filled by the adapter `transforms`."""

    def __init__(self):
        self.thread = None  # of the fetch that runs; whoever sets it sets `calls` to 0
        self.depth = self.wall_ns = self.cpu_ns = self.calls = self.start_ns = 0

    def begin(self, thread):
        self.thread = thread
        self.depth = self.wall_ns = self.cpu_ns = self.calls = self.start_ns = 0

    def found(self):
        return (self.start_ns, self.wall_ns, self.cpu_ns, self.calls) if self.calls else None


transforms = Transforms()


class TimedCollate:
    """Stands in for collate_fn inside the fetcher; the fetch ends where it ends."""

    __slots__ = ("collate_fn", "in_worker", "name", "start_ns", "start_cpu", "samples")

    def __init__(self, collate_fn, name):
        self.collate_fn, self.in_worker, self.name = collate_fn, _place.worker_id() >= 0, name
        self.start_ns = self.samples = 0
        self.start_cpu = -1

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "collate_fn"), name)

    def __call__(self, data):
        if self.in_worker:
            self.start_cpu = process_cpu_now()
        self.start_ns = now()
        self.samples = len(data) if isinstance(data, (list, tuple)) else -1
        try:
            return self.collate_fn(data)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise

    def pass_through(self, data):
        try:
            return self.collate_fn(data)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise


def attach_area(torch, recorder, core):
    fetchers = torch.utils.data._utils.fetch
    wrap_init(fetchers._BaseDatasetFetcher, recorder)
    for cls in (fetchers._MapDatasetFetcher, fetchers._IterableDatasetFetcher):
        wrap_fetch(torch, cls, recorder, core)
    core.rest.add(TimedCollate, "__call__", TimedCollate.pass_through)


def wrap_init(base, recorder):
    plain_init = base.__init__

    @functools.wraps(plain_init)
    def __init__(self, *args, **kwargs):
        try:
            plain_init(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if not recorder.off:
            loader = _place.loader()
            self.collate_fn = TimedCollate(self.collate_fn, recorder.name(loader) if loader else 0)

    base.__init__ = __init__


def wrap_fetch(torch, cls, recorder, core):
    plain_fetch = cls.fetch
    tensor_type, strided = torch.Tensor, torch.strided
    append = core.events.append
    batches = 0
    every = True  # batches are looked into: the first ones, and where they say how many tokens they hold

    def fetch_in_worker(self, index, collate):
        """A batch is all that the process does, so its CPU time is the batch's. Each batch leaves at once."""
        transforms.begin(get_ident())
        core.busy |= BUSY  # a model that the dataset uses is no training
        cpu = process_cpu_now()
        start = now()
        try:
            data = plain_fetch(self, index)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        finally:
            transforms.thread = None
            core.busy &= OFF
        end, end_cpu = now(), process_cpu_now()
        try:
            shed, parts, size = core.shed, None, -1
            if not shed & _wire.PART_WORKER_PARTS and collate.start_ns >= start:
                fetch_cpu = max(collate.start_cpu - cpu, 0)
                parts = collate.start_ns, collate.samples, fetch_cpu, max(end_cpu - cpu - fetch_cpu, 0)
            if not shed & _wire.PART_BATCH_CONTENT:
                size = content.describe(data, tensor_type, strided, -1, True)[1]
            recorder.fetched((FETCHED, start, end, end_cpu - cpu, size, parts, transforms.found(), collate.name), -1)
            recorder.flush()
        except Exception:
            recorder.failed()
        return data

    @functools.wraps(plain_fetch)
    def fetch(self, possibly_batched_index):
        nonlocal batches, every
        collate = self.collate_fn
        thread = get_ident()
        try:
            if type(collate) is not TimedCollate or core.busy & OFF or transforms.thread == thread:
                return plain_fetch(self, possibly_batched_index)
            if collate.in_worker:
                return fetch_in_worker(self, possibly_batched_index, collate)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        # In next() itself: only this thread's CPU time counts, and asking for it is a system call; looking into tensors
        # is as dear. One batch in SAMPLED is asked for both.
        batches += 1
        sampled = not batches % SAMPLED
        transforms.thread = thread
        transforms.calls = 0
        cpu = thread_cpu_now() if sampled else 0
        start = now()
        try:
            data = plain_fetch(self, possibly_batched_index)
        except BaseException as error:
            transforms.thread = None
            error.__traceback__ = error.__traceback__.tb_next
            raise
        end = now()
        try:
            cpu = thread_cpu_now() - cpu if sampled else -1
            transforms.thread = None
            shed, parts, found = core.shed, None, (collate.samples, -1, -1)
            if not shed & _wire.PART_WORKER_PARTS and collate.start_ns >= start:
                parts = collate.start_ns, collate.samples, -1, -1
            if (sampled or every) and not shed & _wire.PART_BATCH_CONTENT:
                found = content.describe(data, tensor_type, strided, collate.samples, True)
                every = batches < EAGER_STEPS or found[2] >= 0
            core.content = id(data), found
            inside = transforms.found() if transforms.calls else None
            append((FETCHED, start, end, cpu, found[1], parts, inside, collate.name))
        except Exception:
            recorder.failed()
        return data

    cls.fetch = fetch
    core.rest.add(cls, "fetch", plain_fetch)
