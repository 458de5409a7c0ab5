#!/bin/bash
# Shows that a wheel works on a machine without compilers: makes a minimal Debian tree, puts Debian's Python, Open MPI and MPICH into
# it, installs the wheel by pip, and has what it holds traced, explained and run under a plan with both libraries (try_inside.sh).
#
#     tools/wheels/try.sh [--suite bookworm] [--mirror URL] [--cache DIR] [--tree DIR] [WHEEL]     (as root; default: this machine's in build/wheels/dist)
#
# Ubuntu's suites (--suite noble) need --mirror, and Ubuntu's package ubuntu-keyring.
# The wheel says for which architecture the tree is. Another one than this machine's needs qemu-user-static, and the kernel's binfmt_misc.
# --cache DIR keeps the minimal tree (before anything is installed in it) for the next run. --tree DIR makes the tree there, leaves it
# behind, and takes it as it is the next time.
# The tree is debian_tree.sh's. What ioweir needs of PyPI comes in the versions of requirements.lock, as wheels.
set -euo pipefail

suite=bookworm cache='' keep='' wheel=''
while [ $# -gt 0 ]; do
    case $1 in
        --suite) suite=$2; shift 2 ;;
        --mirror) mirror=$2; shift 2 ;;
        --cache) cache=$(mkdir -p "$2" && cd "$2" && pwd); shift 2 ;;
        --tree) tree=$(mkdir -p "$2" && cd "$2" && pwd); shift 2 ;;
        -*) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
        *) wheel=$1; shift ;;
    esac
done
checkout=$(cd "$(dirname "$0")/../.." && pwd)
[ -n "$wheel" ] || wheel=$(find "$checkout/build/wheels/dist" -name "*_$(uname -m).whl" 2>/dev/null | sed -n 1p) || true
[ -f "$wheel" ] || { echo "try.sh: there is no wheel ${wheel:-in build/wheels/dist}; make one (make wheels)" >&2; exit 1; }
case $wheel in
    *_x86_64.whl) architecture=amd64 processor=x86_64 ;;
    *_aarch64.whl) architecture=arm64 processor=aarch64 ;;
    *) echo "try.sh: $wheel: for no architecture that wheels are made for" >&2; exit 1 ;;
esac
if [ "$processor" != "$(uname -m)" ] && ! grep -qs ^enabled "/proc/sys/fs/binfmt_misc/qemu-$processor"; then
    echo "try.sh: the kernel starts no programs of $processor here. Install qemu-user-static; where no service does it, as root:" >&2
    echo "    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc" >&2
    echo "    cat /usr/lib/binfmt.d/qemu-$processor.conf >/proc/sys/fs/binfmt_misc/register" >&2
    exit 1
fi
. "$checkout/tools/debian_tree.sh"

if [ ! -e "$tree/usr/bin/mpirun.openmpi" ]; then
    if [ ! -e "$tree/etc/debian_version" ]; then timed "minimal Debian tree" base_tree; fi
    timed "Python and two MPI libraries" in_tree / 'apt-get update -q && apt-get install -y -q --no-install-recommends \
        ca-certificates python3 python3-venv openmpi-bin mpich && (update-ca-certificates || true)' >"$work/apt.log" 2>&1 \
        || { tail -n 20 "$work/apt.log" >&2; exit 1; }
fi
rm -rf "$tree/root/wheel"
mkdir "$tree/root/wheel"
cp "$wheel" "$checkout/tools/wheels/try_inside.sh" "$tree/root/wheel/"
sed -e '/^ *--hash/d' -e '/^ *#/d' -e 's/ *\\$//' "$checkout/requirements.lock" >"$tree/root/wheel/constraints.txt"
if [ "$processor" != "$(uname -m)" ]; then settings+=(EMULATED=1); fi
status=0
timed "the wheel" in_tree /root/wheel './try_inside.sh' || status=1
echo "== timings"
cat "$work/timings"
exit $status
