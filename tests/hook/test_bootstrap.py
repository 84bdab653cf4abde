"""How the hook gets into a process, and what it must leave as it was. No torch needed."""
import ast
import os
import pathlib
import subprocess
import tempfile

import pytest
from harness import BOOTSTRAP, PYTHON, SOURCE, Program, execute, w

MARKS = """
import hotlap
for _ in range(3):
    hotlap.step()
"""


def chained(tmp_path, text):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("text", [
    "print('theirs')\nMARK = 7\n", "raise RuntimeError('theirs is broken')\n", "import no_such_module\n",
    "import sys\nprint(sys.path[1:3], __name__, __file__)\n",
])
def test_the_sitecustomize_behind_ours_runs_as_if_alone(tmp_path, text):
    env = chained(tmp_path, text)
    Program(tmp_path, """
import sys
found = sys.modules.get("sitecustomize")
print(found is not None, getattr(found, "MARK", None), getattr(found, "__file__", None))
print([p for p in sys.path if "bootstrap" in p])
try:
    import sitecustomize
    print(sitecustomize is found)
except Exception as error:
    print(type(error), error)
""", prelude="").run(env=env)


def test_no_other_sitecustomize(tmp_path):
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(tmp_path / "v")], check=True)
    body = """
import sys
print("sitecustomize" in sys.modules)
"""
    Program(tmp_path, body, prelude="").run(python=str(tmp_path / "v" / "bin" / "python"))


def test_path_and_modules_stay_as_they_are(tmp_path):
    Program(tmp_path, """
import sys
print(sys.path)
print(sorted(m for m in sys.modules if "hotlap" not in m))
import importlib.util
print(importlib.util.find_spec("json").origin)
""", prelude="").run()


def test_children_are_seen_too(tmp_path):
    outcome = Program(tmp_path, """
import subprocess, sys
subprocess.run([sys.executable, "-c", "print('child')"], check=True)
""", prelude="").run()
    assert len(outcome.ons) == 2


def test_a_module_of_the_program_named_hotlap_stays_its_own(tmp_path):
    (tmp_path / "hotlap.py").write_text("def step():\n    print('my own step')\n")
    outcome = Program(tmp_path, "import hotlap\nhotlap.step()\n", prelude="").run()
    assert outcome.rings == []
    assert [text.split(":")[0] for text in outcome.offs.values()] == ["name-taken"]


