#!/bin/bash
# Instructions that a call takes with all beneath it in user space, traced: bench/instructions.sh [DIR...]
# DIR: a checkout in which `make package` ran (this one by default); the program is this checkout's (`make build-bench`).
# One rank under callgrind (valgrind), the difference of two runs of 2,400 and 12,000 calls.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
scratch=$(mktemp -d /dev/shm/ioweir-instructions-XXXXXX)
trap 'rm -rf "$scratch"' EXIT

# HOME KIND PATTERN POSIX_CALLS MPI_CALLS
count() {
    rm -rf "$scratch"/*
    "$1/.venv/bin/ioweir" run -q -o "$scratch/trace" -- "mpirun.$2" -n 1 valgrind --tool=callgrind \
        --callgrind-out-file="$scratch/out" "$here/build/release/bench/tracer_cost_$2" "$scratch" "$3" "$4" "$5" >"$scratch/log" 2>&1 ||
        { cat "$scratch/log" >&2; exit 1; }
    awk '$1 == "totals:" { print $2 }' "$scratch/out"
}

for home in "${@:-$here}"; do
    for kind in mpich openmpi; do
        for pattern in regular random; do
            posix=$((($(count "$home" $kind $pattern 12000 24) - $(count "$home" $kind $pattern 2400 24)) / 9600))
            mpi=$((($(count "$home" $kind $pattern 24 12000) - $(count "$home" $kind $pattern 24 2400)) / 9600))
            echo "$home $kind $pattern: pwrite $posix, MPI_File_write_at $mpi"
        done
    done
done
