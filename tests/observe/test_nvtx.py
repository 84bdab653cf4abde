"""`hotlap run --observe nvtx`: what a program says by NVTX is in the recording, and the program does not notice."""
import os
import pathlib
import sys

import pytest
from observed import Place

PROGRAM = str(pathlib.Path(os.environ["HOTLAP"]).parent / "tests" / "observe" / "nvtx_program")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "nvtx")


def names(place):
    return sorted(name for (name,) in place.rows("SELECT name FROM span WHERE kind = 'user'"))


def test_nvidias_own_package_for_python(place):
    """Real NVTX 3, where the tests' Python has it (make test-frameworks)."""
    python = os.environ.get("HOTLAP_TEST_PYTHON", sys.executable)
    if place.plain(python, "-c", "import nvtx").returncode != 0:
        pytest.skip("no nvtx for this Python")
    script = """
import nvtx, time
@nvtx.annotate("work", domain="mine", category="kind")
def work():
    time.sleep(0.002)
for _ in range(3):
    work()
with nvtx.annotate("plain"):
    nvtx.mark("here")
nvtx.end_range(nvtx.start_range("started"))
"""
    done = place.run(python, "-c", script)
    assert done.returncode == 0, done.stderr
    spans = place.rows("SELECT name, duration_ms FROM span WHERE kind = 'user' ORDER BY start_ns")
    assert [name for name, _ in spans] == ["mine:work"] * 3 + ["plain", "here", "started"], spans
    assert all(duration >= 2 for name, duration in spans if name == "mine:work")


def test_every_kind_of_range_is_recorded(place):
    done = place.run(PROGRAM, "all")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["injected 1", "depths 0 1 1 0 -2", "same domain 1", "domain pop 0"]
    spans = {}
    for name, *rest in place.rows("SELECT name, duration_ms, value_a, value_b, process, thread FROM span"
                                  " WHERE kind = 'user'"):
        spans.setdefault(name, []).append(rest)
    assert sorted(spans, key=str) == sorted(
        ["a mark", "across threads", "between", "in\u00e9r", "my lib:read \"x\"", None, "outer"], key=str)
    assert len(spans[None]) == 2, "a range without a name, and one of an unknown version"
    (inner,), (outer,) = spans["in\u00e9r"], spans["outer"]
    assert outer[0] >= inner[0] >= 5 and inner[3] == "main"
    ((duration, payload, category, *_),) = spans["my lib:read \"x\""]
    assert duration >= 2 and (payload, category) == (4096, 7)
    ((mark_duration, mark_payload, *_),) = spans["a mark"]
    assert (mark_duration, mark_payload) == (0, None)
    ((*_, process, thread),) = spans["across threads"]
    assert process == "main" and thread != outer[4], "a range is its starter's"
    attributes = place.attributes()
    assert attributes["process.main.nvtx.category.my lib.7"] == '"io"'
    assert attributes["process.main.nvtx.thread.%d" % thread] == '"starter"'
    assert attributes["process.main.observer.nvtx"] == '"on"'


def test_calls_and_time_by_name_are_series(place):
    assert place.run(PROGRAM, "threads").returncode == 0
    calls = place.totals("range.calls")
    assert set(calls) == {"main/worker %d" % t for t in range(8)}
    lost = place.losses()
    # On a machine that is busy all along, a thread may be stopped while it empties the buffers: the others drop and count.
    dropped = lost.get("observe.records_dropped", 0)
    assert sum(calls.values()) + dropped == 16_000
    assert len(names(place)) + lost.get("observe.spans_left_out", 0) + dropped == 16_000


def test_a_forked_process_is_one_of_its_own(place):
    assert place.run(PROGRAM, "forks").returncode == 0
    where = dict(place.rows("SELECT name, process FROM span WHERE kind = 'user'"))
    assert sorted(where) == ["before the fork", "in the child", "in the parent"]
    assert where["before the fork"] == where["in the parent"] == "main" != where["in the child"]


def test_a_program_that_replaces_itself_loses_nothing(place):
    assert place.run(PROGRAM, "exec").returncode == 0
    assert {"before exec", "one"} <= set(names(place))


@pytest.mark.parametrize("how, code", [("exit", 0), ("_exit", 3), ("killed", -9)])
def test_however_the_program_ends_it_ends_so(place, how, code):
    done = place.run(PROGRAM, how)
    assert (done.returncode, done.stdout) == (code, "")
    found = names(place)
    assert found[-1:] == ["in main" if how == "exit" else "one"], found


def test_without_us_the_program_has_no_observer(place):
    done = place.hotlap("run", "--no-hook", "--", PROGRAM, "all")
    assert done.stdout.splitlines()[0] == "injected 0"
    assert names(place) == []


def test_another_tool_goes_first(place):
    place.environment["NVTX_INJECTION64_PATH"] = "/no/such/tool.so"
    done = place.run("sh", "-c", 'echo "$NVTX_INJECTION64_PATH"')
    assert done.stdout == "/no/such/tool.so\n"
    assert "hotlap: no observer nvtx: NVTX_INJECTION64_PATH is set already, to another tool" in done.stderr


def test_hotlap_0_switches_it_off(place):
    place.environment["HOTLAP"] = "0"
    assert place.run(PROGRAM, "all").stdout.splitlines()[0] == "injected 0"


def test_the_library_outside_of_a_recorded_job_does_nothing(place):
    place.environment["NVTX_INJECTION64_PATH"] = str(place.library("libhotlap_nvtx.so"))
    done = place.plain(PROGRAM, "all")
    assert (done.returncode, done.stdout.splitlines()[0], done.stderr) == (0, "injected 0", "")


def test_a_library_that_is_missing_is_said_before_the_job_starts(place, tmp_path):
    place.environment["HOTLAP_OBSERVER_DIR"] = str(tmp_path)
    done = place.run("touch", str(tmp_path / "started"))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line == ("hotlap run: --observe nvtx: libhotlap_nvtx.so is not in %s: install hotlap whole, or set"
                    " HOTLAP_OBSERVER_DIR" % tmp_path)
    assert not (tmp_path / "started").exists()


def test_a_limit_on_file_sizes_is_no_end_of_the_job(place):
    done = place.run("sh", "-c", 'ulimit -f 100; exec "$0" one', PROGRAM)
    assert done.returncode == 0, done.stderr
    attributes = place.attributes()
    assert attributes["process.main.observer.nvtx"] == "off: ring-allocation: File too large"
