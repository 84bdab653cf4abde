"""A sandbox that forbids a system call, as containers do and gVisor: the job runs as without us, recorded or told why not."""
import errno
import platform
import subprocess

import pytest
from processes import GIVE_UP_S, said
from system_calls import can_be_forbidden, forbid

if platform.machine() != "x86_64":
    pytest.skip("the calls' numbers are those of x86-64", allow_module_level=True)

# Without these we record as usual.
DISPENSABLE = {"madvise": 28, "sched_setscheduler": 144, "getpriority": 140, "setpriority": 141, "setsid": 112, "prctl": 157,
               "sysinfo": 99, "uname": 63, "flock": 73, "fchown": 93, "inotify_init1": 294, "inotify_add_watch": 254,
               "mknodat": 259, "eventfd2": 290, "clone3": 435, "getrandom": 318, "rseq": 334, "prlimit64": 302,
               "pidfd_open": 434, "close_range": 436, "memfd_create": 319, "fallocate": 285, "process_vm_readv": 310,
               "perf_event_open": 298, "ptrace": 101}
# Without one of these nothing can be recorded.
NEEDED = {"socketpair": 53, "signalfd4": 289, "fchmod": 91, "rename": 82, "mkdir": 83, "pwrite64": 18, "ftruncate": 77,
          "fdatasync": 75, "statfs": 137}
ERRORS = [errno.EPERM, errno.ENOSYS]
JOB = ["sh", "-c", "echo out; echo err >&2; exit 7"]


@pytest.fixture(scope="module", autouse=True)
def filters():
    if not can_be_forbidden(DISPENSABLE["pidfd_open"], errno.EPERM):
        pytest.skip("system calls cannot be filtered here")


def run_without(home, call, error):
    """A job under us where a call is forbidden: it must be as it is without us there."""
    plain = subprocess.run(JOB, preexec_fn=forbid([call], error), capture_output=True, text=True, timeout=GIVE_UP_S, check=False)
    done = home.run(*JOB, preexec_fn=forbid([call], error))
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (7, "out\n")
    assert "err" in done.stderr.splitlines()
    return said(done.stderr)


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", DISPENSABLE.values(), ids=DISPENSABLE)
def test_what_is_of_no_need_costs_nothing(home, call, error):
    run_without(home, call, error)
    assert home.run_json()["status"] == "failed"
    assert len(home.recordings()) == 1


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", NEEDED.values(), ids=NEEDED)
def test_what_is_needed_costs_the_recording_and_that_is_said(home, call, error):
    lines = run_without(home, call, error)
    told = [line for line in lines if "recorded" in line]
    assert len(told) == 1, lines
    assert "exit code" not in told[0], "what failed is named"
