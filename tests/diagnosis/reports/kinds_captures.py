"""Groups F and G: captures with holes and sentinels, containers, GPUs that are paid for and not used."""
from __future__ import annotations

import pathlib

from forms import GB, T0_S, Dcgm, GroupFiles, ProcDumps, Series, Smi, Steps, smi_time, write_meta

from report import Report, variant


def mig(folder: pathlib.Path, *, util: str, memory: str, power: float, form: str) -> None:
    Smi(300, 1, 1, {"utilization.gpu": lambda t, g: util, "memory.used": lambda t, g: memory,
                    "memory.total": lambda t, g: 40960, "power.draw": lambda t, g: power,
                    "power.limit": lambda t, g: 400}).write(folder)
    if form != "none":
        Steps.every(900, 330, 2).write(folder, form)


F05 = Report("F05", "MIG slice without figures", "", mig, [
    variant(util="[N/A]", memory="[Insufficient Permissions]", power=180, form="none",
            never=["LowGPUUtilization", "UnusedGPU"]),
    variant(util="[N/A]", memory="36000 MiB", power=180, form="json", never=["LowGPUUtilization", "UnusedGPU"]),
    variant(util="[Not Supported]", memory="[Unknown Error]", power=210, form="log",
            never=["LowGPUUtilization", "UnusedGPU"]),
])


def broken(folder: pathlib.Path, *, gpus: int, bad: int) -> None:
    is_bad = lambda g: g == bad  # noqa: E731
    Smi(300, 1, gpus, {
        "fan.speed": lambda t, g: "ERR!" if is_bad(g) else 60, "temperature.gpu": lambda t, g: 68,
        "power.draw": lambda t, g: 99.0 if is_bad(g) else 240 + int(t) % 9,
        "power.limit": lambda t, g: 300,
        "utilization.gpu": lambda t, g: 93 if is_bad(g) else 90 + int(t) % 7,
        "memory.used": lambda t, g: 1 if is_bad(g) else 18000, "memory.total": lambda t, g: 24576}).write(folder)


F10 = Report("F10", "a broken card", "GPULost", broken, [
    variant(gpus=1, bad=0, says=["gpu0"]),
    variant(gpus=4, bad=2, says=["gpu2"], beside=["GPUMemoryImbalance"]),
])


def vanishes(folder: pathlib.Path, *, gpus: int, gone: int, at: int) -> None:
    lines = ["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"]
    for i in range(400):
        for g in range(gpus):
            if g == gone and i >= at:
                continue
            lines.append(f"{smi_time(i)}, {g}, {92 + (i + g) % 5} %, 18000 MiB, 24576 MiB")
    folder.joinpath("smi.csv").write_text("\n".join(lines) + "\n")


F12 = Report("F12", "a GPU vanishes from the list", "GPULost", vanishes, [
    variant(gpus=8, gone=5, at=200, says=["gpu5"]),
    variant(gpus=2, gone=1, at=120, says=["gpu1"]),
])


def flat_zero(folder: pathlib.Path, *, util: float, power: float) -> None:
    Smi(300, 1, 1, {"utilization.gpu": lambda t, g: util, "power.draw": lambda t, g: power + int(t) % 4,
                    "power.limit": lambda t, g: 400.0}).write(folder)
    series = Series()
    for metric in ("gpu.graphics_active.percent", "gpu.sm_active.percent"):
        series.add(metric, "gpu0", 300, 1, 0.0, unit="%")
    series.write(folder)


F16 = Report("F16", "profiling figures stuck at 0", "", flat_zero, [
    variant(util=99, power=365, never=["LowGPUEfficiency", "UnusedGPU"]),
    variant(util=97, power=340, never=["LowGPUEfficiency", "UnusedGPU"]),
])


def cache_in_group(folder: pathlib.Path, *, limit_gb: float, current_gb: float, inactive_gb: float) -> None:
    series = Series()
    series.add("cgroup.memory.limit.bytes", "", 600, 5, limit_gb * GB, unit="By")
    series.add("cgroup.memory.current.bytes", "", 600, 2, current_gb * GB, unit="By")
    series.add("cgroup.memory.working_set.bytes", "", 600, 2, (current_gb - inactive_gb) * GB, unit="By")
    series.add("memory.total.bytes", "", 600, 5, 1007 * GB, unit="By")
    series.write(folder)
    Steps.every(1200, 500, 4).write(folder, "json")


