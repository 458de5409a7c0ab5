#!/bin/bash
# Makes of the wheel that pip has built the one that is given away: tools/wheels/finish.sh WHEEL PLATFORM COMPILER DIRECTORY
# It gets man pages, completion and a stand-in for MPICH's library, is named for the Pythons and the PLATFORM (manylinux_2_28_x86_64) that it is for,
# is checked and lies in DIRECTORY. COMPILER: zig.sh for that platform. Leaves WHEEL as it is.
set -euo pipefail
cd "$(dirname "$0")/../.."
wheel=$1 platform=$2 compiler=$3 directory=$4
tools=$PWD/build/wheels/tools/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$tools/python" -m wheel unpack -d "$work" "$wheel" >/dev/null
tree=$(echo "$work"/ioweir-*)

# Debian calls MPICH's library libmpich.so.12, everybody else libmpi.so.12. What is linked with it asks for the latter, and finds a
# library of this name beside itself where there is no other: one that holds nothing and brings Debian's.
library=$tree/ioweir/lib
mkdir "$library/mpich"
empty() { "$compiler" -shared -nostdlib -Wl,-soname,"$1" -Wl,--no-as-needed -x c /dev/null -x none "${@:3}" -o "$2/$1"; }
empty libmpich.so.12 "$work"
empty libmpi.so.12 "$library/mpich" "$work/libmpich.so.12"
for linked in libioweir_partition_mpich.so kernel_runner_mpich replay_runner_mpich; do
    "$tools/patchelf" --replace-needed libmpich.so.12 libmpi.so.12 --set-rpath "\$ORIGIN/mpich" "$library/$linked"
done

# pip puts what lies in a wheel's "data" where it belongs in the environment.
PYTHONPATH=$tree .venv/bin/python tools/shell_files.py --no-modules "$(echo "$tree"/ioweir-*.dist-info | sed 's/dist-info$/data/')/data"
mkdir "$work/packed" "$work/named"
"$tools/python" -m wheel pack -d "$work/packed" "$tree" >/dev/null

# auditwheel takes only names of this machine's architecture; for another one it finds the oldest C library by itself.
name=$platform
case $platform in *_"$(uname -m)") ;; *) name=auto ;; esac

# The module for this Python serves it alone; that of the stable ABI all from 3.12 on. "abi3" is what pip compares.
python=$("$tools/python" -c 'import sys; print(f"cp{sys.version_info[0]}{sys.version_info[1]}")')
"$tools/python" -m wheel tags --remove --python-tag "$python" --abi-tag abi3 "$work"/packed/*.whl >/dev/null
PATH=$tools:$PATH "$tools/auditwheel" repair --plat "$name" --only-plat \
    --exclude 'libmpi.so.*' --exclude 'libmpich.so.*' -w "$work/named" "$work"/packed/*.whl >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
.venv/bin/python tools/check_wheel.py "$work"/named/*.whl
mv "$work"/named/*.whl "$directory/"
