"""`hotlap run --observe kernels` below a program that stands in for one with CUDA, and a library that stands in for
NVIDIA's CUPTI: no GPU has seen this."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from observed import Place

FOLDER = pathlib.Path(os.environ["HOTLAP"]).parent / "tests" / "observe"
SOURCES = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(FOLDER / "kernels_program")
KERNELS = "SELECT name, count(*) FROM kernel GROUP BY name ORDER BY name"


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path, "kernels")
    # Short ones, many: how long they are is no part of what is tested.
    made.environment.update(HOTLAP_KERNELS_WINDOW_MS="60", HOTLAP_KERNELS_PERIOD_MS="150")
    made.environment.pop("CUDA_VISIBLE_DEVICES", None)
    made.environment.pop("CUDA_INJECTION64_PATH", None)
    return with_cupti(made, "whole")


def with_cupti(place, variant):
    place.environment["LD_LIBRARY_PATH"] = str(FOLDER / ("cupti_" + variant))
    return place


def said(done):
    return int(re.search(r"kernels (\d+)", done.stdout)[1])


def why(place):
    return place.attributes()["process.main.observer.kernels"]


@pytest.mark.parametrize("kernel_bytes", [144, 160, 168, 176, 200, 208, 216, 224])
def test_kernels_and_copies_of_each_version_of_the_records(place, kernel_bytes):
    place.environment["FAKE_CUPTI_KERNEL_BYTES"] = str(kernel_bytes)
    done = place.run(PROGRAM, "2")
    assert done.returncode == 0 and "injected 1\n" in done.stdout, done.stderr
    found = dict(place.rows(KERNELS))
    assert sorted(found) == ["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "scale_rows(float*, int)", "sgemm_128x128"]
    assert sum(found.values()) == said(done) > 0, "every one that CUPTI told of"
    assert not place.losses().get("observe.records_dropped")


def test_the_tables_of_work_see_it(place):
    assert place.run(PROGRAM, "2").returncode == 0
    ((duration, sort, device, stream, operator),) = place.rows(
        "SELECT DISTINCT round(duration_ms, 3), sort, device, stream, operator FROM kernel WHERE name LIKE 'sgemm%'")
    assert (duration, sort, device, stream, operator) == (0.2, "matrix product", "gpu0", 7, None)
    (queued, process), *others = place.rows(
        "SELECT min(queued_ms) >= 0.005, process FROM kernel GROUP BY process")
    assert (queued, process, others) == (1, "main", []), "tied to the call that launched it, in its process"
    assert place.rows("SELECT DISTINCT name, direction, bytes, pinned FROM copy") == [
        ("Memcpy HtoD (Pageable -> Device)", "host to device", 1 << 20, 0)]
    ((name, side, exposed),) = place.rows(
        "SELECT DISTINCT name, side, round(max(exposed_ms), 3) FROM collective")
    assert (name, side, exposed) == ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "device", 0.05)
    calls = {name for (name,) in place.rows("SELECT DISTINCT name FROM span WHERE kind = 'runtime'")}
    assert {"cudaLaunchKernel", "cudaMemcpyAsync"} <= calls <= {"cudaLaunchKernel", "cudaMemcpyAsync",
                                                                "cudaDeviceSynchronize"}
    assert why(place) == '"on: libcupti.so.12, version 26 of its interface"'
    threads = place.rows("SELECT count(DISTINCT thread), min(thread) > 0 FROM span WHERE kind = 'runtime'")
    assert threads == [(1, 1)], "by the system's number"


def facts(place, *kinds):
    done = place.hotlap("analyze", "last", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    return document, {kind: [f for f in document["inside"] if f["fact"] == kind] for kind in kinds}


def test_facts_are_of_the_windows_and_not_of_what_lies_between(place):
    place.environment["HOTLAP_KERNELS_PERIOD_MS"] = "400"
    assert place.run(PROGRAM, "3").returncode == 0
    windows = place.rows("SELECT process, start_ns, duration_ms, value_a FROM span WHERE kind = 'device_window'"
                         " ORDER BY start_ns")
    assert {row[0] for row in windows} == {"gpu0"} and all(row[3] == 0 for row in windows)
    _, found = facts(place, "device.time", "kernels.kernel", "copies.copy", "replay.scenario")
    (device,) = found["device.time"]
    assert device["where"]["device"] == "gpu0"
    watched_ms = sum(row[2] for row in windows)
    assert device["fields"]["wall_ms"] == pytest.approx(watched_ms, rel=0.01)
    first, last = windows[0][1], windows[-1][1]
    assert (last - first) / 1e6 > device["fields"]["wall_ms"], "the time between them is not counted"
    assert 0 < device["fields"]["busy_ms"] < watched_ms
    assert device["fields"]["communication_ms"] > 0
    assert {f["fields"]["name"] for f in found["kernels.kernel"]} >= {"sgemm_128x128"}
    assert found["copies.copy"][0]["fields"]["pageable"] == 1
    assert not found["replay.scenario"], "windows cannot be run again as one"


def test_buffers_that_fill_up_end_the_window(place):
    place.environment["HOTLAP_KERNELS_WINDOW_MS"] = "3000"
    done = place.run(PROGRAM, "1", "flood")
    ((count, spread_s),) = place.rows("SELECT count(*), (max(start_ns) - min(start_ns)) / 1e9 FROM kernel")
    assert 0 < count <= 7000 and spread_s < 3
    assert said(done) >= count
    ((window_ms, lost),) = place.rows("SELECT duration_ms, value_a FROM span WHERE kind = 'device_window'")
    assert window_ms < 3000 and lost == place.losses().get("observe.records_dropped", 0)


def test_what_cupti_dropped_is_counted(place):
    place.environment["FAKE_CUPTI"] = "drops"
    assert place.run(PROGRAM, "1").returncode == 0
    ((windows, lost),) = place.rows("SELECT count(*), min(value_a) FROM span WHERE kind = 'device_window'")
    assert lost == 7 and place.losses()["observe.records_dropped"] == 7 * windows


def test_work_that_has_not_ended_when_the_wait_is_over_is_counted(place):
    place.environment["FAKE_CUPTI"] = "slow"
    done = place.run(PROGRAM, "1")
    assert done.returncode == 0
    assert place.rows("SELECT count(*) FROM kernel") == [(0,)]
    assert place.losses()["observe.records_dropped"] == said(done)
    assert place.rows("SELECT count(*) > 0 FROM copy") == [(1,)]


def test_a_clock_that_was_set_meanwhile_gives_no_times(place):
    place.environment["FAKE_CUPTI"] = "step"
    assert place.run(PROGRAM, "1").returncode == 0
    assert place.rows("SELECT count(*) FROM kernel") == [(0,)]
    assert place.losses()["observe.records_dropped"] > 0


@pytest.mark.parametrize("words, reason", [
    ("other", "off: another tool uses CUPTI (torch.profiler, Nsight, a debugger): it goes first"),
    ("unprivileged", "off: CUPTI does not tell of kernels: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"),
    ("no_driver", "off: CUPTI refuses: CUPTI_ERROR_UNKNOWN (999)"),
])
def test_it_steps_aside_and_says_why(place, words, reason):
    place.environment["FAKE_CUPTI"] = words
    done = place.run(PROGRAM, "1", "short")
    assert (done.returncode, done.stdout) == (0, "injected 1\nkernels 0\n"), done.stderr
    assert why(place) == '"%s"' % reason


def test_somebody_else_who_comes_later_goes_first(place):
    done = place.run(PROGRAM, "2", "other", "short")
    assert done.returncode == 0
    assert place.rows("SELECT count(*) > 0 FROM kernel") == [(1,)], "what was seen before that is kept"
    assert "it goes first" in why(place)


def test_an_old_cupti_without_what_is_not_needed(place):
    with_cupti(place, "old")
    done = place.run(PROGRAM, "1")
    assert place.rows("SELECT count(*) FROM kernel") == [(said(done),)]
    names = place.rows("SELECT count(*), count(name) FROM span WHERE kind = 'runtime'")
    assert names[0][0] > 0 and names[0][1] == 0, "calls whose names it does not tell have none"


def test_a_cupti_that_lacks_what_is_needed(place):
    with_cupti(place, "poor")
    done = place.run(PROGRAM, "1", "short")
    assert (done.returncode, done.stdout) == (0, "injected 1\nkernels 0\n"), done.stderr
    assert why(place) == '"off: libcupti lacks functions of CUDA 11 or later"'


def test_no_cupti(place, tmp_path):
    place.environment.update(LD_LIBRARY_PATH=str(tmp_path), CUDA_HOME=str(tmp_path), CUDA_PATH=str(tmp_path),
                             HOTLAP_CUPTI_LIBRARY=str(tmp_path / "none"))
    done = place.run(PROGRAM, "0", "short")
    assert done.returncode == 0 and "no CUPTI\n" in done.stdout, done.stderr
    assert why(place).startswith('"off: libcupti is not found')


def test_cupti_is_loaded_where_the_program_has_none(place):
    done = place.run(PROGRAM, "1", "late")
    assert done.stdout.startswith("injected 1\n"), done.stderr
    assert place.rows("SELECT count(*) FROM kernel") == [(said(done),)]


def test_a_flush_that_hangs_does_not_hold_up_the_end(place):
    place.environment["FAKE_CUPTI"] = "hang"
    done = place.run(PROGRAM, "1")
    assert done.returncode == 0 and said(done) > 0, done.stderr
    assert why(place) == '"off: CUPTI did not come back before the program\'s end"'
    assert place.losses()["observe.records_dropped"] >= 1


def test_a_child_is_not_watched(place):
    done = place.run(PROGRAM, "1", "fork")
    assert done.returncode == 0 and "child 0\n" in done.stdout, done.stderr
    ((processes, count),) = place.rows("SELECT count(DISTINCT process), count(*) FROM kernel")
    assert processes == 1 and count == said(done)


def test_a_hard_end_loses_no_closed_window(place):
    assert place.run(PROGRAM, "2", "_exit").returncode == 4
    assert place.rows("SELECT count(*) > 0 FROM kernel") == [(1,)]


def test_two_processes_with_the_same_numbers_of_launches(place):
    done = place.run("/bin/sh", "-c", "%s 2 & %s 2; wait" % (PROGRAM, PROGRAM))
    assert done.returncode == 0, done.stderr
    rows = place.rows("SELECT process, count(*) FROM kernel GROUP BY process")
    assert len(rows) == 2 and all(process is not None for process, _ in rows), rows


def test_outside_of_a_recorded_job_it_does_nothing(place):
    place.environment["CUDA_INJECTION64_PATH"] = str(place.library("libhotlap_kernels.so"))
    done = place.plain(PROGRAM, "0")
    assert (done.returncode, done.stdout) == (0, "injected 1\nkernels 0\n")


def test_a_variable_that_is_set_belongs_to_another_tool(place):
    place.environment["CUDA_INJECTION64_PATH"] = "/nowhere/libToolsInjection64.so"
    done = place.run(PROGRAM, "0")
    assert done.returncode == 0 and "not injected\n" in done.stdout
    assert "no observer kernels: CUDA_INJECTION64_PATH is set already, to another tool" in done.stderr


def test_not_together_with_the_profiler(place):
    done = place.hotlap("run", "--observe", "kernels", "--profile", "steps=3:2", "--", PROGRAM, "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--observe kernels does not go together with --profile: both need CUPTI" in done.stderr


def nvidia_folder():
    """Of NVIDIA's packages for the tests' Python (make test-frameworks), or of the machine's CUDA."""
    python = os.environ.get("HOTLAP_TEST_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import site; print('\\n'.join(site.getsitepackages()))"],
                           capture_output=True, text=True, check=False).stdout.split()
    places = [pathlib.Path("/usr/local/cuda"), *(f for p in found for f in sorted(pathlib.Path(p).glob("nvidia/*")))]
    return next((p for p in places if (p / "include" / "cupti_activity.h").exists()), None)


