"""Group C: several GPUs, ranks and machines."""
from __future__ import annotations

import json
import pathlib

from forms import MB, ProcDumps, Series, Smi, Steps, jitter, kineto, write_meta

from report import Report, variant


def exposed(folder: pathlib.Path, *, step_ms: float, compute_ms: float, nccl_ms: float, table: bool) -> None:
    kineto(folder, step_ms=step_ms, compute_ms=compute_ms, nccl=[(compute_ms + 2, nccl_ms)], steps=8)
    if table:
        folder.joinpath("scaling.csv").write_text("gpus,steps_per_s\n1,3.81\n4,10.48\n")


C01 = Report("C01", "communication that nothing hides", "ExposedCommunication", exposed, [
    variant(step_ms=382, compute_ms=262, nccl_ms=110, table=False, says=["110"]),
    variant(step_ms=150, compute_ms=95, nccl_ms=45, table=False, says=["45"]),
])


def full_network(folder: pathlib.Path, *, mb: float, gpu: float, both: bool, form: str, nic: str) -> None:
    proc = ProcDumps(300, 1, 16)
    proc.nics = {nic: (lambda t: mb * MB * (1 + 0.003 * (int(t) % 3)), (0.98 * mb if both else 1.0) * MB),
                 "lo": (1e4, 1e4)}
    proc.write(folder)
    Smi(300, 1, 4, {"utilization.gpu": lambda t, g: gpu * 4 if int(t) % 4 == 0 else 0}).write(folder)
    if form != "none":
        Steps.every(100, 2900, None).write(folder, form)


C03 = Report("C03", "1 GbE between two machines", "NetworkBound", full_network, [
    variant(mb=117, gpu=8, both=True, form="none", nic="eth0", says=["117"]),
    variant(mb=1180, gpu=15, both=True, form="log", nic="ens5", says=["118\\d"]),
    variant(mb=116, gpu=9, both=False, form="none", nic="eno1", says=["116"]),
])


def tiny_collectives(folder: pathlib.Path, *, calls: int, each_ms: float, compute_ms: float) -> None:
    kineto(folder, step_ms=compute_ms + calls * (each_ms + 0.02) + 4, compute_ms=compute_ms,
           nccl=[(compute_ms + 2 + i * (each_ms + 0.02), each_ms) for i in range(calls)], steps=6)
    proc = ProcDumps(60, 1, 16)
    proc.nics = {"eth0": (22 * MB, 22 * MB)}
    proc.write(folder)
    write_meta(folder, nic_gbit=10)


C04 = Report("C04", "many tiny collectives", "ExposedCommunication", tiny_collectives, [
    variant(calls=400, each_ms=0.15, compute_ms=20, says=["400", "latency"], never=["NetworkBound"]),
    variant(calls=120, each_ms=0.4, compute_ms=60, says=["120", "latency"], never=["NetworkBound"]),
])

TOPOLOGY = """\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity
GPU0\t X \tPIX\tSYS\tSYS\t0-19\t0
GPU1\tPIX\t X \tSYS\tSYS\t0-19\t0
GPU2\tSYS\tSYS\t X \tPIX\t20-39\t1
GPU3\tSYS\tSYS\tPIX\t X \t20-39\t1

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
"""


def scaling(folder: pathlib.Path, *, rows: list[tuple[object, ...]], head: str = "gpus,images_per_s",
            topology: bool = False, separator: str = ",") -> None:
    lines = [head.replace(",", separator)] + [separator.join(str(cell) for cell in row) for row in rows]
    folder.joinpath("scaling.csv").write_text("\n".join(lines) + "\n")
    if topology:
        folder.joinpath("topo.txt").write_text(TOPOLOGY)


