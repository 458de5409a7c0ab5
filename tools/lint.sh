#!/bin/bash
# Formatting, style and types of everything, the layers, who opens files how, and whether pages can be read: tools/lint.sh [--fix]. Every check runs, also after one failed.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
# The trampolines are assembly, laid out by hand.
mapfile -t cxx < <(git ls-files '*.cpp' '*.hpp' '*.c' '*.h' ':!src/preload/trampoline_macros.h')
status=0
check() { echo "-- $1"; shift; "$@" || status=1; }
if [ "${1:-}" = --fix ]; then
    check "ruff format" $bin/ruff format -q .
    check "ruff check --fix" $bin/ruff check -q --fix .
    check "clang-format" $bin/clang-format -i "${cxx[@]}"
    exit $status
fi
check "ruff format" $bin/ruff format --check -q --output-format concise .
check "ruff check" $bin/ruff check -q --output-format concise .
check "mypy" $bin/mypy --no-error-summary
check "clang-format" $bin/clang-format --dry-run -Werror "${cxx[@]}"
check "layers" $bin/python tools/check_layers.py
check "messages" $bin/python tools/check_messages.py
check "opens of the command line" $bin/python tools/check_python_opens.py
check "opens" $bin/python tools/check_opens.py
check "prose" $bin/python tools/check_prose.py
[ $status -eq 0 ] && echo "lint: clean" || echo "lint: see above" >&2
exit $status
