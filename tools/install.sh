#!/bin/bash
# Installs ioweir for everyday use: tools/install.sh PREFIX. Makes PREFIX/lib/ioweir (a virtual environment with the
# run-time packages of requirements.lock and ioweir itself) the commands PREFIX/bin/ioweir
# and PREFIX/bin/ioweir-mpicc and its relatives, their man pages and the completion of bash, zsh and fish under PREFIX/share.
# What was installed there before goes only when the new one runs.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=$(mkdir -p "$1" && cd "$1" && pwd)
home="$prefix/lib/ioweir"
before="$prefix/lib/.ioweir-before"
runs=
lock=$(mktemp)
finish() {
    rm -f "$lock"
    [ -d "$before" ] || return 0
    if [ -n "$runs" ]; then
        rm -rf "$before"
    else
        rm -rf "$home"
        mv "$before" "$home"
        echo "not installed; $home is what it was before" >&2
    fi
}
trap finish EXIT
wheel=build/wheel  # tools/package.sh has put it there
echo "-- installing into $home"
mkdir -p "$prefix/lib" "$prefix/bin"
# If an installation was killed, the whole one is what was there before it.
if [ -d "$before" ]; then rm -rf "$home"; elif [ -d "$home" ]; then mv "$home" "$before"; fi
"$(tools/find_python.sh)" -m venv "$home"
# The lock serves as constraints: the wheel asks for its run-time packages only, the lock says which versions.
sed -e '/^ *--hash/d' -e '/^ *#/d' -e 's/ *\\$//' requirements.lock >"$lock"
"$home/bin/python" -m pip install -q --disable-pip-version-check --no-input --only-binary :all: -c "$lock" "$wheel"/*.whl
for command in "$home"/bin/ioweir*; do ln -sf "$command" "$prefix/bin/"; done
"$prefix/bin/ioweir" --help >/dev/null
runs=yes
.venv/bin/python tools/shell_files.py "$prefix"
echo "installed: $prefix/bin/ioweir"
