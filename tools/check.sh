#!/bin/bash
# The one entry point of all checks; CI and developers call the same stages.
#
#   tools/check.sh lint [--fix]     format, layers, text, headers alone, Python; --fix formats the C++ first
#   tools/check.sh format [--fix]   clang-format-14 only; ends with 77, "skipped", where it is not installed
#   tools/check.sh tidy [--all]     clang-tidy-16 on the files changed since main (or all): naming, sizes, bug patterns
#   tools/check.sh headers          each header compiles alone
#   tools/check.sh build-test       dev build and all tests, then the release build
#   tools/check.sh sanitize [asan|tsan]   unit tests under both sanitizers (or one)
#   tools/check.sh python           ruff and mypy --strict when they can be had, else syntax only
#   tools/check.sh fuzz-smoke [s]   each fuzz target for so many seconds (60), from its corpus
#   tools/check.sh thread-safety    clang's compile-time check of our locks, and no work before or after main
set -euo pipefail
cd "$(dirname "$0")/.."

python=/usr/bin/python3
[ -x "$python" ] || python=python3
failed=0

say() { printf '\n== %s\n' "$*"; }
fail() {
  printf '%s\n' "$*" >&2
  failed=1
}
# Runs a step and remembers a failure, so that one call shows all findings.
step() {
  local title=$1
  shift
  say "$title"
  "$@" || fail "FAILED: $title"
}

