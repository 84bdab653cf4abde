#!/usr/bin/env python3
"""Makes a run folder in $HOTLAP_HOME without recording anything: make_run.py ID [name=value of run.json…]

Prints nothing. The run started at 2026-01-02 03:04:05 UTC and took 90 s unless told otherwise; a value is JSON where it
reads as JSON. `verdict=TEXT` and `steps=N` make a verdict.json.
"""
import json
import os
import pathlib
import sys

START_S = 1767323045


def main() -> int:
    run_id, settings = sys.argv[1], dict(word.split("=", 1) for word in sys.argv[2:])
    folder = pathlib.Path(os.environ["HOTLAP_HOME"], "runs", run_id)
    folder.mkdir(mode=0o700, parents=True)
    info = {
        "schema": 1, "id": run_id, "name": "toy", "status": "finished", "command": ["python", "toy.py"],
        "script": "toy.py", "working_directory": "/work", "node": "some-node", "hotlap_version": "0.1.0",
        "start_wall_ns": f"{START_S}000000000",
        "end_wall_ns": f"{START_S + 90}000000000", "interval_ns": "500000000", "exit_code": 0, "exit_signal": None,
        "job_pid": 0, "attempt": 1, "join_keys": {}, "environment": {}, "price": None,
    }
    for name, value in settings.items():
        try:
            info[name] = json.loads(value)
        except ValueError:
            info[name] = value
    verdict, steps = info.pop("verdict", None), info.pop("steps", None)
    (folder / "run.json").write_text(json.dumps(info))
    if verdict is not None or steps is not None:
        document = {"schema": 1, "verdict": {"kind": "finding", "text": verdict}, "steps": {"count": steps}}
        (folder / "verdict.json").write_text(json.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
