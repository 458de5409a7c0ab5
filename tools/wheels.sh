#!/bin/bash
# Makes wheels of ioweir that any Linux with glibc 2.28 or later takes, and the source archive: tools/wheels.sh [ARCHITECTURE...]
# ARCHITECTURE is x86_64 or aarch64; both where none is said. The result lies in build/wheels/dist. JOBS limits the processors.
#
# The compiler is zig's, from PyPI: it brings its own C++ library, and the C library's headers and symbols of each version. For another
# architecture than this machine's, Debian's packages bring the rest: headers and libraries of MPI and Python, and binutils.
# The wheel is for the Python of .venv and for all from 3.12 on: a second module has the stable ABI, for which headers of
# Debian 13's Python are fetched (tools/wheels/debian_packages.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
glibc=2.28
if [ $# -eq 0 ]; then set -- x86_64 aarch64; fi
for architecture in "$@"; do
    case $architecture in
        x86_64 | aarch64) ;;
        *) echo "wheels.sh: there are wheels for x86_64 and aarch64, not for $architecture" >&2; exit 2 ;;
    esac
done
here=$(uname -m)
home=$PWD/build/wheels
mkdir -p "$home/bin" "$home/raw" "$home/dist"

if [ ! -e "$home/tools/.stamp" ] || [ tools/wheels/requirements.lock -nt "$home/tools/.stamp" ]; then
    echo "-- installing what wheels are built with"
    .venv/bin/python -m venv "$home/tools"
    "$home/tools/bin/python" -m pip install -q --disable-pip-version-check --no-input --only-binary :all: \
        --require-hashes -r tools/wheels/requirements.lock
    touch "$home/tools/.stamp"
fi
zig=("$home"/tools/lib/python3*/site-packages/ziglang/zig)
export IOWEIR_ZIG=${zig[0]} ZIG_GLOBAL_CACHE_DIR=$home/zig-cache ZIG_LOCAL_CACHE_DIR=$home/zig-cache
# zig has a cache of its own.
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CFLAGS CXXFLAGS LDFLAGS
export CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} PYTHONDONTWRITEBYTECODE=1
tools/wheels/debian_packages.sh trixie amd64 "$home/python" libpython3.13-dev
rm -f "$home"/dist/*.tar.gz

make_wheel() { # ARCHITECTURE
    local architecture=$1 include=$home/$1-include debian='' header python log=$home/$1.log settings=() tools=(ar ld objcopy ranlib strip) tool
    rm -rf "$include"
    mkdir -p "$include/$architecture-linux-gnu"
    if [ "$architecture" = "$here" ]; then
        for tool in "${tools[@]}"; do ln -sf "/usr/bin/$tool" "$home/bin/$architecture-$tool"; done
    else
        prepare_foreign "$architecture"
    fi
    for tool in cc c++; do ln -sf "$PWD/tools/wheels/zig.sh" "$home/bin/$architecture-$glibc-$tool"; done
    # Headers that are no C library's, and what Debian's Python keeps of its own by architecture.
    for header in toml++ xxhash.h xxh3.h; do ln -sfn "/usr/include/$header" "$include/$header"; done
    for python in "$debian/usr/include/$architecture-linux-gnu"/python3* "$home/python/usr/include"/*-linux-gnu/python3*; do
        if [ -e "$python" ]; then ln -sfn "$python" "$include/$architecture-linux-gnu/${python##*/}"; fi
    done
    export IOWEIR_ZIG_INCLUDE=$include

    echo "-- building the wheel for $architecture with zig (the first time half an hour of a processor)"
    rm -f "$home"/raw/*.whl
    settings+=(
        build-dir="$home/$architecture" cmake.build-type=Release install.strip=true
        cmake.define.CMAKE_C_FLAGS_RELEASE="-O2 -DNDEBUG" cmake.define.CMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG"
        cmake.define.CMAKE_C_COMPILER="$home/bin/$architecture-$glibc-cc"
        cmake.define.CMAKE_CXX_COMPILER="$home/bin/$architecture-$glibc-c++"
        cmake.define.CMAKE_LINKER="$home/bin/$architecture-ld" cmake.define.CMAKE_OBJCOPY="$home/bin/$architecture-objcopy"
        cmake.define.CMAKE_AR="$home/bin/$architecture-ar" cmake.define.CMAKE_RANLIB="$home/bin/$architecture-ranlib"
        cmake.define.CMAKE_STRIP="$home/bin/$architecture-strip"
        cmake.define.CMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined
        cmake.define.IOWEIR_STABLE_ABI_INCLUDE="$home/python/usr/include/python3.13"
    )
    if ! .venv/bin/python -m pip wheel -v --disable-pip-version-check --no-input --no-build-isolation --no-deps --no-index -w "$home/raw" . \
        "${settings[@]/#/--config-settings=}" >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        exit 1
    fi
    rm -f "$home"/dist/*"_$architecture.whl"
    tools/wheels/finish.sh "$home"/raw/*.whl "manylinux_${glibc/./_}_$architecture" "$home/bin/$architecture-$glibc-cc" "$home/dist"
}

# What is another architecture's: adds to settings, and sets debian.
prepare_foreign() { # ARCHITECTURE
    local architecture=$1 debians python
    case $architecture in x86_64) debians=amd64 ;; aarch64) debians=arm64 ;; esac
    debian=$home/$architecture-debian
    python=$(.venv/bin/python -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')
    tools/wheels/debian_packages.sh bookworm "$debians" "$debian" libopenmpi-dev libopenmpi3 libmpich-dev libmpich12 "libpython$python-dev"
    tools/wheels/debian_packages.sh bookworm "$(dpkg --print-architecture)" "$home/$architecture-binutils" "binutils-${architecture/_/-}-linux-gnu"
    for tool in "${tools[@]}"; do ln -sf "$PWD/tools/wheels/binutils.sh" "$home/bin/$architecture-$tool"; done
    for tool in openmpi mpich; do ln -sf "$PWD/tools/wheels/foreign_mpicc.sh" "$home/bin/$architecture-$tool"; done
    export IOWEIR_FOREIGN_DEBIAN=$debian IOWEIR_FOREIGN_BINUTILS=$home/$architecture-binutils
    # Python's own words for the architecture that it builds for.
    export _PYTHON_HOST_PLATFORM=linux-$architecture SETUPTOOLS_EXT_SUFFIX=.cpython-${python/./}-$architecture-linux-gnu.so
    settings+=(
        cmake.define.CMAKE_SYSTEM_NAME=Linux cmake.define.CMAKE_SYSTEM_PROCESSOR="$architecture"
        cmake.define.IOWEIR_MPICC_OPENMPI="$home/bin/$architecture-openmpi" cmake.define.IOWEIR_MPICC_MPICH="$home/bin/$architecture-mpich"
    )
}

for architecture in "$@"; do (make_wheel "$architecture"); done
.venv/bin/python -c 'import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))' "$home/dist" >/dev/null
(cd "$home/dist" && wc -c ./*)