C05 = Report("C05", "no NVLink", "ScalingEfficiency", scaling, [
    variant(rows=[(1, 300), (4, 960), (16, 3504)], topology=True, says=["73", "NVLink|PCIe"]),
    variant(rows=[(1, 0.25), (2, 0.31), (4, 0.36)], head="gpus,step_time_s", topology=True, says=["69"]),
])
C06 = Report("C06", "more nodes are slower", "ScalingEfficiency", scaling, [
    variant(rows=[(8, 1532), (16, 547)], says=["18|17", "8 GPUs"]),
    variant(rows=[(8, 2400), (16, 2650), (32, 2880)], head="gpus,samples_per_s", says=["30", "8 GPUs"]),
    variant(rows=[(1, 195.6), (2, 371.3), (8, 1480), (16, 2862)], head="workers,images_per_sec", rule=""),
])
C09 = Report("C09", "synthetic data scale, real ones do not", "ScalingEfficiency", scaling, [
    variant(rows=[(1, 100, 98), (18, 1584, 1023)], head="gpus,synthetic_images_per_s,real_images_per_s",
            says=["input"]),
])


def growing_wait(folder: pathlib.Path, *, ranks: int, compute: float, wait: float) -> None:
    Steps.every(200, compute + wait, wait, ranks=ranks).write(folder, "json")


C09b = Report("C09b", "data wait of many ranks", "InputBound", growing_wait, [
    variant(ranks=18, compute=160, wait=110, says=["40|41"]),
])

NCCL = """node{n}:{p}:{p} [0] NCCL INFO Bootstrap : Using eth0:10.0.0.{n}<0>
node{n}:{p}:{p} [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation
node{n}:{p}:{p} [0] NCCL INFO {ib}
node{n}:{p}:{p} [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.{n}<0>
node{n}:{p}:{q} [0] NCCL INFO Using network {net}
node{n}:{p}:{q} [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [receive] via NET/{net}/0
"""


def nccl_log(folder: pathlib.Path, *, net: str, ib: str, ports: bool, name: str) -> None:
    text = "".join(NCCL.format(n=n, p=1000 + n, q=2000 + n, net=net, ib=ib) for n in range(2))
    folder.joinpath(name).write_text(text)
    if ports:
        series = Series()
        for way in ("receive", "transmit"):
            series.add(f"infiniband.{way}.bytes", "mlx5_0:1", 120, 1, 0.0 if net == "Socket" else 4e9, unit="By",
                       kind="counter")
        series.write(folder)


C07 = Report("C07", "NCCL fell back to sockets", "SocketTransport", nccl_log, [
    variant(net="Socket", ib="NET/IB : No device found.", ports=True, name="nccl.log", says=["mlx5_0"]),
    variant(net="Socket", ib="NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB", ports=False, name="out.txt"),
    variant(net="IB", ib="NET/IB : Using [0]mlx5_0:1/IB", ports=True, name="nccl.log", rule=""),
])


def one_way(folder: pathlib.Path, *, sender: str, receiver: str, mb: float, form: str) -> None:
    proc = ProcDumps(200, 1, 8)
    proc.nics = {sender: (2e3, mb * MB), receiver: (mb * MB, 3e3)}
    proc.write(folder, together=form == "together")


C08 = Report("C08", "sent by one interface, received by another", "AsymmetricNetwork", one_way, [
    variant(sender="eno1", receiver="enp37s0", mb=117, form="apart", says=["eno1", "117"]),
    variant(sender="eth1", receiver="eth0", mb=290, form="together", says=["eth1", "290"]),
])


def straggler(folder: pathlib.Path, *, ranks: int, slow: int, by: float, count: int, form: str, own: str) -> None:
    steps = Steps()
    for rank in range(ranks):
        at = 0.0
        for i in range(count):
            took = 0.3 * (1 + by if rank == slow else 1) * jitter(7 * i + rank, 0.01)
            steps.rows.append((rank, i, at, took, 0.004 + (took - 0.3 if own == "data" and rank == slow else 0)))
            at += 0.34
    if form == "files":
        for rank in range(ranks):
            one = Steps()
            one.rows = [(0, *row[1:]) for row in steps.rows if row[0] == rank]
            one.write(folder, "log", f"rank{rank}.log")
    else:
        steps.write(folder, form)


