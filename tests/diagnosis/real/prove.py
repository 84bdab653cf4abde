#!/usr/bin/env python3
"""Makes the diagnosis anew from real jobs: plants a cause, records, compares the verdict, follows the advice, records again.

    tests/diagnosis/real/prove.py --hotlap build/release/hotlap [--only TEXT] [--json FILE] [--table docs/diagnosis.md]

What the machine does not permit (control groups, loop devices) is left out, and said. The job gets a high priority where
that is permitted, so that other programs disturb it little; what is found about them and about a hypervisor that takes cores
away is right when the kernel's own figures say so too. Exit code 1: a cause was not found, something was found that is not
there, or less than 90 % of the predictions were right.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from limits import Around, ControlGroup, SlowDisk, Unavailable
from scenarios import SCENARIOS, Scenario

HERE = pathlib.Path(__file__).resolve().parent
MARK = "<!-- real jobs: made by tests/diagnosis/real/prove.py, do not edit -->"
WITHIN = 0.15  # of what was reached, for a prediction to be right
GAIN_MIN = 0.05  # smaller gains are not judged
RUN_TIMEOUT_S = 300


class Prover:
    def __init__(self, hotlap: pathlib.Path, python: str, home: pathlib.Path) -> None:
        self.hotlap = hotlap
        self.python = python
        self.home = home
        self.environment = {**os.environ, "HOTLAP_HOME": str(home), "HOTLAP_NODE": "proof", "NO_COLOR": "1"}

    def ask(self, *words: str) -> dict:
        out = subprocess.run([self.hotlap, *words], env=self.environment, capture_output=True, text=True,
                             timeout=120, check=True)
        return json.loads(out.stdout)

    def record(self, scenario: Scenario, job: list[str]) -> dict:
        """One run; its answer, with what time a step took from the first to the last, pauses too."""
        rules = [word for i, word in enumerate(scenario.flags)
                 if word == "--rule" or (i > 0 and scenario.flags[i - 1] == "--rule")]
        flags = [word for i, word in enumerate(scenario.flags)
                 if not (word == "--rule" or (i > 0 and scenario.flags[i - 1] == "--rule"))]
        with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
            with SlowDisk(scenario.disk_mb_per_s, pathlib.Path(scratch)) as disk, ControlGroup(
                    cores=scenario.cpu_quota, memory_mb=scenario.memory_mb, read=disk.limit) as group, Around() as around:
                extra = ["--read-file", str(disk.file)] if disk.file else []
                shutil.copy(HERE / "job.py", scratch)
                done = subprocess.run([self.hotlap, "run", "--quiet", *flags, "--", self.python, "job.py", *job, *extra],
                                      env=self.environment, cwd=scratch, preexec_fn=group.enter, timeout=RUN_TIMEOUT_S,
                                      stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{scenario.name}: the job ended with {done.returncode}")
        answer = self.ask("analyze", "last", "--json", *rules)
        spans = self.ask("sql", "last", "--format", "json",
                         "SELECT (max(start_s + ms / 1e3) - min(start_s)) * 1e3 / count(*) AS overall FROM step "
                         "WHERE step > 20")
        answer["around"] = around
        answer["overall_ms"] = spans["rows"][0][0] if spans["rows"] else None
        return answer


def is_of_machine(finding: dict, around: Around) -> bool:
    """What others do to the job, as the kernel counted it too: nobody planted it, and it is no false alarm."""
    if finding["rule"] == "NoisyNeighbour":
        return around.steal_pct >= 3
    if finding["rule"] in ("ThroughputChange", "StepOutlier"):
        return around.steal_pct >= 10 or around.outside_cores >= 1  # who takes cores makes steps longer
    return finding["cause"].startswith("Other programs take") and around.outside_cores >= 0.5


def is_fault(finding: dict) -> bool:
    return not finding["explained_by"] and finding["severity"] != "info"


def predicted(finding: dict, before: dict) -> tuple[float, float, str] | None:
    """What the first advice with figures says: milliseconds from, to, and of what."""
    for advice in finding["advice"]:
        if advice["step_ms_low"] is not None:
            return advice["step_ms_low"], advice["step_ms_high"], "mean_ms"
        share = re.match(r"([\d.]+) % -> (?:([\d.]+)-)?([\d.]+) % of the run", advice["gain"] or "")
        if share and before["overall_ms"]:
            now, high = float(share[1]) / 100, float(share[3]) / 100
            low = float(share[2]) / 100 if share[2] is not None else high
            rest = before["overall_ms"] * (1 - now)
            return rest / (1 - low), rest / (1 - high), "overall_ms"
    return None


def reached(answer: dict, of: str) -> float | None:
    return answer["overall_ms"] if of == "overall_ms" else answer["steps"]["mean_ms"]


def prove(prover: Prover, scenario: Scenario) -> dict:
    before = prover.record(scenario, scenario.job)
    # What was planted may be told as a mere remark: an evaluation is often wanted.
    found = [one for one in before["findings"]
             if is_fault(one) or (one["rule"] == scenario.rule and not one["explained_by"])]
    found = [one for one in found if one["rule"] == scenario.rule or not is_of_machine(one, before["around"])]
    first = found[0] if found else None
    is_right = (first["rule"] if first else "") in ((scenario.rule,) + (scenario.may if scenario.rule else ()))
    if is_right and first and scenario.cause:
        is_right = scenario.cause in first["cause"]
    row = {"name": scenario.name, "planted": scenario.rule, "found": first["rule"] if first else "",
           "cause": first["cause"] if first else before["verdict"]["text"].splitlines()[0], "right": is_right,
           "besides": [one["rule"] for one in found[1:] if one["rule"] not in scenario.may + (scenario.rule,)],
           "step_ms": before["steps"]["mean_ms"], "overall_ms": before["overall_ms"],
           "steal_pct": before["around"].steal_pct, "outside_cores": before["around"].outside_cores}
    if first and scenario.follow and is_right:
        then = scenario.follow(first)
        promise = predicted(first, before)
        row["advice"] = first["advice"][0]["change"] if first["advice"] else None
        if then is not None and promise is not None:
            after = prover.record(scenario, [*scenario.job, *then])
            low, high, of = promise
            now = reached(after, of)
            row.update(predicted=[low, high], reached=now, before=reached(before, of), followed=then,
                       after_found=[one["rule"] for one in after["findings"] if is_fault(one)])
    return row


def off(row: dict) -> float:
    """How far what was reached lies from the middle of what was predicted, as a share of what was reached."""
    low, high = row["predicted"]
    return abs((low + high) / 2 - row["reached"]) / row["reached"]


def table(rows: list[dict], left_out: list[tuple[str, str]]) -> str:
    def words(rule: str) -> str:
        return rule or "nothing"

    lines = [MARK, "", "## Real jobs", "",
             "PyTorch on the CPU, costs planted by waiting and spinning (`tests/diagnosis/real/scenarios.py`), recorded by "
             "`hotlap run`;", "then the advice followed and recorded again. Made by `make proof` "
             "(`tests/diagnosis/real/prove.py`), on a machine of "
             f"{os.cpu_count()} cores.", "",
             "| planted | cause | found | besides | step | predicted | reached | off |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        if "predicted" in row:
            low, high = row["predicted"]
            tail = (f"{row['before']:.0f} ms | {low:.0f}-{high:.0f} ms | {row['reached']:.0f} ms | "
                    f"{100 * off(row):.0f} %")
        else:
            tail = f"{row['step_ms']:.0f} ms | | | " if row["step_ms"] else " | | | "
        lines.append(f"| {row['name']} | {words(row['planted'])} | {words(row['found'])} | {', '.join(row['besides'])} | "
                     f"{tail} |")
    lines += ["", summary(rows)]
    for name, why in left_out:
        lines.append(f"Left out: {name} ({why}).")
    return "\n".join(lines) + "\n"


def judged(rows: list[dict]) -> list[dict]:
    return [row for row in rows
            if "predicted" in row and row["reached"] and 1 - row["predicted"][1] / row["before"] >= GAIN_MIN]


def alarms(rows: list[dict]) -> int:
    return sum(len(row["besides"]) + (1 if not row["planted"] and row["found"] else 0) for row in rows)


def summary(rows: list[dict]) -> str:
    hits = judged(rows)
    good = sum(1 for row in hits if off(row) <= WITHIN)
    return (f"{sum(row['right'] for row in rows)} of {len(rows)} right, {alarms(rows)} false alarms; "
            f"{good} of {len(hits)} predictions of 5 % and more within 15 % of what was reached.")


def is_proven(rows: list[dict]) -> bool:
    hits = judged(rows)
    good = sum(1 for row in hits if off(row) <= WITHIN)
    return all(row["right"] for row in rows) and alarms(rows) == 0 and good >= 0.9 * len(hits)


def write_table(path: pathlib.Path, text: str) -> None:
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(old.split(MARK)[0].rstrip("\n") + "\n\n" + text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotlap", type=pathlib.Path, required=True)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--only", action="append", default=[], help="scenarios whose name has this")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path, help="rewrite the part about real jobs in this document")
    parser.add_argument("--home", type=pathlib.Path, help="keep the runs there")
    args = parser.parse_args()
    rows: list[dict] = []
    left_out: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        prover = Prover(args.hotlap.resolve(), args.python, (args.home or pathlib.Path(folder)).resolve())
        for scenario in SCENARIOS:
            if args.only and not any(text in scenario.name for text in args.only):
                continue
            try:
                row = prove(prover, scenario)
            except Unavailable as error:
                left_out.append((scenario.name, str(error)))
                print(f"left out  {scenario.name}: {error}", flush=True)
                continue
            rows.append(row)
            mark = "ok   " if row["right"] and not row["besides"] else "WRONG"
            more = f"  besides {row['besides']}" if row["besides"] else ""
            if "predicted" in row:
                more += (f"  {row['before']:.0f} -> predicted {row['predicted'][0]:.0f}-{row['predicted'][1]:.0f}, "
                         f"reached {row['reached']:.0f} ms ({100 * off(row):.0f} % off, {' '.join(row['followed'])})")
            print(f"{mark} {scenario.name}: {row['found'] or 'nothing'} ({row['cause']}){more}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(summary(rows))
    if args.table:
        write_table(args.table, table(rows, left_out))
    return 0 if is_proven(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
