"""Writers of the files that users bring: copies of /proc, nvidia-smi CSV, logs, plain series, traces. Deterministic."""
from __future__ import annotations

import csv
import datetime
import io
import json
import pathlib
from collections.abc import Callable, Iterable, Sequence

T0_S = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC
HZ = 100  # of the kernel's clock
MB = 1e6
GB = 1e9

Of = Callable[[float], float]  # of seconds since T0_S


def jitter(index: int, share: float = 0.02) -> float:
    """1 ± share, the same each time."""
    return 1 + share * (((index * 2654435761) >> 7) % 1000 / 500 - 1)


def value_at(value: float | Of, t_s: float) -> float:
    return value(t_s) if callable(value) else value


class ProcDumps:
    """Copies of /proc every `every_s` seconds, of a machine whose rates are told. Counters add up from boot."""

    def __init__(self, duration_s: float, every_s: float = 1, cores: int = 8) -> None:
        self.duration_s, self.every_s, self.cores = duration_s, every_s, cores
        self.busy: dict[int, float | Of] = {}  # share of a core by number; others have `idle_busy`
        self.default_busy: float | Of = 0.05
        self.system_share, self.iowait, self.steal = 0.1, 0.0, 0.0  # of the busy time; of idle cores; of all
        self.switches_per_s: float | Of = 5_000
        self.running: float | Of = 2
        self.load: tuple[float, int] | None = None  # load average, threads
        self.disks: dict[str, dict[str, float | Of]] = {}
        self.nics: dict[str, tuple[float | Of, float | Of]] = {}  # bytes a second received, sent
        self.memory: dict[str, float | Of] = {}  # kB by name of /proc/meminfo
        self.core_numbers: list[int] | None = None

    def times(self) -> Iterable[float]:
        count = int(self.duration_s / self.every_s)
        return (i * self.every_s for i in range(count + 1))

    def _integral(self, value: float | Of, before: float, t_s: float) -> float:
        return (t_s - before) * value_at(value, (before + t_s) / 2)

    def texts(self, parts: Sequence[str] = ("stat", "diskstats", "net/dev", "meminfo", "loadavg")) -> dict[str, str]:
        """The text of each part, by its name below /proc."""
        out: dict[str, io.StringIO] = {part: io.StringIO() for part in parts if self._has(part)}
        numbers = self.core_numbers or list(range(self.cores))
        ticks = {n: [0.0] * 5 for n in numbers}  # user, system, idle, iowait, steal
        switches, sums, net = 0.0, {d: [0.0] * 11 for d in self.disks}, {n: [0.0, 0.0] for n in self.nics}
        before = 0.0
        for t_s in self.times():
            dt = t_s - before
            for n in numbers:
                busy = value_at(self.busy.get(n, self.default_busy), (before + t_s) / 2)
                steal = value_at(self.steal, (before + t_s) / 2)
                wait = min(value_at(self.iowait, (before + t_s) / 2), max(0.0, 1 - busy - steal))
                system = value_at(self.system_share, t_s) * busy
                for i, share in enumerate((busy - system, system, max(0.0, 1 - busy - wait - steal), wait, steal)):
                    ticks[n][i] += dt * HZ * share
            switches += self._integral(self.switches_per_s, before, t_s)
            for name, disk in self.disks.items():
                rates = {k: self._integral(v, before, t_s) for k, v in disk.items()}
                reads, writes = rates.get("reads", 0.0), rates.get("writes", 0.0)
                queue = value_at(disk.get("queue", 0), t_s)
                read_ms = value_at(disk.get("await_ms", 1), t_s) * reads
                for i, add in enumerate((reads, 0, rates.get("read", 0) / 512, read_ms, writes, 0,
                                         rates.get("write", 0) / 512, value_at(disk.get("write_ms", 1), t_s) * writes,
                                         0, rates.get("busy", 0) * 1000, queue * dt * 1000)):
                    sums[name][i] += add
                sums[name][8] = queue
            for name, (receive, send) in self.nics.items():
                net[name][0] += self._integral(receive, before, t_s)
                net[name][1] += self._integral(send, before, t_s)
            before = t_s
            for part, text in out.items():
                text.write(f"## t={T0_S + t_s:.3f}\n")
                text.write(getattr(self, "_" + part.replace("/", "_"))(
                    t_s, numbers=numbers, ticks=ticks, switches=switches, sums=sums, net=net))
        return {part: text.getvalue() for part, text in out.items()}

    def _has(self, part: str) -> bool:
        return {"diskstats": bool(self.disks), "net/dev": bool(self.nics), "meminfo": bool(self.memory),
                "loadavg": self.load is not None}.get(part, True)

    def _stat(self, t_s: float, *, numbers: list[int], ticks: dict[int, list[float]], switches: float,
              **_: object) -> str:
        def line(name: str, of: Sequence[float]) -> str:
            user, system, idle, wait, steal = (int(x) for x in of)
            return f"{name} {user} 0 {system} {idle} {wait} 0 0 {steal} 0 0\n"
        whole = [sum(ticks[n][i] for n in numbers) for i in range(5)]
        lines = line("cpu ", whole) + "".join(line(f"cpu{n}", ticks[n]) for n in numbers)
        running = int(value_at(self.running, t_s))
        return (lines + f"intr 12345 0 0\nctxt {int(1e6 + switches)}\nbtime 1699000000\nprocesses 4242\n"
                f"procs_running {running}\nprocs_blocked 0\n")

    def _diskstats(self, _t: float, *, sums: dict[str, list[float]], **_: object) -> str:
        return "".join(f" 8 {16 * i} {name} " + " ".join(str(int(x)) for x in of) + "\n"
                       for i, (name, of) in enumerate(sums.items()))

    def _net_dev(self, _t: float, *, net: dict[str, list[float]], **_: object) -> str:
        head = ("Inter-|   Receive                                                |  Transmit\n"
                " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo "
                "colls carrier compressed\n")
        return head + "".join(
            f"{name:>6}: {int(r)} {int(r / 1400)} 0 0 0 0 0 0 {int(s)} {int(s / 1400)} 0 0 0 0 0 0\n"
            for name, (r, s) in net.items())

    def _meminfo(self, t_s: float, **_: object) -> str:
        return "".join(f"{name}: {int(value_at(kb, t_s)):>12} kB\n" for name, kb in self.memory.items())

    def _loadavg(self, _t: float, **_: object) -> str:
        assert self.load is not None
        load, threads = self.load
        return f"{load:.2f} {load:.2f} {load:.2f} {int(load)}/{threads} 4711\n"

    def write(self, folder: pathlib.Path, *, together: bool = False, parts: Sequence[str] | None = None) -> None:
        texts = self.texts(parts) if parts else self.texts()
        if not together:
            for part, text in texts.items():
                folder.joinpath("proc_" + part.replace("/", "_") + ".txt").write_text(text)
            return
        split = {part: text.split("## t=")[1:] for part, text in texts.items()}
        count = min(len(dumps) for dumps in split.values())
        with folder.joinpath("proc.txt").open("w") as out:
            for i in range(count):
                for n, (part, dumps) in enumerate(split.items()):
                    time, _, rest = dumps[i].partition("\n")
                    out.write((f"## t={time}\n" if n == 0 else "") + f"### /proc/{part}\n" + rest)


