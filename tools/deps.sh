#!/bin/bash
# Makes sure that what the file `packages` lists is there: tools/deps.sh [--install|--demo]. With apt: installs what is missing (no apt
# call when nothing is). Without apt, or without the right to install: prints exactly what is missing and stops.
# --install: only what `make install` needs; --demo: and LAMMPS. Without apt one MPI library is enough, whatever its wrapper's name (cmake/IoweirMpi.cmake).
# Python packages are not handled here (tools/venv.sh).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
last='$' to_install=''
case ${1:-} in
    --install | --demo) last='/^# for tests alone/' to_install=1 ;;
    ?*) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

mapfile -t wanted < <(sed -n -e "1,${last}p" "$root/packages" | sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d')
mapfile -t optional < <(sed -n -e "1,${last}p" "$root/packages" | sed -n -e 's/[[:space:]]//g' -e 's/^#?//p')

if [ "${1:-}" = --demo ]; then wanted+=(lammps); fi

header() { printf '#include <%s>\n' "$1" | c++ -std=c++20 -fsyntax-only -x c++ - 2>/dev/null; }

# An MPI library to build for: named to CMake, or found by it.
any_mpi() { [[ ${CMAKE_ARGS:-} == *IOWEIR_MPICC_* ]] || command -v mpicc.openmpi || command -v mpicc.mpich || command -v mpicc; }

# Is the thing itself there, whoever installed it? Asked only where the package manager does not know.
present() {
    case $1 in
        libopenmpi-dev | openmpi-bin | libmpich-dev | mpich) if [ -n "$to_install" ] && any_mpi; then return 0; fi ;;&
        g++) command -v g++ || command -v c++ ;;
        ninja-build) command -v ninja ;;
        python3 | python3-dev | python3-venv) "$root/tools/find_python.sh" ;;
        libopenmpi-dev) command -v mpicc.openmpi ;;
        openmpi-bin) command -v mpirun.openmpi ;;
        libmpich-dev) command -v mpicc.mpich ;;
        mpich) command -v mpirun.mpich ;;
        clang) command -v clang++ ;;
        libclang-rt-dev) compgen -G "$(clang++ --print-resource-dir 2>/dev/null)/lib/*/libclang_rt.fuzzer*.a" ;;
        slurm-client) command -v srun ;;
        libtomlplusplus-dev) header toml++/toml.h ;;
        libxxhash-dev) header xxhash.h ;;
        libgtest-dev) header gtest/gtest.h ;;
        librapidcheck-dev) header rapidcheck.h ;;
        lammps) command -v lmp ;;
        python3-mpi4py) python3 -c 'import mpi4py' 2>/dev/null ;;
        libhdf5-openmpi-dev) test -e /usr/include/hdf5/openmpi/hdf5.h ;;
        libhdf5-mpich-dev) test -e /usr/include/hdf5/mpich/hdf5.h ;;
        libpnetcdf-dev) test -e /usr/include/pnetcdf.h ;;
        libnetcdf-dev) test -e /usr/include/netcdf.h ;;
        libnetcdf-mpi-dev) compgen -G '/usr/lib/*/netcdf/mpi/include/netcdf_par.h' ;;
        libnetcdff-dev) test -e /usr/include/netcdf.mod ;;
        python3-h5py-mpi) /usr/bin/python3 -c 'import h5py' 2>/dev/null ;;
        ca-certificates) test -e /etc/ssl/certs/ca-certificates.crt || test -e /etc/pki/tls/certs/ca-bundle.crt ;;
        *) command -v "$1" ;;
    esac >/dev/null
}

missing=() lacking=()
if command -v dpkg-query >/dev/null; then
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" "${optional[@]}" 2>/dev/null | sed -n 's/^installed //p') || true
    for package in "${wanted[@]}"; do
        grep -qxF -e "$package" <<<"$installed" || missing+=("$package")
    done
    for package in "${optional[@]}"; do
        grep -qxF -e "$package" <<<"$installed" || present "$package" || lacking+=("$package")
    done
else
    for package in "${wanted[@]}"; do present "$package" || missing+=("$package"); done
fi
[ ${#missing[@]} -eq 0 ] && [ ${#lacking[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
if ! command -v apt-get >/dev/null || { [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; }; then
    still=()
    for package in "${missing[@]}"; do present "$package" || still+=("$package"); done
    [ ${#still[@]} -eq 0 ] && exit 0  # what is optional is not asked for
    echo "ioweir needs what these Debian packages hold; install it by your system's means and run make again:" >&2
    printf '    %s\n' "${still[@]}" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >"$log" 2>&1
}
update() { "${as_root[@]}" apt-get update -q >"$log" 2>&1; }
# The lists may be absent (a fresh machine) or older than the mirror: they are fetched only when installing fails.
if [ ${#missing[@]} -gt 0 ]; then
    echo "-- installing ${#missing[@]} Debian packages: ${missing[*]}"
    if ! install "${missing[@]}" && ! { update && install "${missing[@]}"; }; then
        cat "$log" >&2
        echo "apt-get could not install: ${missing[*]} (its messages are above)" >&2
        exit 1
    fi
fi
if [ ${#lacking[@]} -gt 0 ]; then
    echo "-- installing what some tests need: ${lacking[*]}"
    if ! install "${lacking[@]}" && ! { update && install "${lacking[@]}"; }; then
        echo "-- not installed: ${lacking[*]} (the tests that need it are skipped)"
    fi
fi
