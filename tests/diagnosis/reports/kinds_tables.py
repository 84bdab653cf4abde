"""Group T: tables with other titles, and readings of one tool alone."""
from __future__ import annotations

import pathlib

from forms import T0_S, Smi, jitter, smi_time

from report import Report, variant


def titles(folder: pathlib.Path, *, titles: str, step_ms: float, gc_ms: float, every: int, count: int) -> None:
    rows = [titles]
    for i in range(count):
        pause = gc_ms if i % every == 0 else 0
        rows.append(f"{i},{step_ms * jitter(i) + pause:.2f},{pause:.1f}")
    folder.joinpath("steps.csv").write_text("\n".join(rows) + "\n")


T01 = Report("T01", "garbage collection in tables of other titles", "GarbageCollection", titles, [
    variant(titles="step,time_ms,gc_ms", step_ms=90, gc_ms=80, every=8, count=400),
    variant(titles="iteration,step_ms,gc_time_ms", step_ms=210, gc_ms=400, every=20, count=600),
])


def by_mask(folder: pathlib.Path, *, mask: str, limit: float, power: float, clock: float, heat: float, gpus: int = 1,
            bad: int = 0, title: str = "clocks_event_reasons.active") -> None:
    Smi(600, 1, gpus, {
        "utilization.gpu": lambda t, g: 98, "memory.used": lambda t, g: 60000, "memory.total": lambda t, g: 81920,
        "power.draw": lambda t, g: power * jitter(int(t)) if g == bad else 385.0, "power.limit": lambda t, g: limit,
        "temperature.gpu": lambda t, g: heat if g == bad else 64,
        "clocks.current.sm": lambda t, g: clock if g == bad else 1400, "clocks.max.sm": lambda t, g: 1410,
        title: lambda t, g: mask if g == bad else "0x0000000000000000",
    }, name="NVIDIA A100-SXM4-80GB").write(folder)


T02 = Report("T02", "clocks held down, by the mask alone", "PowerCap", by_mask, [
    variant(mask="0x0000000000000004", limit=260, power=256, clock=1000, heat=64, says=["260", "400"]),
    variant(mask="0x0000000000000004", limit=300, power=296, clock=1120, heat=66,
            title="clocks_throttle_reasons.active"),
    variant(mask="0x0000000000000040", limit=400, power=250, clock=1010, heat=89, gpus=4, bad=2,
            rule="ThermalThrottle", says=["gpu2"]),
    variant(mask="0x0000000000000004", limit=400, power=396, clock=1250, heat=70, rule=""),
])


def monitor(folder: pathlib.Path, *, fb_mb_s: float, heat: float, clock: float) -> None:
    lines = ["#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb",
             "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz     MB"]
    for i in range(240):
        at = smi_time(i)
        moment = at[:10].replace("/", "") + "   " + at[11:19]
        for g, (temp, mhz) in enumerate([(63, 1400), (heat, clock)]):
            fb = 30000 + (fb_mb_s * i if g == 1 else 0)
            lines.append(f" {moment}      {g}    300    {temp:.0f}      -     98     30   1593   {mhz:.0f}  {fb:.0f}")
    folder.joinpath("dmon.txt").write_text("\n".join(lines) + "\n")


T03 = Report("T03", "dmon alone: one of two hot and slow, or growing", "ThermalThrottle", monitor, [
    variant(fb_mb_s=0, heat=90, clock=1040, says=["gpu1", "63"]),
    variant(fb_mb_s=90, heat=63, clock=1400, rule="GPUMemoryLeak", says=["gpu1", "not recorded"],
            beside=["GPUMemoryImbalance"]),
    variant(fb_mb_s=0, heat=66, clock=1390, rule=""),
])


def processes(folder: pathlib.Path, *, kb_per_s: float, until_s: float, form: str) -> None:
    head, row = {"ps": ("  PID  PPID   RSS COMMAND", "{pid} {parent} {rss} python train.py"),
                 "aux": ("USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND",
                         "me {pid} 99.0 9.8 45000000 {rss} pts/0 Rl+ 08:00 10:11 python train.py")}[form]
    lines = []
    for i in range(0, 600, 10):
        lines += [f"## t={T0_S + i:.0f}", head,
                  row.format(pid=4100, parent=1, rss=int(6e6 + kb_per_s * min(i, until_s)))]
        lines += [row.format(pid=4101 + w, parent=4100, rss=900000) for w in range(2)]
    folder.joinpath("ps.txt").write_text("\n".join(lines) + "\n")


