#!/bin/bash
# Shows that the commands of the README work on a Debian machine with nothing installed: makes a minimal Debian tree with
# debootstrap, puts a clean clone of this checkout's HEAD into it, runs `make demo` and `make test` there and prints what
# each took.
#
#     tools/fresh-debian.sh [--suite bookworm] [--mirror URL] [--cache DIR] [--keep] [TARGET...]     (as root; TARGETs: demo test)
#
# Ubuntu's suites (--suite noble) need --mirror, and Ubuntu's package ubuntu-keyring.
# --cache DIR keeps the minimal tree (before anything is installed in it) for the next run. --keep leaves the tree behind.
# The tree is debian_tree.sh's.
set -euo pipefail

suite=bookworm cache='' keep='' targets=()
while [ $# -gt 0 ]; do
    case $1 in
        --suite) suite=$2; shift 2 ;;
        --mirror) mirror=$2; shift 2 ;;
        --cache) cache=$(mkdir -p "$2" && cd "$2" && pwd); shift 2 ;;
        --keep) keep=1; shift ;;
        -*) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
        *) targets+=("$1"); shift ;;
    esac
done
[ ${#targets[@]} -gt 0 ] || targets=(demo test)
checkout=$(cd "$(dirname "$0")/.." && pwd)
. "$checkout/tools/debian_tree.sh"

timed "minimal Debian tree" base_tree
git clone -q --no-hardlinks "$checkout" "$tree/root/ioweir"

status=0
timed "apt-get install make" in_tree / 'apt-get update -q && apt-get install -y -q --no-install-recommends make' >"$work/make.log" 2>&1 \
    || { tail -n 20 "$work/make.log" >&2; exit 1; }
for target in "${targets[@]}"; do
    echo "== make $target, in a fresh Debian $suite"
    timed "make $target" in_tree /root/ioweir "make $target" || status=1
    timed "make $target, second run" in_tree /root/ioweir "make $target >second.log 2>&1 || { cat second.log; exit 1; }" || status=1
done
echo "== .venv/bin/ioweir, from the checkout"
timed "ioweir --help" in_tree /root/ioweir '.venv/bin/ioweir --help >/dev/null' || status=1
echo "== timings"
cat "$work/timings"
exit $status
