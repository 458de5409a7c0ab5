#!/bin/bash
# Prints the first address of Debian's own archive among this machine's sources of apt (both file formats).
set -euo pipefail
mirror=$(find /etc/apt/sources.list /etc/apt/sources.list.d -type f \( -name '*.sources' -o -name '*.list' \) -exec cat {} + 2>/dev/null \
    | sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' -e 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' | grep /debian | grep -v security | sed -n 1p) || true
[ -n "$mirror" ] || { echo "no Debian mirror found in this machine's apt sources" >&2; exit 1; }
echo "$mirror"
