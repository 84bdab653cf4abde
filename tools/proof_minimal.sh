#!/bin/bash
# The newcomer's machine: a minimal Debian made by debootstrap below build/, this commit cloned into it, and there, as
# root in a chroot with nothing of this machine's environment, `make demo` and `make test`.
# Package sources and proxy settings come from this machine's own apt; nothing stays mounted afterwards.
#
#   tools/proof_minimal.sh [--suite bookworm] [--keep] [--again] [make target…]     targets: demo test
#
# --keep leaves the folder there, --again goes on in the one that is there (for repairs; no proof).
set -euo pipefail
cd "$(dirname "$0")/.."
source_dir=$PWD
suite=bookworm
keep=
again=
while [ $# -gt 0 ]; do
  case "$1" in
    --suite) suite=$2; shift 2 ;;
    --keep) keep=1; shift ;;
    --again) again=1 keep=1; shift ;;
    -*) sed -n 's/^#   /  /p' "$0"; exit 2 ;;
    *) break ;;
  esac
done
targets=("${@:-demo}")
[ $# -gt 0 ] || targets=(demo test)

say() { printf 'proof: %s\n' "$*"; }
[ "$(id -u)" = 0 ] || { say "needs root for chroot"; exit 2; }
command -v debootstrap >/dev/null || { say "debootstrap is not installed: tools/setup.sh --proof"; exit 2; }

root=$source_dir/build/minimal-$suite
mounts=()
mount_into() {  # kind, path inside
  mkdir -p "$root/$2"
  mount -t "$1" "$1" "$root/$2" && mounts+=("$root/$2")
}
finish() {
  local code=$? i
  trap - EXIT INT TERM
  for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do umount "${mounts[i]}" || umount -l "${mounts[i]}"; done
  # Never delete through something that is still mounted.
  if [ -z "$keep" ] && [ -d "$root" ] && ! grep -q " $root/" /proc/mounts; then rm -rf --one-file-system "$root"; fi
  exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

# A folder left by an earlier, killed proof.
grep -q " $root/" /proc/mounts && awk -v r="$root/" 'index($2, r) == 1 {print $2}' /proc/mounts | sort -r | xargs -r -n1 umount
[ -n "$again" ] || rm -rf --one-file-system "$root"
mkdir -p "$root"

if [ -z "$again" ]; then
  # The mirror that this machine's apt uses, whichever form its sources have.
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep -v -i security | head -1)
  [ -n "$mirror" ] || { say "apt names no mirror; run apt-get update"; exit 2; }
  say "debootstrap $suite"
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror" >"$source_dir/build/debootstrap.log" 2>&1 ||
    { tail -5 "$source_dir/build/debootstrap.log"; exit 1; }
fi

# How this machine reaches its mirror: apt's own settings, proxies, and certificates of its own.
cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
[ ! -d /etc/apt/auth.conf.d ] || cp -a /etc/apt/auth.conf.d/. "$root/etc/apt/auth.conf.d/" 2>/dev/null || true
cp -a /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || true
cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
apt_method_config() {  # hooks of this machine that need programs which a minimal machine does not have
  grep -l -r -E 'Invoke|Pre-Install|artifact' "$root/etc/apt/apt.conf.d" 2>/dev/null || true
}
apt_method_config | xargs -r rm -f
environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 CI=true)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done
inside() { env -i "${environment[@]}" chroot "$root" "$@" </dev/null; }

mount_into proc proc
mount_into sysfs sys
mount_into devpts dev/pts
mount_into tmpfs dev/shm
mount_into tmpfs tmp

# What "git, make and a package manager" means.
say "git and make, as the newcomer has them"
inside bash -c 'apt-get -q update && apt-get -q -y --no-install-recommends install git make' >"$source_dir/build/minimal-apt.log" 2>&1 ||
  { tail -5 "$source_dir/build/minimal-apt.log"; exit 1; }

say "a clone of $(git -C "$source_dir" rev-parse --short HEAD)"
if [ -d "$root/srv/hotlap" ]; then
  git -C "$root/srv/hotlap" fetch -q "$source_dir" HEAD && git -C "$root/srv/hotlap" reset -q --hard FETCH_HEAD
else
  git clone -q --no-hardlinks "$source_dir" "$root/srv/hotlap"
fi
[ ! -d "$source_dir/../shared" ] || cp -a "$source_dir/../shared" "$root/srv/shared"

for target in "${targets[@]}"; do
  started=$SECONDS
  say "make $target"
  inside bash -c "cd /srv/hotlap && make $target" 2>&1 | tee "$source_dir/build/minimal-$target.log" | sed 's/^/  | /'
  say "make $target: $((SECONDS - started)) s"
done
say "a second time there is nothing to install"
second=$(inside bash -c 'cd /srv/hotlap && tools/setup.sh' 2>&1)
[[ "$second" == "setup: all there"* ]] || { say "the second set-up said: $second"; exit 1; }
say "proven on a minimal $suite"
