#!/bin/bash
# GNU binutils for another architecture, as CMake calls them. It is called by a link whose name says which: ARCHITECTURE-TOOL.
# IOWEIR_FOREIGN_BINUTILS is the directory with the unpacked package.
set -euo pipefail
name=${0##*/}
architecture=${name%%-*}
export LD_LIBRARY_PATH=$IOWEIR_FOREIGN_BINUTILS/usr/lib/$(uname -m)-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$IOWEIR_FOREIGN_BINUTILS/usr/bin/$architecture-linux-gnu-${name#*-}" "$@"
