"""What the tests of our processes share: a private home, the program, and looking at runs and processes."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import time

HOTLAP = os.environ["HOTLAP"]
PYTHON = "/usr/bin/python3"
GIVE_UP_S = 60  # far beyond what anything here takes: a test that waits so long has failed


class Home:
    """A home and a runtime folder of their own, so that tests meet neither each other nor a user's runs."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        self.home = self.folder / "home"
        foreign = ("HOTLAP", "SLURM", "RANK", "OMPI")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self.environment.update(HOTLAP_HOME=str(self.home), XDG_RUNTIME_DIR=str(self.runtime))

    def words(self, *job, flags=()):
        return [HOTLAP, "run", *flags, "--", *job]

    def start(self, *job, flags=(), **options):
        return subprocess.Popen(self.words(*job, flags=flags), env=self.environment, **options)

    def run(self, *job, flags=(), **options):
        options.setdefault("timeout", GIVE_UP_S)
        return subprocess.run(self.words(*job, flags=flags), env=self.environment, capture_output=True,
                              text=True, check=False, **options)

    def runs(self):
        return sorted((self.home / "runs").iterdir()) if (self.home / "runs").exists() else []

    def run_json(self):
        (run,) = self.runs()
        return json.loads((run / "run.json").read_text())

    def recordings(self):
        return [f for run in self.runs() for f in sorted(run.glob("*.hotlap"))]


def shown(home):
    """The run as a reader sees it."""
    done = subprocess.run([HOTLAP, "show", "--json", "last"], env=home.environment, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=GIVE_UP_S)
    return json.loads(done.stdout or "null")


def wait_for(condition, what):
    until = time.monotonic() + GIVE_UP_S
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("waited in vain for " + what)


def children(pid):
    """Direct children, as {pid: command line}."""
    found = {}
    for tasks in pathlib.Path("/proc/%d/task" % pid).glob("*/children"):
        for child in tasks.read_text().split():
            found[int(child)] = command_line(int(child))
    return found


def command_line(pid):
    try:
        return pathlib.Path("/proc/%d/cmdline" % pid).read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


def is_alive(pid):
    try:
        return pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def state_of(pid):
    return pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0]


def part_of(supervisor, word):
    """The pid of our process with `word` on its command line; None while there is none."""
    for pid, words in children(supervisor).items():
        if word in words:
            return pid
    return None


def committed_tables(path):
    """Opens a recording as SQLite would after a crash and checks it; the names of its tables."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), path
        return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}


def column(path, query):
    """The first column of a query on a recording that may still be written; [] while it has no such table."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        try:
            return [row[0] for row in connection.execute(query)]
        except sqlite3.OperationalError:
            return []


def said(text):
    """Our own lines of a standard error."""
    return [line for line in text.splitlines() if line.startswith("hotlap:")]


def kill_quietly(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
