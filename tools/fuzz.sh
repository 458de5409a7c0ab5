#!/bin/bash
# Fuzzes the readers with clang's libFuzzer, one after the other: tools/fuzz.sh [--runs N | --seconds N] [NAME...], N each (60 seconds where
# nothing is said), all of them where none is named. Each begins with its own seeds, with tests/corpus/NAME and with what earlier runs found
# interesting (build/fuzz/corpus/NAME); one that takes longer than 5 s, more than 1 GiB or 128 MiB at once counts as a finding.
# (IOWEIR_FUZZ_TIMEOUT_S: another limit, for machines where others compute, too; libFuzzer measures the time of day.)
# What makes them fast, so that 10^7 executions take minutes of a processor, half an hour at most for nearly all: inputs no longer than the format needs (longest_input), a short quarantine, no stack for each
# allocation, and no entropic schedule, which takes about a third of the time. `build/fuzz/fuzzers/NAME_fuzz FILE` with nothing in
# ASAN_OPTIONS says where what is used after it was freed came from.
# A line for each: executions, seconds, coverage (edges), inputs kept, findings. Inputs that break something are left in build/fuzz/found, and
# belong into tests/corpus/NAME once the reader is mended: `make test` replays those with any compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=-max_total_time=60
names=()
while [ $# -gt 0 ]; do
    case $1 in
        --runs) limit=-runs=$2; shift ;;
        --seconds) limit=-max_total_time=$2; shift ;;
        -*) echo "tools/fuzz.sh [--runs N | --seconds N] [NAME...]: unknown option $1" >&2; exit 2 ;;
        *) names+=("$1") ;;
    esac
    shift
done
# Bytes: room for a few of what a format is made of.
longest_input() {
    case $1 in
        probe_cache | partition_files | target_state) echo 512 ;;
        plan_file | targets | container_index | container_texts) echo 1024 ;;
        trace | trace_requests | trace_summary | container_parts) echo 4160 ;;
        *) echo 2048 ;;
    esac
}
if ! command -v clang++ >/dev/null; then
    echo "fuzzing needs clang with its run-time library: \`make deps\` installs what the file packages lists" >&2
    exit 2
fi
if [ ${#names[@]} -gt 0 ]; then tools/build.sh fuzz "${names[@]/%/_fuzz}"; else tools/build.sh fuzz fuzzers; fi
if [ ${#names[@]} -eq 0 ]; then
    for program in build/fuzz/fuzzers/*_fuzz; do names+=("$(basename "$program" _fuzz)"); done
fi
# Targets that need a file have it in memory; whatever a fuzzer leaves there goes with the folder.
TMPDIR=$(mktemp -d -p /dev/shm ioweir-fuzz-XXXXXX 2>/dev/null || mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
export ASAN_OPTIONS=quarantine_size_mb=1:malloc_context_size=0:${ASAN_OPTIONS:-}
mkdir -p build/fuzz/logs build/fuzz/found
printf '%-18s %12s %8s %9s %6s %9s  %s\n' fuzzer executions seconds "a second" edges "inputs" findings
total=0
findings=0
began=$SECONDS
for name in "${names[@]}"; do
    program=build/fuzz/fuzzers/${name}_fuzz corpus=build/fuzz/corpus/$name log=build/fuzz/logs/$name.log
    mkdir -p "$corpus"
    IOWEIR_FUZZ_SEEDS=$corpus "$program"
    found=()
    if [ -d "tests/corpus/$name" ]; then found=("tests/corpus/$name"); fi
    before=$(find build/fuzz/found -name "$name-*" | wc -l)
    started=$SECONDS
    "$program" "$limit" -max_len="$(longest_input "$name")" -entropic=0 -reload=0 -timeout="${IOWEIR_FUZZ_TIMEOUT_S:-5}" -rss_limit_mb=1024 \
        -malloc_limit_mb=128 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/found/$name-" "$corpus" "${found[@]}" >"$log" 2>&1 && code=0 || code=$?
    taken=$((SECONDS - started))
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
    kept=$(find "$corpus" -type f | wc -l)
    new=$(($(find build/fuzz/found -name "$name-*" | wc -l) - before))
    # One that ends in another way than it should has found something, too.
    if [ $code -ne 0 ] && [ $new -eq 0 ]; then new=1; fi
    printf '%-18s %12s %8s %9s %6s %9s  %s\n' "$name" "${runs:-0}" $taken $((${runs:-0} / (taken > 0 ? taken : 1))) "${edges:-0}" "$kept" $new
    if [ $new -ne 0 ]; then grep -E 'ERROR|SUMMARY|broken promise|runtime error|Test unit' "$log" | head -5 | sed 's/^/    /' || true; fi
    total=$((total + ${runs:-0}))
    findings=$((findings + new))
done
echo "${#names[@]} fuzzers, $total executions in $((SECONDS - began)) s, $findings findings"
[ $findings -eq 0 ]
