#!/usr/bin/env python3
"""Checks what the repository carries beside C++: documents, notes, scripts, sizes, and names of machines.

Usage: check_text.py [ROOT]. Prints `file:line: reason` for each finding and exits 1 if there is one.
"""
import os
import pathlib
import re
import subprocess
import sys

import findings

FILE_BYTES_MAX = 512 * 1024
NOTE_LINES_MAX = 6
ARCHITECTURE_LINES_MAX = 150
# Files that hold foreign text: fixtures, recorded output and licences are not ours to restyle.
FOREIGN = ("tests/hosts/", "tests/golden/", "tests/cases/", "fuzz/corpus/", "LICENSE")
TEXT_SUFFIXES = {".cpp", ".h", ".py", ".sh", ".cmake", ".md", ".txt", ".toml", ".json", ".yml", ".yaml", ".ts", ".css",
                 ".html", ".cfg", ".in", ""}

MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:root|work)/|(?<![\w.~-])/home/(?!user\b|you\b|me\b|ubuntu\b|alice\b)\w+/")
REGISTRY_HOST = re.compile(
    r"(?:pypi|pythonhosted|npmjs|crates|proxy\.golang|repo1?\.maven|deb\.debian|archive\.ubuntu|security\.debian"
    r"|artifactregistry\.\w+|[\w-]+\.pkg)\.(?:org|io|com|dev)\b")
LINE_POINTER = re.compile(r"([\w./-]+\.(?:cpp|h|py|ts|sh|cmake|md|txt)):(\d+)\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")
TODO = re.compile(r"\bTO[D]O\b(?!\(#\d+\))")
UNFINISHED = re.compile(r"\bFIX[M]E\b|\bXX[X]\b")


def tracked_files(root: pathlib.Path) -> list[str]:
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-z", "--cached"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return sorted(name for name in listed.split("\0") if name and (root / name).is_file())
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


class Checker(findings.Findings):
    def __init__(self, root: pathlib.Path):
        super().__init__(root)
        self.files = tracked_files(root)
        self.names = {os.path.basename(name) for name in self.files if not name.startswith("examples/")}

    def check_document(self, name: str, lines: list[str]) -> None:
        fenced = False
        for number, line in enumerate(lines, 1):
            fenced ^= line.lstrip().startswith("```")
            for match in LINE_POINTER.finditer(line):
                if os.path.basename(match[1]) in self.names:
                    self.report(name, number, f"'{match[0]}': lines move; name the symbol instead")
            if fenced:
                continue
            for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                target = match[1]
                if "://" in target or target.startswith("mailto:"):
                    continue
                if not (self.root / name).parent.joinpath(target).exists():
                    self.report(name, number, f"link to '{target}', which is not there")

    def check_note(self, name: str, lines: list[str]) -> None:
        if not any(line.strip() for line in lines):
            self.report(name, 0, "an empty note")
        if len(lines) > NOTE_LINES_MAX:
            self.report(name, 0, f"{len(lines)} lines: a note says in {NOTE_LINES_MAX} at most what a user sees")
        if lines and lines[0].startswith("#"):
            self.report(name, 1, "a note is a sentence, not a page: no heading")

    def check_file(self, name: str) -> None:
        path = self.root / name
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            self.report(name, 0, f"{size} bytes, limit {FILE_BYTES_MAX}: make it when it is needed")
        if name.startswith(FOREIGN) or path.suffix not in TEXT_SUFFIXES:
            return
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            self.report(name, 0, "not UTF-8")
            return
        lines = text.splitlines()
        if text and not text.endswith("\n"):
            self.report(name, len(lines), "no newline at the end")
        for number, line in enumerate(lines, 1):
            if line != line.rstrip():
                self.report(name, number, "space at the end of the line")
            if match := MACHINE_PATH.search(line):
                self.report(name, number, f"'{match[0]}': a path of one machine")
            if match := REGISTRY_HOST.search(line):
                self.report(name, number, f"'{match[0]}': registries are named by their clients' settings")
            if TODO.search(line) and name not in ("STYLE.md", "CONTRIBUTING.md") and not name.startswith("tools/"):
                self.report(name, number, "it needs its issue number in brackets")
            if UNFINISHED.search(line) and name != "STYLE.md" and not name.startswith("tools/"):
                self.report(name, number, "unfinished")
        if path.suffix == ".md":
            self.check_document(name, lines)
        if re.fullmatch(r"changes/(?!README)[^/]+\.md", name):
            self.check_note(name, lines)
        if name == "ARCHITECTURE.md" and len(lines) > ARCHITECTURE_LINES_MAX:
            self.report(name, 0, f"{len(lines)} lines, limit {ARCHITECTURE_LINES_MAX}")
        if path.suffix == ".sh" and not text.startswith("#!"):
            self.report(name, 1, "a script names its interpreter")
        if text.startswith("#!") and not os.access(path, os.X_OK):
            self.report(name, 1, "not executable")

    def run(self) -> list[str]:
        for name in self.files:
            self.check_file(name)
        return self.errors


if __name__ == "__main__":
    sys.exit(findings.print_all(Checker, sys.argv[1:]))
