#!/bin/bash
# Tries ioweir as somebody does who has never had it: in a minimal Debian tree with an MPI library and a compiler of the archive, `pip install`
# of a wheel, then the three commands of README.md. Says the seconds to the first finding, and what does not hold (new_user_inside.sh).
# Once as root, once as an ordinary user.
#
#     tools/try_new_user.sh [--suite bookworm] [--mirror URL] [--cache DIR] [WHEEL]     (as root; default: this machine's in build/wheels/dist)
#
# Ubuntu's suites (--suite noble) need --mirror, and Ubuntu's package ubuntu-keyring.
# --cache DIR keeps the minimal tree (before anything is installed in it) for the next run.
# The tree is debian_tree.sh's. What ioweir needs of PyPI comes in the newest versions, as a user gets them.
set -euo pipefail

suite=bookworm cache='' keep='' wheel=''
while [ $# -gt 0 ]; do
    case $1 in
        --suite) suite=$2; shift 2 ;;
        --mirror) mirror=$2; shift 2 ;;
        --cache) cache=$(mkdir -p "$2" && cd "$2" && pwd); shift 2 ;;
        -*) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
        *) wheel=$1; shift ;;
    esac
done
checkout=$(cd "$(dirname "$0")/.." && pwd)
[ -n "$wheel" ] || wheel=$(find "$checkout/build/wheels/dist" -name "*_$(uname -m).whl" 2>/dev/null | sed -n 1p) || true
[ -f "$wheel" ] || { echo "try_new_user.sh: there is no wheel ${wheel:-in build/wheels/dist}; make one (make wheels)" >&2; exit 1; }
. "$checkout/tools/debian_tree.sh"

timed "minimal tree" base_tree
timed "Python, Open MPI, compiler" in_tree / 'apt-get update -q && apt-get install -y -q --no-install-recommends \
    ca-certificates python3 python3-venv openmpi-bin libopenmpi-dev gcc libc6-dev && (update-ca-certificates || true)' >"$work/apt.log" 2>&1 \
    || { tail -n 20 "$work/apt.log" >&2; exit 1; }
in_tree / 'useradd --create-home --uid 4711 somebody'
status=0
for user in root somebody; do
    case $user in
        root) home=/root as='' ;;
        somebody) home=/home/somebody as='setpriv --reuid=4711 --regid=4711 --clear-groups' ;;
    esac
    mkdir "$tree$home/trial"
    cp "$wheel" "$checkout/tools/new_user_inside.sh" "$checkout/tests/tutorials/my_simulation.c" "$tree$home/trial/"
    if [ $user = somebody ]; then chown -R 4711:4711 "$tree$home/trial"; fi
    echo "== $suite, as $user"
    timed "trial as $user" in_tree "$home/trial" "$as env HOME=$home ./new_user_inside.sh" || status=1
done
echo "== timings"
cat "$work/timings"
exit $status