F04 = Report("F04", "page cache fills a group", "", cache_in_group, [
    variant(limit_gb=90, current_gb=86, inactive_gb=60),
])


def odd_cores(folder: pathlib.Path, *, numbers: list[int], hot: int) -> None:
    proc = ProcDumps(200, 1, len(numbers))
    proc.core_numbers = numbers
    proc.default_busy = 0.03
    proc.busy = {hot: 0.99}
    proc.write(folder)


F18 = Report("F18", "core numbers with holes", "HotCore", odd_cores, [
    variant(numbers=[0, 1, 8, 9, 16, 17, 24, 25], hot=16, says=["core 16"]),
    variant(numbers=list(range(0, 96, 2)), hot=94, says=["core 94"]),
])


def wraps(folder: pathlib.Path, *, start: int, per_s: float) -> None:
    text = ""
    for i in range(300):
        received = int(start + i * per_s) % 2**32
        text += (f"## t={T0_S + i:.3f}\nInter-|   Receive                                                |  Transmit\n"
                 " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo "
                 "colls carrier compressed\n"
                 f"  eth0: {received} {i * 9} 0 0 0 0 0 0 {i * 1000} {i} 0 0 0 0 0 0\n")
    folder.joinpath("net_dev.txt").write_text(text)


F21 = Report("F21", "a counter of 32 bits wraps", "", wraps, [variant(start=4258368365, per_s=54e6)])


def suspended(folder: pathlib.Path, *, gap_s: float, uptime: bool) -> None:
    text, boot = "", 0.0
    for i in range(600):
        slept = gap_s if i >= 300 else 0
        boot = 5000 + i + slept
        text += f"## t={T0_S + i + slept:.3f}\n" + (f"### /proc/uptime\n{boot:.2f} {boot:.2f}\n" if uptime else "")
        text += (f"### /proc/stat\ncpu  {80 * i} 0 {10 * i} {110 * i} 0 0 0 0 0 0\n"
                 f"cpu0 {40 * i} 0 {5 * i} {55 * i} 0 0 0 "
                 f"0 0 0\ncpu1 {40 * i} 0 {5 * i} {55 * i} 0 0 0 0 0 0\nctxt {i}\nbtime 1699000000\nprocesses 1\n"
                 "procs_running 1\nprocs_blocked 0\n")
    folder.joinpath("proc.txt").write_text(text)


F22 = Report("F22", "the machine slept", "", suspended, [
    variant(gap_s=6701, uptime=True, never=["ClockJump", "LowGPUUtilization"]),
    variant(gap_s=6701, uptime=False, rule="ClockJump", says=["or the machine slept", "uptime"]),
])


def held(folder: pathlib.Path, *, gpus: int, memory: float) -> None:
    Smi(900, 2, gpus, {"utilization.gpu": lambda t, g: 0, "memory.used": lambda t, g: memory * 40960,
                       "memory.total": lambda t, g: 40960, "power.draw": lambda t, g: 58 + int(t) % 3}).write(folder)
    write_meta(folder, price_per_hour=4.1)


G07 = Report("G07", "idle, and its memory is held", "UnusedGPU", held, [
    variant(gpus=1, memory=0.92, says=["held|hold", "92"]),
    variant(gpus=4, memory=0.6, says=["held|hold"]),
])


def one_of_many(folder: pathlib.Path, *, uses: list[float], form: str) -> None:
    Smi(400, 1, len(uses), {"utilization.gpu": lambda t, g: max(0.0, uses[g] + int(t) % 3 - 1) if uses[g] else 0,
                            "memory.used": lambda t, g: 9000 if uses[g] else 3,
                            "memory.total": lambda t, g: 16384}).write(folder)
    if form != "none":
        Steps.every(800, 500, 4).write(folder, form)
    write_meta(folder, instance_type="p3.16xlarge", price_per_hour=24.48)


G08 = Report("G08", "one GPU of several works", "UnusedGPU", one_of_many, [
    variant(uses=[95, 0, 0, 0, 0, 0, 0, 0], form="none", says=["7"]),
    variant(uses=[0, 0, 97, 0], form="log", says=["3"]),
])
G09 = Report("G09", "most GPUs idle, the others little used", "UnusedGPU", one_of_many, [
    variant(uses=[30, 5.5, 0, 0, 0, 0, 0, 0], form="none", says=["6|7"], beside=["LowGPUUtilization", "LoadBalancing"]),
])


