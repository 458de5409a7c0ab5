#!/bin/bash
# Configures (once) and builds one CMake preset, or some targets of it, quietly: tools/build.sh PRESET [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
targets=()
if [ $# -gt 0 ]; then targets=(--target "$@"); fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "-- building build/$preset"
if [ ! -e "build/$preset/build.ninja" ]; then
    # The interpreter of .venv: the generators read TOML, which Python older than 3.11 needs a package for.
    options=("-DPython3_EXECUTABLE=$PWD/.venv/bin/python")
    # The tests take the libraries of a package that is there, and the modules that its build has compiled.
    libraries=("$PWD"/.venv/lib/python3*/site-packages/ioweir/lib)
    if [ "$preset" = dev ] && [ -e "${libraries[0]}/libioweir_preload.so" ]; then
        options+=("-DIOWEIR_LIBRARIES=${libraries[0]}")
        if [ -e build/python/build.ninja ]; then options+=("-DIOWEIR_MODULES=$PWD/build/python"); fi
    fi
    if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then cat "$log" >&2; exit 1; fi
fi
if ! cmake --build --preset "$preset" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" "${targets[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
grep -A4 'warning:' "$log" >&2 || true
