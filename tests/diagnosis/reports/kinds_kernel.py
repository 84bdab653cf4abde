"""The kernel's log, alone and beside what the job and its GPUs left: what it says of an end, of a stall, of a machine."""
from __future__ import annotations

import datetime
import pathlib

from forms import T0_S, Smi, Steps

from report import Report, variant

MIB_KB = 1024


def stamp(t_s: float, form: str) -> str:
    moment = datetime.datetime.fromtimestamp(T0_S + t_s, datetime.timezone.utc)
    if form == "boot":
        return f"[{1_209_600 + t_s:12.6f}] "
    if form == "iso":
        return moment.strftime("%Y-%m-%dT%H:%M:%S,%f+00:00 ")
    if form == "spelled":
        return moment.strftime("[%a %b ") + f"{moment.day:2d}" + moment.strftime(" %H:%M:%S %Y] ")
    if form == "journal":
        return moment.strftime("%Y-%m-%dT%H:%M:%S+0000 n07 kernel: ")
    return moment.strftime("%b ") + f"{moment.day:2d}" + moment.strftime(" %H:%M:%S n07 kernel: ") + \
        f"[{1_209_600 + t_s:.6f}] "


def write(folder: pathlib.Path, form: str, lines: list[tuple[float, str]], name: str = "kern.log") -> None:
    """With what any machine says beside it, from days before."""
    every = [(-400_000.0, "Linux version 6.1.0-26-amd64 (debian-kernel@lists.debian.org)"),
             (-399_000.0, "audit: backlog limit reached"), (-90_000.0, "usb 1-1: new high-speed USB device"),
             *lines, (4_000.0, "docker0: port 1(veth12) entered blocking state")]
    folder.joinpath(name).write_text("".join(stamp(t, form) + text + "\n" for t, text in sorted(every)))


def train(folder: pathlib.Path, *, count: int, step_ms: float, end: str = "", stall: tuple[int, float] | None = None,
          form: str = "log") -> float:
    """A log of steps and the error in which it ends; when that is."""
    steps = Steps.every(count, step_ms, pause_s=lambda i: stall[1] if stall and i == stall[0] else 0.0)
    steps.write(folder, form)
    if end:
        moment = datetime.datetime.fromtimestamp(T0_S + steps.end_s() + 1, datetime.timezone.utc)
        with folder.joinpath("train.log").open("a") as out:
            out.write(moment.strftime("%Y-%m-%d %H:%M:%S,000 ERROR ") + end + "\n")
    return steps.end_s()


