"""Disks by themselves: busy while nobody looked at a GPU, and file systems that fill up."""
from __future__ import annotations

import pathlib

from forms import GB, T0_S, ProcDumps

from report import Report, variant


def alone(folder: pathlib.Path, *, busy: float, iowait: float, reads_per_s: float, cores: int = 8) -> None:
    """Copies of /proc alone: a hard disk with small reads, cores that wait for it, or none."""
    proc = ProcDumps(240, 2, cores=cores)
    proc.iowait = iowait
    proc.disks["sda"] = {"reads": reads_per_s, "read": reads_per_s * 64e3, "await_ms": 55, "busy": busy,
                         "queue": 8 * busy}
    proc.write(folder, together=True, parts=["stat", "diskstats"])


DISK_ALONE = Report("A12b", "a hard disk that is busy, by /proc alone", "StorageBound", alone, [
    variant(busy=1.0, iowait=0.3, reads_per_s=180, says=["sda", "GPU figures"]),
    variant(busy=0.98, iowait=0.2, reads_per_s=140, cores=16, says=["sda"]),
    variant(busy=0.3, iowait=0.02, reads_per_s=40, rule=""),
])


def filling(folder: pathlib.Path, *, total_gb: float, first_gb: float, last_gb: float, minutes: int = 60,
            done_at: float = 2.0) -> None:
    """Output of df once a minute; what is taken grows up to a share of the time."""
    text = ""
    for minute in range(minutes + 1):
        share = min(minute / minutes / min(done_at, 1.0), 1.0)
        used = (first_gb + (last_gb - first_gb) * share) * GB
        text += f"## t={T0_S + 60 * minute:.0f}\nFilesystem 1K-blocks Used Available Use% Mounted on\n"
        for name, size, taken in (("/dev/nvme0n1p1", total_gb * GB, used), ("/dev/loop3", 2 * GB, 2 * GB)):
            mount = "/" if "nvme" in name else "/snap/core20/2318"
            text += f"{name} {size // 1024:.0f} {taken // 1024:.0f} {(size - taken) // 1024:.0f} " \
                    f"{100 * taken / size:.0f}% {mount}\n"
    folder.joinpath("df.txt").write_text(text)


FILLING = Report("F23", "a file system fills up", "FilesystemFull", filling, [
    variant(total_gb=500, first_gb=440, last_gb=499, says=["/ will be full|/ is full"]),
    variant(total_gb=2000, first_gb=1500, last_gb=1700, minutes=90, says=["min"]),
    variant(total_gb=500, first_gb=440, last_gb=441, rule=""),
    variant(total_gb=500, first_gb=300, last_gb=400, done_at=0.2, rule=""),
])
