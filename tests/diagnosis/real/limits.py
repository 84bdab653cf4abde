"""The machine around a job: a control group (version 1 or 2), a disk that gives so much and no more, what others took."""
from __future__ import annotations

import os
import pathlib
import resource
import subprocess
import time

ROOT = pathlib.Path("/sys/fs/cgroup")
PERIOD_US = 100_000
DATA_MB = 96
PRIORITY = -15


class Unavailable(Exception):
    """What this machine does not permit."""


class ControlGroup:
    """Limits of cores, memory, and reading of a block device, for those who enter. Does nothing without a limit."""

    def __init__(self, cores: float | None = None, memory_mb: int | None = None, read: str | None = None) -> None:
        """`read`: "MAJOR:MINOR BYTES_PER_SECOND"."""
        quota_us = None if cores is None else str(int(cores * PERIOD_US))
        memory = None if memory_mb is None else str(memory_mb << 20)
        self.limits: dict[str, dict[str, str]] = {}
        self.folders: list[pathlib.Path] = []
        if (ROOT / "cgroup.controllers").exists():
            one = {"cpu.max": quota_us and f"{quota_us} {PERIOD_US}", "memory.max": memory,
                   "io.max": read and read.replace(" ", " rbps=")}
            self.limits = {"": {name: text for name, text in one.items() if text}}
        else:
            if quota_us:
                self.limits["cpu"] = {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota_us}
            if memory:
                self.limits["memory"] = {"memory.limit_in_bytes": memory}
            if read:
                self.limits["blkio"] = {"blkio.throttle.read_bps_device": read}

    def __enter__(self) -> "ControlGroup":
        try:
            for controller, files in self.limits.items():
                if files:
                    self.make(controller, files)
        except OSError as error:
            self.__exit__()
            raise Unavailable(f"control groups: {error.strerror}") from error
        return self

    def make(self, controller: str, files: dict[str, str]) -> None:
        folder = ROOT / controller / f"hotlap-proof-{os.getpid()}"
        folder.mkdir()
        self.folders.append(folder)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="ascii")

    def enter(self) -> None:
        """In the child, before it starts the program."""
        try:
            os.setsid()  # where sessions share the cores, a session has the priority
            os.nice(PRIORITY)
            pathlib.Path("/proc/self/autogroup").write_text(str(PRIORITY), encoding="ascii")
        except OSError:
            pass  # not permitted, or a kernel without it
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    def __exit__(self, *_: object) -> None:
        for folder in self.folders:
            for _attempt in range(50):  # the last of the job may still be on its way out
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)


class SlowDisk:
    """A file on a loop device, for a control group to limit its reads. Without a speed there is no file."""

    def __init__(self, mb_per_s: float | None, folder: pathlib.Path) -> None:
        self.mb_per_s = mb_per_s
        self.folder = folder
        self.file: pathlib.Path | None = None
        self.device = ""
        self.limit: str | None = None  # for a control group

    def run(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"{command[0]}: {done.stderr.strip() or done.returncode}")
        return done.stdout.strip()

    def __enter__(self) -> "SlowDisk":
        if self.mb_per_s is None:
            return self
        if os.geteuid() != 0:
            raise Unavailable("loop devices need root")
        image, mount = self.folder / "disk.img", self.folder / "disk"
        mount.mkdir()
        with open(image, "wb") as out:
            out.truncate((DATA_MB + 64) << 20)
        self.run("mkfs.ext4", "-q", str(image))
        self.device = self.run("losetup", "--find", "--show", "--direct-io=on", str(image))
        try:
            self.run("mount", self.device, str(mount))
            data = mount / "data.bin"
            data.write_bytes(os.urandom(1 << 20) * DATA_MB)
            os.sync()
            with open(data, "rb") as written:  # or it would come from memory
                os.posix_fadvise(written.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            major, minor = os.major(os.stat(self.device).st_rdev), os.minor(os.stat(self.device).st_rdev)
            self.limit = f"{major}:{minor} {int(self.mb_per_s * 1e6)}"
            self.file = data
        except Exception:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.device:
            subprocess.run(["umount", str(self.folder / "disk")], check=False, capture_output=True)
            subprocess.run(["losetup", "--detach", self.device], check=False, capture_output=True)
            self.device = ""


class Around:
    """What the kernel counted while it was entered: cores that other programs used, and that a hypervisor took away."""

    def __init__(self) -> None:
        self.steal_pct = 0.0
        self.outside_cores = 0.0

    @staticmethod
    def read() -> tuple[float, float, float, float]:
        fields = [float(field) for field in pathlib.Path("/proc/stat").read_text(encoding="ascii").split()[1:9]]
        user, nice, system, _idle, _iowait, irq, softirq, steal = (field / os.sysconf("SC_CLK_TCK") for field in fields)
        ours = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic(), user + nice + system + irq + softirq, steal, ours.ru_utime + ours.ru_stime

    def __enter__(self) -> "Around":
        self.before = self.read()
        return self

    def __exit__(self, *_: object) -> None:
        wall, busy, steal, ours = (now - then for now, then in zip(self.read(), self.before))
        self.steal_pct = 100 * steal / wall / (os.cpu_count() or 1)
        self.outside_cores = (busy - ours) / wall
