"""`kill -9` of each of our processes and of the job, at random moments: the job's result is untouched, every file
opens, and at most the last second is missing. HOTLAP_KILLS sets how many (make proof: 200)."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest
from processes import (
    GIVE_UP_S,
    HOTLAP,
    PYTHON,
    column,
    committed_tables,
    is_alive,
    kill_quietly,
    part_of,
    shown,
    wait_for,
)

KILLS = int(os.environ.get("HOTLAP_KILLS", "12"))
SEED = int(os.environ.get("HOTLAP_SEED", "1"))
JOB = "i=0; while [ $i -lt 12 ]; do echo $i; i=$((i+1)); sleep 0.1; done; exit 3"
OUTPUT = "".join("%d\n" % i for i in range(12))
PARTS = ["_recorder", "run", "_watch", "job", "both"]


def killed_at(home, victim, after_s):
    """Runs the job, kills `victim` after a while; the job's (exit code, output) and the time of the kill."""
    out = home.folder / "out"
    with open(out, "w") as file:
        job = home.start("sh", "-c", JOB, flags=["--interval", "50ms"], stdout=file, stderr=subprocess.DEVNULL)
    job_pid = wait_for(lambda: part_of(job.pid, JOB), "the job")
    time.sleep(after_s)
    recorder = part_of(job.pid, "_recorder")
    victims = {"run": [job.pid], "job": [job_pid], "both": [job.pid, recorder]}.get(victim, [part_of(job.pid, victim)])
    when = time.monotonic()
    for pid in victims:
        if pid:
            kill_quietly(pid)
    code = job.wait(GIVE_UP_S)
    wait_for(lambda: not is_alive(job_pid), "the job's end")
    return code, out.read_text(), when


@pytest.mark.parametrize("turn", range(KILLS))
def test_kill_at_a_random_moment(home, turn):
    chance = random.Random(SEED * 1000 + turn)
    victim = PARTS[turn % len(PARTS)]
    code, output, _ = killed_at(home, victim, chance.uniform(0, 1.3))
    if victim == "job":
        assert code in (-signal.SIGKILL, 3)
        assert OUTPUT.startswith(output)
    else:
        assert output == OUTPUT  # whatever died on our side
        assert code == (-signal.SIGKILL if victim in ("run", "both") else 3)
    if victim == "run":
        # The recorder goes on until the job ends, and closes the run without knowing how it ended.
        wait_for(lambda: home.runs() == [] or home.run_json()["status"] != "running", "the recorder's end")
        if home.runs():
            assert home.run_json()["status"] == "ended"
    elif victim in ("_recorder", "_watch"):
        assert home.run_json()["exit_code"] == 3
        assert home.run_json()["status"] == "failed"
    for recording in home.recordings():
        copy = home.folder / "copies" / recording.name
        copy.parent.mkdir(exist_ok=True)
        for part in recording.parent.glob(recording.name + "*"):
            shutil.copy(part, copy.parent / part.name)
        committed_tables(copy)


