"""Files of SageMaker Debugger's profiler, and hotlap's samples and spans in their words. Used by hotlap.readers."""
from __future__ import annotations

import gzip
import json
import os
import re

from hotlap._reader import Error

TYPE_CHECKING = False
if TYPE_CHECKING:  # nothing is imported for it at run time
    from typing import Any, Dict, Iterable, List, Optional, Tuple

_SYSTEM = re.compile(r"(?:^|/)(\d{10})\.algo-\d+\.json$")
_METADATA = re.compile(r"_(\d+)_(\d+)\.metadata$")
_TIMELINE = re.compile(r"(?:^|/)(\d+)_(.+)_(pythontimeline|model_timeline|horovod_timeline|smdataparallel_timeline)\.json$")


class SystemEvent:
    """One sample: type, name, dimension, value (None: missing), node_id, timestamp (seconds of Unix time)."""

    __slots__ = ("dimension", "name", "node_id", "timestamp", "type", "value")

    def __init__(self, type: str, name: str, dimension: str, value: Optional[float], node_id: str, timestamp: float) -> None:
        self.type, self.name, self.dimension, self.value = type, name, dimension, value
        self.node_id, self.timestamp = node_id, timestamp

    def __repr__(self) -> str:
        return "<%s %s %s %s at %.6f on %s>" % (self.type, self.name, self.dimension, self.value, self.timestamp, self.node_id)


class TraceEvent:
    """One stretch of time of the framework, in microseconds of Unix time."""

    __slots__ = ("duration", "end_time", "event_args", "event_name", "event_phase", "file_type", "node_id", "phase",
                 "phase_pid", "phase_tid", "pid", "process_info", "start_time", "tid")

    def __init__(self, start_us: float, duration_us: float, name: str, phase_name: str, node_id: str, file_type: str,
                 phase_pid: Any = 0, phase_tid: Any = 0, args: Optional[Dict[str, Any]] = None) -> None:
        self.start_time, self.duration, self.end_time = start_us, duration_us, start_us + duration_us
        self.event_name, self.event_phase, self.node_id, self.file_type = name, phase_name, node_id, file_type
        self.phase, self.phase_pid, self.phase_tid = "X", phase_pid, phase_tid
        self.event_args = args or {}
        self.pid, self.tid = self.event_args.get("pid", 0), self.event_args.get("tid", phase_tid)
        self.process_info = phase_name

    def __repr__(self) -> str:
        return "<%s %r at %.3f for %.3f us on %s>" % (self.event_phase, self.event_name, self.start_time, self.duration, self.node_id)


class LocalFiles:
    def __init__(self, root: str) -> None:
        if not os.path.isdir(root):
            raise Error("%s: no such folder" % root)
        self._root = root

    def list(self) -> List[str]:
        found = []
        for folder, folders, files in os.walk(self._root):
            folders.sort()
            found += [os.path.join(folder, name) for name in files]
        return sorted(found)

    def version(self, path: str) -> Any:
        try:
            status = os.stat(path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def read(self, path: str) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:  # it went away
            return b""


class S3Files:
    """A prefix on S3. Files do not change once they are there, as their names tell when they end."""

    def __init__(self, path: str) -> None:
        try:
            import boto3  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise Error("reading %s needs boto3; or copy it: aws s3 cp --recursive %s profiler-output" % (path, path)) from None
        match = re.match(r"s3://([^/]+)/?(.*)$", path)
        if match is None:
            raise Error("%s: not of the form s3://bucket/prefix" % path)
        self._bucket, prefix = match.groups()
        self._prefix = prefix.rstrip("/") + "/" if prefix else ""
        self._client = boto3.client("s3")
        self._content: Dict[str, bytes] = {}

    def list(self) -> List[str]:
        found: List[str] = []
        token: Dict[str, str] = {}
        while True:
            page = self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix, **token)
            found += [item["Key"] for item in page.get("Contents", [])]
            if not page.get("IsTruncated"):
                return sorted(found)
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def version(self, path: str) -> Any:
        return path

    def read(self, path: str) -> bytes:
        content: bytes = self._client.get_object(Bucket=self._bucket, Key=path)["Body"].read()
        return content


def system_file_end_us(path: str) -> Optional[int]:
    match = _SYSTEM.search(path.replace(os.sep, "/"))
    return int(match.group(1)) * 1_000_000 if match else None