C10 = Report("C10", "one slow rank", "SlowRank", straggler, [
    variant(ranks=64, slow=37, by=0.12, count=120, form="json", own="compute", says=["rank 37"]),
    variant(ranks=8, slow=2, by=0.3, count=200, form="log", own="data", says=["rank 2", "data"],
            beside=["InputBound"]),
    variant(ranks=4, slow=3, by=0.2, count=150, form="files", own="compute", says=["rank 3"]),
    variant(ranks=16, slow=0, by=0.0, count=150, form="json", own="compute", rule=""),
])


def uneven(folder: pathlib.Path, *, counts: list[int], form: str) -> None:
    steps = Steps()
    for rank, count in enumerate(counts):
        steps.rows += [(rank, i, i * 0.1, 0.1 * jitter(i), 0.001) for i in range(count)]
    steps.write(folder, form)


C12 = Report("C12", "ranks with more batches than others", "UnevenSteps", uneven, [
    variant(counts=[1000, 998, 998, 998], form="json", says=["1,?000", "998", "rank 0"]),
    variant(counts=[500, 500, 499, 500, 500, 500, 500, 500], form="log", says=["499"]),
    variant(counts=[400, 400, 400, 400], form="json", rule=""),
])

STALLS = {
    "ready": "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks "
             "and are waiting for remainder of ranks for more than 60 seconds. This may indicate that different "
             "ranks are trying to submit different tensors or that only subset of ranks is submitting tensors, which "
             "will cause deadlock.\nStalled ops:\n"
             "DistributedAdam_Allreduce/HorovodAllreduce_grads_0 [ready ranks: 0, 1, 2]\n",
    "missing": "[2020-11-02 12:00:00.123456: W horovod/common/operations.cc:588] One or more tensors were submitted "
               "to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for "
               "more than 60 seconds.\nStalled ops:\nallreduce.layer1.weight [missing ranks: "
               "5]\nallreduce.layer2.weight [missing ranks: 5]\n",
    "list": "[1,0]<stderr>:[2021-03-01 08:00:00.5: W /tmp/horovod/common/stall_inspector.cc:105] One or more tensors "
            "were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder "
            "of ranks for more than 60 seconds.\n[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:1: [allreduce.grad.0, "
            "allreduce.grad.1 ...]\n[1,0]<stderr>:3: [allreduce.grad.0]\n",
    "stalled": "[2020-11-02 12:00:00.1: W horovod/common/stall_inspector.cc:107] One or more tensors were submitted "
               "to be reduced, gathered or broadcasted by subset of ranks.\nStalled ranks:\n2: [broadcast.model.0, "
               "allreduce.grad.7 ...]\n",
}


def stall_log(folder: pathlib.Path, *, form: str, world: int | None, name: str) -> None:
    folder.joinpath(name).write_text("epoch 1 step 10 loss 2.0\n" + STALLS[form] * 2)
    if world:
        write_meta(folder, framework="horovod", world_size=world)


C13 = Report("C13", "Horovod's stall warnings", "CollectiveHang", stall_log, [
    variant(form="ready", world=4, name="train.log", says=["rank 3"]),
    variant(form="missing", world=None, name="horovod.txt", says=["rank 5", "layer"]),
    variant(form="list", world=None, name="out.log", says=["ranks 1, 3"]),
    variant(form="stalled", world=8, name="stderr.log", says=["rank 2"]),
    variant(form="ready", world=None, name="train.log", rule=""),
])


