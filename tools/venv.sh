#!/bin/bash
# Makes or refreshes the virtual environment .venv from requirements.lock (hashes are checked; wheels only). Nothing to do is done at once.
# The package ioweir itself is installed into it by the Makefile. With --for-demo: only what building and running ioweir needs; with
# --to-build: only what building it needs, so that compiling begins while the rest is fetched.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
venv="$root/.venv"
cd "$root"
stamp="$venv/.stamp-lock${1:+-${1#--}}"
if [ -e "$stamp" ] && [ ! requirements.lock -nt "$stamp" ] && [ ! tools/web/echarts.lock -nt "$stamp" ] && [ -e build/web/echarts.min.js ] \
    && "$venv/bin/python" -c '' 2>/dev/null; then exit 0; fi
if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    python=$(tools/find_python.sh)
    echo "-- making .venv with $python ($("$python" --version))"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
sections=()
case ${1:-} in
    "") ;;
    --for-demo) sections=(build run) ;;
    --to-build) sections=(build) ;;
    *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
echo "-- installing the locked Python packages${1:+ (${sections[*]})}"
# The lock is complete, and leaves out what tools/lock_overrides.txt names: pip need not ask packages what they want besides.
lock=requirements.lock
if [ -n "${1:-}" ]; then
    lock=$(mktemp)
    trap 'rm -f "$lock"' EXIT
    "$venv/bin/python" tools/lock_part.py "${sections[@]}" >"$lock"
fi
"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --only-binary :all: \
    --no-deps --require-hashes -r "$lock"

# mpi4py's wheel has the ABI of MPICH's libmpi.so.12, which Debian calls libmpich.so.12. With this directory in
# LD_LIBRARY_PATH and MPI4PY_MPIABI=mpich the same wheel runs under Debian's MPICH.
mkdir -p "$venv/lib/mpich-abi"
if library=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's/.*libmpich\.so\.12 .*=> //p' | head -n 1) && [ -n "$library" ]; then
    ln -sf "$library" "$venv/lib/mpich-abi/libmpi.so.12"
fi
tools/web.sh
touch "$stamp"