def smi_time(t_s: float) -> str:
    moment = datetime.datetime.fromtimestamp(T0_S + t_s, datetime.timezone.utc)
    return moment.strftime("%Y/%m/%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"


class Smi:
    """nvidia-smi --query-gpu=… --format=csv. Cells are texts, or numbers of (seconds, GPU)."""

    UNITS = {"utilization.gpu": " %", "utilization.memory": " %", "memory.used": " MiB", "memory.total": " MiB",
             "power.draw": " W", "power.limit": " W", "power.default_limit": " W", "clocks.sm": " MHz",
             "clocks.current.sm": " MHz", "clocks.max.sm": " MHz", "fan.speed": " %", "memory.free": " MiB",
             "enforced.power.limit": " W", "power.max_limit": " W", "clocks.current.memory": " MHz"}

    def __init__(self, duration_s: float, every_s: float = 1, gpus: int = 1,
                 columns: dict[str, Callable[[float, int], object]] | None = None, *, units: bool = True,
                 name: str = "NVIDIA A100-SXM4-40GB") -> None:
        self.duration_s, self.every_s, self.gpus, self.units, self.name = duration_s, every_s, gpus, units, name
        self.columns = dict(columns or {})

    def text(self) -> str:
        titles = ["timestamp", "index", "name", *self.columns]
        suffix = {title: self.UNITS.get(title, "") for title in titles}
        lines = [", ".join(t + (f" [{suffix[t].strip()}]" if suffix[t] else "") for t in titles)]
        for i in range(int(self.duration_s / self.every_s) + 1):
            t_s = i * self.every_s
            for gpu in range(self.gpus):
                cells = [smi_time(t_s), str(gpu), self.name]
                for title, of in self.columns.items():
                    value = of(t_s, gpu)
                    if value is None:
                        continue
                    unit = suffix[title] if self.units else ""
                    cells.append(value if isinstance(value, str) else f"{value:.2f}{unit}" if "power" in title
                                 else f"{value:.0f}{unit}")
                lines.append(", ".join(cells))
        return "\n".join(lines) + "\n"

    def write(self, folder: pathlib.Path, name: str = "smi.csv") -> None:
        folder.joinpath(name).write_text(self.text())


class Steps:
    """Steps of one or several ranks, one after the other, with what each waited for data."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, float, float, float | None]] = []  # rank, step, start, duration, wait

    @classmethod
    def every(cls, count: int, step_ms: float | Callable[[int], float],
              wait_ms: float | Callable[[int], float] | None = None, *, ranks: int = 1, start_s: float = 0,
              pause_s: Callable[[int], float] = lambda _: 0.0, spread: float = 0.02) -> Steps:
        steps = cls()
        for rank in range(ranks):
            at = start_s
            for i in range(count):
                duration = (step_ms(i) if callable(step_ms) else step_ms) / 1e3 * jitter(i + 7 * rank, spread)
                wait = None if wait_ms is None else (wait_ms(i) if callable(wait_ms) else wait_ms) / 1e3
                at += pause_s(i)
                steps.rows.append((rank, i, at, duration, None if wait is None else wait * jitter(i, spread)))
                at += duration
        return steps

    def end_s(self) -> float:
        return max(start + duration for _, _, start, duration, _ in self.rows)

    def write(self, folder: pathlib.Path, form: str = "json", name: str | None = None) -> None:
        text = getattr(self, "_" + form)()
        folder.joinpath(name or {"json": "steps.jsonl", "log": "train.log", "csv": "steps.csv"}[form]).write_text(text)

    def _ranks(self) -> int:
        return len({row[0] for row in self.rows})

    def _json(self) -> str:
        lines = []
        for rank, step, start, duration, wait in sorted(self.rows, key=lambda r: r[2]):
            one: dict[str, object] = {"step": step, "start_s": round(T0_S + start, 6), "duration_s": round(duration, 6)}
            if wait is not None:
                one["data_wait_s"] = round(wait, 6)
            if self._ranks() > 1:
                one["rank"] = rank
            lines.append(json.dumps(one))
        return "\n".join(lines) + "\n"

    def _log(self) -> str:
        lines = []
        for rank, step, start, duration, wait in sorted(self.rows, key=lambda r: r[2] + r[3]):
            moment = datetime.datetime.fromtimestamp(T0_S + start + duration, datetime.timezone.utc)
            stamp = moment.strftime("%Y-%m-%d %H:%M:%S,") + f"{moment.microsecond // 1000:03d}"
            data = "" if wait is None else f" data: {wait:.4f}"
            prefix = f"[rank{rank}]: " if self._ranks() > 1 else ""
            lines.append(f"{prefix}{stamp} INFO step: {step} loss: {2.3 / (1 + step / 500):.4f} "
                         f"time: {duration:.4f}{data}")
        return "\n".join(lines) + "\n"

    def _csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        has_wait = any(row[4] is not None for row in self.rows)
        writer.writerow(["timestamp", "step", "rank", "step_time_ms"] + (["data_wait_ms"] if has_wait else []))
        for rank, step, start, duration, wait in sorted(self.rows, key=lambda r: r[2]):
            cells: list[object] = [f"{T0_S + start + duration:.3f}", step, rank, f"{duration * 1e3:.3f}"]
            if has_wait:
                cells.append("" if wait is None else f"{wait * 1e3:.3f}")
            writer.writerow(cells)
        return out.getvalue()


class Series:
    """Plain series as JSON lines or CSV."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str, str, float | None, str, str]] = []

    def add(self, metric: str, instance: str, duration_s: float, every_s: float, value: float | Of | None, *,
            unit: str = "1", kind: str = "gauge") -> Series:
        total = 0.0
        for i in range(int(duration_s / every_s) + 1):
            t_s = i * every_s
            level = None if value is None else value_at(value, t_s)
            if kind == "counter" and level is not None:
                total += level * every_s if i else 0
                level = total
            self.lines.append((t_s, metric, instance, level, unit, kind))
        return self

    def write(self, folder: pathlib.Path, name: str = "series.jsonl") -> None:
        out = []
        for t_s, metric, instance, level, unit, kind in sorted(self.lines, key=lambda line: line[0]):
            if name.endswith(".csv"):
                out.append(f"{T0_S + t_s:.3f},{metric},{instance},{'' if level is None else level}")
            else:
                out.append(json.dumps({"t_s": T0_S + t_s, "metric": metric, "instance": instance, "value": level,
                                       "unit": unit, "kind": kind}))
        head = "t_s,metric,instance,value\n" if name.endswith(".csv") else ""
        folder.joinpath(name).write_text(head + "\n".join(out) + "\n")


def write_meta(folder: pathlib.Path, **facts: object) -> None:
    folder.joinpath("meta.json").write_text(json.dumps(facts) + "\n")


def kineto(folder: pathlib.Path, *, step_ms: float, compute_ms: float, nccl: Sequence[tuple[float, float]] = (),
           steps: int = 6, wait_ms: float = 0, sync_ms: float = 0, pageable_ms: float = 0, rank: int = 0,
           world: int = 4, name: str = "trace.json") -> None:
    """A Kineto trace. Each step: the loader, a forward and a backward kernel, collectives (at ms after it, for ms), a
    copy from pageable memory, aten::item that waits for the device."""
    events: list[dict[str, object]] = []
    ids = 0

    def add(category: str, label: str, ts: float, dur: float, pid: int = 1, tid: int = 1, **args: object) -> None:
        events.append({"ph": "X", "cat": category, "name": label, "pid": pid, "tid": tid, "ts": round(ts, 3),
                       "dur": round(dur, 3), "args": args})

    def launch(label: str, ts: float, length_ms: float, stream: int, category: str = "kernel") -> None:
        nonlocal ids
        ids += 1
        call = "cudaMemcpyAsync" if category == "gpu_memcpy" else "cudaLaunchKernel"
        add("cuda_runtime", call, ts - 20, 6, correlation=ids, **{"External id": ids})
        add(category, label, ts, length_ms * 1000, 0, stream, device=0, stream=stream, correlation=ids,
            **{"External id": ids})

    for i in range(steps):
        at = 1_000_000 + i * step_ms * 1000
        add("user_annotation", f"ProfilerStep#{i}", at, step_ms * 1000 - 10)
        if wait_ms:
            add("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at + 10,
                wait_ms * 1000)
            at += wait_ms * 1000
        if pageable_ms:
            launch("Memcpy HtoD (Pageable -> Device)", at + 100, pageable_ms, 7, "gpu_memcpy")
            at += pageable_ms * 1000
        launch("sm80_xmma_fprop", at + 300, compute_ms * 0.4, 7)
        launch("sm80_xmma_dgrad", at + 400 + compute_ms * 400, compute_ms * 0.6, 7)
        for begin_ms, length_ms in nccl:
            launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", at + begin_ms * 1000, length_ms, 20)
        if sync_ms:
            add("cpu_op", "aten::item", at + 500, sync_ms * 1000)
            add("cuda_runtime", "cudaStreamSynchronize", at + 510, sync_ms * 1000 - 20)
    folder.joinpath(name).write_text(json.dumps(
        {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world},
         "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
         "baseTimeNanoseconds": 1_712_982_000_000_000_000, "traceEvents": events}))


