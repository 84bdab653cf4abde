"""Readers with the names that users of SageMaker Debugger's profiler know, over its `profiler-output` folders (local ones
and, where boto3 is installed, on S3) and over runs of hotlap:

    from hotlap.readers import SystemMetricsReader, FrameworkMetricsReader, TimeUnits

    reader = SystemMetricsReader("profiler-output")          # or "s3://bucket/job/profiler-output", or a run: "last"
    reader.refresh_event_file_list()                         # sees what has come since
    end = reader.get_timestamp_of_latest_available_file()    # microseconds of Unix time; 0: nothing is there
    for event in reader.get_events(end - 60_000_000, end, event_type="gpu"):
        print(event.timestamp, event.name, event.dimension, event.value)

Standard library only. What cannot be read is left out and counted (`reader.events_dropped`); a value that is not there
is None, never 0.
"""
from __future__ import annotations

import os

from hotlap import _sagemaker
from hotlap._reader import Error, Run, open_run

TYPE_CHECKING = False
if TYPE_CHECKING:  # nothing is imported for it at run time
    from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

    Path = Union[str, os.PathLike[str]]

__all__ = ["AlgorithmMetricsReader", "FrameworkMetricsReader", "LocalAlgorithmMetricsReader", "LocalSystemMetricsReader",
           "RunFrameworkMetricsReader", "RunSystemMetricsReader", "S3AlgorithmMetricsReader", "S3SystemMetricsReader",
           "SystemEvent", "SystemMetricsReader", "TimeUnits", "TraceEvent"]

SystemEvent = _sagemaker.SystemEvent
TraceEvent = _sagemaker.TraceEvent


class TimeUnits:
    """Units of the times that get_events() takes: microseconds in one."""

    SECONDS = 1_000_000.0
    MILLISECONDS = 1_000.0
    MICROSECONDS = 1.0
    NANOSECONDS = 0.001


class _Reader:
    """What all of them have. Not to be shared between threads."""

    events_dropped = 0  # lines and events that could not be read

    def refresh_event_file_list(self) -> bool:
        """Looks again for what there is; True where there is something."""
        raise NotImplementedError

    def get_timestamp_of_first_available_file(self) -> int:
        """Microseconds of Unix time; 0 where there is nothing."""
        raise NotImplementedError

    def get_timestamp_of_latest_available_file(self) -> int:
        """Microseconds of Unix time; 0 where there is nothing."""
        raise NotImplementedError


class _Files(_Reader):
    """Over the files of a profiler-output folder."""

    _wanted: Any = None  # function of a path: when its file ends, in microseconds, or None where it is none of these

    def __init__(self, place: Any) -> None:
        self._place = place
        self._files: List[Tuple[int, str]] = []
        self._read: Dict[str, Tuple[Any, List[Any], int]] = {}  # by path: its version, events, dropped
        self.refresh_event_file_list()

    def refresh_event_file_list(self) -> bool:
        found = []
        for path in self._place.list():
            end_us = type(self)._wanted(path)
            if end_us is not None:
                found.append((end_us, path))
        self._files = sorted(found)
        return bool(found)

    def get_timestamp_of_first_available_file(self) -> int:
        return self._files[0][0] if self._files else 0

    def get_timestamp_of_latest_available_file(self) -> int:
        return self._files[-1][0] if self._files else 0

    def _events_of(self, path: str) -> List[Any]:
        version = self._place.version(path)
        known = self._read.get(path)
        if known is None or known[0] != version:
            if known is not None:
                self.events_dropped -= known[2]
            events, dropped = self._parse(path, self._place.read(path))
            known = (version, events, dropped)
            self._read[path] = known
            self.events_dropped += dropped
        return known[1]

    def _parse(self, path: str, content: bytes) -> Tuple[List[Any], int]:
        raise NotImplementedError


