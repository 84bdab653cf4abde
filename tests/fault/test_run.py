"""`hotlap run` is as if it were not there: exit codes, signals, output, environment, descriptors."""
import json
import os
import pathlib
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import pytest
from processes import PYTHON, children, column, is_alive, part_of, said, state_of, wait_for


@pytest.mark.parametrize("code", [0, 1, 7, 126, 127, 200, 255])
def test_the_exit_code_is_the_jobs_own(home, code):
    assert home.run("sh", "-c", "exit %d" % code).returncode == code
    info = home.run_json()
    assert info["exit_code"] == code
    assert info["status"] == ("finished" if code == 0 else "failed")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGUSR1])
def test_a_killed_job_looks_killed_to_our_parent(home, number):
    assert home.run("sh", "-c", "kill -%d $$" % number).returncode == -number
    info = home.run_json()
    assert (info["exit_signal"], info["exit_code"], info["status"]) == (number, None, "killed")


@pytest.mark.parametrize("job, code, line", [
    (["no-such-command"], 127, "hotlap: no-such-command: command not found"),
    (["/no/such/file"], 127, "hotlap: cannot run /no/such/file: No such file or directory"),
    (["/"], 126, "hotlap: cannot run /: Permission denied"),
])
def test_a_command_that_cannot_be_run_leaves_nothing(home, job, code, line):
    done = home.run(*job)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", line + "\n")
    assert home.runs() == []
    assert list((home.runtime / "hotlap").iterdir()) == []


def test_output_passes_through_and_ours_is_marked(home):
    done = home.run("sh", "-c", "echo out; echo err >&2; cat", input="in\n")
    assert done.stdout == "out\nin\n"
    lines = done.stderr.splitlines()
    assert "err" in lines
    assert all(line.startswith("hotlap:") for line in lines if line != "err")
    quiet = home.run("sh", "-c", "echo err >&2", flags=["--quiet"])
    assert quiet.stderr == "err\n"


PROBE = """
import json, os, resource, signal, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "environment": dict(os.environ), "descriptors": sorted(int(f) for f in os.listdir("/proc/self/fd"))[:-1],
    "signals": [status[k].strip() for k in ("SigBlk", "SigIgn", "SigCgt")], "umask": status["Umask"].strip(),
    "limits": [resource.getrlimit(k) for k in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE, resource.RLIMIT_AS)],
    "nice": os.getpriority(os.PRIO_PROCESS, 0), "folder": os.getcwd(), "session": os.getsid(0) == os.getsid(os.getppid()),
    "group": os.getpgid(0) == os.getpgid(os.getppid()), "dumpable": status.get("CoreDumping", "").strip()}))
"""


def probe(words, environment, before):
    done = subprocess.run(["/bin/sh", "-c", before + ' exec "$@"', "sh", *words], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=60)
    return json.loads(done.stdout)


def test_the_job_sees_what_it_would_see_without_us(home):
    script = [PYTHON, "-S", "-c", PROBE]
    before = "trap '' HUP USR2; umask 027; ulimit -n 300; exec 7</dev/null; cd /;"
    without = probe(script, home.environment, before)
    with_us = probe(home.words(*script, flags=["--quiet"]), home.environment, before)
    added = {k: v for k, v in with_us["environment"].items() if without["environment"].get(k) != v}
    assert set(added) <= {"HOTLAP_RUN_ID", "HOTLAP_RING_DIR", "HOTLAP_HOOK_PATH", "HOTLAP_PROFILE_DIR", "PYTHONPATH"}
    assert set(without["environment"]) <= set(with_us["environment"])
    del without["environment"], with_us["environment"]
    assert with_us == without


TIMELINE = """
until [ -d "$(dirname "$HOROVOD_TIMELINE")" ]; do sleep 0.05; done
echo "[]" > "$HOROVOD_TIMELINE"
"""


def test_what_is_preloaded_into_the_job_is_not_into_ours(home):
    home.environment["LD_PRELOAD"] = "/no/such/library.so"
    done = home.run("sh", "-c", "echo job")
    assert (done.returncode, done.stdout) == (0, "job\n")
    # By hotlap itself, which was started with it, and by the job.
    assert len([line for line in done.stderr.splitlines() if "/no/such/library.so" in line]) == 2


def test_horovods_timeline_is_kept_with_the_run(home):
    """The job stands in for Horovod: it writes where the variable says, once it is initialised."""
    assert home.run("sh", "-c", TIMELINE, flags=["--horovod-timeline"], timeout=60).returncode == 0
    (run,) = home.runs()
    assert (run / "horovod_timeline.json").read_text() == "[]\n"