class Dcgm:
    """What DCGM tells of GPUs: `dcgmi dmon`, or its exporter's answers. Values are functions of (seconds, GPU)."""

    COLUMNS = {"DCGM_FI_DEV_GPU_UTIL": "GPUTL", "DCGM_FI_DEV_FB_USED": "FBUSD", "DCGM_FI_DEV_FB_FREE": "FBFRE",
               "DCGM_FI_DEV_POWER_USAGE": "POWER", "DCGM_FI_DEV_GPU_TEMP": "TMPTR", "DCGM_FI_DEV_SM_CLOCK": "SMCLK",
               "DCGM_FI_DEV_POWER_MGMT_LIMIT": "PMLMT", "DCGM_FI_PROF_SM_ACTIVE": "SMACT",
               "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "GRACT", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "TENSO",
               "DCGM_FI_PROF_DRAM_ACTIVE": "DRAMA", "DCGM_FI_DEV_XID_ERRORS": "XIDER"}

    def __init__(self, duration_s: float, gpus: int, fields: dict[str, Callable[[float, int], float]]) -> None:
        self.duration_s, self.gpus, self.fields = duration_s, gpus, fields

    def write(self, folder: pathlib.Path, form: str) -> None:
        if form == "dmon":
            self._write_dmon(folder)
        else:
            self._write_answers(folder)

    def _write_dmon(self, folder: pathlib.Path) -> None:
        lines = []
        for second in range(int(self.duration_s)):
            if second % 20 == 0:
                lines += ["#Entity   " + "  ".join(f"{self.COLUMNS[f]:<12}" for f in self.fields), "ID"]
            for gpu in range(self.gpus):
                cells = [f"{of(second, gpu):<12.3f}" for of in self.fields.values()]
                lines.append(f"GPU {gpu}     " + "  ".join(cells))
        folder.joinpath("dcgm.txt").write_text("\n".join(lines) + "\n")

    def _write_answers(self, folder: pathlib.Path) -> None:
        lines = []
        for second in range(int(self.duration_s)):
            lines.append(f"## t={T0_S + second:.3f}")
            for name, of in self.fields.items():
                lines += [f"# HELP {name} told by DCGM.", f"# TYPE {name} gauge"]
                lines += [f'{name}{{gpu="{gpu}",UUID="GPU-{gpu}",device="nvidia{gpu}",'
                          f'modelName="NVIDIA A100-SXM4-40GB",Hostname="n1"}} {of(second, gpu):.6f}'
                          for gpu in range(self.gpus)]
        folder.joinpath("metrics.prom").write_text("\n".join(lines) + "\n")