def test_layouts_are_those_of_nvidias_headers(tmp_path):
    folder = nvidia_folder()
    compiler = shutil.which("g++")
    if folder is None or compiler is None:
        pytest.skip("no headers of CUPTI here, or no compiler")
    stubs = tmp_path / "crt"
    stubs.mkdir()
    # Of the toolkit's header for nvcc only these words are used; the package has it not.
    words = ("__device_builtin__", "__cudart_builtin__", "CUDARTAPI", "__host__", "__device__",
             "__device_builtin_surface_type__", "__device_builtin_texture_type__", "__specialization_static")
    (stubs / "host_defines.h").write_text(
        "".join("#define %s\n" % word for word in words) + "#define __inline__ inline\n"
        "#define __align__(n) __attribute__((aligned(n)))\n#define __builtin_align__(n) __align__(n)\n"
        "#define __cuda_builtin_vector_align8(tag, members) struct __align__(8) tag { members }\n")
    include = folder / "include"
    kernels = re.findall(r"} (CUpti_ActivityKernel\d+);", (include / "cupti_activity.h").read_text())
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-DHOTLAP_NEWEST_KERNEL=%s" % kernels[-1], "-I", str(SOURCES / "src"),
         "-isystem", str(include), "-isystem", str(tmp_path), str(SOURCES / "tests" / "observe" / "cupti_layouts.cpp")],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nvidias_own_library_has_the_functions():
    folder = nvidia_folder()
    libraries = sorted((folder / "lib").glob("libcupti.so.*")) if folder else []
    if not libraries:
        pytest.skip("no libcupti of NVIDIA's here")
    library = ctypes.CDLL(str(libraries[0]))
    wanted = re.findall(r'"(cupti\w+)"', (SOURCES / "src" / "observe" / "cupti_library.cpp").read_text())
    assert len(wanted) >= 14
    assert [name for name in wanted if not hasattr(library, name)] == []