def test_a_timeline_that_the_job_asks_for_itself_is_its_own(home):
    home.environment["HOROVOD_TIMELINE"] = str(home.folder / "mine.json")
    done = home.run("sh", "-c", 'echo "$HOROVOD_TIMELINE"', flags=["--horovod-timeline"])
    assert done.stdout == "%s/mine.json\n" % home.folder
    assert "hotlap: HOROVOD_TIMELINE is set already" in done.stderr


def test_without_the_option_horovod_is_left_alone(home):
    assert home.run("sh", "-c", 'echo "[$HOROVOD_TIMELINE]"').stdout == "[]\n"


def test_an_ignored_sigchld_is_ignored_in_the_job_and_we_still_see_its_end(home):
    before = "trap '' CHLD; trap '' PIPE;"
    script = [PYTHON, "-S", "-c", PROBE]
    without = probe(script, home.environment, before)
    with_us = probe(home.words(*script, flags=["--quiet"]), home.environment, before)
    assert with_us["signals"] == without["signals"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors_stay_closed_and_harm_nothing(home, closed):
    script = "for fd in 0 1 2; do [ -e /proc/self/fd/$fd ] && echo $fd >>%s/open; done; exit 6" % home.folder
    words = " ".join("'%s'" % word for word in home.words("bash", "-c", script, flags=["--quiet"]))
    done = subprocess.run(["/bin/sh", "-c", "exec %s %s" % (words, closed)], env=home.environment, check=False, timeout=60)
    assert done.returncode == 6
    still_open = (home.folder / "open").read_text().split() if (home.folder / "open").exists() else []
    assert len(still_open) == 3 - closed.count("&-")


def test_few_descriptors_suffice(home):
    done = subprocess.run(["/bin/sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *home.words("sh", "-c", "exit 4")],
                          env=home.environment, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 4
    assert home.run_json()["exit_code"] == 4


@pytest.mark.parametrize("limit", [*range(4, 12), 16, 20])
def test_descriptors_that_run_out_cost_the_recording_only(home, limit):
    words = home.words("sh", "-c", "exit 4", flags=["--quiet"])
    done = subprocess.run(["/bin/sh", "-c", 'ulimit -n %d; exec "$@"' % limit, "sh", *words], env=home.environment,
                          stderr=subprocess.PIPE, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (4, b"")
    none = subprocess.run(["/bin/sh", "-c", 'ulimit -n %d; exec "$@"' % limit, "sh", *home.words("no-such-command")],
                          env=home.environment, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert none.returncode == 127
    assert "hotlap: no-such-command: command not found" in none.stderr


def test_without_any_descriptor_for_signals_they_still_reach_the_job(home):
    words = home.words("sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done", flags=["--quiet"])
    job = subprocess.Popen(words, env=home.environment, stdout=subprocess.PIPE, text=True,
                           preexec_fn=lambda: (os.close(0), resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))))
    assert job.stdout.readline() == "ready\n"
    job.terminate()
    assert job.wait(60) == 9


COUNT_SIGNALS = """
import os, signal, sys, time
seen = []
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGQUIT):
    signal.signal(number, lambda n, f: seen.append(n))
print(os.getpid(), flush=True)
while signal.SIGQUIT not in seen:
    time.sleep(0.01)
time.sleep(0.2)
print(*seen, flush=True)
"""


@pytest.mark.parametrize("to_group", [False, True])
def test_each_signal_reaches_the_job_exactly_once(home, to_group):
    """Sent to us alone it is passed on; sent to the whole group the job has it already."""
    job = home.start(PYTHON, "-S", "-c", COUNT_SIGNALS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                     start_new_session=True)
    pid = int(job.stdout.readline())
    wait_for(lambda: any(not words for words in children(job.pid).values()) or len(children(job.pid)) >= 2, "witness")
    send = os.killpg if to_group else os.kill
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH]
    for number in [*numbers, signal.SIGQUIT]:
        send(job.pid, number)
    assert is_alive(pid)
    seen = [int(n) for n in job.stdout.readline().split()]
    assert sorted(seen) == sorted([*numbers, signal.SIGQUIT])
    assert job.wait(60) == 0


def test_who_picks_us_by_our_command_line_ends_the_job(home):
    """`pkill -f 'hotlap run'` must not find the witness: a signal that reached it too would look like one to the group."""
    job = home.start("sleep", "1000", flags=["--quiet", "--name", "picked-%d" % os.getpid()])
    sleeper = wait_for(lambda: next((p for p, words in children(job.pid).items() if words[:1] == ["sleep"]), None), "the job")
    witness = wait_for(lambda: next((p for p, words in children(job.pid).items() if words[:1] == ["hl-witness"]), None),
                       "the witness")
    assert pathlib.Path("/proc/%d/comm" % witness).read_text() == "hotlap-witness\n"
    subprocess.run(["pkill", "-TERM", "-f", "--", "--name picked-%d" % os.getpid()], check=True)
    assert job.wait(60) == -signal.SIGTERM
    wait_for(lambda: not is_alive(sleeper), "the job to end")


def test_grace_ends_a_job_that_ignores_sigterm_and_what_it_started(home):
    script = "trap '' TERM; sleep 1000 & echo $!; wait; wait; sleep 1000"
    job = home.start("sh", "-c", script, flags=["--grace", "300ms", "--quiet"], stdout=subprocess.PIPE, text=True)
    child = int(job.stdout.readline())
    job.send_signal(signal.SIGTERM)
    assert job.wait(60) == -signal.SIGKILL
    wait_for(lambda: not is_alive(child), "the job's child to end")


def test_without_grace_a_job_may_take_its_time(home):
    script = "trap 'echo saving; sleep 1; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    job = home.start("sh", "-c", script, flags=["--quiet"], stdout=subprocess.PIPE, text=True)
    assert job.stdout.readline() == "ready\n"
    job.send_signal(signal.SIGTERM)
    job.send_signal(signal.SIGTERM)
    assert job.stdout.readline() == "saving\n"
    assert job.wait(60) == 3


def test_we_do_not_wait_for_what_the_job_leaves_behind(home):
    done = home.run("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!", flags=["--quiet"])
    assert done.returncode == 0
    left = int(done.stdout)
    assert is_alive(left)
    os.kill(left, signal.SIGKILL)


def test_the_end_of_the_output_is_seen_while_we_still_write(home):
    """Nothing of ours holds the job's standard output open."""
    job = home.start("sh", "-c", "echo done; exec >&- 2>&-; sleep 3", flags=["--quiet"], stdout=subprocess.PIPE)
    supervisor = job.pid
    wait_for(lambda: part_of(supervisor, "_recorder"), "the recorder")
    holders = set()
    target = os.stat(job.stdout.fileno()).st_ino
    wait_for(lambda: len(children(supervisor)) >= 3 or job.poll() is not None, "our processes")
    for pid in [supervisor, *children(supervisor)]:
        try:
            for name in os.listdir("/proc/%d/fd" % pid):
                found = os.stat("/proc/%d/fd/%s" % (pid, name))
                if stat.S_ISFIFO(found.st_mode) and found.st_ino == target:
                    holders.add(pid)
        except OSError:
            continue
    assert not holders
    assert job.wait(60) == 0


def test_stop_and_continue(home):
    job = home.start("sleep", "1000", flags=["--quiet"])
    pid = wait_for(lambda: part_of(job.pid, "1000"), "the job")
    wait_for(home.recordings, "its file")  # by then whoever passes a stop on is there
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: state_of(pid) == "T", "the job to stop")
    assert state_of(job.pid) != "T"  # nobody would continue us
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: state_of(pid) == "S", "the job to go on")
    job.terminate()
    assert job.wait(60) == -signal.SIGTERM


