#!/bin/bash
# Shows that the commands of the README work on a Debian machine with nothing installed: makes a minimal Debian tree with
# debootstrap, puts a clean clone of this checkout's HEAD into it, runs `make demo` and `make test` there and prints what
# each took.
#
#     tools/fresh-debian.sh [--suite bookworm] [--cache DIR] [--keep] [TARGET...]     (as root; TARGETs: demo test)
#
# --cache DIR keeps the minimal tree (before anything is installed in it) for the next run. --keep leaves the tree behind.
# The mirror, proxies, extra certificates and pip settings are this machine's own. Everything runs in a mount and process
# namespace of its own: whatever ends this script, no mount and no process of it is left (only a SIGKILL leaves the folder
# ${TMPDIR:-/tmp}/ioweir-fresh.* behind).
set -euo pipefail

suite=bookworm cache='' keep='' targets=()
while [ $# -gt 0 ]; do
    case $1 in
        --suite) suite=$2; shift 2 ;;
        --cache) cache=$(mkdir -p "$2" && cd "$2" && pwd); shift 2 ;;
        --keep) keep=1; shift ;;
        -*) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
        *) targets+=("$1"); shift ;;
    esac
done
[ ${#targets[@]} -gt 0 ] || targets=(demo test)

checkout=$(cd "$(dirname "$0")/.." && pwd)
for tool in debootstrap setpriv unshare chroot git tar; do
    command -v $tool >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null \
        || { echo "fresh-debian.sh needs $tool; install it (apt-get install debootstrap util-linux git tar)" >&2; exit 1; }
done
[ "$(id -u)" -eq 0 ] || { echo "fresh-debian.sh must run as root: debootstrap and chroot need it" >&2; exit 1; }

# The first address of Debian's own archive among this machine's sources (both file formats).
mirror=$(find /etc/apt/sources.list /etc/apt/sources.list.d -type f \( -name '*.sources' -o -name '*.list' \) -exec cat {} + 2>/dev/null \
    | sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' -e 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' | grep /debian | grep -v security | sed -n 1p) || true
[ -n "$mirror" ] || { echo "no Debian mirror found in this machine's apt sources" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/ioweir-fresh.XXXXXX")
tree=$work/tree
cleanup() {
    if [ -n "$keep" ]; then echo "left behind: $tree"; else rm -rf --one-file-system "$work"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

seconds() { date +%s.%N; }
timed() { # NAME COMMAND...: runs and adds a line to the table of timings
    local name=$1 begin end status=0
    shift
    begin=$(seconds)
    "$@" || status=$?
    end=$(seconds)
    printf '%-28s %7.1f s   exit %d\n' "$name" "$(echo "$end $begin" | awk '{ print $1 - $2 }')" "$status" >>"$work/timings"
    return $status
}

base_tree() {
    local stored=$cache/base-$suite.tar
    if [ -n "$cache" ] && [ -e "$stored" ]; then
        mkdir -p "$tree"
        tar -C "$tree" -xf "$stored"
        return
    fi
    echo "-- debootstrap $suite (minbase)"
    PATH=$PATH:/usr/sbin:/sbin debootstrap --variant=minbase "$suite" "$tree" "$mirror" >"$work/debootstrap.log" 2>&1 \
        || { tail -n 20 "$work/debootstrap.log" >&2; return 1; }
    if [ -n "$cache" ]; then tar -C "$tree" -cf "$stored.new" . && mv "$stored.new" "$stored"; fi
}

timed "minimal Debian tree" base_tree
git clone -q --no-hardlinks "$checkout" "$tree/root/ioweir"
cp -L /etc/resolv.conf /etc/hosts "$tree/etc/"
if [ -d /usr/local/share/ca-certificates ]; then cp -r /usr/local/share/ca-certificates "$tree/usr/local/share/"; fi

# Proxies and pip settings, where this machine has any; nothing else of the environment. Settings that name a file are
# passed on only if the file is of a kind that the tree will have too.
settings=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    DEBIAN_FRONTEND=noninteractive CI=true)
while IFS= read -r name; do
    settings+=("$name=${!name}")
done < <(compgen -e | grep -E '^((http|https|no|all)_proxy|(HTTP|HTTPS|NO|ALL)_PROXY|PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT))$')

in_tree() { # COMMAND: a shell command line, in the clone, within the tree
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private bash -euc '
        tree=$1 command=$2; shift 2
        mount -t proc proc "$tree/proc"
        mount --rbind /sys "$tree/sys"
        mount --bind /dev "$tree/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$tree/dev/pts"
        exec chroot "$tree" env -i "$@" bash -c "cd /root/ioweir && exec </dev/null && $command"
    ' fresh "$tree" "$1" "${settings[@]}"
}

status=0
timed "apt-get install make" in_tree 'apt-get update -q && apt-get install -y -q --no-install-recommends make' >"$work/make.log" 2>&1 \
    || { tail -n 20 "$work/make.log" >&2; exit 1; }
for target in "${targets[@]}"; do
    echo "== make $target, in a fresh Debian $suite"
    timed "make $target" in_tree "make $target" || status=1
    timed "make $target, second run" in_tree "make $target >second.log 2>&1 || { cat second.log; exit 1; }" || status=1
done
echo "== .venv/bin/ioweir, from the checkout"
timed "ioweir --help" in_tree '.venv/bin/ioweir --help >/dev/null' || status=1
echo "== timings"
cat "$work/timings"
exit $status
