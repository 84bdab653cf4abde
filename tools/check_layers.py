#!/usr/bin/env python3
"""Checks the C++ tree against layers.txt and the rules of STYLE.md that a compiler does not see.

Usage: check_layers.py [ROOT]. Prints `file:line: reason` for each finding and exits 1 if there is one.
"""
import pathlib
import re
import sys

import findings

FILE_LINES_MAX = {".h": 400, ".cpp": 800}
# A file that may be longer, with the reason: {"store/codec.cpp": (900, "why")}.
SIZE_EXCEPTIONS: dict[str, tuple[int, str]] = {}
COLUMNS_MAX = 120

# Standard C++ headers have neither a dot nor a slash. These belong to the C library and the kernel; every other header
# in angle brackets is a third party's and has to be listed in layers.txt.
SYSTEM_FOLDERS = {"sys", "linux", "net", "netinet", "arpa", "asm"}
SYSTEM_HEADERS = {
    "alloca.h", "dirent.h", "elf.h", "endian.h", "errno.h", "fcntl.h", "fnmatch.h", "ftw.h", "getopt.h", "glob.h",
    "grp.h", "ifaddrs.h", "inttypes.h", "langinfo.h", "limits.h", "link.h", "locale.h", "malloc.h", "mntent.h",
    "netdb.h", "poll.h", "pthread.h", "pty.h", "pwd.h", "sched.h", "semaphore.h", "signal.h", "spawn.h", "stdint.h",
    "stdio.h", "stdlib.h", "string.h", "strings.h", "syslog.h", "termios.h", "time.h", "ucontext.h", "unistd.h",
    "utime.h", "utmp.h", "wait.h",
}
HEADERS_IN_HEADERS = {("base/format.h", "fmt/core.h")}
TEST_HEADERS = {"gtest", "gmock"}

MACRO = re.compile(
    r"HOTLAP_(CHECK|DCHECK|TRY|TRY_ASSIGN|TRY_ASSIGN_INNER|CONCAT|CONCAT_INNER|LOG_\w+|PROBE"
    r"|(PT_)?GUARDED_BY|(TRY_)?ACQUIRE|RELEASE|REQUIRES|EXCLUDES|(SCOPED_|ASSERT_|RETURN_)?CAPABILITY"
    r"|THREAD_ANNOTATION|NO_THREAD_SAFETY_ANALYSIS)")
# Switches of a third-party header, set just before it is included in the one .cpp that adapts it.
ADAPTER_MACRO = re.compile(r"(TOML|RAPIDJSON|SPDLOG|FMT|CLI11|BOOST|ZSTD|SIMDJSON)_\w+")

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
DIRECTIVE = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|define)\b\s*(\S*)")
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|(?:u8|[uUL])?R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)
TODO = re.compile(r"\bTODO\b(?!\(#\d+\))")
BANNED_TYPE = re.compile(
    r"\b(?:class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w*(?:[Mm]anager|[Cc]ontext|[Uu]tils?))\s*(?:final\s*)?[{:]")
BANNED_FILE = re.compile(r"(^|_)(utils?|managers?|contexts?|helpers?|misc)(_|$)")


class Ban:
    """A pattern in code that has a better way; `unless` names files (by prefix of their path below src) that may."""

    def __init__(self, pattern: str, instead: str, unless: tuple[str, ...] = (), tests: bool = False,
                 only: tuple[str, ...] = ()):
        self.pattern, self.instead, self.unless = re.compile(pattern), instead, unless
        self.in_tests, self.only = tests, only


BANS = [
    Ban(r"std::(basic_)?[io]?fstream\b|#\s*include\s*<fstream>", "files belong to base: use base/host.h or base/file.h",
        unless=("base/",)),
    Ban(r"#\s*include\s*<iostream>|std::(cout|cerr|clog)\b", "write to the Streams given, or through base/log.h"),
    Ban(r"#\s*include\s*<regex>|std::regex\b", "<regex> is slow and recursive: write a scanner", tests=True),
    Ban(r"\bfriend\b(?!.*\boperator\b)", "friends are for operators only: test through the contract", tests=True),
    Ban(r"\bthrow\b", "we do not throw: return a Result"),
    Ban(r"std::thread\b(?!::)", "use std::jthread, whose owner stops it"),
    Ban(r"\.\s*detach\s*\(\s*\)", "every thread has an owner that stops it", tests=True,
        unless=("base/thread",)),  # but one that hangs in a system call
    Ban(r"(?<![\w.>])(?:::|std::)?(system|popen|fork|vfork|posix_spawnp?)\s*\(", "a collector starts no process",
        only=("collect/", "ingest/", "rules/", "analysis/")),
]


