"""Group B: memory of the GPU and of the machine."""
from __future__ import annotations

import pathlib

from forms import GB, T0_S, ProcDumps, Series, Smi, Steps, write_meta

from report import Report, variant


def gpu_memory(folder: pathlib.Path, mib, total: float, duration_s: float, every_s: float, gpus: int = 1,
               util=lambda t, g: 95.0) -> None:
    Smi(duration_s, every_s, gpus, {"utilization.gpu": util, "memory.used": mib,
                                    "memory.total": lambda t, g: total}).write(folder)


def growth(folder: pathlib.Path, *, start: float, mib_per_step: float, step_ms: float, count: int, total: float,
           every_s: float, form: str) -> None:
    steps = Steps.every(count, step_ms, 1 if form != "log" else None)
    if form != "none":
        steps.write(folder, form)
    per_s = mib_per_step / step_ms * 1000
    gpu_memory(folder, lambda t, g: min(total, start + per_s * t), total, steps.end_s(), every_s)


B01 = Report("B01", "GPU memory grows each step", "GPUMemoryLeak", growth, [
    variant(start=4000, mib_per_step=12, step_ms=250, count=800, total=24576, every_s=1, form="json",
            says=["12"], never=["MemoryFragmentation"]),
    variant(start=20000, mib_per_step=3, step_ms=120, count=3000, total=40960, every_s=0.5, form="log",
            says=["3\\."]),
    variant(start=8000, mib_per_step=40, step_ms=900, count=300, total=81920, every_s=2, form="none"),
])
B02 = Report("B02", "GPU memory grows in few steps until it is full", "GPUMemoryLeak", growth, [
    variant(start=3000, mib_per_step=600, step_ms=1500, count=12, total=12288, every_s=1, form="json"),
    variant(start=6000, mib_per_step=900, step_ms=2000, count=18, total=24576, every_s=1, form="none"),
    variant(start=2000, mib_per_step=350, step_ms=800, count=20, total=10240, every_s=0.5, form="log"),
])


def spikes(folder: pathlib.Path, *, flat: float, spike: float, total: float, form: str, every_s: float = 1) -> None:
    steps = Steps.every(1200, 540, 10)
    steps.write(folder, form)
    at = {int(steps.end_s() * share) for share in (0.11, 0.34, 0.35, 0.62, 0.88)}
    gpu_memory(folder, lambda t, g: spike if int(t) in at else flat, total, steps.end_s(), every_s)


B03 = Report("B03", "rare large inputs", "GPUMemoryHeadroom", spikes, [
    variant(flat=19500, spike=23700, total=24576, form="json", never=["GPUMemoryLeak"]),
    variant(flat=60000, spike=79500, total=81920, form="log", never=["GPUMemoryLeak"]),
])


def step_up(folder: pathlib.Path, *, before: float, after: float, total: float, at: float, form: str) -> None:
    steps = Steps.every(3000, 100, 2)
    steps.write(folder, form)
    end = steps.end_s()
    gpu_memory(folder, lambda t, g: before if t < at * end else after, total, end, 1)


B04 = Report("B04", "memory up in one step, then flat", "", step_up, [
    variant(before=10000, after=18000, total=24576, at=0.5, form="json", never=["GPUMemoryLeak"]),
    variant(before=10000, after=23900, total=24576, at=0.6, form="log",
            rule="GPUMemoryIncrease|GPUMemoryHeadroom", never=["GPUMemoryLeak"], says=["one step"]),
])


def fragmentation(folder: pathlib.Path, *, grow_mb_min: float, allocated_gb: float, total: float,
                  minutes: float) -> None:
    seconds = minutes * 60
    steps = Steps.every(int(seconds * 2), 500, 5)
    steps.write(folder, "json")
    series = Series()
    reserved = lambda t: (allocated_gb + 1.5) * GB + grow_mb_min * 1e6 * t / 60  # noqa: E731
    series.add("allocator.allocated.bytes", "main/cuda:0", seconds, 2, allocated_gb * GB, unit="By")
    series.add("allocator.reserved.bytes", "main/cuda:0", seconds, 2, reserved, unit="By")
    series.write(folder)
    gpu_memory(folder, lambda t, g: (reserved(t) + 0.6 * GB) / 1048576, total, seconds, 1)