def timeline_file_end_us(path: str) -> Optional[int]:
    text = path.replace(os.sep, "/")
    match = _TIMELINE.search(text)
    if match:
        return int(match.group(1))
    if not text.endswith(".trace.json.gz"):
        return None
    return _tensorflow_range(text)[1]


def _tensorflow_range(path: str, beside: Optional[Iterable[str]] = None) -> Tuple[int, int]:
    """When a trace of TensorFlow begins and ends: in the name of an empty file above it; (0, 0): not told."""
    step = path
    for _ in range(4):  # plugins/profile/<when>/<host>.trace.json.gz
        step = step.rpartition("/")[0]
    if beside is None:
        try:
            beside = [step + "/" + name for name in os.listdir(step)]
        except OSError:
            beside = []
    for name in beside:
        name = name.replace(os.sep, "/")
        match = _METADATA.search(name)
        if match and name.rpartition("/")[0] == step:
            return int(match.group(1)), int(match.group(2))
    return 0, 0


def read_system(content: bytes) -> Tuple[List[SystemEvent], int]:
    """The lines of one file. One that is cut off, or damaged, costs itself."""
    events, dropped = [], 0
    for line in content.decode("utf-8", "replace").splitlines():
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            value = record["Value"]
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
                value = None
            events.append(SystemEvent(record["Type"], record["Name"], record.get("Dimension", ""), value,
                                      record.get("NodeId", ""), float(record["Timestamp"])))
        except (ValueError, KeyError, TypeError, AttributeError):
            dropped += 1
    return events, dropped


def _entries(content: bytes) -> Tuple[List[Dict[str, Any]], int]:
    """The objects of a list, whole or cut off; and how many could not be read."""
    text = content.decode("utf-8", "replace")
    try:
        whole = json.loads(text)
        found = whole.get("traceEvents", []) if isinstance(whole, dict) else whole
        return [entry for entry in found if isinstance(entry, dict)], 0
    except (ValueError, AttributeError):
        pass
    decoder, entries, dropped, at = json.JSONDecoder(), [], 0, text.find("{")
    while at >= 0:
        try:
            entry, end = decoder.raw_decode(text, at)
            entries.append(entry)
            at = text.find("{", end)
        except ValueError:
            dropped += 1
            line_end = text.find("\n", at)
            at = text.find("{", line_end) if line_end >= 0 else -1
    return entries, dropped


def _node(path: str) -> str:
    match = _TIMELINE.search(path.replace(os.sep, "/"))
    if match is None:
        return ""
    number, dash, host = match.group(2).partition("-")
    return host + "-" + number if dash else number


def read_timeline(path: str, content: bytes, beside: Iterable[str]) -> Tuple[List[TraceEvent], int]:
    """The X events of one file, and those that B and E make."""
    base_us = 0.0
    if path.endswith(".gz"):
        base_us = float(_tensorflow_range(path.replace(os.sep, "/"), beside)[0])
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError):
            return [], 1
    entries, dropped = _entries(content)
    phases: Dict[Any, str] = {}
    open_events: Dict[Any, List[Tuple[float, str, Dict[str, Any]]]] = {}
    events = []
    match = _TIMELINE.search(path.replace(os.sep, "/"))
    file_type = match.group(3) if match else "trace.json.gz"
    for entry in entries:
        try:
            kind, args = entry.get("ph"), entry.get("args")
            args = args if isinstance(args, dict) else {}
            pid = entry.get("pid", 0)
            if kind == "M":
                if "start_time_since_epoch_in_micros" in args:
                    base_us = float(args["start_time_since_epoch_in_micros"])
                elif entry.get("name") == "process_name":
                    phases[pid] = str(args.get("name", ""))
            elif kind == "X":
                events.append(TraceEvent(base_us + float(entry["ts"]), float(entry.get("dur", 0)), str(entry["name"]),
                                         phases.get(pid, ""), _node(path), file_type, pid, entry.get("tid", 0), args))
            elif kind == "B":
                open_events.setdefault(pid, []).append((base_us + float(entry["ts"]), str(entry.get("name", "")), args))
            elif kind == "E" and open_events.get(pid):
                start_us, name, args = open_events[pid].pop()
                events.append(TraceEvent(start_us, base_us + float(entry["ts"]) - start_us, name, phases.get(pid, ""),
                                         _node(path), file_type, pid, entry.get("tid", 0), args))
        except (ValueError, KeyError, TypeError):
            dropped += 1
    return events, dropped


