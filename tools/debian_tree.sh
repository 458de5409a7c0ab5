# To be sourced by scripts that try something on a Debian machine with nothing installed (fresh-debian.sh, wheels/try.sh), as root.
# They set suite, cache (a directory for minimal trees, or nothing), keep (not empty: leave the tree behind) and, if it shall lie somewhere, tree.
# mirror, where it is set, is that of Ubuntu: its suites (noble) have their packages in two parts.
# architecture, where it is set, is Debian's word for another one than this machine's: the kernel starts its programs through qemu-user-static.
# Sets work (a folder that ends with the script), tree (in it by default) and settings (the environment within the tree).
# Gives base_tree, in_tree and timed.
# The mirror, proxies, extra certificates and pip settings are this machine's own. Each command in the tree runs in a mount and
# process namespace of its own: whatever ends the script, no mount and no process of it is left (only a SIGKILL leaves the folder
# ${TMPDIR:-/tmp}/ioweir-fresh.* behind).
# shellcheck shell=bash
name=${0##*/}
for tool in debootstrap setpriv unshare chroot tar; do
    command -v $tool >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null \
        || { echo "$name needs $tool; install it (apt-get install debootstrap util-linux tar)" >&2; exit 1; }
done
[ "$(id -u)" -eq 0 ] || { echo "$name must run as root: debootstrap and chroot need it" >&2; exit 1; }

parts=main script=()
if [ -n "${mirror:-}" ]; then
    parts=main,universe
    # A debootstrap that is older than the suite knows how Ubuntu's others are made.
    if [ ! -e "/usr/share/debootstrap/scripts/$suite" ]; then script=(gutsy); fi
else
    mirror=$("$(dirname "${BASH_SOURCE[0]}")/debian_mirror.sh")
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/ioweir-fresh.XXXXXX")
tree=${tree:-$work/tree}
architecture=${architecture:-$(dpkg --print-architecture)}
cleanup() {
    if [ -n "$keep" ]; then echo "left behind: $tree"; else rm -rf --one-file-system "$work"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

seconds() { date +%s.%N; }
timed() { # NAME COMMAND...: runs and adds a line to the table of timings
    local name=$1 begin end status=0
    shift
    begin=$(seconds)
    "$@" || status=$?
    end=$(seconds)
    printf '%-28s %7.1f s   exit %d\n' "$name" "$(echo "$end $begin" | awk '{ print $1 - $2 }')" "$status" >>"$work/timings"
    return $status
}

base_tree() { # the minimal tree, with this machine's names, certificates and proxies
    local stored=$cache/base-$suite-$architecture.tar
    if [ -n "$cache" ] && [ -e "$stored" ]; then
        mkdir -p "$tree"
        tar -C "$tree" -xf "$stored"
    else
        echo "-- debootstrap $suite (minbase, $architecture)"
        PATH=$PATH:/usr/sbin:/sbin debootstrap --arch="$architecture" --variant=minbase --components="$parts" "$suite" "$tree" "$mirror" "${script[@]}" >"$work/debootstrap.log" 2>&1 \
            || { tail -n 20 "$work/debootstrap.log" >&2; return 1; }
        if [ -n "$cache" ]; then tar -C "$tree" -cf "$stored.new" . && mv "$stored.new" "$stored"; fi
    fi
    cp -L /etc/resolv.conf /etc/hosts "$tree/etc/"
    if [ -d /usr/local/share/ca-certificates ]; then cp -r /usr/local/share/ca-certificates "$tree/usr/local/share/"; fi
}

# Proxies and pip settings, where this machine has any; nothing else of the environment. Settings that name a file are
# passed on only if the file is of a kind that the tree will have too.
settings=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    DEBIAN_FRONTEND=noninteractive CI=true)
while IFS= read -r name; do
    settings+=("$name=${!name}")
done < <(compgen -e | grep -E '^((http|https|no|all)_proxy|(HTTP|HTTPS|NO|ALL)_PROXY|PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT))$')

in_tree() { # DIRECTORY COMMAND: a shell command line, in a directory within the tree
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private bash -euc '
        tree=$1 directory=$2 command=$3; shift 3
        mount -t proc proc "$tree/proc"
        mount --rbind /sys "$tree/sys"
        mount --bind /dev "$tree/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$tree/dev/pts"
        exec chroot "$tree" env -i "$@" bash -c "cd $directory && exec </dev/null && $command"
    ' fresh "$tree" "$1" "$2" "${settings[@]}"
}