def test_a_stop_of_us_alone_stops_the_job_until_we_go_on(home):
    """SIGSTOP cannot be caught, so it cannot be passed on as other signals are."""
    job = home.start("sleep", "1000", flags=["--quiet"])
    pid = wait_for(lambda: part_of(job.pid, "1000"), "the job")
    wait_for(home.recordings, "its file")  # by then whoever passes a stop on is there
    for _ in range(2):
        os.kill(job.pid, signal.SIGSTOP)
        wait_for(lambda: state_of(pid) == "T", "the job to stop")
        os.kill(job.pid, signal.SIGCONT)
        wait_for(lambda: state_of(pid) == "S", "the job to go on")
    # Who continues the job by itself is not contradicted.
    os.kill(job.pid, signal.SIGSTOP)
    wait_for(lambda: state_of(pid) == "T", "the job to stop")
    os.kill(pid, signal.SIGCONT)
    time.sleep(2.5)
    assert (state_of(job.pid), state_of(pid)) == ("T", "S")
    os.kill(job.pid, signal.SIGCONT)
    job.terminate()
    assert job.wait(60) == -signal.SIGTERM


def test_a_job_that_ends_while_we_are_stopped_is_seen(home):
    job = home.start("sleep", "1000", flags=["--quiet"])
    pid = wait_for(lambda: part_of(job.pid, "1000"), "the job")
    wait_for(home.recordings, "its file")  # by then whoever passes a stop on is there
    os.kill(job.pid, signal.SIGSTOP)
    wait_for(lambda: state_of(pid) == "T", "the job to stop")
    os.kill(pid, signal.SIGKILL)
    assert job.wait(60) == -signal.SIGKILL


