"""What bash and zsh offer, asked of the shells themselves."""
import json
import os
import shutil
import subprocess

import pytest

HOTLAP = os.environ["HOTLAP"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a run whose name can be typed, and one whose name a shell would execute."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("plain-1.0", "$(touch pwned); x"):
        subprocess.run([HOTLAP, "run", "--quiet", "--name", name, "--", "true"], check=True, timeout=60,
                       env={**os.environ, "HOTLAP_HOME": str(folder)})
    return folder


def offered(home, *words, shell="bash"):
    """What the last of `words` is completed with."""
    script = subprocess.run([HOTLAP, "completion", shell], check=True, timeout=60, capture_output=True, text=True).stdout
    ask = script + '\nCOMP_WORDS=("$@")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_hotlap\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    environment = {**os.environ, "HOTLAP_HOME": str(home),
                   "PATH": os.path.dirname(os.path.abspath(HOTLAP)) + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(["bash", "--norc", "-c", ask, "bash", "hotlap", *words], env=environment, cwd=str(home),
                          timeout=60, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_but_no_internal_ones(home):
    words = offered(home, "")
    assert {"run", "why", "doctor", "completion"} <= set(words)
    assert not [word for word in words if word.startswith("_")]
    assert offered(home, "do") == ["doctor"]


def test_flags_of_the_command(home):
    assert "--interval" in offered(home, "run", "--")
    assert "--interval" not in offered(home, "why", "--")
    assert offered(home, "run", "--interval", "") == []  # its value is the user's


def test_runs_by_name_or_id_and_nothing_that_a_shell_would_execute(home):
    ids = {run["name"]: run["id"] for run in json.loads(subprocess.run(
        [HOTLAP, "ls", "--json"], check=True, timeout=60, capture_output=True, text=True,
        env={**os.environ, "HOTLAP_HOME": str(home)}).stdout)["runs"]}
    assert offered(home, "why", "") == ["last", ids["$(touch pwned); x"], "plain-1.0"]
    assert offered(home, "why", "pl") == ["plain-1.0"]
    assert not (home / "pwned").exists()


def test_the_jobs_own_command_is_left_to_the_shell(home):
    assert "true" in offered(home, "run", "--name", "x", "--", "tru")
    assert offered(home, "run", "--", "python3", "--inter") == []


def test_the_words_of_a_choice(home):
    assert offered(home, "completion", "") == ["bash", "zsh"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_its_script():
    ask = "autoload -U compinit && compinit -D -u; source <(%s completion zsh); print -r -- ${_comps[hotlap]}"
    done = subprocess.run(["zsh", "-f", "-c", ask % HOTLAP], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert "_hotlap" in done.stdout


def test_another_shell_is_one_line_and_2():
    done = subprocess.run([HOTLAP, "completion", "fish"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "hotlap completion: no completion for 'fish': give bash or zsh\n"
