#!/bin/bash
# Installs ioweir for everyday use: tools/install.sh PREFIX. Makes PREFIX/lib/ioweir (a virtual environment with the
# run-time packages of requirements.lock and ioweir itself) the commands PREFIX/bin/ioweir
# and PREFIX/bin/ioweir-mpicc and its relatives, their man pages and the completion of bash, zsh and fish under PREFIX/share.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=$(mkdir -p "$1" && cd "$1" && pwd)
home="$prefix/lib/ioweir"
lock=$(mktemp)
trap 'rm -f "$lock"' EXIT
wheel=build/wheel  # tools/package.sh has put it there
echo "-- installing into $home"
rm -rf "$home"
mkdir -p "$prefix/lib" "$prefix/bin"
"$(tools/find_python.sh)" -m venv "$home"
# The lock serves as constraints: the wheel asks for its run-time packages only, the lock says which versions.
sed -e '/^ *--hash/d' -e '/^ *#/d' -e 's/ *\\$//' requirements.lock >"$lock"
"$home/bin/python" -m pip install -q --disable-pip-version-check --no-input --only-binary :all: -c "$lock" "$wheel"/*.whl
for command in "$home"/bin/ioweir*; do ln -sf "$command" "$prefix/bin/"; done
"$prefix/bin/ioweir" --help >/dev/null
.venv/bin/python tools/shell_files.py "$prefix"
echo "installed: $prefix/bin/ioweir"
