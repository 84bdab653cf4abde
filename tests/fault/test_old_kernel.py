"""Kernels that lack close_range (before Linux 5.9) and pidfd_open (before 5.3): a filter answers as they do."""
import ctypes
import errno
import os
import signal
import subprocess

import pytest
from processes import GIVE_UP_S, HOTLAP, children, command_line, is_alive, part_of, wait_for

PIDFD_OPEN, CLOSE_RANGE = 434, 436  # on every architecture
LIBC = ctypes.CDLL(None, use_errno=True)


class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("if_true", ctypes.c_uint8), ("if_false", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(Instruction))]


def become_old():
    """In the child, before its exec: both calls end with ENOSYS, in all that it starts too."""
    code = (Instruction * 5)(Instruction(0x20, 0, 0, 0),  # the number of the call
                             Instruction(0x15, 2, 0, PIDFD_OPEN), Instruction(0x15, 1, 0, CLOSE_RANGE),
                             Instruction(0x06, 0, 0, 0x7FFF0000), Instruction(0x06, 0, 0, 0x00050000 | errno.ENOSYS))
    program = Program(len(code), code)
    if LIBC.prctl(38, 1, 0, 0, 0) != 0 or LIBC.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
        os._exit(99)


@pytest.fixture(scope="module", autouse=True)
def filters():
    script = "import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall(434, 1, 0); print(ctypes.get_errno())"
    told = subprocess.run(["/usr/bin/python3", "-S", "-c", script], preexec_fn=become_old, stdout=subprocess.PIPE,
                          text=True, check=False)
    if told.stdout != "%d\n" % errno.ENOSYS:
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
