"""hotlap.open(run): columns as arrays or lists, what is missing, errors in one line."""
import builtins
import math
import os
import subprocess
import sys

import pytest

import hotlap
from hotlap import _reader

RUN = "01KDY0Q80000000000000000A1"
MAKE_JOB = os.environ.get("HOTLAP_MAKE_JOB") or os.path.join(
    os.path.dirname(os.environ.get("HOTLAP", "build/dev/hotlap")), "hotlap_make_job")


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    patch = pytest.MonkeyPatch()
    patch.setenv("HOTLAP_HOME", str(folder))
    patch.setenv("HOTLAP_PROGRAM", os.environ["HOTLAP"])
    subprocess.run([MAKE_JOB, RUN, "steps=120", "workers=2", "name=toy"], check=True)
    yield folder
    patch.undo()


def test_steps_and_what_is_missing():
    run = hotlap.open()
    assert (run.id, run.name, run.status) == (RUN, "toy", "finished")
    steps = run.steps()
    assert len(steps) == 120
    assert steps.list("forward_ms")[0] > 0
    assert steps.list("communication_ms")[0] is None  # not measured, and never 0
    assert steps.list("rank") == [None] * 120


def test_columns_are_arrays_where_numpy_is():
    np = pytest.importorskip("numpy")
    steps = hotlap.open("toy").steps()
    assert steps["step"].dtype == np.int64
    assert steps["ms"].dtype == np.float64
    assert np.isnan(steps["communication_ms"]).all()
    assert steps["process"].dtype == object
    assert steps["start_ns"].dtype == np.int64
    assert int(steps["start_ns"][0]) == steps.list("start_ns")[0] == 1_000_000_000_000


def test_lists_where_numpy_is_not(monkeypatch):
    monkeypatch.setattr(_reader, "numpy", lambda: None)
    steps = hotlap.open("toy").steps()
    assert isinstance(steps["ms"], list) and isinstance(steps["ms"][0], float)
    assert steps["communication_ms"][0] is None


def test_samples_and_spans_in_a_range():
    run = hotlap.open("last")
    busy = run.samples("cpu.busy.seconds")
    assert busy.list("rate")[0] is None and busy.list("rate")[1] > 0
    part = run.samples("cpu.busy.seconds", start_s=2, end_s=4)
    assert 0 < len(part) < len(busy) and all(2 <= t < 4 for t in part.list("t_s"))
    assert len(run.samples("no.such.metric")) == 0
    assert len(run.samples("o'clock", instance="a'b")) == 0
    waits = run.spans("data_wait")
    assert len(waits) == 120 and set(waits.list("kind")) == {"data_wait"}
    assert len(run.spans()) > len(waits)
    assert len(run.spans("nothing")) == 0


def test_sql_of_every_type():
    table = hotlap.open("last").sql("SELECT 9007199254740993 AS big, 1.5 AS real, 'x' AS text, NULL AS absent, 1 AS one")
    assert table.rows() == [(9007199254740993, 1.5, "x", None, 1)]
    assert table.keys() == ["big", "real", "text", "absent", "one"]
    assert "big" in table and "small" not in table
    with pytest.raises(KeyError, match="there are: big, real"):
        table["small"]
    assert hotlap.open("last").sql("-- a comment first\nSELECT 1 AS x").rows() == [(1,)]
    empty = hotlap.open("last").sql("SELECT 1 AS x WHERE 0")
    assert len(empty) == 0 and empty.rows() == [] and list(empty["x"]) == []


def test_findings_and_answer():
    run = hotlap.open("last")
    assert run.verdict() == run.answer()["verdict"]["text"] != ""
    assert "rule" in run.findings().columns


def test_errors_are_one_line():
    for action in (lambda: hotlap.open("nope"), lambda: hotlap.open("last").sql("SELECT nope FROM step"),
                   lambda: hotlap.open("last").sql("DELETE FROM step"),
                   lambda: hotlap.open("last", timeout_s=0.2).sql(
                       "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")):
        with pytest.raises(hotlap.Error) as caught:
            action()
        assert "\n" not in str(caught.value) and str(caught.value).startswith("hotlap sql: ")


def test_without_the_program(monkeypatch):
    monkeypatch.setenv("HOTLAP_PROGRAM", "/nowhere/hotlap")
    with pytest.raises(hotlap.Error, match="cannot start /nowhere/hotlap"):
        hotlap.open("last")
    monkeypatch.delenv("HOTLAP_PROGRAM")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(hotlap.Error, match="is not on PATH"):
        hotlap.open("last")


def test_pandas_is_optional(monkeypatch):
    table = hotlap.open("last").sql("SELECT 1 AS x, NULL AS y")
    try:
        import pandas  # noqa: F401
    except ImportError:
        with pytest.raises(hotlap.Error, match="pandas is not installed"):
            table.to_pandas()
    else:
        frame = table.to_pandas()
        assert list(frame.columns) == ["x", "y"] and math.isnan(frame["y"][0])


def test_a_recorded_job_does_not_load_the_reader():
    code = "import sys, hotlap; hotlap.recorded(); print('hotlap._reader' in sys.modules, hotlap.open is not open)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
    assert builtins.open is open
    with pytest.raises(AttributeError):
        hotlap.nothing
