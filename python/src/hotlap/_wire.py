"""The ring between this process and the recorder: src/wire/ring_layout.h in Python, byte for byte.

The first half is the writer (the hook's hot path), the second half a reader for tests and diagnosis. Standard library
only; nothing here starts a thread or takes a lock.
"""
from __future__ import annotations

import mmap
import os
import struct
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:  # nothing is imported for it at run time
    from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

    Record = Dict[str, Any]
    Place = Tuple[int, int, int, int, int, int]  # role, rank, local_rank, world_size, worker_id, attempt

MAGIC = b"HOTLAPRG"
LAYOUT_VERSION = 1
PAGE_BYTES = 4096
DATA_BYTES_MIN = 4096
DATA_BYTES_MAX = 64 << 20
FRAME_PAYLOAD_MAX = 60 * 1024
PAD = struct.pack("<I", 0xFFFFFFFF)

# Indices of 8-byte words in page 0.
LIVE_PHASE, LIVE_STEP, LIVE_STEP_END, LIVE_GROUP, LIVE_SEQUENCE = 32, 33, 34, 35, 36
LIVE_SENT, LIVE_DROPPED, LIVE_FRAMES_DROPPED, LIVE_SHED, LIVE_OWN_TIME, LIVE_CLOSED, LIVE_ERRORS = range(37, 44)
LIVE_NAMES_REFUSED = 44
COMMAND_WORD, COMMAND_ARGUMENT, ANSWER_WORD, ANSWER_RESULT = 64, 65, 80, 81
HEAD, TAIL = 128, 144

COMMAND_OFF, COMMAND_ON, COMMAND_PROFILE, COMMAND_PING, COMMAND_SAY_AGAIN = 1, 2, 3, 4, 5
ANSWER_DONE, ANSWER_UNKNOWN, ANSWER_UNSUPPORTED, ANSWER_FAILED = 0, 1, 2, 3
PART_QUEUE_DEPTH, PART_BATCH_CONTENT, PART_GARBAGE, PART_PHASES, PART_WORKER_PARTS, PART_EACH_STEP_FLUSH = (
    1, 2, 4, 8, 16, 32)
PART_EACH_DETAIL, PART_COLLECTIVES, PART_DEVICE = 64, 128, 256

# SpanKind of src/model/span.h.
STEP, DATA_WAIT, FORWARD, BACKWARD, OPTIMIZER, CHECKPOINT, GARBAGE, COMPILE, EPOCH, EVALUATION = range(1, 11)
WORKER_BATCH, WORKER_FETCH, WORKER_TRANSFORM, WORKER_COLLATE, WORKER_START, TRANSFER, COLLECTIVE = range(11, 18)
USER, INITIALISATION, HOOK, SHADOW = range(18, 22)
PROFILE_PAUSE = 27
# Flags of spans.
STEP_BY_OPTIMIZER, STEP_BY_LOADER, STEP_BY_PROGRAM, STEP_SKIPPED = 1, 2, 3, 4
WAIT_BEFORE_FORWARD = 1
# Flag of counts: the name is a metric of the hook's own and what it is about ("allocator.allocated.bytes cuda:0").
COUNT_OF_HOOK = 1
# Phase of src/model/event.h, ProcessRole of src/model/process.h.
PHASE_INITIALISATION, PHASE_TRAINING, PHASE_EVALUATION, PHASE_FINALISATION = 2, 3, 4, 5
ROLE_OTHER, ROLE_MAIN, ROLE_RANK, ROLE_LOADER = 0, 1, 2, 3

_IDENTITY = struct.Struct("<8sIIQIIQIIqq32siiiiii")
_FRAME = struct.Struct("<IIQ")
SPAN_FIELDS = "BBHHHqqIIqqq"
SPAN_BYTES = 56
_SPAN = struct.Struct("<" + SPAN_FIELDS)
_THREE_SPANS = struct.Struct("<" + 3 * SPAN_FIELDS)
_NAME = struct.Struct("<BBHIH6x")
_INFO = struct.Struct("<BBHHHq")
_COUNT = struct.Struct("<BBHIqdq")
_PHASE = struct.Struct("<BBHIqq")
_PROCESS = struct.Struct("<BBHiqiiiiiIII")
_END = struct.Struct("<BBHIq")

