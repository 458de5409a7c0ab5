#!/bin/bash
# Makes an RPM package of an installed ioweir: packaging/rpm.sh PREFIX [DIRECTORY]
# PREFIX is what `make install PREFIX=/opt/ioweir` has made, on the distribution that the package is for: the package puts the same
# files at the same place, and needs the same Python. It lies in DIRECTORY, by default here. Needs rpmbuild.
set -euo pipefail
. "$(dirname "$0")/stage.sh"
# The list of files takes other characters for patterns, macros and blanks.
case $prefix in
    *[!A-Za-z0-9._/+-]*) echo "rpm.sh: $prefix: install ioweir at a place named by letters, digits and . _ + - only" >&2; exit 2 ;;
esac
# What rpmbuild does to files by itself is switched off: stripping, compiling, other first lines of scripts, and dependencies
# guessed from libraries, for each MPI library serves a part of them.
cat >"$work/ioweir.spec" <<SPEC
%global debug_package %{nil}
%global __os_install_post %{nil}
%global _build_id_links none
Name: ioweir
Version: $version
Release: 1
Summary: Watches the I/O of MPI programs and improves it
License: BSD-3-Clause
AutoReqProv: no
${system_python:+Requires: $system_python}
%description
Traces an unmodified MPI program, says what its input and output cost, works out
a better way to move the same bytes, applies it and verifies the gain.
%install
mkdir -p %{buildroot}
cp -a $tree/. %{buildroot}/
%files
%defattr(-,root,root,-)
$prefix
SPEC
if ! rpmbuild -bb --quiet --define "_topdir $work/rpmbuild" --define "_dbpath $work/db" --define "_tmppath $work" \
    "$work/ioweir.spec" >"$work/log" 2>&1; then
    cat "$work/log" >&2
    exit 1
fi
package=$(find "$work/rpmbuild/RPMS" -name '*.rpm')
cp "$package" "$directory/"
echo "$directory/${package##*/}"
