#!/bin/bash
# Fetches the C headers of Debian 13's Python into a directory, once, and prints where they are: python_headers.sh DIRECTORY
# For the stable ABI they may be of any Python from 3.12 on, and of any architecture with the same sizes of types. The mirror is
# this machine's own; nothing is installed.
set -euo pipefail
package=libpython3.13-dev
place=$1
found=$place/usr/include/python3.13
if [ ! -e "$found/Python.h" ]; then
    mirror=$("$(dirname "$0")/../debian_mirror.sh")
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    chmod 755 "$work"
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$place"
    touch "$work/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$work/sources.list"
    apt=(apt-get -q -o "Dir::State::Lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache"
        -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "APT::Sandbox::User=$(id -un)")
    (cd "$work" && "${apt[@]}" update && "${apt[@]}" download $package) >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    dpkg-deb -x "$work"/$package*.deb "$place"
fi
echo "$found"
