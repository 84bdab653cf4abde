#!/usr/bin/env bash
# The main job, end to end: record a training run, read what holds it back, do what is advised, prove the gain.
# Called by `make demo`; takes about a minute. Its runs are kept in build/demo (or $HOTLAP_HOME).
set -euo pipefail
cd "$(dirname "$0")/.."
hotlap=${HOTLAP:-$PWD/build/release/hotlap}
python=${PYTHON:-/usr/bin/python3}
export HOTLAP_HOME=${HOTLAP_HOME:-$PWD/build/demo}
mkdir -p "$HOTLAP_HOME"

say() { printf '\n== %s\n' "$*"; }

# The number of workers that the newest verdict advises; empty when it advises none.
advised_workers() {
  "$hotlap" analyze last --json | "$python" -c '
import json, re, sys
for finding in json.load(sys.stdin)["findings"]:
    for advice in finding["advice"]:
        found = re.search(r"num_workers=(\d+)", advice["change"])
        if found:
            print(found.group(1))
            sys.exit()'
}

say "1 of 2: training with num_workers=0, recorded by hotlap"
"$hotlap" run --name demo-before -- "$python" examples/train_images.py --num-workers 0

workers=$(advised_workers)
if [ -z "$workers" ]; then
  say "the verdict advises no other number of workers on this machine; nothing to prove"
  exit 0
fi

say "2 of 2: the same training as advised, num_workers=$workers"
"$hotlap" run --name demo-after -- "$python" examples/train_images.py --num-workers "$workers"

say "predicted against reached"
"$hotlap" compare

say "look further:  export HOTLAP_HOME=$HOTLAP_HOME;  build/release/hotlap ls;  build/release/hotlap show last"
