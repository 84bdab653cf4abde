"""A home on a network file system: SQLite's WAL does not work there, so the recording is made beside it, and comes home.

A FUSE file system stands for it: a real mount, with the type that the kernel reports for sshfs and alike.
"""
import os
import pathlib
import shutil
import sqlite3
import subprocess

import processes
import pytest
from processes import said, shown, wait_for

CAN_MOUNT = shutil.which("bindfs") and os.access("/dev/fuse", os.W_OK)
pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="needs bindfs and /dev/fuse")


@pytest.fixture
def network_home(tmp_path):
    (tmp_path / "server").mkdir()
    (tmp_path / "mounted").mkdir()
    subprocess.run(["bindfs", str(tmp_path / "server"), str(tmp_path / "mounted")], check=True)
    home = processes.Home(tmp_path)
    home.home = tmp_path / "mounted" / "home"
    home.environment.update(HOTLAP_HOME=str(home.home), TMPDIR=str(tmp_path / "local"))
    (tmp_path / "local").mkdir()
    yield home
    # Busy for as long as anything of ours lives in it.
    wait_for(lambda: subprocess.run(["umount", str(tmp_path / "mounted")], check=False).returncode == 0, "nobody to use it")


def run_json(home):
    """Through FUSE a file that is replaced just then may be missing for a moment."""
    try:
        return home.run_json()
    except FileNotFoundError:
        return {}


def samples(path):
    with sqlite3.connect("file:%s?mode=ro" % path, uri=True) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return sum(connection.execute("SELECT count(*) FROM " + table).fetchone()[0]
                   for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall())


def test_what_is_recorded_beside_it_is_read_live_copied_and_comes_home(network_home):
    home = network_home
    job = home.start("sleep", "1000", stderr=subprocess.PIPE, text=True)
    wait_for(lambda: [run for run in home.runs() if (run / "run.json").exists()], "the run")
    wait_for(lambda: "recording_folder" in run_json(home), "the note of the local folder")
    beside = pathlib.Path(home.run_json()["recording_folder"])
    assert beside.parent.parent == home.folder / "local"
    wait_for(lambda: ((shown(home) or {}).get("run") or {}).get("status") == "running", "a live reader that finds it")
    wait_for(home.recordings, "the first copy in the run folder")
    assert samples(home.recordings()[0]) > 0
    assert list(beside.glob("*.hotlap"))
    job.terminate()
    _, errors = job.communicate(timeout=processes.GIVE_UP_S)
    assert any("network file system" in line and str(beside) in line for line in said(errors))
    assert not beside.exists()
    assert "recording_folder" not in home.run_json()
    assert len(home.recordings()) == 1
    assert shown(home)["run"]["status"] == "killed"


def test_a_run_json_cannot_point_readers_elsewhere(tmp_path):
    """Only a folder that hotlap would have made itself, for this run and user, is believed."""
    home = processes.Home(tmp_path)
    assert home.run("true", flags=["--quiet"]).returncode == 0
    elsewhere = tmp_path / "elsewhere" / home.run_json()["id"]
    elsewhere.mkdir(parents=True)
    (run,) = home.runs()
    shutil.move(home.recordings()[0], elsewhere)
    text = (run / "run.json").read_text().replace("{", '{"recording_folder": "%s",' % elsewhere, 1)
    (run / "run.json").write_text(text)
    assert (shown(home) or {}).get("recordings", []) == []


def test_a_machine_keeps_the_name_of_its_first_recording(tmp_path):
    home = processes.Home(tmp_path)
    for name in ("HOTLAP_NODE", "SLURMD_NODENAME", "SM_CURRENT_HOST"):
        home.environment.pop(name, None)
    assert home.run("true", flags=["--quiet"]).returncode == 0
    assert home.run_json()["node"] == (home.home / "node").read_text().strip()
    (home.home / "node").write_text("before-the-renaming\n")
    shutil.rmtree(home.runs()[0])
    assert home.run("true", flags=["--quiet"]).returncode == 0
    assert home.run_json()["node"] == "before-the-renaming"
    shutil.rmtree(home.runs()[0])
    home.environment["HOTLAP_NODE"] = "told"
    assert home.run("true", flags=["--quiet"]).returncode == 0
    assert home.run_json()["node"] == "told"
