#!/bin/bash
# Fuzzes the trace reader, then the readers of partitioned files: tools/fuzz.sh [SECONDS] for each. The first begins with whole traces and with tests/corpus/reader;
# inputs that break something are left in build/fuzz/found, and belong into tests/corpus/reader once the reader is mended. Inputs of the second are changes of whole files.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
if ! command -v clang++ >/dev/null; then
    echo "fuzzing needs clang with its run-time library: apt-get install clang" >&2
    exit 2
fi
tools/build.sh fuzz reader_fuzz reader_seeds partition_fuzz
mkdir -p build/fuzz/corpus build/fuzz/corpus-partition build/fuzz/found
build/fuzz/src/format/reader_seeds build/fuzz/corpus
build/fuzz/src/format/reader_fuzz -max_total_time="$seconds" -max_len=16384 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix=build/fuzz/found/ build/fuzz/corpus tests/corpus/reader
build/fuzz/src/partition/files/partition_fuzz -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix=build/fuzz/found/partition- build/fuzz/corpus-partition
