"""hotlap.readers: SageMaker's names over its folders, over S3 and over hotlap's own runs."""
import gzip
import io
import json
import os
import subprocess
import sys
import types

import pytest

from hotlap import Error, readers
from hotlap.readers import FrameworkMetricsReader, SystemMetricsReader, TimeUnits

RUN = "01KDY0Q80000000000000000A2"
MAKE_JOB = os.environ.get("HOTLAP_MAKE_JOB") or os.path.join(
    os.path.dirname(os.environ.get("HOTLAP", "build/dev/hotlap")), "hotlap_make_job")
MINUTE = 1_700_000_040  # a full one


def system_line(t, kind="cpu", name="cpu0", dimension="CPUUtilization", value=41.5, node="algo-1"):
    return json.dumps({"Type": kind, "Name": name, "Dimension": dimension, "Value": value, "NodeId": node, "Timestamp": t})


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "profiler-output"
    system = root / "system" / "incremental" / "2023111422"
    system.mkdir(parents=True)
    lines = [system_line(MINUTE - 60 + i, name="cpu%d" % (i % 2)) for i in range(6)]
    lines += [system_line(MINUTE - 58, "gpu", "gpu0", "GPUUtilization", 37), "{broken", system_line(MINUTE - 57, value=float("nan"))]
    (system / ("%d.algo-1.json" % MINUTE)).write_text("\n".join(lines) + "\n" + system_line(MINUTE)[:40])
    (root / "system" / "training_job_end.ts").write_text("")
    events = root / "framework" / "pevents" / "2023111422"
    events.mkdir(parents=True)
    base = MINUTE * 1_000_000
    entries = [{"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": base}},
               {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Step:ModeKeys.TRAIN"}},
               {"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "DataLoaderIter"}}]
    entries += [{"name": "Step:ModeKeys.TRAIN", "ph": "X", "pid": 1, "ts": 1000 * i, "dur": 900,
                 "args": {"pid": 7, "step_num": str(i)}} for i in range(4)]
    entries += [{"name": "GetNext", "ph": "B", "pid": 2, "ts": 950}, {"ph": "E", "pid": 2, "ts": 990}, {"ph": "E", "pid": 2, "ts": 991},
                {"name": "mark", "ph": "i", "pid": 2, "ts": 5}]
    text = "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + ",\n{\"name\": \"cut"  # the writer was killed
    (events / ("%d_7-algo-1_pythontimeline.json" % (base + 4000))).write_text(text)
    taken = root / "framework/tensorflow/detailed_profiling/2023111422/000000005/plugins/profile/2023_11_14_22_14_00"
    taken.mkdir(parents=True)
    (taken.parents[2] / ("7-algo-1_%d_%d.metadata" % (base, base + 9000))).write_text("")
    trace = {"traceEvents": [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
                             {"ph": "X", "pid": 1, "tid": 1, "ts": 21, "dur": 5, "name": "MatMul"}, {}]}
    (taken / "algo-1.trace.json.gz").write_bytes(gzip.compress(json.dumps(trace).encode()))
    return root


def test_system_metrics_of_a_folder(folder):
    reader = SystemMetricsReader(str(folder))
    assert isinstance(reader, readers.LocalSystemMetricsReader)
    assert reader.get_timestamp_of_first_available_file() == reader.get_timestamp_of_latest_available_file() == MINUTE * 1_000_000
    everything = reader.get_events(0, MINUTE + 60, TimeUnits.SECONDS)
    assert len(everything) == 8
    assert reader.events_dropped == 2  # a broken line and the one that is cut off
    assert [event.value for event in everything if event.timestamp == MINUTE - 57] == [41.5, None]
    part = reader.get_events((MINUTE - 59) * 1_000_000, (MINUTE - 58) * 1_000_000)
    assert [(event.type, event.name, event.node_id) for event in part] == [
        ("cpu", "cpu1", "algo-1"), ("cpu", "cpu0", "algo-1"), ("gpu", "gpu0", "algo-1")]
    assert [event.dimension for event in reader.get_events(0, MINUTE, TimeUnits.SECONDS, event_type="gpu")] == ["GPUUtilization"]


def test_files_that_come_and_grow_are_seen(folder):
    reader = SystemMetricsReader(folder)
    system = folder / "system" / "incremental" / "2023111422"
    (system / ("%d.algo-1.json" % (MINUTE + 60))).write_text(system_line(MINUTE + 1) + "\n" + system_line(MINUTE + 2)[:-9])
    assert reader.get_timestamp_of_latest_available_file() == MINUTE * 1_000_000
    assert reader.refresh_event_file_list()
    assert reader.get_timestamp_of_latest_available_file() == (MINUTE + 60) * 1_000_000
    assert len(reader.get_events(MINUTE, MINUTE + 60, TimeUnits.SECONDS)) == 1
    dropped = reader.events_dropped
    with open(system / ("%d.algo-1.json" % (MINUTE + 60)), "a") as file:
        file.write(system_line(MINUTE + 2)[-9:] + "\n")
    assert len(reader.get_events(MINUTE, MINUTE + 60, TimeUnits.SECONDS)) == 2
    assert reader.events_dropped == dropped - 1


def test_framework_events_of_a_folder(folder):
    reader = FrameworkMetricsReader(folder)
    base = MINUTE * 1_000_000
    events = reader.get_events(base, base + 10_000, file_suffix_filter=["pythontimeline.json"])
    assert len(events) == 5
    assert reader.events_dropped == 1
    waits = [event for event in events if event.event_phase == "DataLoaderIter"]
    assert [(event.event_name, event.start_time - base, event.duration) for event in waits] == [("GetNext", 950, 40)]
    assert events[0].event_args == {"pid": 7, "step_num": "0"} and events[0].node_id == "algo-1-7" and events[0].pid == 7
    # Any overlap counts, both ends included.
    assert len(reader.get_events(base + 900, base + 949, event_type="Step:ModeKeys.TRAIN")) == 1
    assert len(reader.get_events(base + 901, base + 949, event_type="Step:ModeKeys.TRAIN")) == 0
    assert [event.event_args["step_num"] for event in reader.get_events_by_step(1, 3, event_type="Step:ModeKeys.TRAIN")] == ["1", "2"]
    assert reader.get_events_by_step(1, 99) == []
    assert [(event.event_name, event.start_time - base) for event in reader.get_events(base, base + 100, event_type="/host:CPU")] == [
        ("MatMul", 21)]
    assert reader.get_timestamp_of_latest_available_file() == base + 9000


def test_a_folder_without_any_and_none(tmp_path):
    reader = SystemMetricsReader(tmp_path)
    assert not reader.refresh_event_file_list()
    assert reader.get_timestamp_of_latest_available_file() == 0
    assert reader.get_events(0, 2**60) == []
    with pytest.raises(Error, match="no such folder"):
        readers.LocalSystemMetricsReader(tmp_path / "not-there")


def test_s3_by_way_of_boto3(folder, monkeypatch):
    files = {os.path.relpath(os.path.join(where, name), folder.parent): os.path.join(where, name)
             for where, _, names in os.walk(folder) for name in names}

    class Client:
        def list_objects_v2(self, Bucket, Prefix, ContinuationToken=None):
            keys = sorted("job/" + name for name in files)
            assert (Bucket, Prefix) == ("bucket", "job/profiler-output/")
            first = ContinuationToken is None
            page = {"Contents": [{"Key": key} for key in (keys[:2] if first else keys[2:])], "IsTruncated": first}
            return dict(page, NextContinuationToken="more") if first else page

        def get_object(self, Bucket, Key):
            with open(files[Key[len("job/"):]], "rb") as file:
                return {"Body": io.BytesIO(file.read())}

    monkeypatch.setitem(sys.modules, "boto3", types.SimpleNamespace(client=lambda service: Client()))
    assert len(SystemMetricsReader("s3://bucket/job/profiler-output").get_events(0, MINUTE + 60, TimeUnits.SECONDS)) == 8
    base = MINUTE * 1_000_000
    assert len(FrameworkMetricsReader("s3://bucket/job/profiler-output/").get_events(base, base + 10_000)) == 6
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(Error, match="needs boto3"):
        SystemMetricsReader("s3://bucket/job")


def test_a_run_of_hotlap(tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path))
    monkeypatch.setenv("HOTLAP_PROGRAM", os.environ["HOTLAP"])
    subprocess.run([MAKE_JOB, RUN, "steps=120", "workers=2", "name=toy"], check=True)
    system = SystemMetricsReader(RUN)
    first, last = system.get_timestamp_of_first_available_file(), system.get_timestamp_of_latest_available_file()
    assert 0 < first < last
    events = system.get_events(first, last)
    assert events and all(first <= event.timestamp * 1e6 + 1 and event.timestamp * 1e6 <= last + 1 for event in events)
    assert all(event.type == "memory" for event in system.get_events(first, last, event_type="memory"))
    framework = FrameworkMetricsReader(RUN)
    steps = framework.get_events(0, 2**62, event_type="Step:ModeKeys.TRAIN")
    assert len(steps) == 120
    assert steps[0].duration > 0 and first - 10_000_000 < steps[0].start_time < last
