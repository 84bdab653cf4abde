#!/usr/bin/env python3
"""Runs the scenarios below tests/cases: a folder with a `cmd` is a case.

    tests/cases/<area>/<case>/cmd             shell lines; the first comment tells what the case is about
                             /<any file>      input, copied into the case's temporary working folder
                             /expected.out    standard output; absent: nothing is printed
                             /expected.err    standard error; absent: nothing is printed
                             /expected.code   exit status; absent: 0
                             /expected.file.X the file X of the working folder afterwards
                             /normalise       lines `regex => replacement`, applied to output before comparison

`cmd` finds `hotlap` on PATH, its home in $HOTLAP_HOME (empty at the start), the repository in $HOTLAP_SOURCE_DIR.
Run ids, times, versions and temporary paths are replaced before comparison, see NORMALISATIONS.

    run_cases.py --hotlap build/dev/hotlap [--update] [-j N] [PART OF A NAME…]
"""
import argparse
import concurrent.futures
import dataclasses
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"
TIMEOUT_S = 60
NORMALISATIONS = [
    (re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z| ?[+-]\d{2}:?\d{2}| UTC)?"), "<time>"),
    (re.compile(r"\b\d{2}:\d{2}:\d{2}(\.\d+)?\b"), "<time>"),
    (re.compile(r"\bhotlap \d+\.\d+\.\d+[\w.+-]*"), "hotlap <version>"),
    (re.compile(r"\bpid \d+\b"), "pid <n>"),
]


@dataclasses.dataclass
class Outcome:
    code: str
    out: str
    err: str
    files: dict[str, str]


@dataclasses.dataclass
class Case:
    folder: pathlib.Path

    @property
    def name(self) -> str:
        return self.folder.relative_to(CASES).as_posix() if self.folder.is_relative_to(CASES) else self.folder.name

    def own_normalisations(self) -> list[tuple[re.Pattern[str], str]]:
        path = self.folder / "normalise"
        pairs = []
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            if line.strip() and not line.startswith("#"):
                pattern, replacement = line.split(" => ", 1) if " => " in line else (line.removesuffix(" =>"), "")
                pairs.append((re.compile(pattern, re.M), replacement))
        return pairs

    def expected(self, name: str, default: str = "") -> str:
        path = self.folder / f"expected.{name}"
        return path.read_text(encoding="utf-8") if path.exists() else default

    def expected_files(self) -> list[str]:
        prefix = "expected.file."
        return sorted(p.name[len(prefix):] for p in self.folder.glob(prefix + "*"))


def normalised(text: str, replaced: list[tuple[str, str]], patterns: list[tuple[re.Pattern[str], str]]) -> str:
    for path, name in replaced:
        text = text.replace(path, name)
    for pattern, replacement in patterns:
        text = pattern.sub(replacement, text)
    return text


def run(case: Case, hotlap: pathlib.Path) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="hotlap-case-") as temporary:
        base = pathlib.Path(temporary).resolve()
        work = base / "work"
        shutil.copytree(case.folder, work, ignore=shutil.ignore_patterns("cmd", "expected.*", "normalise"))
        home = base / "home"
        environment = {
            "PATH": f"{hotlap.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(base),
            "HOTLAP_HOME": str(home), "HOTLAP_SOURCE_DIR": str(ROOT), "LC_ALL": "C.UTF-8", "TZ": "UTC", "NO_COLOR": "1",
            "TMPDIR": str(base), "XDG_RUNTIME_DIR": str(base / "run"), "TERM": "dumb", "COLUMNS": "100",
        }
        (base / "run").mkdir(mode=0o700)
        # A session of its own, so that whatever a case leaves behind ends with it.
        process = subprocess.Popen(
            ["bash", str(case.folder / "cmd")], cwd=work, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=TIMEOUT_S)
            code = str(process.returncode)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            code = f"no end within {TIMEOUT_S} s"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        replaced = [(str(home), "<home>"), (str(work), "<dir>"), (str(base), "<tmp>"), (str(ROOT), "<source>")]
        patterns = case.own_normalisations() + NORMALISATIONS

        def clean(text: bytes) -> str:
            return normalised(text.decode("utf-8", "backslashreplace"), replaced, patterns)

        files = {}
        for name in case.expected_files():
            path = work / name
            files[name] = clean(path.read_bytes()) if path.is_file() else "(no such file)\n"
        return Outcome(code, clean(out), clean(err), files)


def differences(case: Case, outcome: Outcome) -> list[str]:
    found = []

    def compare(name: str, expected: str, got: str) -> None:
        if expected != got:
            lines = difflib.unified_diff(expected.splitlines(True), got.splitlines(True), f"expected.{name}", "got")
            found.append("".join(line if line.endswith("\n") else line + "\n" for line in lines))

    compare("code", case.expected("code", "0\n").strip() + "\n", outcome.code + "\n")
    compare("out", case.expected("out"), outcome.out)
    compare("err", case.expected("err"), outcome.err)
    for name, text in outcome.files.items():
        compare(f"file.{name}", case.expected(f"file.{name}"), text)
    return found


def update(case: Case, outcome: Outcome) -> None:
    streams = (("code", outcome.code + "\n", "0\n"), ("out", outcome.out, ""), ("err", outcome.err, ""))
    for name, text, absent in streams:
        path = case.folder / f"expected.{name}"
        if text == absent:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text, encoding="utf-8")
    for name, text in outcome.files.items():
        (case.folder / f"expected.file.{name}").write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="run the cases whose name has this in it (all)")
    parser.add_argument("--hotlap", type=pathlib.Path, default=ROOT / "build" / "dev" / "hotlap")
    parser.add_argument("--cases", type=pathlib.Path, default=CASES, help="another folder of cases")
    parser.add_argument("--update", action="store_true", help="rewrite what is expected; read the diff")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    hotlap = options.hotlap.resolve()
    if not os.access(hotlap, os.X_OK):
        print(f"{hotlap} is not there: cmake --build --preset dev")
        return 2
    cases = [Case(p.parent) for p in sorted(options.cases.resolve().rglob("cmd"))]
    if options.names:
        cases = [c for c in cases if any(part in c.name for part in options.names)]
    if not cases:
        print("no case has such a name")
        return 2
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for case, outcome in zip(cases, pool.map(lambda c: run(c, hotlap), cases)):
            found = differences(case, outcome)
            if found and options.update:
                update(case, outcome)
                print(f"updated {case.name}")
            elif found:
                failed += 1
                print(f"FAILED {case.name}\n" + "".join(found))
    print(f"{len(cases) - failed} cases passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
