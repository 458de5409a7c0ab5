#!/bin/bash
# The random comparison of the engine with the MPI library in full: CASES (default 300) random views and memory types at
# 1, 3 and 4 ranks under both MPIs. `make test` runs fewer where a case takes long (MPICH's ranks spin while they wait).
# Closes with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.."
cases=${CASES:-300}
passed=0
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for kind in openmpi mpich; do
    program=$PWD/build/dev/tests/engine/engine_mpi_test_$kind
    [ -x "$program" ] || continue
    launcher=(mpiexec.mpich)
    [ "$kind" = openmpi ] && launcher=(mpirun.openmpi --allow-run-as-root --oversubscribe)
    for ranks in 1 3 4; do
        started=$SECONDS
        (cd "$work" && IOWEIR_TEST_CASES=$cases timeout -k 5 1500 "${launcher[@]}" -n "$ranks" "$program") >"$work/log" 2>&1
        code=$?
        echo "$kind, $ranks ranks, $cases cases: exit $code, $((SECONDS - started)) s"
        if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
