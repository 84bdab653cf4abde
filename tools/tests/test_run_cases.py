"""The scenario runner runs, compares, replaces and updates; a stand-in plays the program."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "run_cases.py"
PROGRAM = """#!/bin/bash
echo "hotlap 1.2.3 in $PWD at 2026-08-01T10:00:00Z, run 01J5KZ8QW3VYT2N4M6P8R0S1A7, home $HOTLAP_HOME"
[ ! -e input ] || cat input
[ "${1:-}" != fail ] || { echo "no such run" >&2; exit 2; }
"""


class RunCases(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.program = self.root / "bin" / "hotlap"
        self.program.parent.mkdir()
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def case(self, name: str, **files: str) -> pathlib.Path:
        folder = self.root / "cases" / name
        folder.mkdir(parents=True)
        for key, text in files.items():
            (folder / key.replace("__", ".")).write_text(text)
        return folder

    def run_cases(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, str(RUNNER), "--hotlap", str(self.program), "--cases", str(self.root / "cases")]
        return subprocess.run([*command, *arguments], capture_output=True, text=True)

    def test_output_is_compared_after_replacing_what_changes(self) -> None:
        self.case("good", cmd="hotlap; touch $HOTLAP_SOURCE_DIR/LICENSE 2>/dev/null", input="abc\n",
                  expected__out="hotlap <version> in <dir> at <time>, run <id>, home <home>\nabc\n")
        done = self.run_cases()
        self.assertEqual((done.returncode, done.stdout), (0, "1 cases passed, 0 failed\n"))

    def test_a_difference_in_output_error_status_or_file_fails(self) -> None:
        self.case("a", cmd="echo x")
        self.case("b", cmd="echo x >&2")
        self.case("c", cmd="exit 3")
        self.case("d", cmd="echo new > f", expected__file__f="old\n")
        self.case("e", cmd="true", expected__file__f="old\n")
        done = self.run_cases()
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 cases passed, 5 failed", done.stdout)
        for part in ("FAILED a", "+x", "-0\n+3", "-old\n+new", "+(no such file)"):
            self.assertIn(part, done.stdout)

    def test_update_writes_what_then_passes(self) -> None:
        folder = self.case("fails", cmd="hotlap fail", expected__code="0\n")
        self.assertEqual(self.run_cases("--update").returncode, 0)
        self.assertEqual((folder / "expected.code").read_text(), "2\n")
        self.assertEqual((folder / "expected.err").read_text(), "no such run\n")
        self.assertEqual(self.run_cases().returncode, 0)

    def test_own_normalisations(self) -> None:
        self.case("own", cmd="echo took 12.5 s", normalise="# times\ntook [0-9.]+ => took <n>\n",
                  expected__out="took <n> s\n")
        self.assertEqual(self.run_cases().returncode, 0)

    def test_nothing_to_run_is_a_failure(self) -> None:
        self.case("a", cmd="true")
        self.assertEqual(self.run_cases("nowhere").returncode, 2)


if __name__ == "__main__":
    unittest.main()
