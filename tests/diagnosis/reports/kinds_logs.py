"""Logs alone: what lines that print each n-th step say of the time between them."""
from __future__ import annotations

import datetime
import pathlib
from collections.abc import Callable

from forms import T0_S

from report import Report, variant


def stamp(t_s: float, form: str = "%Y-%m-%d %H:%M:%S,%f") -> str:
    text = datetime.datetime.fromtimestamp(T0_S + t_s, datetime.timezone.utc).strftime(form)
    return text[:-3] if form.endswith("%f") else text


def write(folder: pathlib.Path, lines: list[str], name: str = "train.log") -> None:
    folder.joinpath(name).write_text("\n".join(lines) + "\n")


def epochs(folder: pathlib.Path, *, line: str, each: int, per_epoch: int, count: int, step_s: float,
           gap_s: float) -> None:
    """Steps are counted within an epoch and each so many-th is printed; between epochs a gap, or none."""
    lines, t_s = [], 0.0
    for epoch in range(1, count + 1):
        t_s += gap_s
        for step in range(1, per_epoch + 1):
            t_s += step_s
            if step % each == 0:
                lines.append(f"{stamp(t_s)} INFO " + line.format(epoch=epoch, epochs=count, step=step, steps=per_epoch))
    write(folder, lines)


EPOCH_GAP = Report("L01", "a log that counts steps anew in each epoch and prints each n-th", "EpochGap", epochs, [
    variant(line="Epoch [{epoch}/{epochs}] Iter [{step}/{steps}] loss: 1.1", each=15, per_epoch=120, count=6,
            step_s=0.4, gap_s=21, says=["21 s", "every 120 steps"]),
    variant(line="epoch {epoch}/{epochs} step {step}/{steps} loss=0.4", each=25, per_epoch=100, count=9, step_s=0.2,
            gap_s=0, rule=""),
    variant(line="Epoch: {epoch} | Batch: {step} | Loss: 0.4", each=30, per_epoch=150, count=7, step_s=0.35, gap_s=0,
            rule=""),
])


def pauses(folder: pathlib.Path, *, words: list[str], every: int, pause_s: float, each: int, count: int, step_s: float,
           shown_s: bool = False) -> None:
    """A line before each pause, perhaps one behind it, between lines for each so many-th step."""
    lines, t_s = [], 0.0
    for step in range(1, count + 1):
        t_s += step_s
        if step % each == 0:
            own = f" step_time={step_s:.3f}s" if shown_s else ""
            lines.append(f"{stamp(t_s)} - INFO - train - step {step}/{count} loss 1.5{own}")
        if step % every == 0:
            lines.append(f"{stamp(t_s)} - INFO - {words[0]}")
            t_s += pause_s
            lines += [f"{stamp(t_s)} - INFO - {text}" for text in words[1:]]
    write(folder, lines)


CHECKPOINTS = Report("L02", "a log that prints each n-th step and says that it saves", "CheckpointStall", pauses, [
    variant(words=["ckpt - Saving current state to /ckpt"], every=200, pause_s=33, each=20, count=1200, step_s=0.45,
            says=["33 s", "every 200 steps"]),
    variant(words=["saving checkpoint to /ckpt/a.pt", "saved checkpoint"], every=240, pause_s=19, each=40, count=1200,
            step_s=0.3, shown_s=True, says=["19 s", "every 240 steps"]),
    variant(words=["Saving model checkpoint to /ckpt"], every=200, pause_s=0.1, each=20, count=1200, step_s=0.45,
            rule=""),
])
EVALUATIONS = Report("L03", "a log that prints each n-th step and says that it evaluates", "EvaluationShare", pauses, [
    variant(words=["eval - running validation on 900 images", "eval - val_loss 2.1 val_acc 0.4"], every=150, pause_s=44,
            each=10, count=900, step_s=0.5, says=["44 s", "every 150 steps"]),
    variant(words=["trainer - ***** Running Evaluation *****"], every=200, pause_s=52, each=25, count=1000, step_s=0.4,
            says=["52 s", "every 200 steps"]),
    variant(words=["Validation: val_loss 1.4 acc 0.8"], every=100, pause_s=31, each=1, count=800, step_s=0.6,
            says=["31 s", "every 100 steps"]),
])