class _SystemFiles(_Files):
    _wanted = staticmethod(_sagemaker.system_file_end_us)

    def _parse(self, path: str, content: bytes) -> Tuple[List[Any], int]:
        return _sagemaker.read_system(content)

    def get_events(self, start_time: float, end_time: float, unit: float = TimeUnits.MICROSECONDS,
                   event_type: Optional[str] = None) -> List[SystemEvent]:
        """Samples from start to end, both included; of one type ("cpu", "gpu", "memory", "i/o", "network") or of all."""
        start_s, end_s = start_time * unit / 1e6, end_time * unit / 1e6
        return [event for _, path in self._files for event in self._events_of(path)
                if start_s <= event.timestamp <= end_s and (event_type is None or event.type == event_type)]


class _AlgorithmFiles(_Files):
    _wanted = staticmethod(_sagemaker.timeline_file_end_us)

    def _parse(self, path: str, content: bytes) -> Tuple[List[Any], int]:
        return _sagemaker.read_timeline(path, content, self._place.list())

    def _all(self, file_suffix_filter: Optional[Iterable[str]]) -> Iterable[TraceEvent]:
        suffixes = None if file_suffix_filter is None else tuple(file_suffix_filter)
        for _, path in self._files:
            if suffixes is None or path.endswith(suffixes):
                yield from self._events_of(path)

    def get_events(self, start_time: float, end_time: float, unit: float = TimeUnits.MICROSECONDS,
                   event_type: Optional[str] = None,
                   file_suffix_filter: Optional[Iterable[str]] = None) -> List[TraceEvent]:
        """Events that touch the time from start to end, by their start; of one phase (event_type) or of all."""
        start_us, end_us = start_time * unit, end_time * unit
        found = [event for event in self._all(file_suffix_filter)
                 if event.start_time <= end_us and event.end_time >= start_us
                 and (event_type is None or event.event_phase == event_type)]
        return sorted(found, key=lambda event: event.start_time)

    def get_events_by_step(self, start_step: int, end_step: int, event_type: Optional[str] = None,
                           file_suffix_filter: Optional[Iterable[str]] = None) -> List[TraceEvent]:
        """Events from the start of one step to that of another, by the timelines' own steps."""
        starts = _sagemaker.step_starts(self._all(("pythontimeline.json",)))
        if start_step not in starts or end_step not in starts:
            return []
        return self.get_events(starts[start_step], starts[end_step] - 1, TimeUnits.MICROSECONDS, event_type,
                               file_suffix_filter)


class LocalSystemMetricsReader(_SystemFiles):
    """System metrics of a local profiler-output folder or a part of one."""

    def __init__(self, trace_root_folder: Path, use_in_memory_cache: bool = False) -> None:
        super().__init__(_sagemaker.LocalFiles(os.fspath(trace_root_folder)))


class LocalAlgorithmMetricsReader(_AlgorithmFiles):
    """Timelines of the framework of a local profiler-output folder or a part of one."""

    def __init__(self, trace_root_folder: Path, use_in_memory_cache: bool = False) -> None:
        super().__init__(_sagemaker.LocalFiles(os.fspath(trace_root_folder)))


class S3SystemMetricsReader(_SystemFiles):
    """System metrics on S3, "s3://bucket/…/profiler-output". Needs boto3; credentials are what it finds itself."""

    def __init__(self, s3_trial_path: str, use_in_memory_cache: bool = False) -> None:
        super().__init__(_sagemaker.S3Files(s3_trial_path))


class S3AlgorithmMetricsReader(_AlgorithmFiles):
    """Timelines on S3. Needs boto3."""

    def __init__(self, s3_trial_path: str, use_in_memory_cache: bool = False) -> None:
        super().__init__(_sagemaker.S3Files(s3_trial_path))


