#!/bin/bash
# Builds the package and installs it into .venv: tools/package.sh [--for PROGRAM]
# --for PROGRAM: only for the MPI library that PROGRAM is linked to, and without the archives that programs are linked with. What was
# compiled stays in build/python, so that the whole package costs what is left. Where `CI` is set, a warning of the compiler is an error.
# IOWEIR_TOGETHER: how many sources of a module are compiled together; the build directory remembers it.
set -euo pipefail
cd "$(dirname "$0")/.."
settings=()
case ${1:-} in
    --for)
        only=openmpi
        if ldd "$(command -v "$2")" 2>/dev/null | grep -q libmpich; then only=mpich; fi
        settings+=("cmake.define.IOWEIR_ONLY_MPI=$only" cmake.define.IOWEIR_BUILD_ALL_LIBRARIES=OFF)
        ;;
    ?*) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
if [ -n "${IOWEIR_TOGETHER:-}" ]; then settings+=("cmake.define.IOWEIR_TOGETHER=$IOWEIR_TOGETHER"); fi
if [ -n "${CI:-}" ]; then settings+=(cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON); fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! .venv/bin/python -m pip install -v --disable-pip-version-check --no-input --no-build-isolation --no-deps --no-index \
    "${settings[@]/#/--config-settings=}" . >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
grep -A4 ' warning: ' "$log" >&2 || true