def test_a_killed_recorder_is_started_again_and_the_gap_is_told(home):
    job = home.start("sh", "-c", JOB.replace("12", "30"), flags=["--interval", "50ms"], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
    first = wait_for(lambda: part_of(job.pid, "_recorder"), "the recorder")
    wait_for(lambda: [r for r in (shown(home) or {}).get("recordings", []) if r["to_mono_ns"]], "something in its file")
    kill_quietly(first)
    second = wait_for(lambda: part_of(job.pid, "_recorder") not in (None, first) and part_of(job.pid, "_recorder"),
                      "another recorder")
    wait_for(lambda: "record.restarts" in json.dumps(shown(home)), "the gap in the second file")
    before, after = shown(home)["recordings"]
    (gap,) = [event for event in after["events"] if event["kind"] == "recorder_gap"]
    # From the last that the first file has, not from when its recorder was missed.
    assert int(gap["t_mono_ns"]) - int(gap["value"]) == int(before["to_mono_ns"])
    kill_quietly(second)
    out, err = job.communicate(timeout=GIVE_UP_S)
    assert (job.returncode, len(out.split())) == (3, 30)
    assert "the recorder ended: the job goes on without being recorded" in err
    info = home.run_json()
    assert (info["status"], info["exit_code"]) == ("failed", 3)
    assert len(home.recordings()) == 2


PYTHON_JOB = """
import os, sys, time
import hotlap
i = 0
while not os.path.exists(sys.argv[1]):
    with hotlap.span("work"):
        time.sleep(0.01)
    hotlap.count("loss", 0.25)
    hotlap.count("accuracy", 0.75)
    hotlap.step()
    i += 1
print(i)
"""


def test_a_recorder_started_again_knows_a_python_jobs_names_settings_and_phase(home):
    script, stop = home.folder / "job.py", home.folder / "stop"
    script.write_text(PYTHON_JOB)
    figures = ["main accuracy", "main loss"]
    job = home.start(PYTHON, str(script), str(stop), flags=["--interval", "50ms"], stdout=subprocess.PIPE,
                     stderr=subprocess.DEVNULL, text=True)

    def figures_of(number):
        recordings = home.recordings()
        return len(recordings) > number and figures_in(recordings[number])

    try:
        recorder = wait_for(lambda: part_of(job.pid, "_recorder"), "the recorder")
        wait_for(lambda: figures_of(0) == figures, "figures in the first file")
        kill_quietly(recorder)
        wait_for(lambda: figures_of(1) == figures, "figures in the second file")
    finally:
        stop.touch()
    out, _ = job.communicate(timeout=GIVE_UP_S)
    assert job.returncode == 0 and int(out) > 0
    for recording in home.recordings():
        assert figures_in(recording) == figures
        assert {"work"} <= set(column(recording, "SELECT text FROM names"))
        assert "attribute.process.main.python" in column(recording, "SELECT key FROM meta")
        assert "training" in column(recording, "SELECT text FROM events")


def figures_in(recording):
    return sorted(column(recording, "SELECT instance FROM series JOIN metrics ON metrics.id = series.metric "
                                    "WHERE metrics.name = 'hook.user.value'"))


def test_at_most_the_last_second_is_lost(home):
    job = home.start("sleep", "5", flags=["--interval", "20ms", "--quiet"])
    recorder = wait_for(lambda: part_of(job.pid, "_recorder"), "the recorder")
    time.sleep(2.7)
    os.kill(job.pid, signal.SIGKILL)
    when_ns = time.monotonic_ns()
    os.kill(recorder, signal.SIGKILL)
    last_ns = max(int(recording["to_mono_ns"]) for recording in shown(home)["recordings"])
    assert when_ns - last_ns < 1.3e9  # a second, and what a commit may take on a busy machine


def test_a_run_of_which_nothing_is_left_is_not_shown_as_running(home):
    job = home.start("sleep", "1000", flags=["--quiet"])
    recorder = wait_for(lambda: part_of(job.pid, "_recorder"), "the recorder")
    sleeper = wait_for(lambda: part_of(job.pid, "1000"), "the job")
    wait_for(lambda: (shown(home) or {}).get("recordings"), "its file")
    assert shown(home)["run"]["status"] == "running"
    for pid in (job.pid, recorder, sleeper):
        os.kill(pid, signal.SIGKILL)
    job.wait(GIVE_UP_S)
    wait_for(lambda: not is_alive(recorder) and not is_alive(sleeper), "their end")
    wait_for(lambda: shown(home)["run"]["status"] == "unknown", "its end to be seen")  # others of ours end a moment later


def with_last_watcher_stopped(home):
    """A run whose last watcher has been stopped, and that watcher's pid. It lives for a moment only, so that a busy
    machine may let it pass unseen: then another run is tried."""
    for _ in range(20):
        job = home.start("true", stderr=subprocess.PIPE, text=True)
        while job.poll() is None:
            watcher = part_of(job.pid, "--final")
            if watcher is not None and is_alive(watcher):
                os.kill(watcher, signal.SIGSTOP)
                return job, watcher
        job.communicate(timeout=GIVE_UP_S)
    raise AssertionError("the last watcher of no run was seen")


def test_a_verdict_that_does_not_come_holds_nobody_up_for_long(home):
    job, watcher = with_last_watcher_stopped(home)
    began = time.monotonic()
    while job.poll() is None:
        assert time.monotonic() - began < GIVE_UP_S
        time.sleep(0.1)
    os.kill(watcher, signal.SIGCONT)
    _, errors = job.communicate(timeout=GIVE_UP_S)
    assert job.returncode == 0
    assert "the verdict takes longer: hotlap why will have it" in errors
    assert "recorded as" in errors  # it is said all the same when it comes


def test_the_run_folder_is_deleted_while_we_record(home):
    job = home.start("sh", "-c", JOB, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    wait_for(home.recordings, "the recording")
    shutil.rmtree(home.home)
    out, _ = job.communicate(timeout=GIVE_UP_S)
    assert (job.returncode, out) == (3, OUTPUT)


def test_a_stopped_recorder_costs_the_job_nothing(home):
    job = home.start("sh", "-c", JOB, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    recorder = wait_for(lambda: part_of(job.pid, "_recorder"), "the recorder")
    os.kill(recorder, signal.SIGSTOP)
    assert job.stdout.read() == OUTPUT
    os.kill(recorder, signal.SIGCONT)
    assert job.wait(GIVE_UP_S) == 3
    assert home.run_json()["exit_code"] == 3


MEMORY_GROUPS = pathlib.Path("/sys/fs/cgroup/memory")


@pytest.mark.skipif(not os.access(MEMORY_GROUPS / "cgroup.procs", os.W_OK), reason="needs to make a control group (v1)")
def test_a_job_that_is_killed_for_memory_is_told_so(home):
    group = MEMORY_GROUPS / ("hotlap-test-%d" % os.getpid())
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text("64000000")
        greedy = "import time; time.sleep(1.2); a = [bytearray(1000000) for _ in range(300)]"
        inside = "echo $$ > %s/cgroup.procs && exec \"$@\"" % group
        done = subprocess.run(["sh", "-c", inside, "sh", *home.words(PYTHON, "-c", greedy)], env=home.environment,
                              capture_output=True, text=True, check=False, timeout=GIVE_UP_S)
    finally:
        group.rmdir()
    assert done.returncode == -signal.SIGKILL
    assert "hotlap: out of memory: the kernel killed a process of the job's control group" in done.stderr


@contextlib.contextmanager
def small_disk(home, size):
    """A file system of that size with the home on it."""
    small = home.folder / "small"
    small.mkdir()
    options = "size=%s,mode=700" % size
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(small)], check=False).returncode:
        pytest.skip("may not mount")
    home.environment["HOTLAP_HOME"] = str(small / "home")
    try:
        yield small
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)


