"""Copies of /proc and of control groups: quotas, limits, kills, cores that come and go, a machine that slept."""
from __future__ import annotations

import pathlib
from collections.abc import Sequence

from forms import T0_S
from report import Report, variant

GIB = 1024**3


def stat(cores: Sequence[tuple[int, float]], busy: float, present: Sequence[int] | None = None) -> str:
    """Of cores by number and the seconds that each was on line; the totals are of all, as the kernel counts."""
    rows = [(n, int(90 * busy * s), int(10 * busy * s), int(100 * (1 - busy) * s)) for n, s in cores]
    text = "cpu  {} 0 {} {} 0 0 0 0 0 0\n".format(*(sum(row[i] for row in rows) for i in (1, 2, 3)))
    for n, user, system, idle in rows:
        if present is None or n in present:
            text += f"cpu{n} {user} 0 {system} {idle} 0 0 0 0 0 0\n"
    return text + "ctxt 1\nbtime 1699000000\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"


def quota(folder: pathlib.Path, *, cores: int, limit: float, used: float, throttled: float, version: int,
          headers: bool = False) -> None:
    text = ""
    for i in range(120):
        files = {"/proc/stat": stat([(n, 1000 + i) for n in range(cores)], used / cores)}
        periods = 10 * i
        if version == 1:
            group = "/sys/fs/cgroup/cpu,cpuacct/"
            files[group + "cpu.stat"] = (f"nr_periods {periods}\nnr_throttled {int(periods * throttled)}\n"
                                         f"throttled_time {int(periods * throttled * 350e6)}\n")
            files[group + "cpu.cfs_quota_us"] = f"{int(limit * 100000)}\n"
            files[group + "cpu.cfs_period_us"] = "100000\n"
            files[group + "cpuacct.usage"] = f"{int(used * i * 1e9)}\n"
        else:
            group = "/sys/fs/cgroup/"
            files[group + "cpu.stat"] = (f"usage_usec {int(used * i * 1e6)}\nuser_usec 0\nsystem_usec 0\n"
                                         f"nr_periods {periods}\nnr_throttled {int(periods * throttled)}\n"
                                         f"throttled_usec {int(periods * throttled * 350000)}\n")
            files[group + "cpu.max"] = f"{int(limit * 100000)} 100000\n"
        text += "" if headers else f"## t={T0_S + i:.3f}\n"
        for path, content in files.items():
            text += (f"## t={T0_S + i:.3f} {path}\n" if headers else f"==> {path} <==\n") + content
    folder.joinpath("dump.txt").write_text(text)


F01 = Report("F01", "the CPU quota is the limit", "CPUQuota", quota, [
    variant(cores=96, limit=4, used=3.95, throttled=0.95, version=2, says=["95", "quota of 4 cores", "96"]),
    variant(cores=16, limit=2.5, used=2.4, throttled=0.6, version=1, says=["60", "2.5 cores"]),
    variant(cores=96, limit=4, used=3.95, throttled=0.95, version=2, headers=True, says=["95"]),
    variant(cores=96, limit=4, used=1.2, throttled=0, version=2, rule=""),
    variant(cores=16, limit=4, used=1.2, throttled=0, version=1, rule=""),
])


def group_limit(folder: pathlib.Path, *, limit_gib: float, anon_gib: Sequence[float], cache_gib: float, kill_at: int = 0,
                version: int = 2) -> None:
    """Memory goes from the first to the second amount at `kill_at`; 0: nobody is killed."""
    text = ""
    for i in range(120):
        killed = kill_at > 0 and i >= kill_at
        anon, cache = int((anon_gib[1] if killed else anon_gib[0]) * GIB), int(cache_gib * GIB)
        text += f"## t={T0_S + i:.3f}\n==> /proc/meminfo <==\nMemTotal: {1007 << 20} kB\nMemAvailable: {900 << 20} kB\n"
        group = "/sys/fs/cgroup/memory/" if version == 1 else "/sys/fs/cgroup/"
        if version == 1:
            files = {"memory.usage_in_bytes": f"{anon + cache}\n", "memory.limit_in_bytes": f"{int(limit_gib * GIB)}\n",
                     "memory.stat": f"cache {cache}\nrss {anon}\ntotal_cache {cache}\ntotal_rss {anon}\n"
                                    f"total_inactive_file {cache}\n",
                     "memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {int(killed)}\n"}
        else:
            files = {"memory.current": f"{anon + cache}\n", "memory.max": f"{int(limit_gib * GIB)}\n",
                     "memory.stat": f"anon {anon}\nfile {cache}\nshmem 0\ninactive_file {cache}\n",
                     "memory.events": f"low 0\nhigh 0\nmax 0\noom {int(killed)}\noom_kill {int(killed)}\n"}
        text += "".join(f"==> {group}{name} <==\n{content}" for name, content in files.items())
    folder.joinpath("dump.txt").write_text(text)


F03 = Report("F03", "a control group at its memory limit", "MemoryLimit", group_limit, [
    variant(limit_gib=90, anon_gib=[88, 59], cache_gib=1, kill_at=61, says=["killed", "6[0-3] s", "limit of 90", "59"]),
    variant(limit_gib=32, anon_gib=[31.5, 20], cache_gib=0.2, kill_at=80, version=1, says=["killed", "limit of 32"]),
    variant(limit_gib=90, anon_gib=[88.5, 88.5], cache_gib=0.1, says=["98", "cannot be given back"]),
    variant(limit_gib=90, anon_gib=[26, 26], cache_gib=63, rule=""),
])


def short_of_memory(folder: pathlib.Path, *, available_gib: float, some: float) -> None:
    text = ""
    for i in range(120):
        text += (f"## t={T0_S + i:.3f}\n==> /proc/meminfo <==\nMemTotal: {64 << 20} kB\n"
                 f"MemAvailable: {int(available_gib * 1024) << 10} kB\n==> /proc/pressure/memory <==\n"
                 f"some avg10=0.00 avg60=0.00 avg300=0.00 total={int(some * i * 1e6)}\n"
                 f"full avg10=0.00 avg60=0.00 avg300=0.00 total={int(some * 0.8 * i * 1e6)}\n")
    folder.joinpath("dump.txt").write_text(text)


F03B = Report("F03b", "tasks wait for memory", "MemoryLimit", short_of_memory, [
    variant(available_gib=2, some=0.6, says=["60", "3.1"]),
    variant(available_gib=40, some=0.6, rule=""),
    variant(available_gib=2, some=0.001, rule=""),
])


def off_line(folder: pathlib.Path, *, gone: Sequence[int], back_at: int, uptime: bool) -> None:
    text = ""
    for i in range(120):
        is_away = 60 <= i < back_at
        away = min(max(i - 60, 0), back_at - 60)
        cores = [(n, 1000 + i - (away if n in gone else 0)) for n in range(8)]
        present = [n for n in range(8) if not (is_away and n in gone)]
        text += (f"## t={T0_S + i:.3f}\n" + (f"==> /proc/uptime <==\n{1000 + i}.00 1.00\n" if uptime else "") +
                 f"==> /proc/stat <==\n{stat(cores, 0.3, present)}")
    folder.joinpath("dump.txt").write_text(text)


F18B = Report("F18b", "cores that are taken off line and come back", "", off_line, [
    variant(gone=[2, 3], back_at=90, uptime=False, never=["ClockJump"]),
    variant(gone=[2, 3], back_at=120, uptime=False, never=["ClockJump"]),
    variant(gone=[1, 4, 5], back_at=90, uptime=True, never=["ClockJump"]),
])
