#!/bin/bash
# Names the files that the installed package is made from, one a line. Test and benchmark sources are left out: they do not enter it.
set -euo pipefail
cd "$(dirname "$0")/.."
find CMakeLists.txt pyproject.toml README.md LICENSE LICENSES cmake include kernels spec src python tools/generate.py tools/generator \
    -type f ! -name '*.pyc' ! -name '*_test.cpp' | LC_ALL=C sort
