#!/usr/bin/env python3
"""Checks that a program needs nothing at run time but glibc, and says the oldest glibc that it runs on.

Usage: check_binary.py PROGRAM [--print-glibc]. Exits 1 when another shared library is needed.
"""
import pathlib
import re
import subprocess
import sys

GLIBC = re.compile(r"^(libc|libm|libdl|libpthread|librt|libresolv|libutil|ld-linux[\w-]*)\.so\.\d+$")


def needed(program: str) -> list[str]:
    text = subprocess.run(["readelf", "-d", "-W", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[([^\]]+)\]", text)


def glibc_version(program: str) -> tuple[int, int]:
    """The newest versioned glibc symbol that the program refers to is the oldest glibc that it runs on."""
    text = subprocess.run(["objdump", "-T", program], check=True, capture_output=True, text=True).stdout
    versions = [(int(v[0]), int(v[1])) for v in re.findall(r"\*UND\*.*GLIBC_(\d+)\.(\d+)", text)]
    return max(versions, default=(2, 17))


def main(arguments: list[str]) -> int:
    program = arguments[0]
    if not pathlib.Path(program).is_file():
        print(f"{program}: not there")
        return 1
    major, minor = glibc_version(program)
    if "--print-glibc" in arguments:
        print(f"{major}.{minor}")
        return 0
    foreign = [library for library in needed(program) if not GLIBC.match(library)]
    for library in foreign:
        print(f"{program}: needs {library}; link it statically or load it by dlopen where it is used")
    print(f"{program}: needs {', '.join(needed(program))}; runs on glibc {major}.{minor} and newer")
    return 1 if foreign else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