class GroupFiles:
    """Copies of a control group's files every few seconds. Counters add up from its begin."""

    def __init__(self, duration_s: float, every_s: float = 5) -> None:
        self.duration_s, self.every_s = duration_s, every_s
        self.cores: float | Of = 1.0
        self.quota_cores = 0.0  # 0: none
        self.throttled: float | Of = 0.0  # share of the periods
        self.memory: float | Of = 2 * GB
        self.limit = 0.0
        self.cache: float | Of = 0.5 * GB

    def write(self, folder: pathlib.Path, name: str = "cgroup.txt") -> None:
        text, usage, periods, throttled, before = "", 0.0, 0.0, 0.0, 0.0
        for i in range(int(self.duration_s / self.every_s) + 1):
            t_s = i * self.every_s
            middle, dt = (before + t_s) / 2, t_s - before
            usage += dt * value_at(self.cores, middle)
            periods += dt * 10
            throttled += dt * 10 * value_at(self.throttled, middle)
            before = t_s
            memory, cache = value_at(self.memory, t_s), value_at(self.cache, t_s)
            parts = {
                "cpu.stat": f"usage_usec {int(usage * 1e6)}\nuser_usec {int(usage * 9e5)}\nsystem_usec "
                            f"{int(usage * 1e5)}\nnr_periods {int(periods)}\nnr_throttled {int(throttled)}\n"
                            f"throttled_usec {int(throttled * 3e4)}",
                "cpu.max": f"{int(self.quota_cores * 1e5) if self.quota_cores else 'max'} 100000",
                "memory.current": f"{int(memory + cache)}",
                "memory.max": f"{int(self.limit)}" if self.limit else "max",
                "memory.stat": f"anon {int(memory)}\nfile {int(cache)}\nshmem 0\ninactive_file {int(cache)}"}
            text += f"## t={T0_S + t_s:.3f}\n"
            text += "".join(f"==> /sys/fs/cgroup/{part} <==\n{content}\n" for part, content in parts.items())
        folder.joinpath(name).write_text(text)
