"""torch.utils.data: waits in next(), epochs, start of workers, queue depth; and inside a worker what a batch costs."""
import functools
import time
import weakref
from _thread import get_ident

from hotlap import _place, _wire
from hotlap._events import BUSY, BY_WAIT, EXHAUSTED, IDLE_NS, ITERATOR, OFF, WAITED
from hotlap._torch import batch as content

now = time.monotonic_ns


LOADERS_MAX = 64  # told apart in one process


class LoaderState:
    """One DataLoader over its epochs, or one that the program makes anew for each of them."""

    def __init__(self, loader, settings, number):
        self.of = weakref.ref(loader)  # the one that is in use, or was last
        self.number, self.settings = number, settings
        self.epochs = 0
        self.batch_size = loader.batch_size or -1
        self.text = "loader %d (%s)" % (number, settings["dataset"])
        self.said_to = None

    def announce(self, recorder):
        """Says who this is, once per process: after fork the child's recorder knows nothing yet."""
        if self.said_to is not recorder.names:
            self.said_to = recorder.names
            self.name = recorder.name(self.text)
            self.depth_name = recorder.name("loader.queue_depth " + self.text) if self.settings["num_workers"] else 0
            recorder.info("loader.%d" % self.number, dict(self.settings, known=True, number=self.number,
                                                          batches=batches_of(self.of())))


def settings_of(loader):
    sampler = getattr(loader, "sampler", None)
    return {"class": type(loader).__name__, "dataset": type(loader.dataset).__name__, "batch_size": loader.batch_size,
            "num_workers": loader.num_workers,
            "prefetch_factor": loader.prefetch_factor if loader.num_workers else None, "pin_memory": loader.pin_memory,
            "persistent_workers": loader.persistent_workers, "drop_last": loader.drop_last,
            "sampler": type(sampler).__name__, "collate": getattr(loader.collate_fn, "__name__", ""),
            "start_method": start_method(loader)}


def batches_of(loader):
    """Batches of one pass, where that is known before it ends; a stream has no length, or one that is only a guess."""
    try:
        return None if hasattr(type(loader.dataset), "__iter__") else len(loader)
    except Exception:  # of the program's own sampler or data set
        return None


def start_method(loader):
    context = getattr(loader, "multiprocessing_context", None)
    if context is None and loader.num_workers:
        import multiprocessing

        return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    return context.get_start_method() if context is not None else None


class Pass:
    """One iterator over a loader: an epoch if steps come of it."""

    __slots__ = ("loader", "workers", "start_ns", "made_ns", "first_index", "batches", "last_ns", "open")

    def __init__(self, core, loader, workers, start):
        self.loader, self.workers, self.start_ns, self.made_ns = loader, workers, start, start
        self.first_index, self.batches, self.last_ns, self.open = core.index, 0, start, True

    def rests(self, core):
        """Whether this batch need not be looked at."""
        if get_ident() != core.thread:
            return False
        core.rest.batch()
        return core.resting

    def close(self, core, end):
        if self.open:
            self.open = False
            if core.epoch(self.loader.epochs, self.start_ns, end, self.first_index):
                self.loader.epochs += 1


class Loaders:
    """The loaders of this process and the passes over them."""

    def __init__(self, recorder, core):
        self.recorder, self.core = recorder, core
        self.states = weakref.WeakKeyDictionary()
        self.passes = weakref.WeakKeyDictionary()  # loader -> its pass
        self.known = []

    def state_of(self, loader):
        state = self.states.get(loader)
        if state is None:
            settings = settings_of(loader)
            for state in self.known:
                former = state.of()
                if state.settings == settings and (former is None or former.dataset is loader.dataset):
                    state.of = weakref.ref(loader)
                    break
            else:
                if len(self.known) < LOADERS_MAX:
                    self.known.append(LoaderState(loader, settings, len(self.known) + 1))
                state = self.known[-1]
            self.states[loader] = state
        return state

    def begin(self, iterator, loader, start):
        state = self.state_of(loader)
        state.announce(self.recorder)
        _place.set_loader(state.text)  # for the fetchers that are made next, here or in the workers
        self.core.drain()  # the steps so far belong to what was before
        left = self.passes.get(loader)
        if left is not None:
            left.close(self.core, max(left.last_ns, self.core.last_event_ns) if self.core.resting else left.last_ns)
        self.core.rest.watch()  # a new pass may be an evaluation
        current = Pass(self.core, state, loader.num_workers, start)
        self.passes[loader] = current
        iterator._hotlap = current

    def close_all(self):
        self.core.drain()
        for current in list(self.passes.values()):
            current.close(self.core, current.last_ns)


