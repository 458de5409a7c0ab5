# To be sourced by deb.sh and rpm.sh with their arguments PREFIX [DIRECTORY]: checks PREFIX, and copies it as a package holds it.
# Sets prefix, directory (where the package goes), version, system_python, work (a folder that ends with the script), tree (the copy).
# shellcheck shell=bash
name=${0##*/}
[ $# -ge 1 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
prefix=$(cd "$1" && pwd)
directory=$(mkdir -p "${2:-.}" && cd "${2:-.}" && pwd)
case $prefix in
    / | /usr | /usr/local) echo "$name: $prefix holds other things, too; install ioweir in a place of its own, such as /opt/ioweir" >&2; exit 2 ;;
esac
[ -x "$prefix/lib/ioweir/bin/python" ] || { echo "$name: $prefix: ioweir is not installed there (make install PREFIX=...)" >&2; exit 1; }
version=$("$prefix/bin/ioweir" --version | awk '{ print $2 }')
interpreter=$(readlink -f "$prefix/lib/ioweir/bin/python")
# A Python that no package of the system brings (a module's, a user's) cannot be asked for.
system_python=
case $interpreter in
    /usr/local/*) ;;
    /usr/*) system_python=$interpreter ;;
esac
[ -n "$system_python" ] || echo "$name: $interpreter is no system's Python: the package does not ask for it" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir -p "$tree$prefix"
cp -a "$prefix/." "$tree$prefix/"
find "$tree" -name __pycache__ -prune -exec rm -r {} +
# The package belongs to root, and all may read it, whoever installed the prefix.
chmod -R u+rwX,go+rX,go-w "$tree"
