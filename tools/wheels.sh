#!/bin/bash
# Makes wheels of ioweir that any Linux with glibc 2.28 or later takes, and the source archive: tools/wheels.sh [ARCHITECTURE]
# ARCHITECTURE is x86_64, the only one yet. The result lies in build/wheels/dist. JOBS limits the processors.
#
# The compiler is zig's, from PyPI: it brings its own C++ library, and the C library's headers and symbols of each version.
# The wheel is for the Python of .venv and for all from 3.12 on: a second module has the stable ABI, for which headers of
# Debian 13's Python are fetched (tools/wheels/python_headers.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
architecture=${1:-x86_64}
glibc=2.28
[ "$architecture" = x86_64 ] || { echo "wheels.sh: wheels for $architecture are not made yet, only for x86_64" >&2; exit 2; }
home=$PWD/build/wheels
include=$home/$architecture-include
mkdir -p "$home/bin" "$home/raw" "$home/dist" "$include/$architecture-linux-gnu"

if [ ! -e "$home/tools/.stamp" ] || [ tools/wheels/requirements.lock -nt "$home/tools/.stamp" ]; then
    echo "-- installing what wheels are built with"
    .venv/bin/python -m venv "$home/tools"
    "$home/tools/bin/python" -m pip install -q --disable-pip-version-check --no-input --only-binary :all: \
        --require-hashes -r tools/wheels/requirements.lock
    touch "$home/tools/.stamp"
fi
zig=("$home"/tools/lib/python3*/site-packages/ziglang/zig)
python_headers=$(tools/wheels/python_headers.sh "$home/python")
for tool in cc c++; do ln -sf "$PWD/tools/wheels/zig.sh" "$home/bin/$architecture-$glibc-$tool"; done
# Headers that are no C library's, and what Debian's Python keeps of its own by architecture.
for header in toml++ xxhash.h xxh3.h; do ln -sfn "/usr/include/$header" "$include/$header"; done
for python in "/usr/include/$architecture-linux-gnu"/python3* "$home/python/usr/include/$architecture-linux-gnu"/python3*; do
    if [ -e "$python" ]; then ln -sfn "$python" "$include/$architecture-linux-gnu/${python##*/}"; fi
done

export IOWEIR_ZIG=${zig[0]} IOWEIR_ZIG_INCLUDE=$include ZIG_GLOBAL_CACHE_DIR=$home/zig-cache ZIG_LOCAL_CACHE_DIR=$home/zig-cache
# zig has a cache of its own.
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CFLAGS CXXFLAGS LDFLAGS
export CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} PYTHONDONTWRITEBYTECODE=1
echo "-- building the wheel for $architecture with zig (the first time half an hour of a processor)"
log=$home/$architecture.log
rm -f "$home"/raw/*.whl
if ! .venv/bin/python -m pip wheel -v --disable-pip-version-check --no-input --no-build-isolation --no-deps --no-index -w "$home/raw" . \
    --config-settings build-dir="$home/$architecture" --config-settings cmake.build-type=Release \
    --config-settings install.strip=true \
    --config-settings cmake.define.CMAKE_C_FLAGS_RELEASE="-O2 -DNDEBUG" --config-settings cmake.define.CMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" \
    --config-settings cmake.define.CMAKE_C_COMPILER="$home/bin/$architecture-$glibc-cc" \
    --config-settings cmake.define.CMAKE_CXX_COMPILER="$home/bin/$architecture-$glibc-c++" \
    --config-settings cmake.define.CMAKE_LINKER=/usr/bin/ld --config-settings cmake.define.CMAKE_OBJCOPY=/usr/bin/objcopy \
    --config-settings cmake.define.CMAKE_AR=/usr/bin/ar --config-settings cmake.define.CMAKE_RANLIB=/usr/bin/ranlib \
    --config-settings cmake.define.CMAKE_STRIP=/usr/bin/strip \
    --config-settings cmake.define.CMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined \
    --config-settings cmake.define.IOWEIR_STABLE_ABI_INCLUDE="$python_headers" >"$log" 2>&1
then
    tail -n 60 "$log" >&2
    exit 1
fi

rm -f "$home"/dist/*"_$architecture.whl" "$home"/dist/*.tar.gz
tools/wheels/finish.sh "$home"/raw/*.whl "manylinux_${glibc/./_}_$architecture" "$home/bin/$architecture-$glibc-cc" "$home/dist"
.venv/bin/python -c 'import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))' "$home/dist" >/dev/null
(cd "$home/dist" && wc -c ./*)