T04 = Report("T04", "ps alone: a process grows", "HostMemoryGrowth", processes, [
    variant(kb_per_s=8000, until_s=600, form="ps", says=["not recorded"]),
    variant(kb_per_s=5000, until_s=600, form="aux"),
    variant(kb_per_s=9000, until_s=60, form="ps", rule=""),
])


def rare(folder: pathlib.Path, *, every_s: float, busy_s: float, duration_s: float) -> None:
    Smi(duration_s, every_s, 1, {
        "utilization.gpu": lambda t, g: 92 if t < busy_s else 0, "memory.used": lambda t, g: 30000,
        "memory.total": lambda t, g: 81920, "power.draw": lambda t, g: 350.0 if t < busy_s else 64.0}).write(folder)


T05 = Report("T05", "idle for hours, a sample a minute", "LowGPUUtilization", rare, [
    variant(every_s=60, busy_s=3600, duration_s=80000, says=["idle for"]),
    variant(every_s=30, busy_s=900, duration_s=40000, says=["idle for"]),
])


def waits(folder: pathlib.Path, *, first: float, last: float, length_s: float) -> None:
    use = lambda t: first + (last - first) * t / length_s  # noqa: E731
    Smi(length_s, 1, 1, {
        "utilization.gpu": lambda t, g: use(t), "memory.used": lambda t, g: 60000, "memory.total": lambda t, g: 81920,
        "power.draw": lambda t, g: 80 + 3.1 * use(t), "temperature.gpu": lambda t, g: 50 + use(t) / 4,
        "clocks.current.sm": lambda t, g: 1410}).write(folder)


T06 = Report("T06", "use falls at a steady clock: it waits", "LowGPUUtilization", waits, [
    variant(first=98, last=25, length_s=600, says=["waits"], never=["ThermalThrottle"]),
    variant(first=97, last=92, length_s=600, rule=""),
])


def applications(folder: pathlib.Path, *, gpus: int, contexts: int, mib: float) -> None:
    lines = ["timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]"]
    for i in range(60):
        for g in range(gpus):
            lines.append(f"{smi_time(i)}, GPU-{g}, {100 + g}, python, {mib:.0f} MiB")
        lines += [f"{smi_time(i)}, GPU-0, {200 + c}, python, 510 MiB" for c in range(contexts)]
    folder.joinpath("apps.csv").write_text("\n".join(lines) + "\n")


T07 = Report("T07", "compute-apps alone: contexts of all ranks on GPU 0", "GPUMemoryImbalance", applications, [
    variant(gpus=4, contexts=3, mib=61000, says=["gpu0", "4 processes"]),
    variant(gpus=4, contexts=0, mib=61000, rule=""),
])


def one_machine(folder: pathlib.Path, *, channel: str) -> None:
    lines = []
    for r in range(4):
        head = f"box:{1200 + r}:{1300 + r} [{r}] NCCL INFO "
        lines += [head + "NET/Socket : Using [0]eth0:10.0.0.4<0>", head + "Using network Socket",
                  head + f"Channel 00/0 : {r}[{r}] -> {(r + 1) % 4}[{(r + 1) % 4}] via {channel}"]
    folder.joinpath("nccl.log").write_text("\n".join(lines) + "\n")


T08 = Report("T08", "NCCL names a network it does not use", "", one_machine, [
    variant(channel="P2P/CUMEM", never=["SocketTransport"]),
    variant(channel="SHM/direct/direct", never=["SocketTransport"]),
    variant(channel="NET/Socket/0", rule="SocketTransport"),
])


def scaling(folder: pathlib.Path, *, head: str, rows: str) -> None:
    folder.joinpath("scale.csv").write_text(head + "\n" + rows + "\n")


T09 = Report("T09", "scaling by time, or slower with more", "ScalingEfficiency", scaling, [
    variant(head="n_gpus,epoch time (s),sec/iter", rows="1,800,0.26\n4,400,0.52", says=["4 GPUs", "50 %"]),
    variant(head="world_size,images_per_s", rows="1,400\n8,1500\n16,560", says=["use 8 ranks", "use 1 rank\\b"]),
    variant(head="nodes,sec_per_iter", rows="1,0.5\n2,0.51", rule=""),
])
