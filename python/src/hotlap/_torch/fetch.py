"""What a batch costs where it is made: in a loader worker, or in next() itself when there are no workers."""
import functools
import time
from _thread import get_ident

from hotlap import _place, _wire
from hotlap._core import BUSY, FETCHED, OFF
from hotlap._torch import batch as content

now = time.monotonic_ns


class Transforms:
    """Time inside recognisable transforms during the fetch that runs: filled by the adapter `transforms`."""

    def __init__(self):
        self.thread = None  # of the fetch that runs
        self.depth = self.wall_ns = self.cpu_ns = self.calls = self.start_ns = 0

    def begin(self, thread):
        self.thread = thread
        self.depth = self.wall_ns = self.cpu_ns = self.calls = self.start_ns = 0


transforms = Transforms()


class TimedCollate:
    """Stands in for collate_fn inside the fetcher; the fetch ends where it ends."""

    def __init__(self, collate_fn):
        self.collate_fn, self.in_worker = collate_fn, _place.worker_id() >= 0
        # A worker's batch is all that its process does; next to a training loop only this thread counts.
        self.clock = time.process_time_ns if self.in_worker else time.thread_time_ns
        self.start_ns = self.start_cpu = self.samples = 0

    def __getattr__(self, name):
        return getattr(self.__dict__["collate_fn"], name)

    def __call__(self, data):
        self.start_cpu = self.clock()
        self.start_ns = now()
        self.samples = len(data) if isinstance(data, (list, tuple)) else -1
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
            self.collate_fn = TimedCollate(self.collate_fn)

    base.__init__ = __init__


def wrap_fetch(torch, cls, recorder, core):
    plain_fetch = cls.fetch
    tensor_type, strided = torch.Tensor, torch.strided

    def fetched(collate, data, start, end, start_cpu, end_cpu):
        size = -1
        if not core.shed & _wire.PART_BATCH_CONTENT:
            size, _ = content.content_of(data, tensor_type, strided)
        parts = None
        if not core.shed & _wire.PART_WORKER_PARTS and collate.start_ns >= start:
            parts = collate.start_ns, max(collate.start_cpu - start_cpu, 0), collate.samples
        inside = None
        if transforms.calls:
            inside = transforms.start_ns, transforms.wall_ns, transforms.cpu_ns, transforms.calls
        event = FETCHED, start, end, end_cpu - start_cpu, size, parts, inside
        if collate.in_worker:  # each batch leaves at once
            recorder.fetched(event, -1)
            recorder.flush()
        else:
            core.events.append(event)

    @functools.wraps(plain_fetch)
    def fetch(self, possibly_batched_index):
        collate = self.__dict__.get("collate_fn")
        mine = type(collate) is TimedCollate and not core.busy & OFF and transforms.thread != get_ident()
        if mine:
            transforms.begin(get_ident())
            if collate.in_worker:
                core.busy |= BUSY  # a model that the dataset uses is no training
            cpu = collate.clock()
        start = now()
        try:
            data = plain_fetch(self, possibly_batched_index)
        except BaseException as error:
            if mine:
                transforms.thread = None
                if collate.in_worker:
                    core.busy &= OFF
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if mine:
            transforms.thread = None
            if collate.in_worker:
                core.busy &= OFF
            try:
                fetched(collate, data, start, now(), cpu, collate.clock())
            except Exception:
                recorder.failed()
        return data

    cls.fetch = fetch