def watchdog(folder: pathlib.Path, *, progress: dict[int, tuple[int, int]], op: str, form: str) -> None:
    lines = []
    for rank, (seq, last) in progress.items():
        prefix = f"[rank{rank}]:" if form == "new" else ""
        group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]" if form == "new" else f"[Rank {rank}]"
        lines.append(f"{prefix}[E ProcessGroupNCCL.cpp:{563 + rank}] {group} Watchdog caught collective operation "
                     f"timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=1048576, NumelOut=1048576, "
                     f"Timeout(ms)=1800000) ran for {1800000 + 37 * rank} milliseconds before timing out.")
        if form == "new":
            lines.append(f"{prefix}[E ProcessGroupNCCL.cpp:1785] {group} Exception (either an error or timeout) "
                         f"detected by watchdog at work: {seq}, last enqueued NCCL work: {last}, "
                         f"last completed NCCL work: {seq - 1}.")
    folder.joinpath("train.log").write_text("\n".join(lines) + "\n")


C14 = Report("C14", "NCCL's watchdog: one rank is behind", "CollectiveHang", watchdog, [
    variant(progress={0: (96117, 96125), 1: (96117, 96125), 2: (64088, 64088), 3: (96117, 96125)}, op="ALLREDUCE",
                 form="new", says=["rank 2", "64088", "961\\d\\d"]),
    variant(progress={0: (512, 512), 1: (510, 510), 2: (512, 512)}, op="_ALLGATHER_BASE", form="old",
            says=["rank 1"]),
])


def desync(folder: pathlib.Path, *, works: dict[int, tuple[str, int]], seq: int) -> None:
    lines = [f"[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: "
             f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for "
             f"600041 milliseconds before timing out." for rank, (op, numel) in works.items()]
    folder.joinpath("job.log").write_text("\n".join(lines) + "\n")


C15 = Report("C15", "different collectives at the same place", "CollectiveHang", desync, [
    variant(works={0: ("BROADCAST", 64), 1: ("BROADCAST", 24_000_000)}, seq=212, says=["different", "212"]),
    variant(works={0: ("ALLREDUCE", 4096), 1: ("ALLREDUCE", 4096), 2: ("ALLGATHER", 4096)}, seq=9001,
            says=["different", "9001", "ALLGATHER"]),
])


def horovod(folder: pathlib.Path, *, ranks: int, late: int | None, late_ms: float, count: int, closed: bool) -> None:
    events: list[dict[str, object]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "DistributedOptimizer_Allreduce/grad_0"}},
        {"name": "process_sort_index", "ph": "M", "pid": 1, "args": {"sort_index": 1}}]
    at = 1000
    for i in range(count):
        last = late if late is not None else (i * 5) % ranks
        wait = int(late_ms * 1000 * jitter(i, 0.5))
        events.append({"name": "NEGOTIATE_ALLREDUCE", "ph": "B", "pid": 1, "ts": at})
        for rank in [r for r in range(ranks) if r != last] + [last]:
            events.append({"name": str(rank), "ph": "X", "pid": 1, "ts": at + (wait if rank == last else rank * 20),
                           "dur": 0})
        events.append({"name": "", "ph": "E", "pid": 1, "ts": at + wait + 30})
        events.append({"name": "ALLREDUCE", "ph": "B", "pid": 1, "ts": at + wait + 40})
        events.append({"name": "", "ph": "E", "pid": 1, "ts": at + wait + 4040})
        at += wait + 30_000
    text = "[\n" + ",\n".join(json.dumps(event) for event in events)
    folder.joinpath("timeline.json").write_text(text + ("\n]\n" if closed else ",\n"))


C16 = Report("C16", "long negotiations of Horovod", "NegotiationWait", horovod, [
    variant(ranks=4, late=2, late_ms=45, count=200, closed=True, says=["[Rr]ank 2"]),
    variant(ranks=8, late=None, late_ms=60, count=300, closed=False, says=["different times"]),
    variant(ranks=4, late=None, late_ms=0.4, count=200, closed=True, rule=""),
])
