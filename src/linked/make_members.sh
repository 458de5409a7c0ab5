#!/bin/bash
# Archive members of libioweir_trace.a, one for each "=== NAME" of a list (tools/generator/linking.py): NAME.o in a directory.
#
#     make_members.sh COMPILER MACHINE LIST DIRECTORY ARCHIVE AR
#
# MACHINE: x86_64 or aarch64, what the compiler makes code for.
set -euo pipefail
compiler=$1 machine=$2 list=$3 directory=$4 archive=$5 ar=$6
case $machine in
    x86_64) jump='endbr64\n    jmp ' ;;
    aarch64) jump='bti c\n    b ' ;;
    *) echo "make_members.sh: $machine: is neither x86_64 nor aarch64" >&2; exit 1 ;;
esac
rm -rf "$directory"
mkdir -p "$directory"
sed "s/IOWEIR_JUMP /$jump/" "$list" | awk -v directory="$directory" '
    /^=== / { if (out) close(out); out = directory "/" $2 ".s"; next }
    { print > out }'
cd "$directory"
# As many at a time as a command line holds; the compiler starts one assembler a file.
find . -name '*.s' -print0 | sort -z | xargs -0 -n 200 "$compiler" -c
rm -f "$archive"
find . -name '*.o' -print0 | sort -z | xargs -0 -n 500 "$ar" qc "$archive"
