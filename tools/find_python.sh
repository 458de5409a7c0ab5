#!/bin/bash
# Prints the Python interpreter that the virtual environment is made with: the first of $PYTHON, the system's, and those
# on PATH that is 3.10 or newer, has its C headers and can make virtual environments. Fails, saying why, if none does.
set -uo pipefail
tried=()
for candidate in ${PYTHON:-} /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    path=$(command -v "$candidate") || continue
    verdict=$("$path" - 2>&1 <<'PY'
import os, sys, sysconfig
def lack() -> str:
    if sys.version_info < (3, 10):
        return "is older than 3.10"
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        return "has no C headers (python3-dev)"
    try:
        import ensurepip, venv
    except ImportError:
        return "has no venv (python3-venv)"
    return "ok"
print(lack())
PY
    )
    if [ "$verdict" = ok ]; then
        "$path" -c 'import sys; print(sys.executable)'
        exit 0
    fi
    tried+=("$path: ${verdict##*$'\n'}")
done
echo "no suitable Python (3.10 or newer with headers and venv); looked at:" >&2
printf '    %s\n' "${tried[@]:-none found}" >&2
echo "set PYTHON=/path/to/python3 to choose one" >&2
exit 1