pack_span_raw = _SPAN.pack
pack_frame_head = _FRAME.pack


def pack_span(kind: int, start: int, duration: int, thread: int, name: int, step: int, a: int, b: int,
              flags: int = 0) -> bytes:
    return pack_span_raw(1, flags, 56, kind, 0, start, duration, thread, name, step, a, b)


def pack_fetched(event: Tuple[Any, ...], step: int, thread: int) -> bytes:
    """The spans of one batch made by a fetcher: (_, start, end, CPU, bytes, parts or None, transforms or None, name of
    its loader), parts: (collate start, samples, CPU of the fetch, CPU of collate). CPU time is -1 where it was not
    asked for."""
    _, start, end, cpu, size, parts, transforms, name = event
    if parts is None:
        return pack_span_raw(1, 0, 56, WORKER_BATCH, 0, start, end - start, thread, name, step, cpu, size)
    collate_start, samples, fetch_cpu, collate_cpu = parts
    spans = _THREE_SPANS.pack(
        1, 0, 56, WORKER_BATCH, 0, start, end - start, thread, name, step, cpu, size,
        1, 0, 56, WORKER_FETCH, 0, start, collate_start - start, thread, name, step, fetch_cpu, samples,
        1, 0, 56, WORKER_COLLATE, 0, collate_start, end - collate_start, thread, name, step, collate_cpu, samples)
    if transforms is None:
        return spans
    transform_start, wall, transform_cpu, calls = transforms
    return spans + pack_span_raw(1, 0, 56, WORKER_TRANSFORM, 0, transform_start, wall, thread, name, step,
                                 transform_cpu, calls)