# In a copy without .git too, so that no check passes on nothing.
listed() {
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard -- "$@"
  else
    local patterns=() pattern
    for pattern in "$@"; do patterns+=(-o -name "$pattern"); done
    find . \( -path ./build -o -path ./dist \) -prune -o -type f \( "${patterns[@]:1}" \) -printf '%P\n'
  fi
}
files() { listed "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }
cpp_files() { files '*.cpp' '*.h' | grep -E '^(src|tests|fuzz|bench|examples|cmake)/' || true; }

# Files changed since the branch left main, committed or not.
changed_cpp_files() {
  local base
  base=$(git merge-base HEAD "$(git rev-parse --verify -q origin/main || git rev-parse --verify -q main || echo HEAD)")
  [ "$base" = "$(git rev-parse HEAD)" ] && base=$(git rev-parse --verify -q HEAD~1 || echo HEAD)
  { git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u |
    grep -E '^(src|tests|fuzz|bench|examples)/.*\.cpp$' | while read -r f; do [ -f "$f" ] && echo "$f"; done || true
}

need() {
  command -v "$1" >/dev/null && return 0
  fail "$1 is not installed: tools/setup.sh --developer"
  return 1
}

check_format() {
  need clang-format-14 || return 1
  local names
  names=$(cpp_files)
  [ -n "$names" ] || { fail "no C++ file found"; return 1; }
  if [ "${1:-}" = --fix ]; then xargs clang-format-14 -i <<<"$names"; fi
  xargs clang-format-14 --dry-run -Werror <<<"$names" || { fail "mend it with: tools/check.sh format --fix"; return 1; }
}

check_naming_is_on() {
  # DuckDB's .clang-tidy lists its naming check and switches it off further down; ours must answer for itself.
  clang-tidy-16 --list-checks | grep -qx '    readability-identifier-naming' ||
    { fail ".clang-tidy has readability-identifier-naming switched off"; return 1; }
}

check_headers() {
  cmake --preset dev >/dev/null && cmake --build --preset dev --target all_verify_interface_header_sets
}

run_tidy() {
  need clang-tidy-16 || return 1
  need clang++-16 || return 1
  check_naming_is_on || return 1
  cmake --preset tidy >/dev/null || return 1
  local list
  if [ "${1:-}" = --all ]; then list=$(cpp_files | grep '\.cpp$' | grep -v '^cmake/'); else list=$(changed_cpp_files); fi
  [ -n "$list" ] || { echo "no C++ file changed"; return 0; }
  # Plug-in skeletons are built by their own test, not by this preset.
  printf '%s\n' "$list" | grep -v '^examples/' |
    xargs -r -P "$(nproc)" -n 1 clang-tidy-16 -p build/tidy --quiet 2>/dev/null
}

python_syntax() {
  files '*.py' | xargs -r "$python" -W error -c '
import ast, sys
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        text = file.read()
    try:
        compile(text, name, "exec", dont_inherit=True)
    except (SyntaxError, Warning) as error:
        sys.exit(f"{name}: {error}")
    # The hook runs on Python 3.8: no newer syntax there.
    if name.startswith("python/src/"):
        try:
            ast.parse(text, name, feature_version=(3, 8))
        except SyntaxError as error:
            sys.exit(f"{name}:{error.lineno}: not Python 3.8: {error.msg}")
print(len(sys.argv) - 1, "Python files")'
}

check_python() {
  python_syntax || return 1
  local venv=build/venv
  if [ ! -x $venv/bin/ruff ] || [ ! -x $venv/bin/mypy ]; then
    echo "installing ruff and mypy into $venv"
    { "$python" -m venv $venv && timeout 240 $venv/bin/pip install -q -r tools/requirements.txt; } >/dev/null 2>&1 ||
      { echo "ruff and mypy cannot be had here: syntax only"; return 0; }
  fi
  local result=0
  $venv/bin/ruff check --no-cache --config tools/ruff.toml $(files '*.py') || result=1
  if [ -d python/src ]; then
    $venv/bin/mypy --strict --config-file tools/mypy.ini --cache-dir build/mypy python/src || result=1
  fi
  $venv/bin/mypy --strict --config-file tools/mypy.ini --cache-dir build/mypy tools/*.py || result=1
  return $result
}

run_sanitizer() {
  local preset=$1
  cmake --preset "$preset" -DHOTLAP_PYTHON="$(cat build/python-for-tests 2>/dev/null || echo "$python")" >/dev/null &&
    cmake --build --preset "$preset" -j "$(nproc)" &&
    ctest --preset "$preset" -L fast -LE no-sanitizer -E '^(check|tools)\.' -j"$(nproc)"
}

fuzz_smoke() {
  local seconds=${1:-60} target name importer
  need clang++-16 || return 1
  cmake --preset fuzz >/dev/null && cmake --build --preset fuzz --target fuzzers || return 1
  for target in build/fuzz/fuzz/*_fuzz; do
    [ -x "$target" ] || continue
    name=$(basename "$target" _fuzz)
    if [ "$name" = importer ]; then
      for importer in src/ingest/plugins/*.cpp; do
        importer=$(basename "$importer" .cpp)
        fuzz_one "$target" "$seconds" "importer-$importer" "$importer" || return 1
      done
    else
      fuzz_one "$target" "$seconds" "$name" || return 1
    fi
  done
}

# fuzz_one PROGRAM SECONDS NAME [IMPORTER]
fuzz_one() {
  local target=$1 seconds=$2 name=$3 importer=${4:-} folder seeds=()
  if [ -n "$importer" ]; then
    for folder in "tests/cases/ingest/$importer" "fuzz/corpus/importer/$importer"; do
      [ ! -d "$folder" ] || seeds+=("$folder")
    done
  else
    seeds=("fuzz/corpus/$name")
  fi
  mkdir -p "build/fuzz/found/$name"
  HOTLAP_FUZZ_IMPORTER=$importer "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/found/$name-" "build/fuzz/found/$name" "${seeds[@]}" \
    >"build/fuzz/found/$name.log" 2>&1 ||
    { tail -40 "build/fuzz/found/$name.log"; echo "$name: reproduce with $target build/fuzz/found/$name-*"; return 1; }
  awk -v name="$name" -v s="$seconds" '/number_of_executed_units/ {units = $2} /new_units_added/ {new = $2}
    END {print name ": " s " s, " units " inputs, " new " that reached something new, no failure"}' \
    "build/fuzz/found/$name.log"
}

thread_safety() {
  need clang++-16 || return 1
  cmake --preset tidy >/dev/null || return 1
  "$python" - <<'PY'
import json, subprocess, sys
bad = 0
for entry in json.load(open("build/tidy/compile_commands.json")):
    name = entry["file"]
    if "/src/" not in name or name.endswith("_test.cpp"):
        continue
    command = entry["command"].replace(" -c ", " -fsyntax-only -Werror -Wthread-safety -Wglobal-constructors"
                                       " -Wexit-time-destructors -c ")
    command = command[command.index("clang++-16"):] if "clang++-16" in command else command
    bad |= subprocess.run(command, shell=True, cwd=entry["directory"]).returncode
sys.exit(1 if bad else 0)
PY
}

stage=${1:-}
shift || true
case "$stage" in
  lint)
    step "format" check_format "${1:-}"
    step "layers, sizes, banned things" "$python" -B tools/check_layers.py
    step "documents, notes, names of machines" "$python" -B tools/check_text.py
    step "the checks' own tests" "$python" -B tools/tests/test_checks.py
    step "each header alone" check_headers
    step "Python" check_python
    ;;
  format)
    command -v clang-format-14 >/dev/null ||
      { echo "SKIPPED: clang-format-14 is not installed (tools/setup.sh installs it where the distribution has it)"; exit 77; }
    step "format" check_format "${1:-}"
    ;;
  tidy) step "clang-tidy" run_tidy "$@" ;;
  headers) step "each header alone" check_headers ;;
  build-test)
    step "dev build" cmake --workflow --preset dev
    step "release build" bash -c 'cmake --preset release >/dev/null && cmake --build --preset release'
    ;;
  sanitize)
    for preset in ${1:-asan tsan}; do step "$preset" run_sanitizer "$preset"; done
    ;;
  python) step "Python" check_python ;;
  python-syntax) python_syntax || failed=1 ;;
  fuzz-smoke) step "fuzz" fuzz_smoke "$@" ;;
  thread-safety) step "locks, and nothing before or after main" thread_safety ;;
  *)
    sed -n 's/^#   /  /p' "$0"
    exit 2
    ;;
esac
exit $failed
