"""This process's records on their way into its ring: names, packing, one frame at a time, drop and count.

Records are packed bytes in a bounded deque (its append is atomic, so any thread may add; several spans may share an
element), and flush() makes one frame
of them; whoever finds the flush taken leaves his records to the other. The ring is opened with the first flush. After
fork the child starts over with a ring of its own.
"""
import json
import os
import sys
import time
from _thread import allocate_lock, get_ident, get_native_id
from collections import deque
from itertools import count

from hotlap import _place, _start, _wire

now = time.monotonic_ns
RECORDS_MAX = 4096   # waiting for a flush; beyond it records are dropped and counted
NAMES_MAX = 4096
FRAME_RECORDS = 256  # elements of the queue
ERRORS_MAX = 50      # of our own; then the hook goes off in this process
RING_BYTES_WORKER = 256 << 10
KEPT = []            # rings of the parent process


class Recorder:
    """One per process; thread-safe as a whole: every method may be called from any thread, none of them raises."""

    def __init__(self):
        self.obey = None     # what carries out a command of the recorder
        self.reset()

    def reset(self):
        """As after fork: nothing recorded, no ring, whatever thread held the flush is gone."""
        if getattr(self, "ring", None) is not None:
            KEPT.append(self.ring)  # unmapping would close a descriptor number that may be another's by now
        self.queue = deque()
        self.append = self.queue.append
        self.ring = None
        self.off = not _start.wanted()
        self.closed = False
        self.lock = allocate_lock()
        self.names = {}
        self.numbers = count(1)
        self.names_refused = 0
        self.phase_now = 0
        self.said = []       # NAME and INFO records, said again after a drop
        self.said_again = False
        self.threads = {}
        self.dropped = 0     # before they reached the ring
        self.errors = 0
        self.own_ns = 0
        self.place = None
        self.pid = os.getpid()

    # ---- records ----

    def thread(self):
        ident = get_ident()
        number = self.threads.get(ident)
        if number is None:
            if len(self.threads) > 1000:
                self.threads.clear()
            number = self.threads[ident] = get_native_id()
        return number

    def span(self, kind, start, duration, name, step, a, b, flags=0):
        self.append(_wire.pack_span(kind, start, duration, self.thread(), name, step, a, b, flags))

    def fetched(self, event, step):
        """One batch made by a fetcher (see _torch/fetch.py)."""
        self.append(_wire.pack_fetched(event, step, self.thread()))

    def count(self, name, value, step, t):
        self.append(_wire.pack_count(name, t, value, step))

    def figure(self, metric, about, value, t, step=-1):
        """A value of one of the hook's own metrics (src/record/hook_metrics.h), about a device or ""."""
        name = self.name("%s %s" % (metric, about) if about else metric)
        self.append(_wire.pack_count(name, t, value, step, _wire.COUNT_OF_HOOK))

    def name(self, text):
        """The number of a name; 0 (none) beyond the bound."""
        number = self.names.get(text)
        if number is None:
            if len(self.names) >= NAMES_MAX:
                self.names_refused += 1
                return 0
            number = next(self.numbers)  # two threads get two, also without a lock of the interpreter's
            self.say(_wire.pack_name(number, text))
            self.names[text] = number
        return number

    def info(self, key, value):
        try:
            record = _wire.pack_info(now(), key, json.dumps(value, default=str, sort_keys=True))
        except (TypeError, ValueError, RecursionError):
            record = None
        if record is not None:
            self.say(record)

    def phase(self, phase, t, step):
        self.append(_wire.pack_phase(t, phase, step))
        self.phase_now = phase
        if self.ring is not None:
            self.ring.signed[_wire.LIVE_PHASE] = phase

    def say(self, record):
        if len(self.said) < NAMES_MAX + 64:
            self.said.append(record)
        self.append(record)

    def say_again(self):
        """For a recorder that was not there when names and settings were said. Before what waits: it uses them."""
        self.queue.extendleft(reversed(self.said))

    def update_place(self):
        """Role, rank … as far as they are known by now: a process group may be there that was not before."""
        place = _place.place()
        # Current torch takes a loader worker's number away from it before it ends.
        if place == self.place or (self.place is not None and self.place[0] == _wire.ROLE_LOADER):
            return
        self.place = place
        self.append(_wire.pack_process(now(), *place, os.getpid(), os.getppid()))
        if self.ring is not None:
            self.ring.set_place(place)

    # ---- into the ring ----

    def flush(self):
        """Publishes what waits. Cheap when there is nothing; returns at once when another thread is at it."""
        lock = self.lock
        if not self.queue or not lock.acquire(False):
            return
        try:
            if self.pid != os.getpid():  # a fork that Python did not see
                self.reset()
                return
            if self.ring is None and (self.off or not self.open()):
                self.queue.clear()
                return
            self.write_waiting()
        except Exception:
            self.failed()
        finally:
            if lock.locked():
                lock.release()

    def write_waiting(self):
        queue, ring = self.queue, self.ring
        if self.dropped:
            ring.words[_wire.LIVE_DROPPED] += self.dropped
            self.dropped = 0
            self.said_again = True
        if len(queue) > RECORDS_MAX:
            self.drop_oldest()
        if self.names_refused:
            ring.words[_wire.LIVE_NAMES_REFUSED] = self.names_refused
        if ring.signed[_wire.COMMAND_WORD] != ring.signed[_wire.ANSWER_WORD] and self.obey is not None:
            self.obey(ring)
        while queue:
            take = queue.popleft
            records = [take() for _ in range(min(len(queue), FRAME_RECORDS))]
            payload = b"".join(records)
            if len(payload) > _wire.FRAME_PAYLOAD_MAX:
                for record in records:  # a burst of long INFO records: one frame each
                    self.said_again |= not ring.write(record, _wire.records_in((record,)))
            elif not ring.write(payload, _wire.records_in(records)):
                self.said_again = True
            elif self.said_again:
                self.said_again = False
                self.say_again()  # names may have been lost in the drop

    def drop_oldest(self):
        dropped = [self.queue.popleft() for _ in range(len(self.queue) - RECORDS_MAX)]
        self.said_again = True
        self.ring.words[_wire.LIVE_DROPPED] += _wire.records_in(dropped)

    def open(self):
        folder = os.environ.get("HOTLAP_RING_DIR", "")
        fault = _start.ring_folder_fault(folder)
        if fault is not None:
            return self.turn_off("ring-folder", fault)
        place = self.place or _place.place()
        try:
            size = int(os.environ.get("HOTLAP_RING_BYTES") or 0)
        except ValueError:
            size = 0
        if not size:
            size = RING_BYTES_WORKER if place[0] == _wire.ROLE_LOADER else 1 << 20
        data_bytes = min(max((size - _wire.PAGE_BYTES) & -8, _wire.DATA_BYTES_MIN), _wire.DATA_BYTES_MAX)
        boot = time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
        try:
            self.ring = _wire.RingWriter(_start.ring_base() + ".ring", data_bytes, os.geteuid(), os.getpid(),
                                         _start.start_ticks(), os.getppid(), now(), boot,
                                         os.environ.get("HOTLAP_RUN_ID", ""), place)
        except (OSError, ValueError) as error:
            return self.turn_off("ring-allocation", getattr(error, "strerror", None) or str(error))
        self.ring.signed[_wire.LIVE_PHASE] = self.phase_now
        self.ring.words[_wire.LIVE_ERRORS] = self.errors
        if self.place is None:
            self.place = place
            self.queue.appendleft(_wire.pack_process(now(), *place, os.getpid(), os.getppid()))
        return True

    def turn_off(self, code, detail):
        self.off = True
        _start.say_off(code, detail)
        return False

    def failed(self):
        """An exception of ours was swallowed. Too many and the hook goes off."""
        self.errors += 1
        try:
            if self.ring is not None:
                self.ring.words[_wire.LIVE_ERRORS] = self.errors
            if self.errors == 1:
                error = sys.exc_info()[1]
                frame = error.__traceback__
                while frame is not None and frame.tb_next is not None:
                    frame = frame.tb_next
                file = os.path.basename(frame.tb_frame.f_code.co_filename) if frame else ""
                place = "%s:%d" % (file, frame.tb_lineno if frame else 0)
                self.info("hook.error", {"type": type(error).__name__, "text": str(error)[:200], "at": place})
            if self.errors >= ERRORS_MAX and not self.off:
                self.turn_off("hook-failed", "%d errors of its own" % self.errors)
        except Exception:
            self.off = True

    def close(self, phase_start):
        """The interpreter ends in order."""
        if self.off or self.closed or (self.ring is None and not self.queue):
            return
        self.closed = True
        self.phase(_wire.PHASE_FINALISATION, phase_start, -1)
        self.append(_wire.pack_end(now(), 0))
        self.flush()
        if self.ring is not None:
            self.ring.words[_wire.LIVE_CLOSED] = 1