def records_in(elements: Iterable[bytes]) -> int:
    """How many records the elements hold: one each, but spans may follow each other in one."""
    return sum(len(element) // SPAN_BYTES if element[0] == 1 else 1 for element in elements)


def _padded(head: bytes, text: bytes) -> bytes:
    record = head + text
    return record + bytes(-len(record) % 8)


def _cut(text: str, limit: int) -> bytes:
    """At most `limit` bytes of UTF-8, cut between characters."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw
    return raw[:limit].decode("utf-8", "ignore").encode("utf-8")


def pack_name(number: int, text: str) -> bytes:
    raw = _cut(text, 1024)
    return _padded(_NAME.pack(2, 0, (16 + len(raw) + 7) & -8, number, len(raw)), raw)


def pack_info(t: int, key: str, json_text: str) -> Optional[bytes]:
    """The record, or None when the JSON is too long to be kept whole."""
    raw_key, raw = _cut(key, 256), json_text.encode("utf-8", "replace")
    if len(raw) > 16384:
        return None
    return _padded(_INFO.pack(3, 0, (16 + len(raw_key) + len(raw) + 7) & -8, len(raw_key), len(raw), t), raw_key + raw)


def pack_count(name: int, t: int, value: float, step: int, flags: int = 0) -> bytes:
    return _COUNT.pack(4, flags, 32, name, t, value, step)


def pack_phase(t: int, phase: int, step: int) -> bytes:
    return _PHASE.pack(5, 0, 24, phase, t, step)


def pack_process(t: int, role: int, rank: int, local_rank: int, world_size: int, worker_id: int, attempt: int, pid: int,
                 parent_pid: int) -> bytes:
    return _PROCESS.pack(6, 0, 48, role, t, rank, local_rank, world_size, worker_id, attempt, pid, parent_pid, 0)


def pack_end(t: int, reason: int) -> bytes:
    return _END.pack(7, 0, 16, reason, t)


class RingWriter:
    """Makes the file and publishes frames. The caller serialises calls of write()."""

    __slots__ = ("path", "words", "signed", "data_bytes", "_map", "_head", "_tail", "_sequence")

    def __init__(self, path: str, data_bytes: int, uid: int, pid: int, start_ticks: int, parent_pid: int, mono_ns: int,
                 boot_ns: int, run_id: str, place: Place) -> None:
        """`place` = (role, rank, local_rank, world_size, worker_id, attempt). Raises OSError."""
        unfinished = path + ".new"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(unfinished, flags, 0o600)
        try:
            os.posix_fallocate(fd, 0, PAGE_BYTES + data_bytes)
            self._map = mmap.mmap(fd, PAGE_BYTES + data_bytes)
        except BaseException:
            os.unlink(unfinished)
            raise
        finally:
            os.close(fd)
        self._map[:_IDENTITY.size] = _IDENTITY.pack(
            MAGIC, LAYOUT_VERSION, PAGE_BYTES, data_bytes, uid, pid, start_ticks, parent_pid, 1, mono_ns, boot_ns,
            run_id.encode("ascii", "replace")[:31], *place)
        page = memoryview(self._map)[:PAGE_BYTES]
        self.words = page.cast("Q")
        self.signed = page.cast("q")
        for word in (LIVE_STEP, LIVE_STEP_END, LIVE_GROUP, LIVE_SEQUENCE):
            self.signed[word] = -1
        self.path, self.data_bytes = path, data_bytes
        self._head = self._tail = self._sequence = 0
        os.rename(unfinished, path)

    def set_place(self, place: Place) -> None:
        """Role, rank, … in page 0 (the PROCESS record says when it changed)."""
        self._map[96:120] = struct.pack("<iiiiii", *place)

    def write(self, payload: bytes, records: int) -> bool:
        """Publishes one frame; False (and counted) when there is no room for it."""
        words = self.words
        size = len(payload) + 16
        head, data_bytes = self._head, self.data_bytes
        offset = head % data_bytes
        pad = data_bytes - offset if offset + size > data_bytes else 0
        if head + pad + size - self._tail > data_bytes:
            tail = words[TAIL]
            if self._tail <= tail <= head:  # anything else is torn or foreign
                self._tail = tail
            if head + pad + size - self._tail > data_bytes:
                words[LIVE_DROPPED] += records
                words[LIVE_FRAMES_DROPPED] += 1
                return False
        if pad:
            self._map[PAGE_BYTES + offset:PAGE_BYTES + offset + 4] = PAD
            offset = 0
        sequence = self._sequence
        start = PAGE_BYTES + offset
        frame = pack_frame_head(size - 16, crc32(payload, sequence & 0xFFFFFFFF), sequence) + payload
        self._map[start:start + size] = frame
        self._sequence = sequence + 1
        self._head = head = head + pad + size
        words[LIVE_SENT] += records
        words[HEAD] = head  # one aligned store: the frame is there from now on
        return True


# ---- reader, for tests and diagnosis ---------------------------------------------------------------------------------


class Ring:
    """A ring as it is now, unread frames decoded. Raises ValueError when it is none; never writes to the file."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self.content = file.read()
        if len(self.content) < PAGE_BYTES or self.content[:8] != MAGIC:
            raise ValueError("not a ring: %s" % path)
        fields = _IDENTITY.unpack_from(self.content)
        (_, self.version, _, self.data_bytes, self.uid, self.pid, self.start_ticks, self.parent_pid, _, self.mono_ns,
         self.boot_ns, run_id, self.role, self.rank, self.local_rank, self.world_size, self.worker_id,
         self.attempt) = fields
        if self.version != LAYOUT_VERSION or len(self.content) < PAGE_BYTES + self.data_bytes:
            raise ValueError("ring of another version or cut short: %s" % path)
        self.run_id = run_id.rstrip(b"\0").decode("ascii")
        live = struct.unpack_from("<5q4Qq3Q", self.content, 256)
        (self.phase, self.step, self.step_end_ns, self.group, self.sequence, self.sent, self.dropped,
         self.frames_dropped, self.shed, self.own_time_ns, self.closed, self.errors, self.names_refused) = live
        self.answer = struct.unpack_from("<QQ", self.content, 640)
        self.head, = struct.unpack_from("<Q", self.content, 1024)
        self.tail, = struct.unpack_from("<Q", self.content, 1152)
        self.frames_damaged = 0
        self.records = list(self._records())
        self.names = {r["id"]: r["text"] for r in self.records if r["type"] == "name"}

    def _frames(self) -> Iterator[bytes]:
        position = self.tail
        while position < self.head:
            offset = position % self.data_bytes
            place = PAGE_BYTES + offset
            if self.content[place:place + 4] == PAD:
                position += self.data_bytes - offset
                continue
            size, crc, sequence = _FRAME.unpack_from(self.content, place)
            payload = self.content[place + 16:place + 16 + size]
            if crc32(payload, sequence & 0xFFFFFFFF) != crc or not payload:
                self.frames_damaged += 1
                return
            yield payload
            position += (size + 23) & -8

    def _records(self) -> Iterator[Record]:
        for payload in self._frames():
            offset = 0
            while offset < len(payload):
                size, = struct.unpack_from("<H", payload, offset + 2)
                yield _decode(payload[offset:offset + size])
                offset += size

    def spans(self, kind: int) -> List[Record]:
        return [r for r in self.records if r["type"] == "span" and r["kind"] == kind]

    def infos(self) -> Dict[str, str]:
        return {r["key"]: r["json"] for r in self.records if r["type"] == "info"}

    def lines(self) -> str:
        """As src/wire/ring_text.h writes them."""
        return "".join(_line(r) + "\n" for r in self.records)


def _decode(raw: bytes) -> Record:
    kind = raw[0]
    if kind == 1:
        _, flags, _, span, _, start, duration, thread, name, step, a, b = _SPAN.unpack_from(raw)
        return {"type": "span", "kind": span, "flags": flags, "start": start, "duration": duration, "thread": thread,
                "name": name, "step": step, "a": a, "b": b}
    if kind == 2:
        _, _, _, number, size = _NAME.unpack_from(raw)
        return {"type": "name", "id": number, "text": raw[16:16 + size].decode("utf-8")}
    if kind == 3:
        _, _, _, key, value, t = _INFO.unpack_from(raw)
        return {"type": "info", "t": t, "key": raw[16:16 + key].decode("utf-8"),
                "json": raw[16 + key:16 + key + value].decode("utf-8")}
    if kind == 4:
        _, flags, _, name, t, value, step = _COUNT.unpack_from(raw)
        return {"type": "count", "name": name, "flags": flags, "t": t, "value": value, "step": step}
    if kind == 5:
        _, _, _, phase, t, step = _PHASE.unpack_from(raw)
        return {"type": "phase", "t": t, "phase": phase, "step": step}
    if kind == 6:
        fields = _PROCESS.unpack_from(raw)[3:12]
        names = ("role", "t", "rank", "local_rank", "world_size", "worker", "attempt", "pid", "parent")
        return dict(zip(names, fields), type="process")
    if kind == 7:
        _, _, _, reason, t = _END.unpack_from(raw)
        return {"type": "end", "t": t, "reason": reason}
    return {"type": "unknown", "number": kind}


_LINES = {
    "span": "span kind={kind} flags={flags} start={start} duration={duration} thread={thread} name={name} step={step}"
            " a={a} b={b}",
    "name": "name id={id} text={text}",
    "info": "info t={t} key={key} json={json}",
    "count": "count name={name} flags={flags} t={t} value={value:.6f} step={step}",
    "phase": "phase t={t} phase={phase} step={step}",
    "process": "process t={t} role={role} rank={rank} local_rank={local_rank} world_size={world_size} worker={worker}"
               " attempt={attempt} pid={pid} parent={parent}",
    "end": "end t={t} reason={reason}",
    "unknown": "unknown number={number}",
}


def _line(record: Record) -> str:
    return _LINES[record["type"]].format(**record)
