"""Group A: the GPU waits, or only looks busy."""
from __future__ import annotations

import pathlib

from forms import MB, ProcDumps, Series, Smi, Steps, kineto, write_meta

from report import Report, variant


def workers(series: Series, count: int, cores_each: float, duration_s: float) -> Series:
    for i in range(count):
        series.add("process.cpu.seconds", f"loader {i}", duration_s, 1, cores_each, unit="s", kind="counter")
        series.add("process.threads", f"loader {i}", duration_s, 1, 3, unit="{thread}")
    return series


def few_workers(folder: pathlib.Path, *, wait_ms: float, step_ms: float, count: int, workers_n: int, cores: int,
                form: str, gpus: int = 1) -> None:
    steps = Steps.every(count, wait_ms + step_ms, wait_ms)
    steps.write(folder, form)
    end = steps.end_s()
    proc = ProcDumps(end, 1, cores)
    proc.busy = {n: 0.99 for n in range(workers_n)}
    proc.write(folder)
    Smi(end, 1, gpus, {"utilization.gpu": lambda t, g: 100 * step_ms / (step_ms + wait_ms),
                       "memory.used": lambda t, g: 9000, "memory.total": lambda t, g: 24576}).write(folder)
    write_meta(folder, framework="pytorch", num_workers=workers_n)


A01 = Report("A01", "too few workers, cores idle", "InputBound", few_workers, [
    variant(wait_ms=217, step_ms=100, count=50, workers_n=2, cores=16, form="json", says=["6[0-9]"]),
    variant(wait_ms=90, step_ms=140, count=400, workers_n=1, cores=8, form="log", says=["90 of 230"]),
    variant(wait_ms=800, step_ms=350, count=120, workers_n=2, cores=32, form="csv", gpus=4, says=["69|70"]),
])


def trace_of_loader(folder: pathlib.Path, *, step_ms: float, wait_ms: float, compute_ms: float, steps: int) -> None:
    kineto(folder, step_ms=step_ms, wait_ms=wait_ms, compute_ms=compute_ms, steps=steps)
    write_meta(folder, num_workers=6, prefetch_factor=64)


A02 = Report("A02", "most of a trace's steps inside the loader", "InputBound", trace_of_loader, [
    variant(step_ms=200, wait_ms=120, compute_ms=75, steps=6, says=["60|12[01]"]),
    variant(step_ms=90, wait_ms=30, compute_ms=55, steps=10, says=["33|30"]),
    variant(step_ms=100, wait_ms=0.5, compute_ms=97, steps=8, rule=""),
])


def starved_cores(folder: pathlib.Path, *, gpus: int, cores: int, wait: float, step_ms: float, form: str) -> None:
    steps = Steps.every(200, step_ms, step_ms * wait, ranks=gpus)
    steps.write(folder, form)
    end = steps.end_s()
    proc = ProcDumps(end, 1, cores)
    proc.default_busy = 0.97
    proc.running = cores * 1.3
    proc.write(folder, together=True)
    Smi(end, 1, gpus, {"utilization.gpu": lambda t, g: 20 + (g * 7 + int(t)) % 5}).write(folder)


A03 = Report("A03", "too few cores for the GPUs", "InputBound", starved_cores, [
    variant(gpus=8, cores=8, wait=0.6, step_ms=420, form="json", says=["cores"]),
    variant(gpus=4, cores=6, wait=0.55, step_ms=300, form="csv", says=["cores"]),
])


def full_memory_idle(folder: pathlib.Path, *, every_s: float, total: float, form: str) -> None:
    Smi(300, every_s, 1, {"utilization.gpu": lambda t, g: 96 if int(t / every_s) % 20 == 0 else 0,
                          "memory.used": lambda t, g: 0.95 * total, "memory.total": lambda t, g: total},
        units=form == "units").write(folder)


A04 = Report("A04", "memory full, hardly used", "LowGPUUtilization", full_memory_idle, [
    variant(every_s=1, total=24576, form="units", never=["GPUMemoryLeak"]),
    variant(every_s=0.5, total=81920, form="bare", never=["GPUMemoryLeak"]),
])


def square_wave(folder: pathlib.Path, *, on_s: float, off_s: float, every_s: float, await_ms: float, form: str) -> None:
    period = on_s + off_s
    is_on = lambda t: t % period < on_s  # noqa: E731
    duration = period * 40
    Smi(duration, every_s, 1, {"utilization.gpu": lambda t, g: 90 if is_on(t) else 0}).write(folder)
    proc = ProcDumps(duration, 0.5, 8)
    proc.disks = {"sda": {"reads": lambda t: 10 if is_on(t) else 180, "read": lambda t: MB if is_on(t) else 14 * MB,
                          "busy": lambda t: 0.1 if is_on(t) else 0.99, "await_ms": await_ms,
                          "queue": lambda t: 0 if is_on(t) else 8}}
    proc.iowait = lambda t: 0.02 if is_on(t) else 0.5
    proc.write(folder)
    if form != "none":
        Steps.every(int(40 * period), lambda i: 1000, lambda i: 1000 * off_s / period).write(folder, form)


