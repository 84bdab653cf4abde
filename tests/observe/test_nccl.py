"""`hotlap run --observe nccl` below a program that stands in for NCCL: each version of the plugin's interface."""
import os
import pathlib

import pytest
from observed import Place

PROGRAM = str(pathlib.Path(os.environ["HOTLAP"]).parent / "tests" / "observe" / "nccl_program")
SPANS = "SELECT name, duration_ms, value_a, value_b FROM span WHERE kind = 'user' ORDER BY name"


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "nccl")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_operations_of_each_version(place, version):
    done = place.run(PROGRAM, str(version))
    assert (done.returncode, done.stdout) == (0, "wanted %d\n" % (6 if version < 3 else 70)), done.stderr
    (gather, reduce, send) = place.rows(SPANS)
    assert gather == ("nccl:AllGather", None, 28, 5), "its kernel was never seen: how long it took is not known"
    assert (reduce[0], *reduce[2:]) == ("nccl:AllReduce", 4000, 5)
    assert (send[0], *send[2:]) == ("nccl:Send", 10, None)
    if version < 3:
        assert reduce[1] is None and send[1] is None, "these versions do not tell of the kernel"
    else:
        assert reduce[1] >= 5 and send[1] >= 1
    assert place.attributes()["process.main.observer.nccl"] == '"on"'


def test_operations_are_in_the_table_of_collectives(place):
    assert place.run(PROGRAM, "4").returncode == 0
    rows = place.rows("SELECT name, side, bytes FROM collective ORDER BY name")
    assert rows == [("nccl:AllGather", "nccl", 28), ("nccl:AllReduce", "nccl", 4000), ("nccl:Send", "nccl", 10)]


def test_what_was_over_before_a_hard_end_is_kept(place):
    assert place.run(PROGRAM, "4", "_exit").returncode == 4
    assert "nccl:AllReduce" in {row[0] for row in place.rows(SPANS)}


def test_outside_of_a_recorded_job_it_refuses(place):
    place.environment["NCCL_PROFILER_PLUGIN"] = str(place.library("libhotlap_nccl.so"))
    assert place.plain(PROGRAM, "4").stdout == "wanted -1\n"