def killed(at_s: float, pid: int, name: str, rss_mib: int, limit_mib: int = 0) -> list[tuple[float, str]]:
    rss = f"total-vm:{rss_mib * 2048}kB, anon-rss:{rss_mib * MIB_KB}kB, file-rss:0kB, shmem-rss:0kB, UID:0"
    if not limit_mib:
        return [(at_s - 0.2, f"{name} invoked oom-killer: gfp_mask=0x140dca, order=0, oom_score_adj=0"),
                (at_s, f"Out of memory: Killed process {pid} ({name}) {rss}")]
    return [(at_s - 0.2, f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"),
            (at_s - 0.15, f"memory: usage {limit_mib * MIB_KB}kB, limit {limit_mib * MIB_KB}kB, failcnt 81"),
            (at_s - 0.1, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
                         f"oom_memcg=/slurm/job_7,task_memcg=/slurm/job_7,task={name},pid={pid},uid=0"),
            (at_s, f"Memory cgroup out of memory: Killed process {pid} ({name}) {rss}")]


def oom(folder: pathlib.Path, *, form: str, limit_mib: int, with_log: bool, pid: int = 5120,
        name: str = "pt_data_worker") -> None:
    end_s = 600.0
    if with_log:
        end_s = train(folder, count=700, step_ms=430,
                      end=f"RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Killed. ")
    write(folder, form, killed(end_s, pid, name, 9100, limit_mib))


OOM = Report("F13a", "the kernel killed a process: kern.log, dmesg", "KilledForMemory", oom, [
    variant(form="iso", limit_mib=16384, with_log=True, says=["pt_data_worker", "16.0 GiB", "names that process"]),
    variant(form="boot", limit_mib=0, with_log=True, pid=77, says=["names that process", "machine itself"]),
    variant(form="syslog", limit_mib=16384, with_log=True, says=["/slurm/job_7"]),
    variant(form="spelled", limit_mib=0, with_log=False, name="python3", says=["python3", "2023-11-1"]),
])


def xid(folder: pathlib.Path, *, form: str, number: int, tail: str, end: str = "", smi: bool = False,
        at_s: float | None = None) -> None:
    end_s = train(folder, count=900, step_ms=350, end=end) if end else 300.0
    if smi:
        Smi(300, 1, 2, {"pci.bus_id": lambda _t, g: f"00000000:{'3B' if g else '18'}:00.0",
                        "utilization.gpu": lambda _t, _g: 91}).write(folder)
    at = end_s - 0.5 if at_s is None else at_s
    write(folder, form, [(at, f"NVRM: Xid (PCI:0000:3b:00): {number}, pid=4711, name=python3, {tail}"),
                         (at + 0.1, "NVRM: Xid (PCI:0000:3b:00): 45, pid=4711, name=python3, Ch 00000010")])


XID = Report("F13b", "an Xid in the kernel's log", "GPULost", xid, [
    variant(form="boot", number=79, tail="GPU has fallen off the bus.", says=["fell off the bus", "0000:3b:00"]),
    variant(form="journal", number=31, tail="MMU Fault", end="RuntimeError: CUDA error: an illegal memory access",
            says=["program", "CUDA_LAUNCH_BLOCKING|compute-sanitizer", "log ends then"]),
    variant(form="iso", number=94, tail="Contained: SM (0x1)", smi=True, says=["gpu1", "contained"]),
    variant(form="syslog", number=119, tail="Timeout waiting for RPC from GSP!",
            end="torch.AcceleratorError: CUDA error: unknown error", says=["GSP"]),
    variant(form="iso", number=13, tail="Graphics Exception", end="ValueError: not enough values to unpack",
            at_s=-200_000, rule="JobFailed", never=["GPULost"]),
])


def mount(folder: pathlib.Path, *, form: str, stall_s: float, with_log: bool, back: bool = True) -> None:
    if with_log:
        train(folder, count=800, step_ms=300, stall=(400, stall_s))
    lines = [(120.3 + i, "nfs: server 10.0.4.2 not responding, still trying") for i in range(4)]
    if back:
        lines.append((120.3 + stall_s - 0.5, "nfs: server 10.0.4.2 OK"))
    write(folder, form, lines)


MOUNT = Report("F13c", "an NFS server that does not answer, by the kernel's log", "MountStuck", mount, [
    variant(form="iso", stall_s=180, with_log=True, says=["10.0.4.2", "took 1[78]\\d s longer"], beside=["StepOutlier"]),
    variant(form="boot", stall_s=95, with_log=False, says=["9[45] s"]),
    variant(form="spelled", stall_s=60, with_log=False, back=False, says=["last without an end"]),
    variant(form="iso", stall_s=4, with_log=False, rule=""),
])


def hardware(folder: pathlib.Path, *, text: str, count: int) -> None:
    write(folder, "journal", [(60.0 + 9 * i, text) for i in range(count)])


HARDWARE = Report("F13d", "disks, memory and CPUs in the kernel's log", "HardwareErrors", hardware, [
    variant(text="I/O error, dev nvme1n1, sector 81200 op 0x0:(READ) flags 0x80700", count=2, says=["nvme1n1"]),
    variant(text="CPU7: Core temperature above threshold, cpu clock throttled (total events = 4)", count=40,
            says=["CPU7", "heat"]),
    variant(text="EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0", count=1, rule=""),
    variant(text="usb 3-2: USB disconnect, device number 7", count=9, rule=""),
])


def crash(folder: pathlib.Path, *, with_log: bool, text: str) -> None:
    end_s = train(folder, count=500, step_ms=500, end="Segmentation fault (core dumped)") if with_log else 200.0
    write(folder, "iso", [(end_s + 0.5, text)])


CRASH = Report("F13e", "a program that crashed, by the kernel's log", "ProcessCrashed", crash, [
    variant(with_log=True, text="python3[4711]: segfault at 8 ip 00007f10 sp 00007ffc error 4 in libcudnn.so.9[7f+9]",
            says=["libcudnn", "log ends then"]),
    variant(with_log=False, text="traps: python3[4711] trap invalid opcode ip:7f sp:7f error:0 in libfaiss.so[7f+4]",
            says=["instruction", "libfaiss"]),
    variant(with_log=False, text="gnome-shell[812]: segfault at 0 ip 00007f sp 00007f error 4 in libst.so[7f+9]",
            rule=""),
])


def error(folder: pathlib.Path, *, end: str) -> None:
    train(folder, count=400, step_ms=450, end=end)


ENDS = Report("L09", "a log that ends in an error", "JobFailed", error, [
    variant(end="ValueError: Expected more than 1 value per channel when training", says=["more than 1 value"]),
    variant(end="RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed. ", says=["worker was killed"]),
    variant(end="all done", rule=""),
])
