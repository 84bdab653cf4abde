#!/bin/bash
# The hook under a current PyTorch, Lightning, Transformers and Accelerate: installs them from PyPI into build/frameworks
# (once; about 6 GB, since PyTorch brings its GPU libraries), then runs the tests of the hook with that Python.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'frameworks: %s\n' "$*"; }

venv=$(realpath -m "${HOTLAP_FRAMEWORKS_VENV:-build/frameworks}")  # made here unless it is there already
packages=(torch numpy pytest lightning transformers accelerate)
if [ ! -e $venv/installed ] && ! $venv/bin/python -c 'import torch, lightning, transformers, accelerate' 2>/dev/null; then
  dpkg-query -W python3-venv >/dev/null 2>&1 || { say "python3-venv is not installed: tools/setup.sh --developer"; exit 1; }
  say "installing ${packages[*]} (several minutes)"
  /usr/bin/python3 -m venv $venv
  $venv/bin/pip install -q "${packages[@]}" || { say "PyPI did not give all of them"; exit 1; }
  touch $venv/installed
fi
$venv/bin/python - <<'PY'
import importlib.metadata
import platform
names = ("torch", "lightning", "transformers", "accelerate")
print("frameworks:", "python", platform.python_version(), *(f"{n} {importlib.metadata.version(n)}" for n in names))
PY

folders=()
for folder in tests/frameworks tests/hook; do
  [ -n "$(find $folder -name 'test_*.py' -print -quit 2>/dev/null)" ] && folders+=("$folder")
done
[ ${#folders[@]} -gt 0 ] || { say "there are no tests of the hook yet"; exit 1; }
HOTLAP=$PWD/build/dev/hotlap HOTLAP_SOURCE_DIR=$PWD HOTLAP_TEST_PYTHON=$venv/bin/python PYTHONPATH=$PWD/python/src \
  $venv/bin/python -B -m pytest -q -p no:cacheprovider "${folders[@]}" "$@"
