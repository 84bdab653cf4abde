"""`pip install hotlap` is all that a user needs: the program on PATH, the hook in every Python of a recorded job."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(os.environ.get("HOTLAP_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = os.environ.get("HOTLAP_BUILD_DIR", str(ROOT / "build" / "dev"))
SCRIPT = "import hotlap; print('recorded', hotlap.recorded())"


def call(*command, **more_environment):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HOTLAP", "PYTHON"))}
    environment.update(more_environment)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    call("cmake", "--install", BUILD, "--prefix", str(folder / "stage"), "--strip")
    call(sys.executable, "-B", str(ROOT / "tools" / "make_dist.py"), str(folder / "stage"), str(folder / "dist"))
    made = subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], capture_output=True)
    if made.returncode != 0:
        pytest.skip("this Python has no venv")
    (wheel,) = (folder / "dist").glob("*.whl")
    call(str(folder / "venv" / "bin" / "pip"), "install", "-q", "--no-index", str(wheel))
    return folder / "venv" / "bin"


def test_the_program_is_there_and_says_its_version(environment):
    assert call(str(environment / "hotlap"), "version").startswith("hotlap ")


@pytest.mark.parametrize("prefix", [[], ["env", "-u", "PYTHONPATH"]], ids=["as it is", "PYTHONPATH taken away"])
def test_a_recorded_job_has_the_hook(environment, tmp_path, prefix):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT + "\n")
    job = [*prefix, str(environment / "python"), str(script)]
    out = call(str(environment / "hotlap"), "run", "--", *job, HOTLAP_HOME=str(tmp_path / "home"))
    assert out == "recorded True\n"


def test_a_job_that_is_not_recorded_runs_as_without_us(environment):
    assert call(str(environment / "python"), "-W", "error", "-c", SCRIPT) == "recorded False\n"


def test_the_observers_are_found_beside_the_program(environment, tmp_path):
    said = call(str(environment / "hotlap"), "run", "--no-hook", "--observe", "nvtx", "--", "sh", "-c",
                'echo "$NVTX_INJECTION64_PATH"', HOTLAP_HOME=str(tmp_path / "home"))
    library = pathlib.Path(said.strip())
    assert library.is_file() and library.parent == environment.parent / "lib" / "hotlap"
