"""Kernels that lack close_range (before Linux 5.9) and pidfd_open (before 5.3): a filter answers as they do."""
import errno
import os
import signal
import subprocess

import pytest
from processes import GIVE_UP_S, HOTLAP, children, command_line, is_alive, part_of, wait_for
from system_calls import can_be_forbidden, forbid

PIDFD_OPEN, CLOSE_RANGE = 434, 436  # on every architecture
become_old = forbid([PIDFD_OPEN, CLOSE_RANGE], errno.ENOSYS)


@pytest.fixture(scope="module", autouse=True)
def filters():
    if not can_be_forbidden(PIDFD_OPEN, errno.ENOSYS):
        pytest.skip("system calls cannot be filtered here")


def test_nothing_of_the_jobs_stays_open_in_our_other_processes(home):
    reader, writer = os.pipe()
    job = home.start("sleep", "1000", pass_fds=[writer], preexec_fn=become_old, stderr=subprocess.DEVNULL)
    pid = wait_for(lambda: part_of(job.pid, "1000"), "the job")
    wait_for(lambda: part_of(job.pid, "_recorder") and part_of(job.pid, "_watch"), "our processes")
    assert os.path.exists("/proc/%d/fd/%d" % (pid, writer))
    pipe = os.fstat(writer).st_ino
    for ours in children(job.pid):
        if ours != pid and command_line(ours):
            inodes = {os.stat("/proc/%d/fd/%s" % (ours, fd)).st_ino for fd in os.listdir("/proc/%d/fd" % ours)
                      if os.path.exists("/proc/%d/fd/%s" % (ours, fd))}
            assert pipe not in inodes, command_line(ours)
    job.terminate()
    assert job.wait(GIVE_UP_S) == -signal.SIGTERM
    os.close(reader)
    os.close(writer)


def test_the_end_of_a_process_that_is_recorded_is_noticed(home):
    job = subprocess.Popen(["sleep", "1000"])
    recording = subprocess.Popen([HOTLAP, "record", "--pid", str(job.pid), "--quiet"], env=home.environment,
                                 preexec_fn=become_old)
    wait_for(home.recordings, "its file")
    assert recording.poll() is None
    job.kill()
    job.wait()
    assert recording.wait(GIVE_UP_S) == 0
    assert home.run_json()["status"] == "ended"


def test_the_recorder_goes_on_without_its_supervisor(home):
    job = home.start("sh", "-c", "read line; sleep 1", stdin=subprocess.PIPE, preexec_fn=become_old,
                     stderr=subprocess.DEVNULL)
    recorder = wait_for(lambda: part_of(job.pid, "_recorder"), "the recorder")
    pid = wait_for(lambda: part_of(job.pid, "read line; sleep 1"), "the job")
    wait_for(lambda: home.recordings() and [run for run in home.runs() if (run / "control").exists()], "its file")
    job.kill()
    job.wait()
    assert is_alive(pid)
    assert is_alive(recorder)
    job.stdin.close()
    wait_for(lambda: home.run_json()["status"] == "ended", "the recorder to see the job's end")
    assert not is_alive(pid)
