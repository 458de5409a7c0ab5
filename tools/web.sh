#!/bin/bash
# Puts Apache ECharts 6.0.0 into build/web, from where the package takes it: the plots of `ioweir report --html`.
# The wheel that carries it is locked (tools/web/echarts.lock), and the file itself has to be the one of Apache's release.
set -euo pipefail
cd "$(dirname "$0")/.."
library=build/web/echarts.min.js
member='panel/dist/bundled/echarts/echarts@6.0.0/dist/echarts.min.js'
released=baa8dfe7e1d9336b98e8986ba7e20ea15e7cdbea1ef42a59d59478632fa45a1d
is_release() { [ "$(sha256sum <"$1")" = "$released  -" ]; }
if [ -e $library ] && is_release $library; then exit 0; fi
# Without an environment of this checkout (packaging/source.sh alone) the system's pip does.
python=.venv/bin/python
[ -x $python ] || python=python3
echo "-- fetching the library of the web report (Apache ECharts)"
mkdir -p build/web
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
$python -m pip download -q --disable-pip-version-check --no-input --no-deps --only-binary :all: --require-hashes \
    -r tools/web/echarts.lock -d "$wheels"
$python -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' \
    "$wheels"/*.whl "$member" >"$wheels/echarts.min.js"
is_release "$wheels/echarts.min.js" || { echo "tools/web.sh: the wheel's file is not that of the release" >&2; exit 1; }
mv "$wheels/echarts.min.js" $library
