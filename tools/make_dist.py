#!/usr/bin/env python3
"""Packs an installed tree into a tarball, a Debian package and a wheel that carries the program, with nothing but the
standard library.

Usage: make_dist.py STAGE OUT, where STAGE is what `cmake --install` wrote. The wheel puts `hotlap` on PATH (the program
carries the hook for the jobs that it starts) with the native observers beside it, and the package into site-packages with the .pth that an environment
variable switches on. Its tag names the oldest glibc that the program runs on.
"""
import base64
import hashlib
import io
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
import zipfile

import check_binary
import make_deb

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = "Records a training job without a change to its code and says what holds it back"
# Run at every start of a Python with the wheel: one look at the environment, and no more unless a job is recorded.
AUTOLOAD = 'import os; os.environ.get("HOTLAP_RING_DIR") and __import__("hotlap._autoload")\n'
OBSERVERS = "lib/hotlap"  # what the program has loaded into jobs on request
# A user's machine may have a glibc as old as this; above it the build says so and the release notes must too.
GLIBC_MAX = (2, 36)


def version() -> str:
    match = re.search(r"project\(hotlap VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert match, "CMakeLists.txt names no version"
    return match[1]


def timestamp() -> int:
    """Of the commit, so that the same commit gives the same bytes."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 1_767_225_600


def staged(stage: pathlib.Path) -> list[pathlib.Path]:
    return sorted(p for p in stage.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def observers(stage: pathlib.Path) -> list[pathlib.Path]:
    return sorted((stage / OBSERVERS).glob("*.so"))


def entry_of(name: str, file: pathlib.Path) -> make_deb.Entry:
    return make_deb.Entry(name, file.read_bytes(), executable=os.access(file, os.X_OK))


def make_tarball(stage: pathlib.Path, out: pathlib.Path, name: str, when: int) -> pathlib.Path:
    path = out / f"{name}.tar.gz"
    files = {file.relative_to(stage).as_posix(): file for file in staged(stage)}
    files.update({file.name: file for file in (ROOT / "LICENSE", ROOT / "README.md") if file.is_file()})
    path.write_bytes(make_deb.tar_gz([entry_of(f"{name}/{inside}", file) for inside, file in files.items()], when))
    return path


def make_package(stage: pathlib.Path, out: pathlib.Path, glibc: tuple[int, int], when: int) -> pathlib.Path:
    """What is installed below /usr, the unit that records a machine (not enabled), and its licence."""
    architecture = make_deb.DEB_ARCHITECTURES.get(platform.machine(), platform.machine())
    path = out / f"hotlap_{version()}_{architecture}.deb"
    files = {f"usr/{file.relative_to(stage).as_posix()}": file for file in staged(stage)}
    files[make_deb.UNIT] = ROOT / "packaging" / "hotlap-host.service"
    files["usr/share/doc/hotlap/copyright"] = ROOT / "LICENSE"
    files["usr/share/doc/hotlap/README.md"] = ROOT / "README.md"
    control = {
        "Package": "hotlap", "Version": version(), "Architecture": architecture, "Section": "utils",
        "Priority": "optional", "Maintainer": "the authors of hotlap <hotlap@localhost>",
        "Depends": f"libc6 (>= {glibc[0]}.{glibc[1]})", "Suggests": "python3 (>= 3.8)",
        "Description": f"{SUMMARY}\n The program carries the hook for the jobs that it starts. The unit hotlap-host records"
                       " the\n machine all the time once it is enabled.",
    }
    path.write_bytes(make_deb.make_deb([entry_of(inside, file) for inside, file in files.items()], control, when))
    return path


class Wheel:
    def __init__(self, path: pathlib.Path, dist_info: str, when: int):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.dist_info, self.when = dist_info, time.gmtime(max(when, 315_532_800))[:6]
        self.record: list[str] = []

    def add(self, name: str, content: bytes, executable: bool = False) -> None:
        info = zipfile.ZipInfo(name, self.when)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        self.archive.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self) -> None:
        lines = [*self.record, f"{self.dist_info}/RECORD,,", ""]
        self.archive.writestr(zipfile.ZipInfo(f"{self.dist_info}/RECORD", self.when), "\n".join(lines))
        self.archive.close()


def make_wheel(stage: pathlib.Path, out: pathlib.Path, glibc: tuple[int, int], when: int) -> pathlib.Path:
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}"
    path = out / f"hotlap-{version()}-{tag}.whl"
    dist_info, data = f"hotlap-{version()}.dist-info", f"hotlap-{version()}.data"
    wheel = Wheel(path, dist_info, when)
    wheel.add(f"{data}/scripts/hotlap", (stage / "bin" / "hotlap").read_bytes(), executable=True)
    # `data` is where `scripts` lies: the program finds them there as in any other installation.
    for library in observers(stage):
        wheel.add(f"{data}/data/{OBSERVERS}/{library.name}", library.read_bytes())
    hook = stage / "share" / "hotlap" / "python"
    for file in staged(hook):
        inside = file.relative_to(hook).as_posix()
        if inside.startswith("hotlap/"):
            wheel.add(inside, file.read_bytes())
    wheel.add("hotlap_autoload.pth", AUTOLOAD.encode())
    metadata = [
        "Metadata-Version: 2.1", "Name: hotlap", f"Version: {version()}", f"Summary: {SUMMARY}", "License: Apache-2.0",
        "Requires-Python: >=3.8", "Classifier: Operating System :: POSIX :: Linux",
        "Description-Content-Type: text/markdown", "",
    ]
    readme = ROOT / "README.md"
    text = "\n".join(metadata) + "\n" + (readme.read_text(encoding="utf-8") if readme.exists() else "")
    wheel.add(f"{dist_info}/METADATA", text.encode())
    about = f"Wheel-Version: 1.0\nGenerator: hotlap-make-dist\nRoot-Is-Purelib: false\nTag: {tag}\n"
    wheel.add(f"{dist_info}/WHEEL", about.encode())
    wheel.add(f"{dist_info}/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.close()
    return path


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__)
        return 2
    stage, out = pathlib.Path(arguments[0]), pathlib.Path(arguments[1])
    program = str(stage / "bin" / "hotlap")
    binaries = [program, *map(str, observers(stage))]
    if any(check_binary.main([binary]) != 0 for binary in binaries):
        return 1
    glibc = max(check_binary.glibc_version(binary) for binary in binaries)
    if glibc > GLIBC_MAX:
        print(f"{program}: needs glibc {glibc[0]}.{glibc[1]}, at most {GLIBC_MAX[0]}.{GLIBC_MAX[1]} is promised:"
              " build on Debian 12 for a release")
    out.mkdir(parents=True, exist_ok=True)
    when = timestamp()
    name = f"hotlap-{version()}-linux-{platform.machine()}"
    made = (make_tarball(stage, out, name, when), make_package(stage, out, glibc, when),
            make_wheel(stage, out, glibc, when))
    for path in made:
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB, runs on glibc {glibc[0]}.{glibc[1]} and newer")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
