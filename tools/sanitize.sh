#!/bin/bash
# The C++ tests under sanitizers: address and undefined behaviour over all of them, threads over those of the tracer.
# The preloaded libraries are not among them: a sanitizer's run-time library wants to come first in a process.
# Closes with "N passed, N failed".
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
ASAN_OPTIONS=detect_leaks=0 stage "the same, under MPI" ctest --preset asan --label-regex mpi
tools/build.sh tsan tracer_stream_test tracer_handle_table_test tracer_threads_test tracer_pending_requests_test || exit 1
stage "threads" ctest --preset tsan --tests-regex '^(StreamTest|HandleTable|RingThreads|PendingRequests)'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
