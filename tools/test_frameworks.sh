#!/bin/bash
# The hook under current PyTorch, Lightning, Transformers, Accelerate, Keras and JAX, and then under TensorFlow: installs
# them from PyPI (about 6 GB, since PyTorch brings its GPU libraries, and 2 GB), then runs the tests of the hook with that
# Python. TensorFlow has an environment of its own: it wants other versions of what all of them share.
#
# The environments are kept outside the clone and made anew when they are a month old: pip's own cache does not keep
# archives that a registry forbids it to keep. HOTLAP_FRAMEWORKS_VENV and HOTLAP_TENSORFLOW_VENV name others, which are used
# as they are when they have all; with the first alone TensorFlow is left out.
# Exit 3: PyPI did not give the packages, or not within HOTLAP_INSTALL_LIMIT seconds; what is missing was not tested.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'frameworks: %s\n' "$*"; }

kept=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hotlap-frameworks
limit=${HOTLAP_INSTALL_LIMIT:-3600}

# prepare VENV ITS_OWN MODULES PACKAGE…: an environment with these; 3 when PyPI does not give them. ITS_OWN: named by the
# user, who says how old it may be.
prepare() {
  local venv=$1 own=$2 modules=$3
  shift 3
  is_complete() { KERAS_BACKEND=${KERAS_BACKEND:-} "$venv/bin/python" -c "import $modules" >/dev/null 2>&1; }
  is_fresh() { [ -n "$own" ] || [ -n "$(find "$venv/installed" -mtime -30 2>/dev/null)" ]; }
  if is_fresh && is_complete; then return 0; fi
  dpkg-query -W python3-venv >/dev/null 2>&1 || { say "python3-venv is not installed: tools/setup.sh"; exit 1; }
  say "installing $* into $venv (several minutes)"
  local start=$SECONDS
  [ -x "$venv/bin/pip" ] || /usr/bin/python3 -m venv "$venv"
  rm -f "$venv/installed"
  timeout "$limit" "$venv/bin/pip" install -q --upgrade "$@" && is_complete || {
    say "PyPI did not give all of them within $limit s: not tested"
    return 3
  }
  touch "$venv/installed"
  say "installed in $((SECONDS - start)) s"
}

# versions VENV PACKAGE…
versions() {
  "$1/bin/python" - "${@:2}" <<'PY'
import importlib.metadata
import platform
import sys
print("frameworks:", "python", platform.python_version(), *(f"{n} {importlib.metadata.version(n)}" for n in sys.argv[1:]))
PY
}

# tests VENV WHAT…: pytest of that environment, whose Python also runs the tests' programs.
tests() {
  HOTLAP=$PWD/build/dev/hotlap HOTLAP_SOURCE_DIR=$PWD HOTLAP_TEST_PYTHON=$1/bin/python PYTHONPATH=$PWD/python/src \
    "$1/bin/python" -B -m pytest -q -p no:cacheprovider "${@:2}"
}

failed=0
venv=$(realpath -m "${HOTLAP_FRAMEWORKS_VENV:-$kept}")
KERAS_BACKEND=torch prepare "$venv" "${HOTLAP_FRAMEWORKS_VENV:-}" \
  "torch, pytest, lightning, transformers, accelerate, keras, jax, nbclient, ipykernel, nvtx" \
  torch numpy pytest lightning transformers accelerate keras jax nbclient ipykernel nvtx || exit $?
versions "$venv" torch lightning transformers accelerate keras jax
tests "$venv" tests/frameworks tests/hook tests/observe/test_operators.py tests/observe/test_nvtx.py "$@" || failed=$?

if [ -n "${HOTLAP_FRAMEWORKS_VENV:-}" ] && [ -z "${HOTLAP_TENSORFLOW_VENV:-}" ]; then
  say "TensorFlow is left out: HOTLAP_TENSORFLOW_VENV is not set"
  exit $failed
fi
venv=$(realpath -m "${HOTLAP_TENSORFLOW_VENV:-$kept-tensorflow}")
KERAS_BACKEND=tensorflow prepare "$venv" "${HOTLAP_TENSORFLOW_VENV:-}" "tensorflow, pytest, keras" \
  tensorflow-cpu keras numpy pytest || exit $?
versions "$venv" tensorflow-cpu keras
tests "$venv" tests/frameworks/test_tensorflow.py "$@" || failed=$?
exit $failed
