#!/bin/bash
# The C++ tests under sanitizers: address and undefined behaviour over all of them, those under MPI and with the preload too,
# and over the preload under programs of tests/trace; threads over the tests of the tracer and of probing; both over delegates
# of partitioned files. Closes with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.."
export UBSAN_OPTIONS=print_stacktrace=1
passed=0
failed=0
stage() {
    local name=$1
    shift
    echo "-- $name"
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}
tools/build.sh asan || exit 1
stage "address and undefined behaviour" ctest --preset asan --label-exclude mpi
# What the MPI libraries allocate at their start and keep is not ours to free.
export ASAN_OPTIONS=detect_leaks=0
stage "the same, under MPI" ctest --preset asan --label-regex mpi
# `ioweir run` gives a rank's wrappers the preload alone; in the programs the run-time library comes first (tests/trace/tracing.py).
# Not run: tests of limits on memory, of signals that the sanitizer takes, of call sites, which lie in its interceptors.
export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
stage "the same, of the preload" env IOWEIR_LIBDIR="$PWD/build/asan/lib" IOWEIR_TEST_SANITIZER="$(g++ -print-file-name=libasan.so)" \
    .venv/bin/python -m pytest -q -p no:cacheprovider tests/trace/test_symbols*.py \
    tests/trace/test_{positions,streams,processes,exact,mpi_calls,requests,languages,plan}.py
tools/build.sh tsan test_base tracer_{stream,threads,process,pending_requests}_test || exit 1
stage "threads" ctest --preset tsan --tests-regex '^(StreamTest|HandleTable|MadeHandles|RingThreads|ProcessTest|PendingRequests)'
tools/build.sh tsan probe_test || exit 1
stage "threads that probe targets" ctest --preset tsan --tests-regex '^(Measure|Confirmation)'
tools/build.sh tsan hdf5_threads_test || exit 1
stage "threads in HDF5" ctest --preset tsan --tests-regex '^Threads'
# MPI libraries know nothing of the sanitizer: what they do among themselves is not its matter. Not run: tests that take memory and calls away (storage_calls.c).
delegates() {
    ln -sfn "$PWD/include" "build/$1/include"
    env IOWEIR_LIBDIR="$PWD/build/$1/lib" IOWEIR_TEST_SANITIZE="$2" .venv/bin/python -m pytest -q -p no:cacheprovider \
        tests/partition/test_delegates.py -k "every_block or little or many_messages or is_there or is_open or alone"
}
stage "address and undefined behaviour, of delegates" delegates asan address,undefined
for kind in openmpi mpich; do
    command -v mpicc.$kind >/dev/null && { tools/build.sh tsan ioweir_api_$kind || exit 1; }
done
export TSAN_OPTIONS=ignore_noninstrumented_modules=1:exitcode=66
# UCX, beneath MPICH, takes locks where a thread's stack is given up, after the sanitizer has forgotten the thread.
export UCX_MEM_EVENTS=n
stage "threads that are delegates" delegates tsan thread
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