A05 = Report("A05", "GPU by fits and starts while a disk is busy", "StorageBound", square_wave, [
    variant(on_s=3, off_s=6, every_s=0.2, await_ms=40, form="none"),
    variant(on_s=2, off_s=3, every_s=0.5, await_ms=25, form="log"),
])


def every_nth(folder: pathlib.Path, *, fast_ms: float, slow_ms: float, period: int, form: str, told: str) -> None:
    at = lambda i: slow_ms if i % period == period - 1 else fast_ms  # noqa: E731
    steps = Steps.every(120 * period // 4, at, (lambda i: max(0.0, at(i) - 0.9 * fast_ms)) if told != "none" else None)
    steps.write(folder, form)
    if told == "meta":
        write_meta(folder, num_workers=period)
    else:
        workers(Series(), period, 0.6, steps.end_s()).write(folder)


A06 = Report("A06", "slow each num_workers steps", "InputBound", every_nth, [
    variant(fast_ms=80, slow_ms=1200, period=4, form="json", told="series", says=["4"], never=["CheckpointStall"]),
    variant(fast_ms=150, slow_ms=2500, period=12, form="log", told="meta", says=["12"],
            never=["CheckpointStall"]),
    variant(fast_ms=60, slow_ms=700, period=6, form="csv", told="none", says=["6"], never=["CheckpointStall"],
            rule="InputBound|StepOutlier"),
])


def nth_and_disk(folder: pathlib.Path, *, period: int, mb: float, form: str, mount: str) -> None:
    at = lambda i: 2400.0 if i % period == period - 1 else 200.0  # noqa: E731
    steps = Steps.every(40 * period, at, lambda i: max(0.0, at(i) - 190))
    steps.write(folder, form)
    proc = ProcDumps(steps.end_s(), 1, 16)
    proc.disks = {mount: {"reads": mb * 4, "read": mb * MB, "busy": 0.98, "await_ms": 18, "queue": 16}}
    proc.iowait = 0.3
    proc.write(folder)
    write_meta(folder, num_workers=period)


A07 = Report("A07", "slow each num_workers steps, disk flat", "StorageBound", nth_and_disk, [
    variant(period=8, mb=180, form="json", mount="nvme0n1", says=["180", "8"]),
    variant(period=16, mb=95, form="log", mount="sda", says=["95", "16"]),
])


def disk_full(folder: pathlib.Path, *, busy: float, mb: float, reads: float, await_ms: float, queue: float, gpu: float,
              wait: float | None, form: str, step_ms: float = 500) -> None:
    steps = Steps.every(240, step_ms, None if wait is None else step_ms * wait)
    if form != "none":
        steps.write(folder, form)
    end = steps.end_s()
    proc = ProcDumps(end, 1, 8)
    proc.disks = {"sdb": {"reads": reads, "read": mb * MB, "busy": busy, "await_ms": await_ms, "queue": queue},
                  "sda": {"reads": 2, "read": 0.1 * MB, "busy": 0.01}}
    proc.iowait = 0.4
    proc.write(folder)
    Smi(end, 1, 1, {"utilization.gpu": lambda t, g: gpu + int(t) % 3}).write(folder)


A09 = Report("A09", "slow hard disk, large reads", "StorageBound", disk_full, [
    variant(busy=0.99, mb=60, reads=120, await_ms=12, queue=2, gpu=12, wait=0.8, form="json", says=["60", "sdb"]),
    variant(busy=1.0, mb=110, reads=300, await_ms=8, queue=3, gpu=18, wait=None, form="none", says=["110", "sdb"]),
])
A11 = Report("A11", "hard disk with a queue", "StorageBound", disk_full, [
    variant(busy=0.99, mb=45, reads=400, await_ms=25, queue=30, gpu=20, wait=0.75, form="log", says=["25|30"]),
    variant(busy=0.97, mb=70, reads=200, await_ms=60, queue=24, gpu=25, wait=None, form="none"),
])
A12 = Report("A12", "hard disk, many small reads", "StorageBound", disk_full, [
    variant(busy=1.0, mb=12, reads=180, await_ms=6, queue=1.2, gpu=8, wait=0.85, form="json", says=["180"]),
    variant(busy=1.0, mb=4, reads=130, await_ms=9, queue=2, gpu=11, wait=0.9, form="csv", says=["130"]),
])


def network_mount(folder: pathlib.Path, *, rx_mb: float, link_mb: float, iowait: float, wait: float, form: str,
                  mount: str) -> None:
    steps = Steps.every(300, 600, 600 * wait)
    steps.write(folder, form)
    end = steps.end_s()
    proc = ProcDumps(end, 1, 16)
    proc.nics = {"eth0": (lambda t: rx_mb * MB * (1 + 0.004 * (int(t) % 3)), 1.5 * MB), "lo": (1000, 1000)}
    proc.disks = {"nvme0n1": {"reads": 1, "read": 0.05 * MB, "busy": 0.005}}
    proc.iowait = iowait
    proc.write(folder)
    Smi(end, 1, 1, {"utilization.gpu": lambda t, g: 100 * (1 - wait)}).write(folder)
    if mount == "mountstats":
        text = ""
        for i in range(int(end)):
            read = int(rx_mb * MB * i)
            text += (f"## t={1_700_000_000 + i}\ndevice nas:/export mounted on /data with fstype nfs4 statvers=1.1\n"
                     f"\topts:\trw,vers=4.2\n\tage:\t{1000 + i}\n\tbytes:\t{read} 0 0 0 {read} 0 0 0\n"
                     f"\tper-op statistics\n\t        READ: {read // 262144} {read // 262144} 0 {read // 1000} {read}"
                     f" 100 {read // 26214} {read // 26214} 0\n")
        folder.joinpath("mountstats.txt").write_text(text)
    elif mount == "meta":
        write_meta(folder, dataset_path="/mnt/nfs/imagenet", data_mount="nfs", nic_gbit=1)


A10 = Report("A10", "NFS at the link's speed", "NetworkMountBound", network_mount, [
    variant(rx_mb=117, link_mb=125, iowait=0.35, wait=0.7, form="json", mount="mountstats", says=["117|116"]),
    variant(rx_mb=112, link_mb=125, iowait=0.25, wait=0.6, form="log", mount="meta", says=["112|113"]),
    variant(rx_mb=290, link_mb=312, iowait=0.4, wait=0.8, form="csv", mount="none", says=["29[0-3]"]),
])


def epochs_of_cache(folder: pathlib.Path, *, fits: bool, epoch_s: int, form: str) -> None:
    is_first = lambda t: t < epoch_s  # noqa: E731
    wait = lambda i: 0.0  # noqa: E731
    ms_cold, ms_warm = 400.0, 400.0 if not fits else 130.0
    n = int(epoch_s * 1000 / ms_cold)
    wait = lambda i: 280.0 if i < n or not fits else 10.0  # noqa: E731
    steps = Steps.every(int(n + 3 * epoch_s * 1000 / ms_warm), lambda i: ms_cold if i < n else ms_warm, wait)
    steps.write(folder, form)
    proc = ProcDumps(4 * epoch_s, 1, 8)
    proc.disks = {"sda": {"reads": lambda t: 800 if is_first(t) or not fits else 1,
                          "read": lambda t: 200 * MB if is_first(t) or not fits else 0.01 * MB,
                          "busy": lambda t: 0.98 if is_first(t) or not fits else 0.001, "await_ms": 9, "queue": 7}}
    proc.iowait = lambda t: 0.3 if is_first(t) or not fits else 0.0
    proc.memory = {"MemTotal": 64e6, "MemFree": lambda t: max(2e6, 50e6 - 195e3 * t), "MemAvailable": 55e6,
                   "Buffers": 1e5, "Cached": lambda t: min(58e6, 5e6 + 195e3 * t)}
    proc.write(folder)


A13 = Report("A13", "page cache: cold first epoch", "ColdCache", epochs_of_cache, [
    variant(fits=False, epoch_s=120, form="json", rule="StorageBound", says=["200"]),
    variant(fits=True, epoch_s=120, form="json", rule="ColdCache", says=["cache"]),
    variant(fits=True, epoch_s=240, form="log", rule="ColdCache", says=["cache"]),
])


def remote_bursts(folder: pathlib.Path, *, objects: int, form: str, source: str) -> None:
    # A batch's objects are fetched one after the other.
    steps = Steps.every(200, lambda i: 300 + 4 * objects * (1 + i % 3), lambda i: 4 * objects * (1 + i % 3))
    steps.write(folder, form)
    end = steps.end_s()
    proc = ProcDumps(end, 0.25, 8)
    proc.nics = {"ens5": (lambda t: 180 * MB if int(t * 4) % 4 < 2 else 1 * MB, 2 * MB)}
    proc.disks = {"nvme0n1": {"reads": 1, "read": 0.02 * MB, "busy": 0.002}}
    proc.write(folder)
    write_meta(folder, framework="tensorflow", dataset="s3://bucket/train", input_mode=source)


A14 = Report("A14", "data on S3", "InputBound", remote_bursts, [
    variant(objects=128, form="json", source="File", says=["s3|S3"]),
    variant(objects=64, form="csv", source="Pipe", says=["s3|S3"]),
])


def hot_core(folder: pathlib.Path, *, cores: int, core: int, busy: float, gpu: float, form: str, steps: bool) -> None:
    proc = ProcDumps(200, 1, cores)
    proc.default_busy = 0.04
    proc.busy = {core: busy}
    proc.write(folder, together=form == "together")
    Smi(200, 1, 1, {"utilization.gpu": lambda t, g: gpu + int(t) % 4}).write(folder)
    if steps:
        Steps.every(1600, 120, 40).write(folder, "json")


A16 = Report("A16", "one core full", "HotCore", hot_core, [
    variant(cores=8, core=3, busy=0.99, gpu=35, form="apart", steps=False, says=["core 3"]),
    variant(cores=16, core=11, busy=0.97, gpu=28, form="together", steps=False, says=["core 11"]),
    variant(cores=8, core=5, busy=1.0, gpu=40, form="apart", steps=True, says=["core 5"],
            rule="HotCore|InputBound"),
])


def bursts(folder: pathlib.Path, *, active_s: float, period_s: float, every_s: float, cores: int) -> None:
    Smi(600, every_s, 1, {"utilization.gpu": lambda t, g: 80 if t % period_s < active_s else 0}).write(folder)
    proc = ProcDumps(600, 1, cores)
    proc.default_busy = 0.9
    proc.write(folder)


A17 = Report("A17", "GPU in short bursts", "LowGPUUtilization|CPUBottleneck", bursts, [
    variant(active_s=0.1, period_s=5, every_s=0.1, cores=4),
    variant(active_s=0.04, period_s=5.03, every_s=5, cores=4, says=["5 s|sampl"]),
])


def many_threads(folder: pathlib.Path, *, threads: int, cores: int, system: float, switches: float, runnable: float,
                 per_worker: int, form: str) -> None:
    steps = Steps.every(400, 232, 30)
    steps.write(folder, "json")
    end = steps.end_s()
    proc = ProcDumps(end, 1, cores)
    proc.default_busy, proc.system_share = 0.95, system
    proc.switches_per_s, proc.running = switches, runnable
    proc.load = (runnable, threads + 400)
    proc.write(folder)
    if form == "series":
        series = Series()
        for i in range(threads // per_worker):
            series.add("process.threads", f"loader {i}", end, 1, per_worker, unit="{thread}")
        series.write(folder)
    elif form == "meta":
        write_meta(folder, num_workers=threads // per_worker, omp_num_threads=per_worker, threads=threads)


A18 = Report("A18", "threads of OpenCV", "ThreadOversubscription", many_threads, [
    variant(threads=668, cores=64, system=0.25, switches=8e5, runnable=300, per_worker=20, form="series"),
    variant(threads=192, cores=24, system=0.3, switches=4e5, runnable=120, per_worker=16, form="none"),
])
A19 = Report("A19", "OpenMP threads in each worker", "ThreadOversubscription", many_threads, [
    variant(threads=256, cores=32, system=0.1, switches=2e5, runnable=250, per_worker=32, form="meta",
            says=["OMP_NUM_THREADS"]),
    variant(threads=512, cores=64, system=0.1, switches=2e5, runnable=300, per_worker=64, form="series",
            says=["OMP_NUM_THREADS"]),
])


def busy_not_working(folder: pathlib.Path, *, power: float, limit: float, sm: float | None, gpus: int) -> None:
    columns = {"utilization.gpu": lambda t, g: 100 - int(t) % 2, "power.draw": lambda t, g: power + int(t) % 5,
               "power.limit": lambda t, g: limit, "power.default_limit": lambda t, g: limit}
    Smi(300, 1, gpus, columns).write(folder)
    if sm is not None:
        series = Series()
        for g in range(gpus):
            series.add("gpu.sm_active.percent", f"gpu{g}", 300, 1, sm, unit="%")
        series.write(folder)


A23 = Report("A23", "busy, hardly at work", "LowGPUEfficiency", busy_not_working, [
    variant(power=95, limit=400, sm=18, gpus=1, says=["18"]),
    variant(power=140, limit=700, sm=None, gpus=4, says=["14[0-9]"]),
    variant(power=380, limit=400, sm=82, gpus=1, rule="", says=[]),
])
