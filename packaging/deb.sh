#!/bin/bash
# Makes a Debian package of an installed ioweir: packaging/deb.sh PREFIX [DIRECTORY]
# PREFIX is what `make install PREFIX=/opt/ioweir` has made, on the Debian that the package is for: the package puts the same
# files at the same place, and needs the same Python. It lies in DIRECTORY, by default here.
set -euo pipefail
. "$(dirname "$0")/stage.sh"
python=
if [ -n "$system_python" ]; then
    minor=$("$system_python" -c 'import sys; print(sys.version_info[1])')
    python=", python3 (>= 3.$minor), python3 (<< 3.$((minor + 1)))"
fi
architecture=$(dpkg --print-architecture)
size=$(du -sk "$tree" | cut -f1)
mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: ioweir
Version: $version
Architecture: $architecture
Maintainer: ioweir contributors <ioweir@localhost>
Installed-Size: $size
Depends: libc6$python
Suggests: openmpi-bin | mpich
Section: science
Priority: optional
Description: watches the I/O of MPI programs and improves it
 Traces an unmodified MPI program, says what its input and output cost, works out
 a better way to move the same bytes, applies it and verifies the gain.
CONTROL
package=$directory/ioweir_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$tree" "$package" >/dev/null
echo "$package"
