#!/bin/bash
# What CMake asks of the compiler wrappers of Debian's MPI libraries, answered for another architecture than this machine's. It is called by
# a link whose name says which: ARCHITECTURE-openmpi or ARCHITECTURE-mpich. IOWEIR_FOREIGN_DEBIAN is the directory with the unpacked packages.
set -euo pipefail
name=${0##*/}
architecture=${name%-*}
headers=$IOWEIR_FOREIGN_DEBIAN/usr/include libraries=$IOWEIR_FOREIGN_DEBIAN/usr/lib/$architecture-linux-gnu
case "$name $*" in
    *-openmpi\ --showme:version) echo "Open MPI, of Debian's packages for $architecture" ;;
    *-openmpi\ --showme:incdirs) echo "$libraries/openmpi/include $libraries/openmpi/include/openmpi" ;;
    *-openmpi\ --showme:link) echo "-L$libraries/openmpi/lib -lmpi" ;;
    *-mpich\ -v) echo "MPICH, of Debian's packages for $architecture" ;;
    *-mpich\ -show) echo "cc -I$headers/$architecture-linux-gnu/mpich -L$libraries -lmpich" ;;
    *) exit 1 ;;
esac
