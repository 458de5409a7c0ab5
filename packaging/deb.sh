#!/bin/bash
# Makes a Debian package of an installed ioweir: packaging/deb.sh PREFIX [DIRECTORY]
# PREFIX is what `make install PREFIX=/opt/ioweir` has made, on the Debian that the package is for: the package puts the same
# files at the same place, and needs the same Python. It lies in DIRECTORY, by default here.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
prefix=$(cd "$1" && pwd)
directory=$(mkdir -p "${2:-.}" && cd "${2:-.}" && pwd)
case $prefix in
    / | /usr | /usr/local) echo "deb.sh: $prefix holds other things, too; install ioweir in a place of its own, such as /opt/ioweir" >&2; exit 2 ;;
esac
[ -x "$prefix/lib/ioweir/bin/python" ] || { echo "deb.sh: $prefix: ioweir is not installed there (make install PREFIX=...)" >&2; exit 1; }
version=$("$prefix/bin/ioweir" --version | awk '{ print $2 }')
minor=$("$prefix/lib/ioweir/bin/python" -c 'import sys; print(sys.version_info[1])')
architecture=$(dpkg --print-architecture)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/DEBIAN" "$work/tree$prefix"
cp -a "$prefix/." "$work/tree$prefix/"
find "$work/tree" -name __pycache__ -prune -exec rm -r {} +
# The package belongs to root, and all may read it, whoever installed the prefix.
chmod -R u+rwX,go+rX,go-w "$work/tree"
size=$(du -sk --exclude DEBIAN "$work/tree" | cut -f1)
cat >"$work/tree/DEBIAN/control" <<CONTROL
Package: ioweir
Version: $version
Architecture: $architecture
Maintainer: ioweir contributors <ioweir@localhost>
Installed-Size: $size
Depends: libc6, python3 (>= 3.$minor), python3 (<< 3.$((minor + 1)))
Recommends: openmpi-bin | mpich
Section: science
Priority: optional
Description: watches the I/O of MPI programs and improves it
 Traces an unmodified MPI program, says what its input and output cost, works out
 a better way to move the same bytes, applies it and verifies the gain.
CONTROL
package=$directory/ioweir_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$work/tree" "$package" >/dev/null
echo "$package"