def queue_depth(iterator):
    """Batches that are ready: in the result queue, or arrived before their turn. -1: torch keeps them elsewhere."""
    try:
        ready = iterator._data_queue.qsize()
        for info in iterator._task_info.values():
            ready += len(info) == 2
        return ready
    except Exception:
        return -1


def attach_area(torch, recorder, core):
    dataloader = torch.utils.data.dataloader
    base = dataloader._BaseDataLoaderIter
    base._hotlap = None  # of an iterator that was made before we came
    loaders = Loaders(recorder, core)
    core.at_end.append(loaders.close_all)
    wrap_init(base, loaders, recorder)
    wrap_reset(base, loaders, recorder)
    wrap_next(torch, base, recorder, core)
    from hotlap._torch import fetch

    fetch.attach_area(torch, recorder, core)


def wrap_init(base, loaders, recorder):
    plain_init = base.__init__

    @functools.wraps(plain_init)
    def __init__(self, loader, *args, **kwargs):
        start = now()
        try:
            plain_init(self, loader, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        if not recorder.off:
            try:
                loaders.begin(self, loader, start)
            except Exception:
                recorder.failed()

    base.__init__ = __init__


def wrap_reset(base, loaders, recorder):
    """Persistent workers: the iterator lives on and begins anew."""
    plain_reset = base._reset

    @functools.wraps(plain_reset)
    def _reset(self, loader, *args, **kwargs):
        start = now()
        try:
            plain_reset(self, loader, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            raise
        current = self._hotlap
        if current is not None and current.batches:
            try:
                loaders.begin(self, loader, start)
                self._hotlap.workers = 0  # they are there already
            except Exception:
                recorder.failed()

    base._reset = _reset


def wrap_next(torch, base, recorder, core):
    plain_next = base.__next__
    tensor_type, strided = torch.Tensor, torch.strided
    append = core.events.append

    def got(current, batch, start, end, depth, iterator):
        loader = current.loader
        made = core.content
        if made is not None and made[0] == id(batch):  # in this very call: looked into already
            found = made[1]
        else:
            found = content.describe(batch, tensor_type, strided, loader.batch_size,
                                     not core.shed & _wire.PART_BATCH_CONTENT)
        core.content = None
        if not current.batches:
            first(current, start, end)
        current.batches += 1
        current.last_ns = end
        samples, size, tokens = found
        if core.sampler is not None:
            core.sampler.batch(batch)
        append((WAITED, start, end, id(iterator), loader, samples, size, tokens, depth))

    def first(current, start, end):
        """The first batch of a pass: making the iterator was waiting too, and workers have started by now."""
        append((ITERATOR, current.start_ns, current.made_ns, current.loader, current.workers))
        if current.workers:
            core.note_span(_wire.WORKER_START, current.start_ns, end, current.loader.name, current.workers, -1)

    def elsewhere(iterator, batch, start):
        """A thread that prefetches: no wait of the training thread."""
        core.content = None
        size = content.describe(batch, tensor_type, strided, -1, True)[1]
        core.note_span(_wire.WORKER_BATCH, start, now(), iterator._hotlap.loader.name, -1, size)

    def ended(iterator, current, start):
        """StopIteration."""
        core.rest.hold()
        core.events.append((EXHAUSTED, start, now(), id(iterator), current.loader))
        core.drain()
        current.close(core, now())

    @functools.wraps(plain_next)
    def __next__(self):
        current = self._hotlap
        if current is None or core.busy & BUSY or core.resting and current.rests(core):
            try:
                return plain_next(self)
            except BaseException as error:
                if type(error) is StopIteration and core.resting and current is not None:
                    try:
                        ended(self, current, now())
                    except Exception:
                        recorder.failed()
                error.__traceback__ = error.__traceback__.tb_next
                raise
        mine = get_ident() == core.thread or core.is_training_thread(BY_WAIT)
        depth = -1
        start = now()
        try:
            if mine:
                core.busy |= BUSY
                if current.workers and current.batches and not core.shed & _wire.PART_QUEUE_DEPTH:
                    depth = queue_depth(self)
                batch = plain_next(self)
                core.busy &= OFF
            else:
                batch = plain_next(self)
        except BaseException as error:
            if mine:
                core.busy &= OFF
                if type(error) is StopIteration:
                    try:
                        ended(self, current, start)
                    except Exception:
                        recorder.failed()
            error.__traceback__ = error.__traceback__.tb_next
            raise
        end = now()
        try:
            if not mine:
                elsewhere(self, batch, start)
            elif core.busy:
                append((WAITED, start, end, id(self), None, -1, -1, -1, -1))
            else:
                got(current, batch, start, end, depth, self)
            if core.source != _wire.STEP_BY_OPTIMIZER:
                core.tick(end)
            elif end - core.last_drain_ns > IDLE_NS:
                core.drain()
        except Exception:
            recorder.failed()
        return batch

    base.__next__ = __next__
