"""What is planted in real jobs (job.py), the verdict that is right, and what following the advice should reach.

Look-alikes stand beside their causes: the same symptom, another reason, or the same reason and no harm.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable

Finding = dict
# From the finding to the arguments of the job that did what was advised; None: that advice was not given.
Follow = Callable[[Finding], "list[str] | None"]


@dataclass(frozen=True)
class Scenario:
    name: str
    rule: str  # that must be found, and alone; "" where nothing is wrong
    job: list[str]
    cause: str = ""  # a part of the finding's own words, where a rule knows several causes
    flags: list[str] = field(default_factory=list)  # of `hotlap run`
    follow: Follow | None = None
    # Besides the rule: findings of the same harm by another name.
    may: tuple[str, ...] = ()
    cpu_quota: float | None = None  # cores that a control group leaves
    memory_mb: int | None = None  # limit of a control group
    disk_mb_per_s: float | None = None  # a loop device that gives no more; holds --read-file


def advised_workers(finding: Finding) -> list[str] | None:
    workers = finding["evidence"].get("advised_workers")
    return None if workers is None else ["--workers", str(int(workers))]


def rarer_checkpoints(finding: Finding) -> list[str] | None:
    for advice in finding["advice"]:
        words = advice["change"].split()
        if words[:2] == ["save", "every"]:
            return ["--checkpoint-every", words[2].replace(",", "")]
    return None


def job(text: str) -> list[str]:
    return text.split()


def always(text: str) -> Follow:
    return lambda finding: text.split()


SCENARIOS = [
    Scenario("healthy", "", job("--steps 200 --device-ms 80 --item-cpu-ms 0.5 --workers 2")),
    Scenario("steps that vary by a half", "",
             job("--steps 200 --device-ms 60 --jitter-ms 40 --item-cpu-ms 0.5 --workers 2")),
    Scenario("too few workers, which wait", "InputBound", job("--steps 200 --workers 1 --item-wait-ms 14 --device-ms 50"),
             follow=advised_workers),
    Scenario("too few workers of two", "InputBound", job("--steps 200 --workers 2 --item-wait-ms 26 --device-ms 45"),
             follow=advised_workers),
    Scenario("no workers, loading waits", "InputBound", job("--steps 200 --workers 0 --item-wait-ms 6 --device-ms 60"),
             follow=advised_workers),
    Scenario("no workers, loading computes", "InputBound", job("--steps 200 --workers 0 --item-cpu-ms 4 --device-ms 60"),
             follow=advised_workers),
    Scenario("one worker that computes", "InputBound", job("--steps 200 --workers 1 --item-cpu-ms 8 --device-ms 40"),
             follow=advised_workers),
    Scenario("all cores full of workers", "InputBound", job("--steps 120 --workers 4 --item-cpu-ms 24 --device-ms 30"),
             cause="full"),
    Scenario("a slow sample in each 40", "InputBound",
             job("--steps 300 --workers 2 --item-wait-ms 1 --slow-item-every 40 --slow-item-ms 600 --device-ms 40"),
             may=("StepOutlier",)),
    Scenario("checkpoint every 25 steps", "CheckpointStall",
             job("--steps 300 --workers 1 --device-ms 50 --checkpoint-every 25"), follow=rarer_checkpoints),
    Scenario("checkpoints that cost nothing", "",
             job("--steps 250 --workers 1 --device-ms 60 --checkpoint-every 100 --checkpoint-mb 1 "
                 "--checkpoint-mb-per-s 1000")),
    Scenario("evaluation every 40 steps", "EvaluationShare",
             job("--steps 240 --workers 1 --device-ms 50 --eval-every 40 --eval-batches 20"),
             follow=always("--eval-every 80")),
    Scenario("collector at each step", "GarbageCollection",
             job("--steps 200 --workers 1 --device-ms 40 --gc-objects 150000 --collect"),
             follow=always("--gc-off --gc-objects 1")),
    Scenario("many objects, collector at rest", "",
             job("--steps 200 --workers 1 --device-ms 50 --gc-objects 150000")),
    Scenario("new workers at each epoch", "EpochGap",
             job("--steps 240 --epoch-steps 30 --workers 2 --worker-start-ms 1200 --item-wait-ms 1 --device-ms 50"),
             follow=always("--persistent")),
    Scenario("epochs with workers that stay", "",
             job("--steps 240 --epoch-steps 60 --workers 2 --persistent --item-wait-ms 1 --device-ms 60")),
    Scenario("memory leak", "HostMemoryGrowth",
             job("--steps 250 --workers 1 --device-ms 80 --leak-mb 2"), cause="main", memory_mb=1500),
    Scenario("pool that fills up", "",
             job("--steps 300 --workers 1 --device-ms 70 --leak-mb 4 --leak-cap-mb 250"), memory_mb=1500),
    Scenario("memory up in one step", "",
             job("--steps 300 --workers 1 --device-ms 70 --jump-mb 400 --jump-at 150"), memory_mb=1500),
    Scenario("slower from step 120 on", "ThroughputChange",
             job("--steps 250 --workers 1 --device-ms 50 --slower-from 120 --slower-ms 40")),
    Scenario("code between the steps", "HotCore",
             job("--steps 200 --workers 1 --device-ms 40 --other-ms 40"), may=("OtherCode",)),
    Scenario("threads in each worker", "ThreadOversubscription",
             job("--steps 100 --workers 4 --worker-threads 8 --worker-math-ms 40 --device-ms 20"),
             may=("InputBound",)),
    Scenario("half a core by quota", "InputBound",
             job("--steps 120 --workers 2 --item-cpu-ms 6 --device-ms 40"), cpu_quota=0.5),
    Scenario("disk of 6 MB/s", "StorageBound",
             job("--steps 150 --workers 2 --read-kb 100 --device-ms 50"), disk_mb_per_s=6, may=("InputBound",)),
    Scenario("disk that gives enough", "",
             job("--steps 200 --workers 2 --read-kb 16 --device-ms 70"), disk_mb_per_s=100),
    Scenario("download before the job", "SlowDownload", job("--steps 80 --workers 1 --device-ms 60"),
             flags=["--download", "sleep 9", "--rule", "SlowDownload:time=5s"]),
    Scenario("long initialisation", "MaxInitializationTime",
             job("--steps 80 --workers 1 --device-ms 60 --init-ms 12000"),
             flags=["--rule", "MaxInitializationTime:threshold=0.15"]),
    Scenario("one slow rank of two", "SlowRank",
             job("--steps 150 --ranks 2 --workers 1 --device-ms 40 --slow-rank-ms 30"), follow=always("--slow-rank-ms 0")),
    Scenario("two ranks alike", "", job("--steps 150 --ranks 2 --workers 1 --device-ms 60")),
    Scenario("two ranks that wait for data", "InputBound",
             job("--steps 150 --ranks 2 --workers 1 --device-ms 30 --item-wait-ms 10"), may=("SlowRank",)),
]
