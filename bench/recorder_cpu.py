#!/usr/bin/env python3
"""CPU time and memory of our processes, against the bare reads and against peers, at the same pace in the same run.

    bench/recorder_cpu.py [--hotlap build/release/hotlap] [--floor build/release/bench/paced_floor] [--seconds 20]
                          [--rates 10,2] [--job 'COMMAND'] [--json FILE]

CPU is the sum over threads of /proc/PID/task/*/schedstat (ns): the ticks of /proc/PID/stat are too coarse. The floor is
bench/paced_floor.cpp over the files that our recorder reads, each as often as ours reads it, as strace sees it (without
strace: the kernel files that it keeps open, at each tick). Peers run when they are installed: prometheus-node-exporter
(scraped once a tick), pcp (pmcd and pmlogger). The figures belong together only within one run: the machine's load moves
all of them.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

KERNEL_FILE = re.compile(r"^/(proc|sys)/")


def cpu_ns(pid):
    total = 0
    for schedstat in pathlib.Path("/proc/%d/task" % pid).glob("*/schedstat"):
        try:
            total += int(schedstat.read_text().split()[0])
        except OSError:
            pass
    return total


def memory_kib(pid):
    """(resident, proportional)"""
    text = pathlib.Path("/proc/%d/smaps_rollup" % pid).read_text()
    return tuple(int(re.search(r"^%s:\s+(\d+)" % key, text, re.M)[1]) for key in ("Rss", "Pss"))


def children(pid):
    found = []
    for tasks in pathlib.Path("/proc/%d/task" % pid).glob("*/children"):
        found += [int(child) for child in tasks.read_text().split()]
    return found


def words_of(pid):
    try:
        return pathlib.Path("/proc/%d/cmdline" % pid).read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


def wait_for(condition, what):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    sys.exit("waited in vain for " + what)


def files_read(recorder, interval_s):
    """By strace where it works: ["N@PATH", …], N being the ticks between two reads of that file."""
    links = {}
    for fd in pathlib.Path("/proc/%d/fd" % recorder).iterdir():
        try:
            links[int(fd.name)] = os.readlink(fd)
        except OSError:
            continue
    kept = sorted(path for path in links.values() if KERNEL_FILE.match(path))
    if not shutil.which("strace"):
        return kept, "files kept open (no strace)"
    seconds = 12.0  # some are read every 5 s
    with tempfile.NamedTemporaryFile() as log:
        tracer = subprocess.Popen(["strace", "-f", "-e", "trace=pread64", "-p", str(recorder), "-o", log.name],
                                  stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        first_reads = re.findall(r"pread64\((\d+),.*, 0\) += ", pathlib.Path(log.name).read_text())
    counts = collections.Counter(int(fd) for fd in first_reads)
    read = sorted("%d@%s" % (max(1, round(seconds / interval_s / count)), links[fd]) for fd, count in counts.items()
                  if fd in links and KERNEL_FILE.match(links[fd]) and count > 1)
    return (read, "files read (strace)") if read else (kept, "files kept open (strace saw nothing)")


class Measured:
    def __init__(self, name, pids):
        self.name, self.pids = name, pids
        self.shares = []

    def begin(self):
        self.before = sum(cpu_ns(pid) for pid in self.pids)

    def end(self, ticks):
        self.shares.append((sum(cpu_ns(pid) for pid in self.pids) - self.before) / 1e3 / ticks)

    def row(self, rate):
        memory = [memory_kib(pid) for pid in self.pids]
        median = statistics.median(self.shares)
        return {"name": self.name, "us_per_tick": round(median, 1), "us_lowest": round(min(self.shares), 1),
                "us_highest": round(max(self.shares), 1), "pct_of_core": round(median * rate / 1e4, 4),
                "rss_mib": round(sum(m[0] for m in memory) / 1024, 1), "pss_mib": round(sum(m[1] for m in memory) / 1024, 1)}


def start_node_exporter(interval_s, stop):
    program = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if not program:
        return None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([program, "--web.listen-address=127.0.0.1:%d" % port], stderr=subprocess.DEVNULL)
    url = "http://127.0.0.1:%d/metrics" % port

    def scrape():
        next_s = time.monotonic()
        while not stop.is_set():
            next_s = max(next_s + interval_s, time.monotonic())
            time.sleep(max(0, next_s - time.monotonic()))
            try:
                urllib.request.urlopen(url, timeout=10).read()
            except OSError:
                time.sleep(0.1)

    threading.Thread(target=scrape, daemon=True).start()
    return process


def start_pcp(interval_s, folder):
    """pmcd with its Linux agent, and one pmlogger with the leaf metrics that correspond to ours."""
    pmcd, pmlogger = "/usr/lib/pcp/bin/pmcd", shutil.which("pmlogger") or "/usr/lib/pcp/bin/pmlogger"
    if not os.path.exists(pmcd) or not os.path.exists(pmlogger):
        return None
    # Not by its init script: that waits for a service manager, which a container lacks.
    if not os.path.exists("/var/lib/pcp/pmns/root"):
        subprocess.run(["/var/lib/pcp/pmns/Rebuild", "-su"], cwd="/var/lib/pcp/pmns", timeout=60, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.makedirs("/run/pcp", exist_ok=True)
    if subprocess.run(["pgrep", "-x", "pmcd"], stdout=subprocess.DEVNULL, check=False).returncode == 0:
        return None  # somebody's own: not ours to end, and what it does besides would be measured too
    daemon = subprocess.Popen([pmcd, "-f", "-A", "-l", folder + "/pmcd.log"], cwd=folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    time.sleep(2)
    config = pathlib.Path(folder) / "pmlogger.conf"
    metrics = ("kernel.percpu.cpu.user kernel.percpu.cpu.sys kernel.percpu.cpu.idle kernel.all.load kernel.all.pswitch "
               "mem.util.used mem.util.free mem.util.cached disk.dev.read disk.dev.write disk.dev.read_bytes "
               "disk.dev.write_bytes network.interface.in.bytes network.interface.out.bytes mem.vmstat.pgpgin "
               "mem.vmstat.pgpgout kernel.all.pressure.cpu.some.total kernel.all.pressure.io.some.total")
    config.write_text("log mandatory on %d msec { %s }\n" % (interval_s * 1000, " ".join(metrics.split())))
    logger = subprocess.Popen([pmlogger, "-c", str(config), str(pathlib.Path(folder) / "pcp-archive")],
                              env=dict(os.environ, PCP_DERIVED_CONFIG=""), cwd=folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    time.sleep(2)
    if logger.poll() is not None or daemon.poll() is not None:
        logger.kill()
        daemon.kill()
        return None
    below = children(daemon.pid)  # pmdaroot starts the other agents
    below += [pid for parent in below for pid in children(parent)]
    agent = [pid for pid in below if words_of(pid)[:1] and words_of(pid)[0].endswith("/pmdalinux")]
    return (logger, daemon, agent) if agent else None


def measure(options, rate, job):
    interval_s = 1 / rate
    stop = threading.Event()
    started = []
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/runtime", 0o700)
        environment = dict(os.environ, HOTLAP_HOME=folder + "/home", XDG_RUNTIME_DIR=folder + "/runtime")
        supervisor = subprocess.Popen([options.hotlap, "run", "--quiet", "--interval", "%dms" % (interval_s * 1000), "--",
                                       *job], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        recorder = wait_for(lambda: next((p for p in children(supervisor.pid) if "_recorder" in words_of(p)), None),
                            "the recorder")
        time.sleep(options.warm_up)
        if supervisor.poll() is not None:
            sys.exit("the job ended before it could be measured")
        paths, how = files_read(recorder, interval_s)
        ours = [supervisor.pid] + [p for p in children(supervisor.pid)
                                   if p == recorder or words_of(p) == words_of(supervisor.pid)]
        measured = [Measured("hotlap (supervisor, witness, recorder)", ours)]
        floor = subprocess.Popen([options.floor, "%d" % (interval_s * 1000), folder + "/floor", *paths])
        started.append(floor)
        measured.append(Measured("paced floor: %d %s" % (len(paths), how), [floor.pid]))
        absent = []
        if options.peers:
            exporter = start_node_exporter(interval_s, stop)
            if exporter:
                started.append(exporter)
                measured.append(Measured("prometheus-node-exporter", [exporter.pid]))
            else:
                absent.append("prometheus-node-exporter")
            pcp = start_pcp(interval_s, folder)
            if pcp:
                started += pcp[:2]
                measured.append(Measured("pcp (pmcd, pmdalinux, pmlogger)", [pcp[0].pid, pcp[1].pid, *pcp[2]]))
            else:
                absent.append("pcp")
        time.sleep(2)
        for _ in range(options.windows):
            for one in measured:
                one.begin()
            begin = time.monotonic()
            time.sleep(options.seconds / options.windows)
            ticks = (time.monotonic() - begin) * rate
            for one in measured:
                one.end(ticks)
        rows = [one.row(rate) for one in measured]
        stop.set()
        supervisor.terminate()
        supervisor.wait()
        for process in started:
            process.kill()
            process.wait()
    return rows, absent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotlap", default="build/release/hotlap")
    parser.add_argument("--floor", default="build/release/bench/paced_floor")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--warm-up", type=float, default=6, help="seconds before measuring, for the job to settle")
    parser.add_argument("--rates", default="10,2", help="ticks per second")
    parser.add_argument("--job", default="sleep 3600")
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--json", help="also write the rows there")
    options = parser.parse_args()
    options.hotlap, options.floor = os.path.abspath(options.hotlap), os.path.abspath(options.floor)
    everything = {}
    for rate in (float(r) for r in options.rates.split(",")):
        rows, absent = measure(options, rate, options.job.split())
        everything["%g Hz" % rate] = rows
        print("\n%g Hz, %s, load %.1f" % (rate, options.job, os.getloadavg()[0]))
        print("| what | µs per tick (lowest – highest of %d windows) | %% of a core | RSS MiB | PSS MiB |" % options.windows)
        print("|---|---|---|---|---|")
        for row in rows:
            print("| {name} | **{us_per_tick}** ({us_lowest} – {us_highest}) | {pct_of_core} | {rss_mib} | {pss_mib} |".format(**row))
        print("ours / floor: %.2f" % (rows[0]["us_per_tick"] / rows[1]["us_per_tick"]))
        for name in absent:
            print("not measured: %s (not installed, or running already)" % name)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(everything, indent=2) + "\n")


if __name__ == "__main__":
    main()