def step_starts(events: Iterable[TraceEvent]) -> Dict[int, float]:
    starts: Dict[int, float] = {}
    for event in events:
        if event.event_phase.startswith("Step:"):
            try:
                number = int(event.event_args["step_num"])
            except (KeyError, ValueError, TypeError):
                continue
            starts[number] = min(event.start_time, starts.get(number, event.start_time))
    return starts


# hotlap's metrics by SageMaker's names: type, name ("#": the instance's number), dimension, factor.
_NAMES: Dict[str, Tuple[str, str, str, float]] = {
    "cpu.core.busy.seconds": ("cpu", "cpu#", "CPUUtilization", 100),
    "cpu.core.busy.percent": ("cpu", "cpu#", "CPUUtilization", 1),
    "cpu.core.iowait.seconds": ("cpu", "cpu#", "I/OWaitPercentage", 100),
    "cpu.core.iowait.percent": ("cpu", "cpu#", "I/OWaitPercentage", 1),
    "gpu.busy.percent": ("gpu", "gpu#", "GPUUtilization", 1),
    "gpu.memory.used.percent": ("gpu", "gpu#", "GPUMemoryUtilization", 1),
    "memory.used.percent": ("memory", "MemoryUsedPercent", "", 1),
    "disk.total.operations.rate": ("i/o", "IOPS", "", 1),
    "disk.total.read.rate": ("i/o", "ReadThroughputInBytesPerSecond", "", 1),
    "disk.total.write.rate": ("i/o", "WriteThroughputInBytesPerSecond", "", 1),
    "network.receive.rate": ("network", "ReceiveBytesPerSecond", "=", 1),
    "network.transmit.rate": ("network", "TransmitBytesPerSecond", "=", 1),
    "disk.read.bytes": ("i/o", "ReadThroughputInBytesPerSecond", "=", 1),
    "disk.write.bytes": ("i/o", "WriteThroughputInBytesPerSecond", "=", 1),
    "network.receive.bytes": ("network", "ReceiveBytesPerSecond", "=", 1),
    "network.transmit.bytes": ("network", "TransmitBytesPerSecond", "=", 1),
}


def system_event_of(metric: str, instance: str, value: Optional[float], node: Optional[str], unix_ns: int) -> SystemEvent:
    """A sample of hotlap; of a metric that SageMaker does not have, under its own name."""
    slash = instance.find("/")
    if not node and instance.startswith("algo-"):  # imported: the first node's series have no node before them
        node, instance = (instance[:slash], instance[slash + 1:]) if slash > 0 else (instance, "")
    known = _NAMES.get(metric)
    if known is None:
        return SystemEvent(metric.partition(".")[0], metric, instance, value, node or "", unix_ns / 1e9)
    kind, name, dimension, factor = known
    number = re.search(r"(\d+)$", instance)
    return SystemEvent(kind, name.replace("#", number.group(1) if number else ""), instance if dimension == "=" else dimension,
                       None if value is None else value * factor, node or "", unix_ns / 1e9)


_PHASES = {"step": "Step:ModeKeys.TRAIN", "evaluation": "Step:ModeKeys.EVAL", "forward": "Forward",
           "backward": "Backward(post-forward)", "data_wait": "DataLoaderIter", "worker_start": "DataLoaderIterInitialize",
           "worker_batch": "DataLoaderWorker", "worker_fetch": "DataLoaderWorker", "operator": "cpu_functions",
           "kernel": "gpu_functions"}


def trace_event_of(start_ns: int, duration_ns: int, kind: str, name: Optional[str], process: str, pid: Optional[int],
                   thread: Optional[int], step: Optional[int], node: Optional[str]) -> TraceEvent:
    args: Dict[str, Any] = {}
    if pid is not None:
        args["pid"] = pid
    if step is not None:
        args["step_num"] = step
    return TraceEvent(start_ns / 1e3, duration_ns / 1e3, name or kind, _PHASES.get(kind, kind), node or process or "", "hotlap",
                      process, thread or 0, args)
