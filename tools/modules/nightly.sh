#!/bin/sh
# Each night: nightly.sh STORE DIR... adds new traces below the folders to the store, and removes what is old.
# Traces go after IOWEIR_KEEP_TRACES (30d) if the store has them, runs of the store after IOWEIR_KEEP_RUNS (365d).
# It returns 1 if any of the three failed.
set -u
[ $# -ge 2 ] || { echo "usage: nightly.sh STORE DIR..." >&2; exit 2; }
store=$1
shift
failed=0
"@PREFIX@/bin/ioweir" site add "$store" "$@" || failed=1
"@PREFIX@/bin/ioweir" site prune "$@" --older-than "${IOWEIR_KEEP_TRACES:-30d}" --store "$store" --yes || failed=1
"@PREFIX@/bin/ioweir" site forget "$store" --older-than "${IOWEIR_KEEP_RUNS:-365d}" || failed=1
exit $failed
