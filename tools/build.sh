#!/bin/bash
# Configures (once) and builds one CMake preset, quietly: tools/build.sh dev
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "-- building build/$preset"
if [ ! -e "build/$preset/build.ninja" ]; then
    # The interpreter of .venv: the generators read TOML, which Python older than 3.11 needs a package for.
    if ! cmake --preset "$preset" -DPython3_EXECUTABLE="$PWD/.venv/bin/python" >"$log" 2>&1; then cat "$log" >&2; exit 1; fi
fi
if ! cmake --build --preset "$preset" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
grep -A4 'warning:' "$log" >&2 || true