B06 = Report("B06", "reserved grows, allocated is flat", "MemoryFragmentation", fragmentation, [
    variant(grow_mb_min=50, allocated_gb=14, total=81920, minutes=90, never=["GPUMemoryLeak"]),
    variant(grow_mb_min=400, allocated_gb=6, total=24576, minutes=20, never=["GPUMemoryLeak"]),
])

OOM = {
    "new": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {ask:.2f} GiB. GPU 0 has a total capacity of "
           "{total:.2f} GiB of which {free:.2f} GiB is free. Including non-PyTorch memory, this process has "
           "{process:.2f} GiB memory in use. Of the allocated memory {allocated:.2f} GiB is allocated by PyTorch, and "
           "{gap:.2f} GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
           "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    "old": "RuntimeError: CUDA out of memory. Tried to allocate {ask:.2f} GiB (GPU 0; {total:.2f} GiB total capacity; "
           "{allocated:.2f} GiB already allocated; {free:.2f} GiB free; {reserved:.2f} GiB reserved in total by "
           "PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
    "mib": "[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {ask_mib:.0f} MiB. GPU 3 has a "
           "total capacty of {total:.2f} GiB of which {free_mib:.0f} MiB is free. Process 4711 has {process:.2f} GiB "
           "memory in use. Of the allocated memory {allocated:.2f} GiB is allocated by PyTorch, and {gap_mib:.0f} MiB "
           "is reserved by PyTorch but unallocated.",
}


def oom_line(folder: pathlib.Path, *, form: str, ask: float, total: float, free: float, allocated: float, gap: float,
             steps: int) -> None:
    if steps:
        Steps.every(steps, 400, 4).write(folder, "log")
    line = OOM[form].format(ask=ask, total=total, free=free, allocated=allocated, gap=gap, reserved=allocated + gap,
                            process=allocated + gap + 0.6, ask_mib=ask * 1024, free_mib=free * 1024, gap_mib=gap * 1024)
    with folder.joinpath("train.log").open("a") as log:
        log.write("Traceback (most recent call last):\n  File \"train.py\", line 88, in <module>\n" + line + "\n")


B07 = Report("B07", "out of memory, with its five numbers", "OutOfMemory", oom_line, [
    variant(form="new", ask=1.96, total=79.18, free=1.44, allocated=75.31, gap=1.83, steps=0,
            says=["1\\.96", "75\\.3", "1\\.83"]),
    variant(form="old", ask=0.5, total=23.70, free=0.21, allocated=14.10, gap=8.30, steps=120,
            says=["8\\.3", "14\\.1", "fragment|expandable"]),
    variant(form="mib", ask=0.25, total=39.39, free=0.11, allocated=37.9, gap=0.7, steps=300, says=["256 MiB|0\\.25"]),
])


def all_mapped(folder: pathlib.Path, *, gpus: int, share: float, total: float, working: int, form: str) -> None:
    gpu_memory(folder, lambda t, g: share * total, total, 240, 1, gpus,
               lambda t, g: 97 + int(t) % 3 if g < working else 0)
    if form != "none":
        Steps.every(800, 300, 3).write(folder, form)
    write_meta(folder, framework="tensorflow", price_per_hour=12.24)


B09 = Report("B09", "memory taken on every GPU, one works", "UnusedGPU", all_mapped, [
    variant(gpus=4, share=0.95, total=22528, working=1, form="none", says=["3"], never=["GPUMemoryLeak"]),
    variant(gpus=8, share=0.97, total=16384, working=2, form="json", says=["6"]),
])


def contexts_on_gpu0(folder: pathlib.Path, *, gpus: int, base: float, extra: float, total: float, apps: bool) -> None:
    Steps.every(600, 400, 4, ranks=gpus).write(folder, "json")
    gpu_memory(folder, lambda t, g: base + (extra * (gpus - 1) if g == 0 else 0), total, 240, 1, gpus)
    if not apps:
        return
    lines = ["timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]"]
    for i in range(24):
        from forms import smi_time
        for g in range(gpus):
            lines.append(f"{smi_time(i * 10)}, GPU-0000000{g}-aaaa, {5000 + g}, python, {base:.0f} MiB")
        for g in range(1, gpus):
            lines.append(f"{smi_time(i * 10)}, GPU-00000000-aaaa, {5000 + g}, python, {extra:.0f} MiB")
    folder.joinpath("apps.csv").write_text("\n".join(lines) + "\n")


B10 = Report("B10", "all ranks have a context on GPU 0", "GPUMemoryImbalance", contexts_on_gpu0, [
    variant(gpus=8, base=10000, extra=500, total=16384, apps=False, says=["gpu0"]),
    variant(gpus=4, base=14000, extra=1200, total=24576, apps=True, says=["gpu0", "4"]),
])


def worker_memory(folder: pathlib.Path, *, workers: int, pss_mb_s: float, rss_gb: float, ram_gb: float, minutes: float,
                  form: str) -> None:
    seconds = minutes * 60
    Steps.every(int(seconds * 2), 500, 5).write(folder, "json")
    pss = lambda t: 0.4 * GB + pss_mb_s * 1e6 * t / workers  # noqa: E731
    if form == "smaps":
        text = []
        for i in range(int(seconds / 10)):
            text.append(f"## t={T0_S + 10 * i:.0f}\n### /proc/4000/status\nName:\tpython\nPPid:\t1\n"
                        f"VmRSS:\t{rss_gb * 1e6:.0f} kB\n")
            text += [f"### /proc/{4001 + w}/status\nName:\tpython\nPPid:\t4000\n### /proc/{4001 + w}/smaps_rollup\n"
                     f"Rss: {rss_gb * GB / 1024:.0f} kB\nPss: {pss(10 * i) / 1024:.0f} kB\n" for w in range(workers)]
        folder.joinpath("smaps.txt").write_text("".join(text))
    else:
        series = Series()
        for i in range(workers):
            series.add("process.memory.rss.bytes", f"loader {i}", seconds, 2, rss_gb * GB, unit="By")
            series.add("process.memory.pss.bytes", f"loader {i}", seconds, 10, pss, unit="By")
        series.write(folder)
    proc = ProcDumps(seconds, 2, 16)
    kb = ram_gb * 1e6
    left = lambda t: kb * 0.8 - pss_mb_s * 1e3 * t  # noqa: E731
    proc.memory = {"MemTotal": kb, "MemFree": lambda t: max(0, left(t) - 2e6), "MemAvailable": left, "Buffers": 1e5,
                   "Cached": 2e6}
    if form != "series":
        proc.write(folder)


B11 = Report("B11", "workers' shared pages are copied", "HostMemoryGrowth", worker_memory, [
    variant(workers=8, pss_mb_s=7, rss_gb=5, ram_gb=64, minutes=30, form="both", says=["PSS|loader", "7"]),
    variant(workers=32, pss_mb_s=25, rss_gb=3, ram_gb=256, minutes=20, form="both", says=["PSS|loader"]),
    variant(workers=6, pss_mb_s=20, rss_gb=4, ram_gb=64, minutes=15, form="smaps", says=["PSS|loader"]),
])


def host_growth(folder: pathlib.Path, *, mb_s: float, ram_gb: float, minutes: float, cache_only: bool = False) -> None:
    seconds = minutes * 60
    Steps.every(int(seconds * 2), 500, 5).write(folder, "log")
    proc = ProcDumps(seconds, 2, 16)
    kb = ram_gb * 1e6
    free = lambda t: max(0.02 * kb, kb * 0.8 - mb_s * 1e3 * t)  # noqa: E731
    proc.memory = {"MemTotal": kb, "MemFree": free,
                   "MemAvailable": (lambda t: 0.78 * kb) if cache_only else free, "Buffers": 1e5,
                   "Cached": (lambda t: kb * 0.98 - free(t)) if cache_only else 1e6}
    proc.write(folder)


B11b = Report("B11b", "memory of the machine, /proc/meminfo alone", "HostMemoryGrowth", host_growth, [
    variant(mb_s=7, ram_gb=32, minutes=30, says=["7"]),
    variant(mb_s=40, ram_gb=128, minutes=30, cache_only=True, rule=""),
])


def stairs(folder: pathlib.Path, *, epochs: int, epoch_s: float, rise_gb: float, ram_gb: float, form: str) -> None:
    seconds = epochs * epoch_s
    Steps.every(int(seconds * 2), 500, 5).write(folder, "json")
    used = lambda t: 14.5 + rise_gb * int(t / epoch_s)  # noqa: E731
    if form == "meminfo":
        proc = ProcDumps(seconds, 2, 16)
        proc.memory = {"MemTotal": ram_gb * 1e6, "MemFree": lambda t: (ram_gb - used(t)) * 1e6,
                       "MemAvailable": lambda t: (ram_gb - used(t)) * 1e6, "Buffers": 1e5, "Cached": 1e6}
        proc.write(folder)
    else:
        series = Series()
        series.add("process.memory.rss.bytes", "main", seconds, 2, lambda t: used(t) * GB, unit="By")
        series.add("memory.total.bytes", "", seconds, 5, ram_gb * GB, unit="By")
        series.add("memory.available.bytes", "", seconds, 2, lambda t: (ram_gb - used(t)) * GB, unit="By")
        series.write(folder)


def ps_growth(folder: pathlib.Path, *, mb_s: float, workers: int, ram_gb: float, minutes: float) -> None:
    seconds = int(minutes * 60)
    text = []
    for t in range(0, seconds, 5):
        rows = ["  900     1   3000    1 bash", f" 1000   900 {4e6 + mb_s * 1e3 * t:.0f}   40 python train.py"]
        rows += [f" {1001 + w}  1000 800000    3 python train.py" for w in range(workers)]
        text.append(f"## t={T0_S + t:.0f}\n  PID  PPID    RSS NLWP COMMAND\n" + "\n".join(rows) + "\n")
    folder.joinpath("ps.txt").write_text("".join(text))
    proc = ProcDumps(seconds, 5, 16)
    left = lambda t: ram_gb * 0.7e6 - mb_s * 1e3 * t  # noqa: E731
    proc.memory = {"MemTotal": ram_gb * 1e6, "MemFree": left, "MemAvailable": left, "Buffers": 1e5, "Cached": 1e6}
    proc.write(folder)


B11c = Report("B11c", "the training process grows, by ps", "HostMemoryGrowth", ps_growth, [
    variant(mb_s=9, workers=4, ram_gb=48, minutes=25, says=["main"]),
    variant(mb_s=0, workers=4, ram_gb=48, minutes=25, rule=""),
])

B12 = Report("B12", "memory goes up at each epoch", "HostMemoryGrowth", stairs, [
    variant(epochs=6, epoch_s=150, rise_gb=10, ram_gb=128, form="meminfo", says=["10|9\\.[89]|stair|epoch"]),
    variant(epochs=5, epoch_s=240, rise_gb=5.3, ram_gb=64, form="series", says=["5\\.3|stair|epoch"]),
])


def shm(folder: pathlib.Path, *, size_gb: float, first: float, last: float, form: str, hangs: bool) -> None:
    run_s, end_s = 200.0, 300.0 if hangs else 200.0
    Steps.every(int(run_s / 0.25), 250, 20).write(folder, "json")
    level = lambda t: size_gb * (first + (last - first) * min(1, t / run_s))  # noqa: E731
    if form == "series":
        series = Series()
        series.add("shm.total.bytes", "", end_s, 1, size_gb * GB, unit="By")
        series.add("shm.used.bytes", "", end_s, 1, lambda t: level(t) * GB, unit="By")
        series.write(folder)
    else:
        text = ""
        for i in range(int(end_s)):
            used = level(i) * 1e6
            text += (f"## t={T0_S + i:.0f}\nFilesystem     1K-blocks      Used Available Use% Mounted on\n"
                     f"shm            {size_gb * 1e6:.0f} {used:.0f} {size_gb * 1e6 - used:.0f} "
                     f"{100 * used / size_gb / 1e6:.0f}% /dev/shm\n"
                     f"/dev/sda1      500000000 200000000 300000000  40% /\n")
        folder.joinpath("df.txt").write_text(text)
    Smi(end_s, 1, 1, {"utilization.gpu": lambda t, g: 90 if t < run_s else 0}).write(folder)


B13 = Report("B13", "/dev/shm fills up", "SharedMemoryFull", shm, [
    variant(size_gb=1.0, first=0.5, last=0.98, form="series", hangs=True, says=["98|97"], never=["GPUMemoryLeak"]),
    variant(size_gb=0.064, first=0.3, last=0.93, form="df", hangs=False, says=["93|92"]),
    variant(size_gb=16, first=0.2, last=0.4, form="df", hangs=False, rule=""),
])