def test_import_errors_and_loaders_of_torch_look_as_without_us(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("import sys\nprint(__loader__.name, __spec__.loader is __loader__)\n"
                                         "if len(sys.argv) > 1:\n    1 / 0\n")
    program = Program(tmp_path, """
import importlib.util
spec = importlib.util.find_spec("torch")
print(spec.name, spec.origin.endswith("__init__.py"))
try:
    import torch
except ZeroDivisionError:
    import torch
import pkgutil
print(type(torch.__loader__).__name__, len(pkgutil.get_data("torch", "__init__.py")))
""", prelude="")
    assert program.run().code == 0
    assert program.run(arguments=["x"]).code == 1


def marks(tmp_path, ring_dir, env=None):
    program = Program(tmp_path, MARKS, prelude="")
    return execute([PYTHON, str(program.path)], tmp_path, ring_dir, env)


def test_a_folder_that_is_not_ours_alone_is_not_used(tmp_path):
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        assert marks(tmp_path, name, {"PYTHONPATH": str(SOURCE)}) == (0, "", "")
        (left,) = os.listdir(name)
        assert pathlib.Path(name, left).read_text().strip() == "ring-folder: others may enter it"
    assert marks(tmp_path, tmp_path / "missing", {"PYTHONPATH": str(SOURCE)}) == (0, "", "")
    (tmp_path / "file").write_text("")
    assert marks(tmp_path, tmp_path / "file", {"PYTHONPATH": str(SOURCE)}) == (0, "", "")


def test_a_ring_that_cannot_be_allocated_says_why(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs to mount a small file system")
    small = tmp_path / "small"
    small.mkdir()
    command = ("mount -t tmpfs -o size=64k,mode=700 none %s && %s && ls %s && cat %s/*.off" %
               (small, "PYTHONPATH=%s HOTLAP_RING_DIR=%s %s -c '%s'" % (BOOTSTRAP, small, PYTHON, MARKS.strip()),
                small, small))
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("no mount namespaces here")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert "ring-allocation: No space left on device" in lines[-1]
    assert not any(line.endswith((".ring", ".new")) for line in lines)


def test_marks_without_the_recorder_do_nothing(tmp_path):
    program = Program(tmp_path, MARKS + """
hotlap.count("x", 1)
with hotlap.span("y"):
    pass
print(hotlap.recorded(), hotlap.attach())
""", prelude="")
    assert execute([PYTHON, str(program.path)], tmp_path, None, {"PYTHONPATH": str(SOURCE)}) == (
        0, "False False\n", "")


def test_commands_turn_the_hook_off_and_on_and_are_answered(tmp_path):
    """The recorder writes a command word; the hook obeys at the end of a step."""
    ring = Program(tmp_path, """
import glob, os, hotlap
from hotlap import _wire as w
def send(code, request):
    path = glob.glob(os.environ["HOTLAP_RING_DIR"] + "/%d-*.ring" % os.getpid())[0]
    with open(path, "r+b") as file:
        file.seek(w.COMMAND_WORD * 8)
        file.write((request << 16 | code).to_bytes(8, "little"))
hotlap.step()
for request, code in enumerate((w.COMMAND_PING, w.COMMAND_PROFILE, 99, w.COMMAND_OFF), 1):
    send(code, request)
    hotlap.step()
    from hotlap import _hook
    ring = _hook.parts()[0].ring
    print(ring.words[w.ANSWER_WORD] == request << 16 | code, ring.words[w.ANSWER_RESULT])
    assert ring.words[w.ANSWER_WORD] == request << 16 | code
print(_hook.parts()[1].busy)
""", prelude="").run(env={"PYTHONPATH": str(SOURCE)}, compare=False)
    assert ring.out == "True 0\nTrue 2\nTrue 1\nTrue 0\n2\n", ring.err
    assert len(ring.main().spans(w.STEP)) == 5


def python_of(version):
    """The path of that Python; skips where there is none that starts."""
    name = "python" + version
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = str(pathlib.Path(folder) / name)
        if os.path.exists(found) and subprocess.run([found, "-c", "pass"], capture_output=True).returncode == 0:
            return found
    return pytest.skip("no %s here" % name)


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13", "3.14"])
def test_other_pythons(tmp_path, version):
    """Whatever Python the machine has: the marks work and nothing is printed."""
    outcome = Program(tmp_path, MARKS + "print('done')", prelude="").run(
        python=python_of(version), flags=["-W", "error"], env={"PYTHONPATH": str(SOURCE)})
    assert outcome.out == "done\n"
    assert len(outcome.main().spans(w.STEP)) == 3


@pytest.mark.parametrize("version", ["2.7", "3.5", "3.6", "3.7"])
def test_pythons_that_are_too_old_notice_nothing(tmp_path, version):
    found = python_of(version)
    outcome = Program(tmp_path, "print('done')\nimport hotlap\n", prelude="").run(
        python=found, flags=["-W", "error"], env={"PYTHONPATH": str(tmp_path / "nothing")})
    assert outcome.out == "done\n"
    assert outcome.rings == []
    if version in ("3.6", "3.7"):  # the first steps can be read there
        assert list(outcome.offs.values()) == ["python: %s is older than 3.8 " % version]


def test_what_every_python_reads_is_written_in_words_that_all_know():
    tree = ast.parse((BOOTSTRAP / "sitecustomize.py").read_text())
    newer = (ast.AnnAssign, ast.arg, ast.JoinedStr, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal, ast.Starred)
    assert not [ast.dump(node) for node in ast.walk(tree) if isinstance(node, newer)]
    assert not [node.name for node in ast.walk(tree) if getattr(node, "returns", None)]


def test_numbers_that_no_figure_can_hold_cost_nothing_else(tmp_path):
    ring = Program(tmp_path, """
import hotlap
for i in range(200):
    hotlap.count("huge", 10 ** 400)
    hotlap.count("large", 2 ** 70)
    hotlap.step()
""", prelude="").run(compare=False).main()
    assert len(ring.spans(w.STEP)) == 200
    assert {c["value"] for c in ring.records if c["type"] == "count"} == {2.0 ** 70}


def test_a_new_recorder_gets_names_settings_and_the_phase(tmp_path):
    """The reader's place is taken by the program itself, which looks into its own ring."""
    ring = Program(tmp_path, """
import glob, mmap, os, struct, time
import hotlap
def work(i):
    with hotlap.span("work"):
        pass
    hotlap.count("loss", i)
    hotlap.step()
for i in range(10):
    work(i)
for path in glob.glob(os.environ.get("HOTLAP_RING_DIR", "/nowhere") + "/*.ring"):
    with open(path, "r+b") as file:
        page = mmap.mmap(file.fileno(), 4096)
    page[1152:1160] = page[1024:1032]
    page[512:520] = struct.pack("<Q", 1 << 16 | 5)
work(10)
""", prelude="").run(compare=False).main()
    assert set(ring.names.values()) == {"work", "loss"}
    assert "python" in ring.infos()
    assert ring.answer == (1 << 16 | 5, w.ANSWER_DONE)
    assert ring.phase == w.PHASE_FINALISATION
    assert [c["value"] for c in ring.records if c["type"] == "count"] == [10.0]