def blank_out(text: str, keep_strings: bool) -> str:
    """`text` with comments (and string contents unless kept) replaced by spaces; line breaks stay."""

    def replace(match: re.Match[str]) -> str:
        token = match[0]
        if keep_strings and not token.startswith(("//", "/*")):
            return token
        return re.sub(r"[^\n]", " ", token)

    return TOKEN.sub(replace, text)


class Checker(findings.Findings):
    def __init__(self, root: pathlib.Path):
        super().__init__(root)
        self.src = root / "src"
        self.rank: dict[str, int] = {}
        self.allowed: dict[str, set[str]] = {}
        self.restricted: set[str] = set()
        self.graph: dict[str, list[str]] = {}
        self.read_layers()

    def read_layers(self) -> None:
        for line in (self.root / "layers.txt").read_text().splitlines():
            if match := re.match(r"(\d+)\s+(\w+)\s*:(.*)", line):
                self.rank[match[2]] = int(match[1])
                self.allowed[match[2]] = set(match[3].split())
        self.restricted = set().union(*self.allowed.values()) & SYSTEM_HEADERS | {"dlfcn.h", "regex"}

    def is_third_party(self, target: str) -> bool:
        head = target.split("/")[0]
        if head in self.restricted or target in self.restricted:
            return True
        if "/" in target:
            return head not in SYSTEM_FOLDERS
        return "." in target and target not in SYSTEM_HEADERS

    def check_include(self, rel: str, number: int, quote: str, target: str) -> None:
        lib, head = rel.split("/")[0], target.split("/")[0]
        if quote == '"':
            if rel.endswith("_test.cpp") and head == "support":
                return  # tests/support: what tests share; CMake says which of it a test can link
            if "/" not in target:
                self.report(rel, number, f'write the path from src: "{lib}/{target}"')
            elif head not in self.rank:
                self.report(rel, number, f'"{target}": folder \'{head}\' is not in layers.txt')
            elif head != lib and self.rank[head] >= self.rank[lib]:
                self.report(rel, number, f"{lib} (rank {self.rank[lib]}) must not include {target}"
                            f" (rank {self.rank[head]})")
            self.graph[rel].append(target)
            return
        if not self.is_third_party(target) or (rel, target) in HEADERS_IN_HEADERS:
            return
        if rel.endswith("_test.cpp") and head in TEST_HEADERS:
            return
        if rel.endswith(".h"):
            self.report(rel, number, f"<{target}>: no third-party header in a header; adapt it in one .cpp")
        elif head not in self.allowed[lib] and target not in self.allowed[lib]:
            self.report(rel, number, f"<{target}> is not for {lib}: see layers.txt")

    def check_directive(self, rel: str, number: int, line: str, before: str) -> None:
        match = DIRECTIVE.match(line)
        if match is None:
            return
        word, name = match[1], match[2].split("(")[0]
        guard = rel.endswith(".h") and not before.strip() and word == "ifndef"
        if word != "define":
            if not rel.startswith("base/") and not guard:
                self.report(rel, number, f"#{word}: decide at run time, or in base")
        elif MACRO.fullmatch(name):
            if not rel.startswith("base/"):
                self.report(rel, number, f"macro {name}: macros are defined in base only")
        elif not (rel.endswith(".cpp") and ADAPTER_MACRO.fullmatch(name)):
            self.report(rel, number, f"macro {name} is not on the list of STYLE.md")

    def check_text(self, name: str, rel: str, text: str, lines: list[str]) -> None:
        """What holds for all C++ of the repository; `rel` is the path below src, or "" outside."""
        suffix = pathlib.PurePath(name).suffix
        limit, _ = SIZE_EXCEPTIONS.get(rel, (FILE_LINES_MAX[suffix], ""))
        if len(lines) > limit:
            self.report(name, 0, f"{len(lines)} lines, limit {limit}: split it by noun")
        if BANNED_FILE.search(pathlib.PurePath(name).stem):
            self.report(name, 0, "name a file after the thing in it")
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                self.report(name, number, f"{len(line)} columns, limit {COLUMNS_MAX}")
            if "\t" in line:
                self.report(name, number, "tab")
            if "FIXME" in line:
                self.report(name, number, "FIXME: mend it, or TODO(#issue)")
            if TODO.search(line):
                self.report(name, number, "a TODO needs its issue: TODO(#12)")
        code = blank_out(text, keep_strings=False)
        for match in BANNED_TYPE.finditer(code):
            self.report(name, code.count("\n", 0, match.start()) + 1, f"{match[1]}: name a type after what it does")
        is_test = rel == "" or rel.endswith("_test.cpp")
        for number, line in enumerate(code.splitlines(), 1):
            for ban in BANS:
                if is_test and not ban.in_tests or ban.unless and rel.startswith(ban.unless):
                    continue
                if ban.only and not rel.startswith(ban.only):
                    continue
                if found := ban.pattern.search(line):
                    self.report(name, number, f"'{found[0].strip()}': {ban.instead}")

    def check_source(self, path: pathlib.Path) -> None:
        rel = path.relative_to(self.src).as_posix()
        lib = rel.split("/")[0]
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        if lib not in self.rank:
            self.report(f"src/{rel}", 0, f"folder '{lib}' is not in layers.txt")
            return
        self.graph[rel] = []
        kept = blank_out(text, keep_strings=True)
        before = ""
        found = len(self.errors)
        for number, line in enumerate(kept.splitlines(), 1):
            if match := INCLUDE.match(line):
                self.check_include(rel, number, match[1], match[2])
            self.check_directive(rel, number, line, before)
            if not re.match(r"\s*#\s*pragma once", line):
                before += line.strip()
        if rel.endswith(".h") and "#pragma once" not in text:
            self.report(rel, 1, "no #pragma once")
        if rel.endswith(".h") and "using namespace" in kept:
            self.report(rel, 1, "using namespace in a header")
        self.errors[found:] = [f"src/{e}" for e in self.errors[found:]]
        self.check_text(f"src/{rel}", rel, text, lines)

    def check_listed(self, path: pathlib.Path) -> None:
        """A file that no CMakeLists.txt names is neither compiled nor tested. Plug-ins are found by their folder."""
        inside = path.relative_to(self.src)
        lists = self.src / inside.parts[0] / "CMakeLists.txt"
        is_plugin = len(inside.parts) > 2 and inside.parts[1] in ("plugins", "commands")
        if not lists.exists() or is_plugin and path.suffix == ".cpp" and not path.stem.endswith("_test"):
            return
        name = inside.relative_to(inside.parts[0]).as_posix()
        if not re.search(r"(?<![\w./-])" + re.escape(name) + r"(?![\w.-])", lists.read_text(encoding="utf-8")):
            self.report(f"src/{inside.as_posix()}", 0, f"not listed in src/{inside.parts[0]}/CMakeLists.txt")

    def check_cycles(self) -> None:
        state: dict[str, int] = {}

        def visit(node: str, trail: list[str]) -> None:
            state[node] = 1
            for following in self.graph.get(node, []):
                if state.get(following) == 1:
                    cycle = [*trail, node, following]
                    self.report("src", 0, "include cycle: " + " -> ".join(cycle[cycle.index(following):]))
                elif following in self.graph and following not in state:
                    visit(following, [*trail, node])
            state[node] = 2

        for node in self.graph:
            if node not in state:
                visit(node, [])

    def run(self) -> list[str]:
        for path in sorted(self.src.rglob("*")):
            if path.suffix in FILE_LINES_MAX:
                self.check_source(path)
                self.check_listed(path)
            elif path.suffix in {".cc", ".cxx", ".hpp", ".hh", ".inl"}:
                self.report(f"src/{path.relative_to(self.src).as_posix()}", 0, "C++ files end in .cpp and .h")
        for folder in ("tests", "fuzz", "bench", "examples"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in FILE_LINES_MAX and path.is_file():
                    text = path.read_text(encoding="utf-8")
                    self.check_text(path.relative_to(self.root).as_posix(), "", text, text.splitlines())
        self.check_cycles()
        return self.errors


if __name__ == "__main__":
    sys.exit(findings.print_all(Checker, sys.argv[1:]))
