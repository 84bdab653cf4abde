"""`hotlap record` attaches to what runs; `hotlap set` changes a live recording."""
import json
import resource
import signal
import subprocess

import pytest
from processes import GIVE_UP_S, HOTLAP, part_of, shown, state_of, wait_for


def hotlap(home, *words):
    return subprocess.run([HOTLAP, *words], env=home.environment, capture_output=True, text=True,
                          check=False, timeout=GIVE_UP_S)


def test_a_running_process_is_recorded_until_it_ends(home):
    job = subprocess.Popen(["sh", "-c", "sleep 1000; true"])
    recording = subprocess.Popen([HOTLAP, "record", "--pid", str(job.pid), "--interval", "20ms", "--name", "seen"],
                                 env=home.environment, stderr=subprocess.PIPE, text=True)
    assert "recording process %d (seen)" % job.pid in recording.stderr.readline()
    wait_for(home.recordings, "its file")
    job.kill()
    job.wait()
    assert recording.wait(GIVE_UP_S) == 0
    info = home.run_json()
    assert (info["status"], info["exit_code"], info["name"]) == ("ended", None, "seen")
    page = hotlap(home, "show", "last").stdout
    assert "sleep 1000" in page and "ended, exit code not known" in page


def test_a_process_that_goes_on_without_us_has_not_ended(home):
    job = subprocess.Popen(["sleep", "1000"])
    recording = subprocess.Popen([HOTLAP, "record", "--pid", str(job.pid), "--quiet"], env=home.environment)
    wait_for(home.recordings, "its file")
    recording.send_signal(signal.SIGINT)
    assert recording.wait(GIVE_UP_S) == 0
    job.kill()
    job.wait()
    assert home.run_json()["status"] == "unknown"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_what_ends_a_program_at_a_terminal_ends_a_recording_in_order(home, number):
    recording = subprocess.Popen([HOTLAP, "record", "--host", "--quiet"], env=home.environment)
    wait_for(home.recordings, "its file")
    recording.send_signal(number)
    assert recording.wait(GIVE_UP_S) == 0
    assert home.run_json()["status"] == "finished"


def test_under_nohup_a_recording_outlives_its_terminal(home):
    recording = subprocess.Popen(["nohup", HOTLAP, "record", "--host", "--quiet"], env=home.environment,
                                 stderr=subprocess.DEVNULL)
    wait_for(lambda: shown(home) and shown(home)["recordings"], "its file")
    recording.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        recording.wait(1)
    recording.terminate()
    assert recording.wait(GIVE_UP_S) == 0


def test_a_process_that_has_ended_already_is_not_recorded(home):
    job = subprocess.Popen(["true"])
    wait_for(lambda: state_of(job.pid) == "Z", "its end")
    done = hotlap(home, "record", "--pid", str(job.pid))
    job.wait()
    assert done.returncode == 1
    assert done.stderr == "hotlap record: process %d has ended; its parent has not asked how\n" % job.pid
    assert home.runs() == []


def test_a_killed_recording_of_the_machine_is_not_shown_as_running(home):
    recording = subprocess.Popen([HOTLAP, "record", "--host", "--quiet"], env=home.environment)
    wait_for(lambda: shown(home) and shown(home)["recordings"], "its file")
    assert shown(home)["run"]["status"] == "running"
    recording.kill()
    recording.wait()
    wait_for(lambda: shown(home)["run"]["status"] == "unknown", "its end to be seen")


def test_the_machine_is_recorded_until_a_signal(home):
    recording = subprocess.Popen([HOTLAP, "record", "--host", "--quiet"], env=home.environment, stderr=subprocess.PIPE)
    wait_for(home.recordings, "its file")
    recording.send_signal(signal.SIGINT)
    assert recording.wait(GIVE_UP_S) == 0
    assert recording.stderr.read() == b""
    assert home.run_json()["status"] == "finished"


def test_what_is_set_for_run_holds_for_record_too(home):
    home.home.mkdir(mode=0o700)
    (home.home / "config.toml").write_text('interval = "50ms"\nname = "from the file"\nprice = 2.5\nquiet = true\n')
    job = subprocess.Popen(["sleep", "1000"])
    recording = subprocess.Popen([HOTLAP, "record", "--pid", str(job.pid), "--name", "by hand"], env=home.environment,
                                 stderr=subprocess.PIPE)
    wait_for(home.recordings, "its file")
    job.kill()
    job.wait()
    assert recording.wait(GIVE_UP_S) == 0
    assert recording.stderr.read() == b""
    info = home.run_json()
    assert (info["interval_ns"], info["name"]) == ("50000000", "by hand")
    assert (info["price"]["per_hour"], info["price"]["source"]) == (2.5, "configuration")


def test_a_recording_that_cannot_be_made_is_no_running_one(home):
    """No file may have more than 2 KiB here: enough for run.json, not for a recording."""
    job = subprocess.Popen(["sleep", "1000"])
    done = subprocess.run([HOTLAP, "record", "--pid", str(job.pid)], env=home.environment, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=GIVE_UP_S,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)))
    assert done.returncode == 1
    assert "cannot make the recording" in done.stderr
    assert home.run_json()["status"] == "unknown"
    assert home.run_json()["end_wall_ns"] is not None
    job.kill()
    job.wait()


@pytest.mark.parametrize("words, code, line", [
    (["record"], 2, "give either --pid P or --host"),
    (["record", "--pid", "1", "--host"], 2, "give either --pid P or --host"),
    (["record", "--pid", "4194303"], 1, "there is no process 4194303"),
    (["record", "--pid", "1", "--price", "0"], 2, "--price 0 is out of range"),
    (["record", "--pid", "1", "--price", "1", "--instance", "g5.2xlarge"], 2, "exclude each other"),
    (["set", "last"], 2, "nothing to set: give --interval"),
    (["set", "last", "--interval", "1ms"], 2, "--interval"),
])
def test_wrong_use_is_one_line(home, words, code, line):
    done = hotlap(home, *words)
    assert done.returncode == code
    assert line in done.stderr
    assert done.stderr.count("\n") == 1
    assert home.runs() == []


def test_the_interval_of_a_live_run_can_be_changed(home):
    job = home.start("sleep", "1000", flags=["--quiet", "--interval", "10s"])
    wait_for(lambda: part_of(job.pid, "_recorder") and home.recordings(), "the recorder")
    wait_for(lambda: [run for run in home.runs() if (run / "control").exists()], "its control")
    done = hotlap(home, "set", "last", "--interval", "20ms")
    assert done.returncode == 0, done.stderr
    assert home.run_json()["interval_ns"] == "20000000"
    wait_for(lambda: "interval" in json.dumps([r["events"] for r in shown(home)["recordings"]]), "the event")
    job.terminate()
    job.wait(GIVE_UP_S)
    ended = hotlap(home, "set", "last", "--interval", "20ms")
    assert ended.returncode == 1
    assert "is not being recorded" in ended.stderr
