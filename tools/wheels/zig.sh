#!/bin/bash
# A compiler for CMake: zig's, for one machine and an old C library. It is called by a link whose name says which:
# ARCHITECTURE-GLIBC-cc or ARCHITECTURE-GLIBC-c++. IOWEIR_ZIG is the program zig, IOWEIR_ZIG_INCLUDE a directory of headers:
# zig reads nothing below /usr/include for another C library than this machine's.
set -euo pipefail
name=${0##*/}
tool=${name##*-}
rest=${name%-*}
target=${rest%-*}-linux-gnu.${rest##*-}
words=()
for word in "$@"; do
    case $word in
        # GCC's alone. zig links its C++ library into everything, hidden.
        -static-libstdc++ | -static-libgcc | -fno-gnu-unique | -Wl,--exclude-libs,ALL | -Wl,-u,__cxa_pure_virtual) ;;
        *) words+=("$word") ;;
    esac
done
# zig turns checks of undefined behaviour and debug information on by default. What headers of its C++ library include beyond need takes
# more than half of the compiler's time. nanobind's headers count on <cstdio>, which libstdc++ brings.
lean=(-D_LIBCPP_REMOVE_TRANSITIVE_INCLUDES)
case "$tool $* " in c++*nanobind*" -c "*) lean=(-include cstdio) ;; esac
exec "$IOWEIR_ZIG" "$tool" -target "$target" -fno-sanitize=all -s "${lean[@]}" -isystem "$IOWEIR_ZIG_INCLUDE" "${words[@]}"