may_mount = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None,
                               reason="needs to mount a small file system")


@may_mount
def test_a_full_disk_costs_the_job_nothing(home):
    with small_disk(home, "300k"):
        done = home.run("sh", "-c", JOB, flags=["--interval", "20ms"])
        assert (done.returncode, done.stdout) == (3, OUTPUT)


@may_mount
def test_too_little_room_is_said_with_the_reason(home):
    with small_disk(home, "40m"):
        done = home.run("sh", "-c", JOB)
        assert (done.returncode, done.stdout) == (3, OUTPUT)
        lines = [line for line in done.stderr.splitlines() if "MiB are free" in line]
        assert len(lines) == 1
        assert "without being recorded" in lines[0] and "HOTLAP_HOME" in lines[0]
        assert "recorded as" not in done.stderr and "recorder.log" not in done.stderr


@may_mount
def test_a_disk_that_is_full_from_the_start_leaves_no_empty_run(home):
    with small_disk(home, "4k") as small:
        (small / "filler").write_bytes(b"x" * 4096)
        done = home.run("sh", "-c", JOB)
        assert (done.returncode, done.stdout) == (3, OUTPUT)
        assert "not recorded" in done.stderr
        assert "No space left on device" in done.stderr
        listed = subprocess.run([HOTLAP, "ls"], env=home.environment, capture_output=True, text=True, check=False,
                                timeout=GIVE_UP_S)
        assert "left out" not in listed.stderr
