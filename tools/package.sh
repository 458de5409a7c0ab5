#!/bin/bash
# Builds the package and installs it into .venv: tools/package.sh [--for PROGRAM]
# --for PROGRAM: only for the MPI library that PROGRAM is linked to, without the archives that programs are linked with, and without the
# adapters for HDF5 and netCDF. What was compiled stays in build/python, so that the whole package costs what is left.
# A wheel that was built from the same sources with the same tools is taken from a cache (tools/wheel_cache.py; IOWEIR_WHEEL_CACHE=off: not).
# Where `CI` is set, a warning of the compiler is an error. IOWEIR_TOGETHER: how many sources of a module are compiled together; the build
# directory remembers it.
set -euo pipefail
cd "$(dirname "$0")/.."
settings=()
if [ -n "${IOWEIR_TOGETHER:-}" ]; then settings+=("cmake.define.IOWEIR_TOGETHER=$IOWEIR_TOGETHER"); fi
if [ -n "${CI:-}" ]; then settings+=(cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON); fi
cache() { .venv/bin/python tools/wheel_cache.py "$@"; }
key=$(cache key "${settings[@]}")
wheel=
if [ -n "$key" ]; then wheel=$(cache get "$key"); fi  # the whole package will do for the demonstration, too
case ${1:-} in
    --for)
        only=openmpi
        if ldd "$(command -v "$2")" 2>/dev/null | grep -q libmpich; then only=mpich; fi
        settings+=("cmake.define.IOWEIR_ONLY_MPI=$only" cmake.define.IOWEIR_BUILD_ALL_LIBRARIES=OFF cmake.define.IOWEIR_BUILD_ADAPTERS=OFF)
        if [ -n "$key" ] && [ -z "$wheel" ]; then
            key=$(cache key "${settings[@]}")
            wheel=$(cache get "$key")
        fi
        ;;
    ?*) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
built=build/wheel  # tools/install.sh takes it from there
rm -rf "$built"
mkdir -p "$built"
quietly() { if ! "$@" >"$log" 2>&1; then cat "$log" >&2; exit 1; fi; }
pip() { .venv/bin/python -m pip "$@"; }
if [ -n "$wheel" ]; then
    echo "-- nothing to compile: ${wheel%/*} was built from the same sources"
    cp "$wheel" "$built"
else
    quietly pip wheel -v --disable-pip-version-check --no-input --no-build-isolation --no-deps --no-index \
        "${settings[@]/#/--config-settings=}" -w "$built" .
    grep -A4 ' warning: ' "$log" >&2 || true
    if [ -n "$key" ]; then cache put "$key" "$built"/*.whl; fi
fi
quietly pip install --disable-pip-version-check --no-input --no-deps --no-index --force-reinstall "$built"/*.whl