def bars(folder: pathlib.Path, *, form: str, steps: int, step_s: float, validation_s: float, count: int) -> None:
    """Bars of epochs, with those of the validation inside."""
    lines = []
    clock = lambda s: f"{int(s) // 60:02d}:{int(s) % 60:02d}"  # noqa: E731
    for epoch in range(count):
        for i in range(steps // 20, steps + 1, steps // 20):
            done = f"{100 * i // steps}%|####      | {i}/{steps}"
            if form == "lightning":
                lines.append(f"Epoch {epoch}: {done} [{clock(i * step_s)}<00:10, 5.00it/s, v_num=1, train_loss=0.7]")
            elif form == "yolo":
                lines.append(f"  {epoch + 1}/{count}  7.1G  1.1  1.8  1.2  37  640: {done} [{clock(i * step_s)}<00:10, "
                             "5.0it/s]")
            else:
                lines.append(f"{i}/{steps} ━━━━━━━━━━ 9s {1000 * step_s:.0f}ms/step - loss: 1.41")
        end_s = steps * step_s + validation_s
        if form == "lightning":
            lines += [f"Validation DataLoader 0: {10 * k}%|##  | {k}/10 [{clock(validation_s * k / 10)}<00:01, 1.00it/s]"
                      for k in range(1, 11)]
            lines.append(f"Epoch {epoch}: 100%|##########| {steps}/{steps} [{clock(end_s)}<00:00, 3.00it/s, v_num=1, "
                         "train_loss=0.4, val_loss=0.5]")
        elif form == "yolo":
            lines.append("     Class  Images  Instances  Box(P  R  mAP50  mAP50-95): 100%|####| 25/25 "
                         f"[{clock(validation_s)}<00:00,  1.00s/it]")
        else:
            lines.append(f"{steps}/{steps} ━━━━━━━━━━ {end_s:.0f}s {1000 * end_s / steps:.0f}ms/step - loss: 1.40 - "
                         "val_loss: 1.5")
    write(folder, lines, "out.log")


BARS = Report("L04", "progress bars with a validation in each epoch", "EvaluationShare", bars, [
    variant(form="lightning", steps=400, step_s=0.2, validation_s=60, count=4, says=["60 s"]),
    variant(form="yolo", steps=200, step_s=0.3, validation_s=120, count=5, says=["120 s"]),
    variant(form="keras", steps=400, step_s=0.1, validation_s=32, count=5, says=["3[12]"]),
])


def own_times(folder: pathlib.Path, *, step_s: float, count: int, date: str) -> None:
    """Stamps of whole seconds beside a printed step time; nothing is wrong."""
    write(folder, [f"[{stamp(i * step_s, date)} d2.utils.events]: iter: {i} total_loss: 1.8 time: {step_s:.4f} "
                   "data_time: 0.0100" for i in range(1, count)])


OWN_TIMES = Report("L05", "printed step times beside stamps of whole seconds", "", own_times, [
    variant(step_s=1.3, count=300, date="%Y-%m-%d %H:%M:%S"),
    variant(step_s=0.7, count=400, date="%m/%d %H:%M:%S"),
])


def parts(folder: pathlib.Path, *, ranks: int, slow: int, form: str, step_ms: float, own_ms: float,
          slow_ms: float) -> None:
    lines = []
    for step in range(1, 121):
        for rank in range(ranks):
            own = slow_ms if rank == slow else own_ms
            text = form.format(own=own, half=own / 2, rest=step_ms - own - 5, step=step_ms)
            lines.append(f"[rank{rank}]: {stamp(step * step_ms / 1e3)} step {step} loss 2.5 {text}")
    write(folder, lines)


PARTS = Report("L06", "parts of a step in the lines of each rank", "SlowRank", parts, [
    variant(ranks=8, slow=5, form="fwd_bwd {own:.1f}ms comm {rest:.1f}ms step_time {step:.1f}ms", step_ms=500,
            own_ms=300, slow_ms=420, says=["rank 5"]),
    variant(ranks=4, slow=1, form="forward {half:.1f}ms backward {half:.1f}ms comm {rest:.1f}ms step_time {step:.1f}ms",
            step_ms=400, own_ms=240, slow_ms=350, says=["rank 1"]),
    variant(ranks=4, slow=1, form="forward {half:.1f}ms backward {half:.1f}ms comm {rest:.1f}ms step_time {step:.1f}ms",
            step_ms=400, own_ms=340, slow_ms=340, rule="", beside=["ExposedCommunication"]),
])


def memory_in_lines(folder: pathlib.Path, *, form: str, bytes_of: Callable[[int], tuple[float, ...]], each: int = 10,
                    count: int = 1500, step_s: float = 0.4) -> None:
    """What is on the GPU, printed beside the step, as frameworks do."""
    lines = []
    for step in range(each, count + 1, each):
        figures = form.format(*bytes_of(step))
        lines.append(f"{stamp(step * step_s)} INFO step {step}/{count} loss 1.5 time: {step_s:.3f} {figures}")
    write(folder, lines)


def warm(step: int) -> tuple[float, ...]:
    return (min(4000 + 20 * step, 9000),)


MEMORY = Report("B01c", "GPU memory in the lines of a log", "GPUMemoryLeak", memory_in_lines, [
    variant(form="gpu_mem={:.0f}MiB", bytes_of=lambda step: (4000 + 12 * step,), says=["every step", "12.0 MiB"]),
    variant(form="max mem: {:.0f}", bytes_of=lambda step: (3456 + 8 * step,), says=["most so far"]),
    variant(form="allocated {:.2f} GiB reserved {:.2f} GiB", bytes_of=lambda step: (8 + step / 100, 9 + step / 100),
            says=["in tensors"]),
    variant(form="gpu_mem_allocated_gb: {:.2f}, gpu_mem_reserved_gb: {:.2f}",
            bytes_of=lambda step: (12.1, 13 + step / 50), rule="MemoryFragmentation"),
    variant(form="gpu_mem={:.0f}MiB", bytes_of=warm, rule=""),
    variant(form="max_mem: {:.0f}M", bytes_of=lambda step: (9000 + 700 * sum(step >= s for s in (90, 400, 950)),),
            rule=""),
])
