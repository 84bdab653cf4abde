"""In a terminal the job has everything that it would have without us: size, Ctrl-C, Ctrl-Z and fg, raw mode, input."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pytest
from processes import GIVE_UP_S, HOTLAP, PYTHON, is_alive, part_of, wait_for


class Terminal:
    """A shell in a terminal of its own, as a person has it."""

    def __init__(self, environment, words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(words[0], words, environment)
        self.text = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def see(self, pattern):
        """Waits until the output has `pattern`; what came up to its end is used up."""
        until = time.monotonic() + GIVE_UP_S
        while True:
            found = re.search(pattern, self.text)
            if found:
                self.text = self.text[found.end():]
                return found
            assert time.monotonic() < until, "no %r in %r" % (pattern, self.text)
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    raise AssertionError("no %r before the end of %r" % (pattern, self.text)) from None

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def foreground(self):
        return struct.unpack("i", fcntl.ioctl(self.fd, termios.TIOCGPGRP, b"\0\0\0\0"))[0]

    def close(self):
        os.close(self.fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


@pytest.fixture
def shell(home):
    home.environment.update(PS1="> ", HISTFILE="/dev/null", H=HOTLAP, P=PYTHON, TERM="dumb")
    terminal = Terminal(home.environment, ["bash", "--norc", "--noprofile", "-i"])
    terminal.see("> ")
    yield terminal
    terminal.close()


def run(terminal, script, before="", after=""):
    terminal.type("%s$H run --quiet -- $P -S -u -c '%s'%s\n" % (before, script, after))


SIZES = """
import os, signal
signal.signal(signal.SIGWINCH, lambda n, f: print("size=%dx%d" % os.get_terminal_size()))
print("size=%dx%d" % os.get_terminal_size())
while True: signal.pause()
"""


def test_the_job_sees_the_terminals_size_and_its_changes(shell):
    shell.resize(30, 90)
    run(shell, SIZES)
    shell.see("size=90x30")
    shell.resize(40, 133)
    shell.see("size=133x40")
    shell.type("\x03")
    shell.see("> ")


INTERRUPTED = """
import signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda n, f: (seen.append(n), print("got %d" % len(seen))))
print("rea" + "dy")
while len(seen) < 2: time.sleep(0.01)
time.sleep(0.3)
sys.exit(10 + len(seen))
"""


def test_ctrl_c_reaches_the_job_once_each_time_and_the_job_decides(shell):
    run(shell, INTERRUPTED)
    shell.see("ready")
    shell.type("\x03")
    shell.see("got 1")
    shell.type("\x03")
    shell.see("got 2")
    shell.see("> ")
    shell.type("echo code=$?\n")
    shell.see("code=12\r")


def test_a_job_that_ctrl_c_ends_ends_the_script_around_it(shell):
    """The shell of a loop must see that its command died of SIGINT."""
    shell.type("for i in 1 2 3; do echo turn=$i; $H run --quiet -- sleep 1000; done; echo over\n")
    shell.see("turn=1\r")
    time.sleep(0.3)
    shell.type("\x03")
    shell.see("> ")
    shell.type("echo code=$?\n")
    found = shell.see("(turn=2|code=(\\d+)\r)")
    assert found[2] == "130"


def test_ctrl_z_and_fg(shell):
    run(shell, 'print("rea"+"dy")\nfor line in iter(input, "end"): print("li" + "ne", line)')
    shell.see("ready")
    shell.type("\x1a")
    shell.see("Stopped")
    shell.see("> ")
    shell.type("jobs\n")
    shell.see("Stopped")
    shell.type("fg\n")
    shell.see("run --quiet")
    shell.type("abc\n")
    shell.see("line abc")
    shell.type("end\n")
    shell.see("> ")


def test_in_the_background_and_killed_by_the_shell(shell, home):
    script = 'import signal, time\\nsignal.signal(15, lambda n, f: print("te" + "rm"))\\nprint("rea" + "dy")\\n' \
             'while True: time.sleep(1000)'
    (home.folder / "job.py").write_text(script.replace("\\n", "\n"))
    shell.type("$H run --quiet -- $P -S -u %s &\n" % (home.folder / "job.py"))
    shell.see("ready")
    time.sleep(0.3)
    shell.type("kill %1\n")
    shell.see("term")
    shell.type("echo mar''ker\n")
    seen = shell.see("(?s)(.*)marker")[1]
    assert "term" not in seen  # once, although shell and supervisor both stand between
    shell.type("kill -9 %1; wait %1\n")  # the shell says what became of it before the prompt that follows its end
    shell.see("Killed")


def test_raw_mode_and_input_are_the_jobs(shell):
    run(shell, 'import sys, tty\ntty.setraw(0)\nprint("rea" + "dy")\n'
               'print([sys.stdin.buffer.raw.read(1) for _ in "123"])')
    shell.see("ready")
    shell.type("\x03\x1aq")
    shell.see(re.escape(r"[b'\x03', b'\x1a', b'q']"))


def test_a_pipeline_keeps_the_terminal(shell):
    """A pager behind us needs the terminal as much as we do."""
    shell.type("$H run --quiet -- seq 3 | { cat; read answer </dev/tty; echo answer=$answer; }\n")
    shell.see("3\r\n")
    shell.type("yes\n")
    shell.see("answer=yes\r")


def test_the_job_keeps_the_terminal_when_the_supervisor_is_killed(shell, home):
    run(shell, SIZES)
    shell.see("size=")
    supervisor = wait_for(lambda: part_of(shell.pid, "run"), "the supervisor")
    job = wait_for(lambda: part_of(supervisor, "-u"), "the job")
    os.kill(supervisor, signal.SIGKILL)
    shell.see("Killed")
    assert is_alive(job)
    os.kill(job, signal.SIGWINCH)
    shell.see("size=")
    os.kill(job, signal.SIGKILL)
