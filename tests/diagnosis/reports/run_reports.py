#!/usr/bin/env python3
"""Makes the files of each kind of user's report and looks at what hotlap finds in them.

    run_reports.py --hotlap build/dev/hotlap [--keep FOLDER] [--show] [--table FILE] [PART OF A NAME…]
"""
from __future__ import annotations

import argparse
import concurrent.futures
import importlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from report import Report, Variant

MODULES = ["kinds_input", "kinds_logs", "kinds_memory", "kinds_ranks", "kinds_steps", "kinds_captures",
           "kinds_hosts", "kinds_tables", "kinds_kernel", "kinds_disks"]
TIMEOUT_S = 60
DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "reports.md"
# Tables that other findings are read beside.
NOTES = {"OverallSystemUsage", "OverallFrameworkMetrics"}


def all_reports() -> list[Report]:
    reports: list[Report] = []
    for name in MODULES:
        if not pathlib.Path(__file__).with_name(name + ".py").exists():
            continue
        module = importlib.import_module(name)
        reports += [one for one in vars(module).values() if isinstance(one, Report)]
    return sorted(reports, key=lambda one: one.entry)


def text_of(finding: dict) -> str:
    return json.dumps({k: finding.get(k) for k in ("cause", "loss", "why", "advice", "limits", "evidence", "where",
                                                   "look_alikes_excluded")}, ensure_ascii=False)


def problems(report: Report, variant: Variant, answer: dict) -> list[str]:
    found = [f for f in answer["findings"] if f["rule"] not in NOTES]
    primary = [f for f in found if not f.get("explained_by")]
    wanted = report.rule if variant.rule is None else variant.rule
    names = [f["rule"] for f in primary]
    out = []
    if wanted:
        if not primary or primary[0]["rule"] not in wanted.split("|"):
            out.append(f"wanted {wanted}, found {names or answer['verdict']['kind']}")
        else:
            text = text_of(primary[0])
            out += [f"{names[0]} does not say /{s}/: {text[:700]}" for s in variant.says if not re.search(s, text)]
        allowed = set(wanted.split("|")) | set(variant.beside)
    else:
        allowed = set(variant.beside)
    out += [f"false alarm {f['rule']}: {f['cause']}" for f in primary
            if f["rule"] not in allowed and f["severity"] != "info"]
    out += [f"{f['rule']} must not speak" for f in found if f["rule"] in variant.never]
    return out


def run(hotlap: pathlib.Path, report: Report, number: int, keep: pathlib.Path | None, show: bool) -> list[str]:
    variant = report.variants[number]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (keep or pathlib.Path(temporary)) / f"{report.entry}-{number + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        report.make(folder, **variant.arguments)
        done = subprocess.run([hotlap, "analyze", "--json", folder], capture_output=True, text=True, timeout=TIMEOUT_S,
                              env={"HOTLAP_HOME": temporary + "/home", "PATH": "/usr/bin:/bin"}, check=False)
        if done.returncode != 0:
            return [f"exit {done.returncode}: {done.stderr[-300:]}"]
        answer = json.loads(done.stdout)
        out = problems(report, variant, answer)
        if show:
            out.append(answer["verdict"]["text"])
        return out


HEAD = """# Users' reports

What people who profile training ran into, as small files that a test makes (`tests/diagnosis/reports/`), and what is
found in them; made by `run_reports.py --table`, do not edit. "Nothing" is the right answer where nothing is wrong.

| kind | what happened | variants | found first |
|---|---|---|---|
"""


def table() -> str:
    rows = []
    for report in all_reports():
        found: list[str] = []
        for variant in report.variants:
            for rule in (report.rule if variant.rule is None else variant.rule).split("|"):
                if (name := rule or "nothing") not in found:
                    found.append(name)
        rows.append(f"| {report.entry} | {report.what} | {len(report.variants)} | {', '.join(found)} |")
    return HEAD + "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotlap", type=pathlib.Path, required=True)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.table:
        arguments.table.write_text(table())
    elif not arguments.names and (DOCUMENT.read_text() if DOCUMENT.exists() else "") != table():
        print(f"docs/{DOCUMENT.name} is not the table of these reports: --table {DOCUMENT}")
        return 1
    jobs = [(report, i) for report in all_reports() for i in range(len(report.variants))
            if not arguments.names or any(n in f"{report.entry}-{i + 1}" for n in arguments.names)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        outcomes = pool.map(lambda job: run(arguments.hotlap.resolve(), *job, arguments.keep, arguments.show), jobs)
        for (report, number), found in zip(jobs, outcomes):
            failed += bool(found) and not arguments.show
            for problem in found:
                print(f"{report.entry}-{number + 1} {report.what}: {problem}")
    print(f"{len(jobs) - failed} of {len(jobs)} right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