class _OfRun(_Reader):
    """Over a run of hotlap, finished or going on."""

    def __init__(self, run: Union[Path, Run] = "last") -> None:
        self._run = run if isinstance(run, Run) else open_run(run)
        self._range_us: Tuple[int, int] = (0, 0)
        self.refresh_event_file_list()

    def refresh_event_file_list(self) -> bool:
        first, last = self._run.sql("SELECT min(unix_ns), max(unix_ns) FROM sample").rows()[0]
        if first is None:  # a trace has spans alone
            first, last = self._run.sql(
                "SELECT min(start_unix_ns), min(start_unix_ns) + 1e9 * (SELECT max(start_s) FROM span) FROM run").rows()[0]
        self._range_us = (0, 0) if first is None else (int(first) // 1000, int(last or first) // 1000)
        return self._range_us != (0, 0)

    def get_timestamp_of_first_available_file(self) -> int:
        return self._range_us[0]

    def get_timestamp_of_latest_available_file(self) -> int:
        return self._range_us[1]


class RunSystemMetricsReader(_OfRun):
    """Samples of a run of hotlap under SageMaker's names, other metrics under their own."""

    def get_events(self, start_time: float, end_time: float, unit: float = TimeUnits.MICROSECONDS,
                   event_type: Optional[str] = None) -> List[SystemEvent]:
        start_ns, end_ns = round(start_time * unit * 1000), round(end_time * unit * 1000)
        rows = self._run.sql(
            "SELECT metric, instance, CASE kind WHEN 'counter' THEN rate ELSE value END, node, unix_ns FROM sample "
            "WHERE unix_ns BETWEEN %d AND %d ORDER BY unix_ns" % (start_ns, end_ns)).rows()
        events = [_sagemaker.system_event_of(*row) for row in rows]
        return [event for event in events if event_type is None or event.type == event_type]


class RunFrameworkMetricsReader(_OfRun):
    """Spans of a run of hotlap as trace events."""

    def get_events(self, start_time: float, end_time: float, unit: float = TimeUnits.MICROSECONDS,
                   event_type: Optional[str] = None,
                   file_suffix_filter: Optional[Iterable[str]] = None) -> List[TraceEvent]:
        start_us, end_us = start_time * unit, end_time * unit
        found = [event for event in self._all() if event.start_time <= end_us and event.end_time >= start_us]
        return [event for event in found if event_type is None or event.event_phase == event_type]

    def get_events_by_step(self, start_step: int, end_step: int, event_type: Optional[str] = None,
                           file_suffix_filter: Optional[Iterable[str]] = None) -> List[TraceEvent]:
        starts = _sagemaker.step_starts(self._all())
        if start_step not in starts or end_step not in starts:
            return []
        return self.get_events(starts[start_step], starts[end_step] - 1, TimeUnits.MICROSECONDS, event_type)

    def _all(self) -> List[TraceEvent]:
        origins = dict(self._run.sql(
            "SELECT recording, max(CASE WHEN unix_ns IS NULL THEN NULL ELSE unix_ns - t_ns END) FROM sample GROUP BY 1").rows())
        first = self._run.sql("SELECT start_unix_ns FROM run").rows()[0][0]
        events = []
        for row in self._run.sql("SELECT recording, start_s, start_ns, duration_ns, kind, name, process, pid, thread, step, node "
                                 "FROM span WHERE duration_ns IS NOT NULL ORDER BY start_s").rows():
            origin = origins.get(row[0])
            start_ns = row[2] + origin if origin is not None else None if first is None else first + round(row[1] * 1e9)
            if start_ns is None:
                self.events_dropped += 1
            else:
                events.append(_sagemaker.trace_event_of(start_ns, *row[3:]))
        return events


def _is_folder_of_files(path: Path) -> bool:
    text = os.fspath(path)
    return os.path.isdir(text) and not os.path.exists(os.path.join(text, "run.json"))


def SystemMetricsReader(path: Path = "last", use_in_memory_cache: bool = False) -> Any:
    """The reader for an S3 path, a folder of SageMaker's, or else a run of hotlap."""
    if os.fspath(path).startswith("s3://"):
        return S3SystemMetricsReader(os.fspath(path))
    return LocalSystemMetricsReader(path) if _is_folder_of_files(path) else RunSystemMetricsReader(path)


def FrameworkMetricsReader(path: Path = "last", use_in_memory_cache: bool = False) -> Any:
    """The same of the framework's timelines."""
    if os.fspath(path).startswith("s3://"):
        return S3AlgorithmMetricsReader(os.fspath(path))
    return LocalAlgorithmMetricsReader(path) if _is_folder_of_files(path) else RunFrameworkMetricsReader(path)


AlgorithmMetricsReader = FrameworkMetricsReader
