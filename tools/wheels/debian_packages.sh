#!/bin/bash
# Unpacks packages of Debian into a directory, once: debian_packages.sh SUITE ARCHITECTURE DIRECTORY PACKAGE...
# ARCHITECTURE is Debian's word (amd64, arm64). The mirror is this machine's own; nothing is installed, and what the packages depend on is
# not fetched.
set -euo pipefail
suite=$1 architecture=$2 place=$3
shift 3
stamp=$place/.unpacked
if [ "$(cat "$stamp" 2>/dev/null)" = "$*" ]; then exit; fi
mirror=$("$(dirname "$0")/../debian_mirror.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$place"
touch "$work/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
apt=(apt-get -q -o "Dir::State::Lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache"
    -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "APT::Sandbox::User=$(id -un)"
    -o "APT::Architecture=$architecture" -o "APT::Architectures::=$architecture")
(cd "$work" && "${apt[@]}" update && "${apt[@]}" download "$@") >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
for package in "$work"/*.deb; do dpkg-deb -x "$package" "$place"; done
echo "$*" >"$stamp"
