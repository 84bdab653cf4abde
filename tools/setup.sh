#!/bin/bash
# Installs what is missing to build, test and try hotlap on Debian 12+ or Ubuntu 24.04, and says what it installs.
# Quick and silent but for one line when nothing is missing. As root, or through sudo.
#
#   tools/setup.sh              to build, to run the demo and the tests
#   tools/setup.sh --developer  also clang 16's tools, for tools/check.sh
#   tools/setup.sh --proof      also what the long proofs run in
#   tools/setup.sh --peers      also what bench/recorder_cpu.py compares with; pcp wants a running systemd to be set up
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
stop() {
  say "$*"
  exit 1
}

build=(g++ make cmake ninja-build ccache git binutils pkg-config
  libfmt-dev libspdlog-dev rapidjson-dev libcli11-dev libtomlplusplus-dev libboost-dev
  libsqlite3-dev libzstd-dev zlib1g-dev libisal-dev libgtest-dev libgmock-dev)
run=(libopenblas0-pthread python3 python3-jsonschema python3-numpy python3-torch python3-pytest python3-venv bindfs procps ca-certificates)
# What a test can be skipped without (check.format): a later distribution may not have it, a user may not install it.
optional=(clang-format-14)
developer=(clang-format-14 clang-tidy-16 clang-16 libclang-rt-16-dev libbenchmark-dev)
proof=(clang-16 libclang-rt-16-dev libbenchmark-dev strace debootstrap)
peers=(pcp prometheus-node-exporter)

wanted=("${build[@]}" "${run[@]}")
case "${1:-}" in
  "") ;;
  --developer) wanted+=("${developer[@]}") ;;
  --proof) wanted+=("${proof[@]}") ;;
  --peers) wanted+=("${peers[@]}") ;;
  *) stop "usage: tools/setup.sh [--developer|--proof|--peers]" ;;
esac

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  stop "this is neither Debian nor Ubuntu (no apt-get): install by hand what this stands for: ${wanted[*]}"

# Where the distribution has no PyTorch, a virtual environment of our own has it (below).
own_python=build/python/bin/python3
missing=()
for package in "${wanted[@]}"; do
  if [ "$package" = python3-torch ] && [ -x $own_python ]; then continue; fi
  is_installed "$package" || missing+=("$package")
done

as_root=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]+"${as_root[@]}"}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 "$@" </dev/null >>"$log" 2>&1
}
last_words() { grep -E '^(E|Err|W):?' "$log" | tail -1 || true; }
is_listed() { [ -n "$(apt-cache show --no-all-versions "$1" 2>/dev/null)" ]; }

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || stop "not root and no sudo: ask for these to be installed: ${missing[*]}"
    if [ -t 0 ]; then as_root=(sudo); else as_root=(sudo -n); fi
    "${as_root[@]}" true 2>/dev/null || stop "sudo refuses: ask for these to be installed: ${missing[*]}"
  fi
  say "installing with apt: ${missing[*]}"
  say "reading the package lists"
  apt update || say "the lists could not be refreshed ($(last_words)); going on with what is there"

  needs_torch=
  installable=()
  for package in "${missing[@]}"; do
    if is_listed "$package"; then
      installable+=("$package")
    elif [ "$package" = python3-torch ]; then
      needs_torch=1
    else
      stop "the package lists have no '$package': no network, or not Debian 12+ / Ubuntu 24.04 (with universe)?"
    fi
  done
  count=$(apt-get -s -o Debug::NoLocking=1 --no-install-recommends install "${installable[@]}" 2>/dev/null |
    grep -c '^Inst' || true)
  say "that is $count packages with what they need; a minute or a few"
  apt install --no-install-recommends "${installable[@]}" ||
    stop "apt-get could not install them: $(last_words) (once more with: apt-get install ${installable[*]})"

  if [ -n "$needs_torch" ]; then
    say "this distribution has no python3-torch: installing PyTorch from PyPI into build/python (once, about a gigabyte)"
    /usr/bin/python3 -m venv --system-site-packages build/python >>"$log" 2>&1 &&
      build/python/bin/pip install -q torch >>"$log" 2>&1 ||
      { rm -rf build/python; stop "PyTorch could not be installed: $(tail -1 "$log")"; }
  fi
fi

absent=build/not-in-this-distribution  # so that each is asked for once
mkdir -p build
for package in "${optional[@]}"; do
  if is_installed "$package" || grep -qsx -- "$package" $absent; then continue; fi
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
      { say "$package is not installed (you are not root): what needs it is skipped"; continue; }
    as_root=(sudo -n)
  fi
  if ! is_listed "$package"; then
    apt update || { say "$package cannot be had ($(last_words)): what needs it is skipped"; continue; }
    is_listed "$package" ||
      { say "this distribution has no $package: what needs it is skipped"; echo "$package" >>$absent; continue; }
  fi
  say "installing with apt: $package"
  apt install --no-install-recommends "$package" || say "that failed ($(last_words)): what needs it is skipped"
done
# Read by the Makefile: the Python that has torch.
python=/usr/bin/python3
[ -x $own_python ] && python=$PWD/$own_python
[ "$(cat build/python-for-tests 2>/dev/null)" = "$python" ] || printf '%s\n' "$python" >build/python-for-tests

version_of() { "$@" 2>/dev/null | sed -n 's/[^0-9]*\([0-9][0-9.]*\).*/\1/p;q'; }
cmake_version=$(version_of cmake --version)
[ "$(printf '3.25\n%s\n' "$cmake_version" | sort -V | head -1)" = 3.25 ] ||
  stop "cmake $cmake_version is on PATH, 3.25 is needed: put /usr/bin first"
say "all there (g++ $(version_of g++ -dumpfullversion), cmake $cmake_version)"
