"""End to end with real PyTorch: a training job is recorded, judged, and recorded again as advised."""
import json
import os
import re
import subprocess
import sys

import jsonschema
import pytest

HOTLAP = os.environ["HOTLAP"]
SOURCE = os.environ["HOTLAP_SOURCE_DIR"]
with open(os.path.join(SOURCE, "docs/reference/analyze-schema.json"), encoding="utf-8") as _file:
    SCHEMA = json.load(_file)
TRAIN = os.path.join(SOURCE, "examples/train_images.py")
STEPS_PER_EPOCH = 10
EPOCHS = 5


def train_command(num_workers: int, blur_passes: int = 60) -> list:
    return [sys.executable, TRAIN, "--images", str(8 * STEPS_PER_EPOCH), "--batch-size", "8", "--epochs", str(EPOCHS),
            "--blur-passes", str(blur_passes), "--num-workers", str(num_workers)]


def run(home, *arguments, **settings):
    environment = {**os.environ, "HOTLAP_HOME": str(home)}
    environment.pop("PYTHONPATH", None)
    return subprocess.run([HOTLAP, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=240, **settings)


def without_speed(text: str) -> str:
    """The job's output with its own timing figures, which differ from run to run, left out."""
    return re.sub(r"\d+ images/s", "N images/s", text)


def analysis(home, run_name: str) -> dict:
    done = run(home, "analyze", run_name, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, SCHEMA)
    return document


def run_id(home, run_name: str) -> str:
    return json.loads(run(home, "show", run_name, "--json").stdout)["run"]["id"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with one recorded run, `before`, of the training without loader workers."""
    folder = tmp_path_factory.mktemp("home")
    done = run(folder, "run", "--name", "before", "--", *train_command(0))
    assert done.returncode == 0, done.stderr
    (folder / "before.out").write_text(done.stdout, encoding="utf-8")
    (folder / "before.err").write_text(done.stderr, encoding="utf-8")
    return folder


def test_the_job_prints_what_it_prints_without_us(home):
    alone = subprocess.run(train_command(0), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    assert without_speed((home / "before.out").read_text()) == without_speed(alone.stdout)


def test_every_step_is_recorded(home):
    steps = analysis(home, "before")["steps"]
    assert steps["count_all"] == STEPS_PER_EPOCH * EPOCHS
    assert not steps["inferred"]
    assert steps["count"] >= 30


def test_the_breakdown_adds_up_and_names_the_wait(home):
    breakdown = analysis(home, "before")["steps"]["breakdown_pct"]
    assert sum(share for share in breakdown.values() if share is not None) == pytest.approx(100, abs=0.5)
    assert breakdown["data_wait"] > 40
    assert breakdown["communication"] is None  # one process: nothing to measure, so missing and not 0


def test_the_verdict_names_the_loader_and_what_to_do(home):
    document = analysis(home, "before")
    assert document["run"]["status"] == "finished"
    assert document["run"]["grade"] == "A"
    assert document["verdict"]["kind"] == "finding"
    finding = document["findings"][0]
    assert finding["rule"] == "InputBound"
    assert finding["certainty"] in ("certain", "likely")  # likely where other programs take the cores
    change = finding["advice"][0]["change"]
    assert re.search(r"num_workers=[1-9]", change), change
    low, high = finding["advice"][0]["step_ms_low"], finding["advice"][0]["step_ms_high"]
    if low is None:  # other programs may take all of the gain: no figure, and the reason
        assert high is None and any("other programs" in limit for limit in finding["limits"])
    else:
        assert low <= high <= document["steps"]["mean_ms"]
    printed = document["verdict"]["text"].splitlines()
    assert max(map(len, printed)) <= 110
    lines = [line for line in printed if not line.startswith(" " * 8)]  # what does not fit goes on below its text
    assert 3 <= len(lines) <= 5
    assert [line.split()[0] for line in lines[1:4]] == ["why", "do", "gain"]
    # The same words on stderr at the end of the run, marked as ours; nothing of ours on stdout.
    assert lines[0] in (home / "before.err").read_text()
    assert "hotlap" not in (home / "before.out").read_text()


def test_why_answers_for_a_finished_run(home):
    done = run(home, "why", "before")
    assert done.returncode == 0
    assert analysis(home, "before")["verdict"]["text"].splitlines()[0] in done.stdout


def test_the_next_run_of_the_script_is_compared_with_this_one(home):
    document = analysis(home, "before")
    workers = re.search(r"num_workers=(\d+)", document["findings"][0]["advice"][0]["change"]).group(1)
    done = run(home, "run", "--name", "after", "--", *train_command(int(workers)))
    assert done.returncode == 0, done.stderr
    previous = analysis(home, "after")["previous"]
    assert previous["id"] == document["run"]["id"]
    assert previous["step_ms"] == pytest.approx(document["steps"]["mean_ms"])
    assert previous["predicted_ms_low"] == pytest.approx(document["findings"][0]["advice"][0]["step_ms_low"])
    assert "vs previous run" in done.stderr


def test_a_job_that_is_too_short_gets_no_verdict(home):
    command = train_command(0)
    command[command.index("--epochs") + 1] = "1"
    done = run(home, "run", "--name", "short", "--", *command)
    assert done.returncode == 0
    assert analysis(home, "short")["verdict"]["kind"] == "too_short"


def test_the_file_of_config_reaches_the_verdict_in_the_run_folder(home, tmp_path):
    config = tmp_path / "never.toml"
    config.write_text("[rules.InputBound]\nwait_pct = 100\n", encoding="utf-8")
    done = run(home, "run", "--name", "configured", "--config", os.path.relpath(config), "--", *train_command(0))
    assert done.returncode == 0, done.stderr
    with_the_file = json.loads((home / "runs" / run_id(home, "configured") / "verdict.json").read_text())
    assert "InputBound" not in [finding["rule"] for finding in with_the_file["findings"]]
    assert "InputBound" in [finding["rule"] for finding in analysis(home, "configured")["findings"]]


def test_without_the_hook_it_is_grade_b_and_says_what_it_needs(home):
    done = run(home, "run", "--name", "blind", "--no-hook", "--", *train_command(0))
    assert done.returncode == 0
    document = analysis(home, "blind")
    assert document["run"]["grade"] == "B"
    assert document["steps"]["median_ms"] is None
    assert all(share is None for share in document["steps"]["breakdown_pct"].values())
    assert document["verdict"]["kind"] == "cannot_tell"
    assert "hook" in document["verdict"]["text"]


def test_a_failing_job_keeps_its_exit_code_and_is_recorded_as_failed(home):
    done = run(home, "run", "--name", "failing", "--", sys.executable, "-c", "import sys; sys.exit(37)")
    assert done.returncode == 37
    assert analysis(home, "failing")["run"]["status"] == "failed"
