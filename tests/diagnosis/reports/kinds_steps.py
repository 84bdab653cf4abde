"""Group D: steps that are slow now and then, or get slow."""
from __future__ import annotations

import pathlib

from forms import MB, T0_S, ProcDumps, Smi, Steps, jitter, write_meta

from report import Report, variant


def rotating(folder: pathlib.Path, *, ranks: int, step_ms: float, stall_s: float, every: int, count: int, form: str,
             own: bool) -> None:
    """Each rank stalls at a step of its own; as the others wait, the step is long for all of them."""
    steps = Steps()
    stalled = lambda rank, i: (i % every) == (rank * every // ranks) % every and i > 5  # noqa: E731
    at = 0.0
    for i in range(count):
        slow = any(stalled(r, i) for r in range(ranks))
        wall = step_ms / 1e3 * jitter(i) + (stall_s if slow else 0)
        for rank in range(ranks):
            mine = wall if not own or stalled(rank, i) or not slow else step_ms / 1e3 * jitter(i)
            steps.rows.append((rank, i, at, mine, 0.002))
        at += wall
    steps.write(folder, form)


D02 = Report("D02", "one rank at a time stalls", "RotatingStall", rotating, [
    variant(ranks=8, step_ms=500, stall_s=1.3, every=80, count=800, form="json", own=True,
            says=["collect|GC|garbage", "8"]),
    variant(ranks=4, step_ms=300, stall_s=1.0, every=60, count=900, form="csv", own=True, says=["4"]),
])


def checkpoints(folder: pathlib.Path, *, every: int, save_s: float, mb_s: float, step_ms: float, count: int, form: str,
                said: str) -> None:
    steps = Steps.every(count, lambda i: step_ms + (save_s * 1000 if i % every == every - 1 else 0), 2, spread=0.01)
    steps.write(folder, form)
    slow = [(start, start + duration) for _, i, start, duration, _ in steps.rows if i % every == every - 1]
    saving = lambda t: any(a <= t < b for a, b in slow)  # noqa: E731
    end = steps.end_s()
    proc = ProcDumps(end, 1, 16)
    proc.disks = {"nvme0n1": {"writes": lambda t: 600 if saving(t) else 3, "write": lambda t: mb_s * MB * saving(t),
                              "busy": lambda t: 0.9 * saving(t), "reads": 1, "read": 1000}}
    proc.write(folder)
    Smi(end, 1, 1, {"utilization.gpu": lambda t, g: 0 if saving(t) else 96}).write(folder)
    if said == "log" and form == "log":
        with folder.joinpath("train.log").open() as log:
            lines = log.read().splitlines()
        out = []
        for line in lines:
            step = int(line.split("step: ")[1].split()[0])
            if step % every == every - 1:
                out.append(line.split(" INFO")[0] + f" INFO Saving checkpoint to /ckpt/step_{step}.pt")
            out.append(line)
        folder.joinpath("train.log").write_text("\n".join(out) + "\n")


D03 = Report("D03", "a pause every N steps while the disk writes", "CheckpointStall", checkpoints, [
    variant(every=100, save_s=30, mb_s=300, step_ms=1200, count=1000, form="json", said="no",
            says=["100", "30[0.]|300"], never=["InputBound"]),
    variant(every=250, save_s=12, mb_s=800, step_ms=200, count=2500, form="log", said="no", says=["250"]),
    variant(every=50, save_s=8, mb_s=150, step_ms=400, count=600, form="log", said="log", says=["50"]),
])


def epoch_gaps(folder: pathlib.Path, *, busy_s: float, idle_s: float, epochs: int, step_ms: float, form: str,
               gap: str, pids: bool = False) -> None:
    per_epoch = int(busy_s * 1000 / step_ms)
    count = per_epoch * epochs
    first = lambda i: i > 0 and i % per_epoch == 0  # noqa: E731
    if gap == "between":
        steps = Steps.every(count, step_ms, 3, pause_s=lambda i: idle_s if first(i) else 0)
    else:
        steps = Steps.every(count, lambda i: step_ms + (idle_s * 1000 if first(i) or i == 0 else 0),
                            lambda i: idle_s * 1000 if first(i) or i == 0 else 3)
    steps.write(folder, form)
    end = steps.end_s()
    cycle = busy_s + idle_s
    is_idle = (lambda t: t % cycle >= busy_s) if gap == "between" else (lambda t: t % cycle < idle_s)  # noqa: E731
    Smi(end, 1, 8, {"utilization.gpu": lambda t, g: 0 if is_idle(t) else 94}).write(folder)
    if form == "log":
        lines = folder.joinpath("train.log").read_text().splitlines()
        out = []
        for line in lines:
            step = int(line.split("step: ")[1].split()[0])
            epoch, within = divmod(step, per_epoch)
            out.append(line.replace(f"step: {step} ", f"Epoch: [{epoch}/{epochs}] [{within}/{per_epoch}] "))
        folder.joinpath("train.log").write_text("\n".join(out) + "\n")
    write_meta(folder, steps_per_epoch=per_epoch, num_workers=8)


D04 = Report("D04", "nothing happens between epochs", "EpochGap", epoch_gaps, [
    variant(busy_s=400, idle_s=260, epochs=5, step_ms=500, form="json", gap="between", says=["39|26[0-9]"]),
    variant(busy_s=90, idle_s=40, epochs=8, step_ms=250, form="log", gap="between", says=["30|40|31"]),
])
D05 = Report("D05", "first step of each epoch is long", "EpochGap", epoch_gaps, [
    variant(busy_s=180, idle_s=30, epochs=6, step_ms=300, form="json", gap="first", says=["30"]),
    variant(busy_s=120, idle_s=45, epochs=6, step_ms=200, form="log", gap="first", says=["45"]),
])
D06 = Report("D06", "short epochs with gaps", "EpochGap", epoch_gaps, [
    variant(busy_s=50, idle_s=17, epochs=12, step_ms=130, form="csv", gap="between", says=["2[345]", "persistent"]),
    variant(busy_s=20, idle_s=5, epochs=20, step_ms=100, form="json", gap="between", says=["19|20", "persistent"]),
])


def throttle(folder: pathlib.Path, *, reason: bool, t_from: float, t_to: float, clock_from: float, clock_to: float,
             power: tuple[float, float], form: str, gpus: int = 1, hot: int | None = None, slow_by: float = 1.5,
             title: str = "clocks_event_reasons.sw_thermal_slowdown") -> None:
    duration, turn = 600.0, 300.0
    step = lambda i: 200.0  # noqa: E731
    steps, at, i = Steps(), 0.0, 0
    while at < duration:
        took = (0.2 if at < turn else 0.2 * slow_by) * jitter(i)
        steps.rows.append((0, i, at, took, 0.002))
        at, i = at + took, i + 1
    del step
    if form != "none":
        steps.write(folder, form)
    late = lambda t, g: t >= turn and (hot is None or g == hot)  # noqa: E731
    ramp = lambda t: max(0.0, min(1.0, (t - turn + 60) / 60))  # noqa: E731
    warm = lambda t, g: ramp(t) if hot is None or g == hot else 0.0  # noqa: E731
    columns = {
        "utilization.gpu": lambda t, g: 97,
        "temperature.gpu": lambda t, g: t_from + (t_to - t_from) * warm(t, g),
        "clocks.sm": lambda t, g: clock_to if late(t, g) else clock_from,
        "clocks.max.sm": lambda t, g: clock_from * 1.12,
        "power.draw": lambda t, g: power[1] if late(t, g) else power[0],
        "power.limit": lambda t, g: 300.0,
        "power.default_limit": lambda t, g: 300.0,
    }
    if reason:
        columns[title] = lambda t, g: "Active" if late(t, g) else "Not Active"
    Smi(duration, 1, gpus, columns).write(folder)


D07 = Report("D07", "hot GPU lowers its clock", "ThermalThrottle", throttle, [
    variant(reason=True, t_from=60, t_to=87, clock_from=1700, clock_to=1100, power=(250, 170), form="json",
            says=["87|86", "1100|1,100"]),
    variant(reason=False, t_from=58, t_to=88, clock_from=1410, clock_to=900, power=(280, 190), form="log",
            says=["88|87"]),
    variant(reason=True, t_from=62, t_to=91, clock_from=1900, clock_to=1300, power=(310, 220), form="none", gpus=8,
                 hot=5, title="clocks_throttle_reasons.hw_thermal_slowdown", says=["gpu5"]),
])


def waits(folder: pathlib.Path, *, by: float, power: tuple[float, float], temperature: tuple[float, float],
          clock: float, form: str) -> None:
    duration = 900.0
    steps, at, i = Steps(), 0.0, 0
    while at < duration:
        share = at / duration
        took = 0.4 * (1 + (by - 1) * share) * jitter(i)
        steps.rows.append((0, i, at, took, None))
        at, i = at + took, i + 1
    steps.write(folder, form)
    mix = lambda pair, t: pair[0] + (pair[1] - pair[0]) * t / duration  # noqa: E731
    Smi(duration, 1, 1, {
        "utilization.gpu": lambda t, g: 96 / (1 + (by - 1) * t / duration),
        "temperature.gpu": lambda t, g: mix(temperature, t), "clocks.sm": lambda t, g: clock,
        "clocks.max.sm": lambda t, g: clock * 1.1, "power.draw": lambda t, g: mix(power, t),
        "power.limit": lambda t, g: 170.0, "power.default_limit": lambda t, g: 170.0}).write(folder)


D08 = Report("D08", "slower, while power and temperature fall", "ThroughputChange", waits, [
    variant(by=3, power=(160, 70), temperature=(70, 52), clock=1900, form="json",
            never=["ThermalThrottle", "PowerCap"], says=["wait"]),
    variant(by=2, power=(320, 150), temperature=(74, 50), clock=1700, form="log",
            never=["ThermalThrottle", "PowerCap"], says=["wait"]),
])


def capped(folder: pathlib.Path, *, limit: float, default: float | None, clock: float, clock_max: float,
           temperature: float, reason: bool, requested: float | None, gpus: int, form: str) -> None:
    columns = {
        "utilization.gpu": lambda t, g: 98, "temperature.gpu": lambda t, g: temperature,
        "clocks.sm": lambda t, g: clock + int(t) % 9, "clocks.max.sm": lambda t, g: clock_max,
        "power.draw": lambda t, g: limit - 1 + 0.1 * (int(t) % 5),
        "enforced.power.limit": lambda t, g: limit,
    }
    if default is not None:
        columns["power.default_limit"] = lambda t, g: default
    if requested is not None:
        columns["power.limit"] = lambda t, g: requested
    if reason:
        columns["clocks_event_reasons.sw_power_cap"] = lambda t, g: "Active"
        columns["clocks_event_reasons.active"] = lambda t, g: "0x0000000000000004"
    Smi(300, 1, gpus, columns).write(folder)
    if form != "none":
        Steps.every(900, 330, 2).write(folder, form)


D09 = Report("D09", "a low power limit holds the clock down", "PowerCap", capped, [
    variant(limit=100, default=250, clock=628, clock_max=1560, temperature=78, reason=True, requested=None, gpus=1,
                 form="json", says=["100", "6[23]\\d", "1560|1,560"], never=["ThermalThrottle"]),
    variant(limit=150, default=350, clock=820, clock_max=1800, temperature=66, reason=False, requested=150, gpus=2,
                 form="none", says=["150"], never=["ThermalThrottle"]),
    variant(limit=100, default=None, clock=620, clock_max=1560, temperature=80, reason=False, requested=250, gpus=1,
                 form="log", says=["100", "250"], never=["ThermalThrottle"]),
])


def shapes(folder: pathlib.Path, *, slow: int, slow_s: float, fast_ms: float, count: int, form: str) -> None:
    at = {5 + 17 * k * (k + 2) % (count - 10) for k in range(slow)}
    rows, t = [], T0_S
    seen = 0
    for i in range(count):
        new = i in at
        seen += new
        took = (slow_s if new else fast_ms / 1e3) * jitter(i)
        rows.append((t, i, took, seen if new else (i * 7) % max(seen, 1)))
        t += took
    if form == "json":
        import json
        folder.joinpath("steps.jsonl").write_text("".join(json.dumps(
            {"step": i, "start_s": round(t, 6), "duration_s": round(took, 6),
             "shape": f"(8, {128 + 16 * shape})"}) + "\n"
            for t, i, took, shape in rows))
    else:
        folder.joinpath("steps.csv").write_text("time,step,step_time_ms,shape_id\n" + "".join(
            f"{t:.3f},{i},{took * 1e3:.2f},{shape}\n" for t, i, took, shape in rows))


D10 = Report("D10", "a new shape compiles anew", "Recompilation", shapes, [
    variant(slow=10, slow_s=1.3, fast_ms=48, count=400, form="json", says=["shape", "10"]),
    variant(slow=24, slow_s=4.0, fast_ms=150, count=600, form="csv", says=["shape", "2[0-4]"]),
])


def steal(folder: pathlib.Path, *, steal_share: float, from_s: float, minutes: float, cores: int, form: str) -> None:
    seconds = minutes * 60
    steps, at, i = Steps(), 0.0, 0
    while at < seconds:
        noisy = at > from_s
        took = 0.25 * (1 + (0.3 if noisy else 0)) * jitter(i, 0.25 if noisy else 0.05)
        steps.rows.append((0, i, at, took, 0.01))
        at, i = at + took, i + 1
    steps.write(folder, form)
    proc = ProcDumps(seconds, 1, cores)
    proc.default_busy = 0.6
    proc.steal = lambda t: steal_share if t > from_s else 0.001
    proc.write(folder)


D11 = Report("D11", "the hypervisor gives time to others", "NoisyNeighbour", steal, [
    variant(steal_share=0.14, from_s=300, minutes=30, cores=4, form="json", says=["steal|hypervisor"],
            beside=["ThroughputChange"]),
    variant(steal_share=0.22, from_s=0, minutes=22, cores=16, form="log", says=["22|21"]),
    variant(steal_share=0.008, from_s=0, minutes=20, cores=8, form="json", rule=""),
])


def clock_jump(folder: pathlib.Path, *, at: int, jump_s: float, mono: bool, form: str) -> None:
    """Samples of each second whose wall clock jumps; where there is one, beside a clock that does not."""
    out = []
    for i in range(1200):
        wall = T0_S + i + (jump_s if i >= at else 0)
        if form == "csv":
            out.append(f"{wall:.3f},{i + 1000.0 if mono else ''},{70 + i % 5}")
        else:
            out.append(f"## t={wall:.3f}\n" + (f"### /proc/uptime\n{i + 1000.0:.2f} {4 * i:.2f}\n" if mono else "") +
                       f"### /proc/stat\ncpu  {10 * i} 0 {i} {89 * i} 0 0 0 0 0 0\n"
                       f"cpu0 {10 * i} 0 {i} {89 * i} 0 0 0 0 0 0\nctxt {i}\nbtime 1699000000\n"
                       f"processes 1\nprocs_running 1\nprocs_blocked 0")
    if form == "csv":
        folder.joinpath("samples.csv").write_text("wall_s,mono_s,gpu_util\n" + "\n".join(out) + "\n")
    else:
        folder.joinpath("proc.txt").write_text("\n".join(out) + "\n")


D12 = Report("D12", "the wall clock jumps", "ClockJump", clock_jump, [
    variant(at=600, jump_s=-357, mono=True, form="csv", says=["357|356", "back"]),
    variant(at=400, jump_s=-62, mono=False, form="proc", says=["6[123]"]),
    variant(at=700, jump_s=240, mono=True, form="proc", says=["240|239"]),
])