def oversized(folder: pathlib.Path, *, util: float, used: float, total: float, form: str) -> None:
    Smi(600, 1, 1, {"utilization.gpu": lambda t, g: util + int(t) % 2, "memory.used": lambda t, g: used,
                    "memory.total": lambda t, g: total, "power.draw": lambda t, g: 52 + int(t) % 3}).write(folder)
    if form != "none":
        Steps.every(1200, 500, 2).write(folder, form)
    write_meta(folder, price_per_hour=1.18)


G10 = Report("G10", "far too large a GPU", "LowGPUUtilization|BatchSize", oversized, [
    variant(util=2, used=1024, total=40960, form="none", says=["smaller"]),
    variant(util=6, used=2500, total=81920, form="json", says=["smaller"]),
])


def dcgm_one_of_many(folder: pathlib.Path, *, gpus: int, busy: int, form: str) -> None:
    Dcgm(400, gpus, {"DCGM_FI_DEV_GPU_UTIL": lambda t, g: 96 if g < busy else 0,
                     "DCGM_FI_DEV_FB_USED": lambda t, g: 30000 if g < busy else 4,
                     "DCGM_FI_DEV_FB_FREE": lambda t, g: 10500 if g < busy else 40496,
                     "DCGM_FI_DEV_POWER_USAGE": lambda t, g: 320 if g < busy else 55}).write(folder, form)


G08B = Report("G08b", "one GPU of several works, by DCGM", "UnusedGPU", dcgm_one_of_many, [
    variant(gpus=8, busy=1, form="dmon", says=["7 of 8"]),
    variant(gpus=4, busy=1, form="answers", says=["3 of 4"]),
    variant(gpus=4, busy=4, form="answers", rule="", never=["UnusedGPU"]),
])


def dcgm_growth(folder: pathlib.Path, *, mib_per_s: float, form: str) -> None:
    used = lambda t, g: 20000 + mib_per_s * t  # noqa: E731
    Dcgm(600, 1, {"DCGM_FI_DEV_GPU_UTIL": lambda t, g: 95, "DCGM_FI_DEV_FB_USED": used,
                  "DCGM_FI_DEV_FB_FREE": lambda t, g: 40500 - used(t, g)}).write(folder, form)


B01B = Report("B01b", "GPU memory grows, by DCGM", "GPUMemoryLeak", dcgm_growth, [
    variant(mib_per_s=8, form="dmon", says=["in use"]),
    variant(mib_per_s=5, form="answers", says=["in use"]),
    variant(mib_per_s=0, form="answers", rule="", never=["GPUMemoryLeak"]),
])


def dcgm_flat_zero(folder: pathlib.Path, *, util: float, power: float, form: str) -> None:
    Dcgm(300, 1, {"DCGM_FI_DEV_GPU_UTIL": lambda t, g: util, "DCGM_FI_DEV_POWER_USAGE": lambda t, g: power + t % 4,
                  "DCGM_FI_PROF_GR_ENGINE_ACTIVE": lambda t, g: 0.0,
                  "DCGM_FI_PROF_SM_ACTIVE": lambda t, g: 0.0}).write(folder, form)


F16B = Report("F16b", "profiling figures stuck at 0, by DCGM", "", dcgm_flat_zero, [
    variant(util=99, power=365, form="dmon", never=["LowGPUEfficiency", "UnusedGPU"]),
    variant(util=98, power=350, form="answers", never=["LowGPUEfficiency", "UnusedGPU"]),
])


def group_memory(folder: pathlib.Path, *, limit_gb: float, begin_gb: float, mb_per_s: float, cache_gb: float) -> None:
    group = GroupFiles(600)
    group.limit, group.memory, group.cache = limit_gb * GB, lambda t: begin_gb * GB + mb_per_s * 1e6 * t, cache_gb * GB
    group.write(folder)


F04B = Report("F04b", "memory of a control group, by its files", "HostMemoryGrowth", group_memory, [
    variant(limit_gb=16, begin_gb=4, mb_per_s=8, cache_gb=2, says=["limit of its group"]),
    variant(limit_gb=64, begin_gb=8, mb_per_s=0, cache_gb=54, rule="", never=["HostMemoryGrowth"]),
])