def test_private_files_only(home):
    home.run("true")
    for path in home.home.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_secrets_are_not_recorded(home):
    home.environment["SLURM_JWT"] = home.environment["MY_TOKEN"] = "SECRETVALUE"
    home.run("true", "--api-key", "SECRETVALUE", "https://me:SECRETVALUE@host/x", "--lr=0.1")
    text = "".join(p.read_bytes().decode("latin-1") for p in home.home.rglob("*") if p.is_file())
    assert "SECRETVALUE" not in text
    assert "--lr=0.1" in text


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as under sudo")
def test_under_sudo_its_caller_can_read_all_of_it(home):
    """A home that is somebody else's, as root finds it."""
    nobody = 65534
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o711)
        (folder / "home").mkdir(mode=0o700)
        os.chown(folder / "home", nobody, nobody)
        home.home = folder / "home"
        home.environment.update(HOTLAP_HOME=str(home.home), SUDO_UID=str(nobody))
        job = home.start("sleep", "1000", flags=["--quiet"])
        wait_for(lambda: home.recordings() and [run for run in home.runs() if (run / "control").exists()], "the recorder")
        not_theirs = {path for path in home.home.rglob("*") if path.lstat().st_uid != nobody}
        assert not not_theirs
        job.terminate()
        assert job.wait(60) == -signal.SIGTERM
        (recording,) = home.recordings()
        assert {path for path in home.home.rglob("*") if path.lstat().st_uid != nobody} == set()
        assert recording.stat().st_uid == nobody
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written_does_not_stop_the_job(home):
    home.folder.chmod(0o500)
    done = home.run("sh", "-c", "echo yes")
    home.folder.chmod(0o700)
    assert (done.returncode, done.stdout) == (0, "yes\n")


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs a mount namespace")
def test_without_proc_the_job_runs_and_it_is_said_that_nothing_is_recorded(home):
    away = ["unshare", "--mount", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"]
    if subprocess.run([*away, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("may not take /proc away")
    done = subprocess.run([*away, *home.words("sh", "-c", "echo job; exit 3")], env=home.environment,
                          capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (3, "job\n")
    assert said(done.stderr) == ["hotlap: not recorded: /proc is not mounted"]


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/full/x", ""])
def test_an_impossible_home_does_not_stop_the_job(home, place):
    home.environment["HOTLAP_HOME"] = place
    if not place:  # no home at all
        for name in ("HOTLAP_HOME", "XDG_DATA_HOME", "HOME"):
            home.environment.pop(name, None)
        home.environment["HOME"] = "/proc/nowhere"
    done = home.run("sh", "-c", "echo yes; exit 5")
    assert (done.returncode, done.stdout) == (5, "yes\n")
    assert len([line for line in said(done.stderr) if "not recorded" in line]) == 1


def test_a_runtime_folder_of_somebody_else_costs_the_hook_only(home):
    home.environment.pop("XDG_RUNTIME_DIR")
    temporary = home.folder / "tmp"
    temporary.mkdir()
    (temporary / ("hotlap-%d" % os.geteuid())).symlink_to("/")
    home.environment["TMPDIR"] = str(temporary)
    done = home.run("true")
    assert done.returncode == 0
    assert any("no hook" in line for line in said(done.stderr))
    assert home.run_json()["status"] == "finished"


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no file system in memory to write to")
def test_a_home_that_goes_away_is_said_once(home, request):
    folder = tempfile.mkdtemp(dir="/dev/shm")
    request.addfinalizer(lambda: shutil.rmtree(folder))
    home.environment["HOTLAP_HOME"] = folder + "/home"
    lines = [[line for line in said(home.run("true").stderr) if "set HOTLAP_HOME" in line] for _ in range(2)]
    assert [len(found) for found in lines] == [1, 0]


def test_a_killed_watcher_is_started_again(home):
    job = home.start("sleep", "1000", stderr=subprocess.PIPE, text=True)
    first = wait_for(lambda: part_of(job.pid, "_watch"), "the watcher")
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: part_of(job.pid, "_watch") not in (None, first), "another watcher")
    job.terminate()
    _, errors = job.communicate(timeout=60)
    assert job.returncode == -signal.SIGTERM
    assert any("Can't tell" in line for line in said(errors))


def test_a_job_that_is_over_at_once_is_not_watched_live(home):
    """The recorder may say that it records when the job has ended already: whoever was started then, nobody would end."""
    seen = set()
    job = home.start("true", stderr=subprocess.PIPE, text=True)
    while job.poll() is None:
        seen |= {word for words in children(job.pid).values() if "_watch" in words for word in words}
    _, errors = job.communicate(timeout=60)
    assert job.returncode == 0
    assert "--live" not in seen
    assert any("Can't tell" in line for line in said(errors)), "the final one was there"


def test_a_transfer_inside_a_recorded_job_still_happens(home):
    """With a download of its own the inner one cannot simply become its command."""
    log = home.folder / "log"
    inner = home.words("sh", "-c", "echo job >>%s; exit 4" % log, flags=["--quiet", "--download", "echo down >>%s" % log])
    assert home.run(*inner).returncode == 4
    assert log.read_text().split() == ["down", "job"]
    assert {json.loads((run / "run.json").read_text())["exit_code"] for run in home.runs()} == {4}


def test_inside_a_recorded_job_we_only_run(home):
    """The inner one adds no second recorder."""
    done = home.run(*home.words("sh", "-c", "exit 4"))
    assert done.returncode == 4
    assert len(home.runs()) == 1


def test_ranks_of_one_launcher_share_one_recorder(home):
    ready = home.folder / "ready"
    ranks = []
    for rank in range(2):
        environment = dict(home.environment, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
                           MASTER_ADDR="localhost", MASTER_PORT="29517")
        script = "while [ ! -e %s ]; do sleep 0.05; done; echo $HOTLAP_RUN_ID" % ready
        ranks.append(subprocess.Popen(home.words("sh", "-c", script), env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True))
        if rank == 0:
            wait_for(home.runs, "the first rank's run")
    ready.touch()
    said_by = []
    ids = set()
    for process in ranks:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0
        ids.add(out.strip())
        said_by.append(said(err))
    assert len(ids) == 1
    assert len(home.runs()) == 1
    assert not said_by[1]  # once per job, not per rank


def test_download_and_upload_are_phases_and_a_failed_download_stops_the_run(home):
    log = home.folder / "log"
    done = home.run("sh", "-c", "echo job >>%s" % log,
                    flags=["--download", "echo down >>%s" % log, "--upload", "echo up >>%s" % log])
    assert done.returncode == 0
    assert log.read_text().split() == ["down", "job", "up"]
    failed = home.run("sh", "-c", "echo job >>%s" % log, flags=["--download", "exit 9"])
    assert failed.returncode == 9
    assert log.read_text().split() == ["down", "job", "up"]
    assert any("the download failed: the job was not started" in line for line in said(failed.stderr))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))


MARKED = """
import os, sys, time
import hotlap
text, rest = sys.argv[1], sys.argv[2:]
for i in range(20):
    with hotlap.span(text):
        time.sleep(0.02)
    hotlap.step()
if rest:
    os.execv(sys.executable, [sys.executable, __file__, *rest])
"""


@pytest.fixture
def marked(tmp_path):
    path = tmp_path / "marked.py"
    path.write_text(MARKED)
    return str(path)


def test_a_program_that_replaces_itself_is_recorded_on(home, marked):
    done = home.run(PYTHON, marked, "first", "second", "third", flags=["--interval", "50ms"])
    assert done.returncode == 0
    (recording,) = home.recordings()
    assert {"first", "second", "third"} <= set(column(recording, "SELECT text FROM names"))


@pytest.mark.skipif(subprocess.run(["unshare", "-pf", "--mount-proc", "true"], check=False,
                                   capture_output=True).returncode != 0, reason="may make no PID namespace")
def test_a_job_in_a_pid_namespace_of_its_own(home, marked):
    done = home.run("unshare", "-pf", "--mount-proc", PYTHON, marked, *(["step"] * 6), flags=["--interval", "50ms"])
    assert done.returncode == 0
    (recording,) = home.recordings()
    assert "step" in column(recording, "SELECT text FROM names")
    hooked = column(recording, "SELECT command FROM processes WHERE has_hook")
    assert len(hooked) == 1 and marked in hooked[0]  # under the pid that it has here, so that its command is known
