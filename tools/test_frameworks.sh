#!/bin/bash
# The hook with current PyTorch, Lightning, Transformers and Accelerate: makes a virtual environment with them (about 7 GB,
# once) and runs tests/frameworks in it. Usage: tools/test_frameworks.sh [pytest arguments]
#
#   HOTLAP_FRAMEWORKS_VENV   where the environment is or shall be (default build/frameworks)
#   HOTLAP_FRAMEWORKS_PYTHON the Python it is made with (default: the newest of python3.13 … python3.10, python3)
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${HOTLAP_FRAMEWORKS_VENV:-build/frameworks}

find_python() {
  local name
  for name in ${HOTLAP_FRAMEWORKS_PYTHON:-python3.13 python3.12 python3.11 python3.10 python3}; do
    if "$name" -c 'import venv, ctypes, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  echo "no Python 3.10 or newer with venv: apt-get install python3-venv" >&2
  return 1
}

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import torch, lightning, transformers, accelerate, pytest' 2>/dev/null; then
  echo "installing torch, lightning, transformers and accelerate into $venv"
  "$(find_python)" -m venv "$venv"
  "$venv/bin/python" -m pip install -q torch numpy pytest lightning transformers accelerate setuptools
fi
exec "$venv/bin/python" -B -m pytest -q -p no:cacheprovider tests/frameworks "$@"
