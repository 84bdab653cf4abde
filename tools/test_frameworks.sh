#!/bin/bash
# The hook under current PyTorch, Lightning, Transformers, Accelerate, Keras and JAX: installs them from PyPI (about 6 GB,
# since PyTorch brings its GPU libraries), then runs the tests of the hook with that Python.
#
# The environment is kept outside the clone and made anew when it is a month old: pip's own cache does not keep archives
# that a registry forbids it to keep. HOTLAP_FRAMEWORKS_VENV names another one, which is used as it is when it has all.
# Exit 3: PyPI did not give the packages, or not within HOTLAP_INSTALL_LIMIT seconds; nothing was tested.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'frameworks: %s\n' "$*"; }

packages=(torch numpy pytest lightning transformers accelerate keras jax)
kept=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hotlap-frameworks
venv=$(realpath -m "${HOTLAP_FRAMEWORKS_VENV:-$kept}")
limit=${HOTLAP_INSTALL_LIMIT:-3600}

is_complete() {
  KERAS_BACKEND=torch "$venv/bin/python" -c 'import torch, pytest, lightning, transformers, accelerate, keras, jax' 2>/dev/null
}
is_fresh() { [ -n "${HOTLAP_FRAMEWORKS_VENV:-}" ] || [ -n "$(find "$venv/installed" -mtime -30 2>/dev/null)" ]; }

if ! { is_fresh && is_complete; }; then
  dpkg-query -W python3-venv >/dev/null 2>&1 || { say "python3-venv is not installed: tools/setup.sh"; exit 1; }
  say "installing ${packages[*]} into $venv (several minutes)"
  start=$SECONDS
  [ -x "$venv/bin/pip" ] || /usr/bin/python3 -m venv "$venv"
  rm -f "$venv/installed"
  timeout "$limit" "$venv/bin/pip" install -q --upgrade "${packages[@]}" && is_complete || {
    say "PyPI did not give all of them within $limit s: nothing was tested"
    exit 3
  }
  touch "$venv/installed"
  say "installed in $((SECONDS - start)) s"
fi
"$venv/bin/python" - <<'PY'
import importlib.metadata
import platform
names = ("torch", "lightning", "transformers", "accelerate", "keras", "jax")
print("frameworks:", "python", platform.python_version(), *(f"{n} {importlib.metadata.version(n)}" for n in names))
PY

HOTLAP=$PWD/build/dev/hotlap HOTLAP_SOURCE_DIR=$PWD HOTLAP_TEST_PYTHON=$venv/bin/python PYTHONPATH=$PWD/python/src \
  "$venv/bin/python" -B -m pytest -q -p no:cacheprovider tests/frameworks tests/hook "$@"
