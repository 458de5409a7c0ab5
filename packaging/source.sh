#!/bin/bash
# Makes the source archive ioweir-VERSION.tar.gz of what is committed: packaging/source.sh [DIRECTORY]
# The recipes for Spack and EasyBuild and the Containerfile build from it. It holds the library of the web report (tools/web.sh), so that
# building needs no network for it. It lies in DIRECTORY, by default build/source; its name and its SHA-256 are printed.
set -euo pipefail
directory=build/source
if [ $# -gt 0 ]; then directory=$(mkdir -p "$1" && cd "$1" && pwd); fi
cd "$(dirname "$0")/.."
library=build/web/echarts.min.js
tools/web.sh >&2
version=$(sed -n 's/^project(ioweir VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
archive=$directory/ioweir-$version.tar.gz
mkdir -p "$directory"
git archive --format=tar --prefix="ioweir-$version/build/web/" --add-file=$library --prefix="ioweir-$version/" HEAD | gzip -9n >"$archive.new"
mv "$archive.new" "$archive"
sha256sum "$archive"
