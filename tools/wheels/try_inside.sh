#!/bin/bash
# What try.sh runs within the tree, in a directory with the wheel and constraints.txt: each step, and whether it did what it should.
# Closes with "N passed, N failed".
set -uo pipefail
passed=0 failed=0
# On an emulated processor MPICH's ranks sometimes wait for each other without end in MPI_Finalize, in untraced programs too. A step that
# is not over in time has two more attempts there, and says so.
attempt() { # NAME COMMAND...
    local name=$1 status=124 number word before
    shift
    [ -n "${EMULATED:-}" ] || { "$@"; return; }
    for number in 1 2 3; do
        if [ $number -gt 1 ]; then
            echo "again   $name: not over in 120 s" >&3
            for word in "$@"; do
                if [ "${before:-}" = -o ]; then rm -rf "$word"; fi
                before=$word
            done
        fi
        timeout -k 5 120 "$@"
        status=$?
        [ $status -eq 124 ] || break
    done
    return $status
}
exec 3>&1
step() { # NAME COMMAND...: a command that has to succeed
    local name=$1
    shift
    if attempt "$name" "$@" >log 2>&1; then
        passed=$((passed + 1)); echo "ok      $name"
    else
        failed=$((failed + 1)); echo "FAILED  $name: $*"; tail -n 30 log
    fi
}
shows() { # NAME PATTERN COMMAND...: one that succeeds, and prints a line that matches
    local name=$1 pattern=$2
    shift 2
    step "$name" bash -c 'set -o pipefail; pattern=$1; shift; "$@" | tee out >&2 && grep -Eq -e "$pattern" out' shows "$pattern" "$@"
}
spent() { # NAME COMMAND...: processor time, user and system, the least of five: a figure and no verdict, for other programs share caches
    local name=$1
    shift
    echo "        $name: $(ioweir-venv/bin/python - "$@" <<'PYTHON'
import os, subprocess, sys
def once():
    before = os.times()
    subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
print(f"{min(once() for _ in range(5)):.2f} s of a processor")
PYTHON
    )"
}

end() { echo "$passed passed, $failed failed"; [ "$failed" -eq 0 ]; exit; }

# Of MPI's packages there are wrappers of compilers; without a compiler they make nothing.
no_compilers=(bash -c "! command -v gcc cc g++ c++ clang make cmake ninja ld as")
step "no compiler, linker or make is here" "${no_compilers[@]}"
step "a virtual environment" python3 -m venv ioweir-venv
step "pip install ioweir-*.whl" ioweir-venv/bin/python -m pip install -q --disable-pip-version-check --no-input --only-binary :all: \
    -c constraints.txt ./*.whl
[ $failed -eq 0 ] || end
export PATH=$PWD/ioweir-venv/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
shows "ioweir --help" 'Usage: ioweir' ioweir --help
shows "ioweir --version" '^ioweir [0-9]' ioweir --version
step "import ioweir" python -c 'import ioweir, ioweir._core'
step "man pages and completion" test -s ioweir-venv/share/man/man1/ioweir-run.1 -a -s ioweir-venv/share/bash-completion/completions/ioweir
spent "import ioweir" python -c 'import ioweir'
spent "ioweir --help" ioweir --help
for mpi in openmpi mpich; do
    echo "== $mpi"
    case $mpi in
        openmpi) launcher=(mpirun.openmpi --oversubscribe) ;;
        mpich) launcher=(mpiexec.mpich) ;;
    esac
    library=$(python -c 'import pathlib, ioweir; print(pathlib.Path(ioweir.__file__).parent / "lib")')
    directory=$PWD/$mpi
    mkdir "$directory"
    program=("${launcher[@]}" -n 2 "$library/kernel_runner_$mpi" lattice local=32,32,32,16 site=16 --directory "$directory" --verify 1)
    step "a program by itself" "${program[@]}"
    step "ioweir run -o before -- mpirun" ioweir run -q -o "$directory/before" -- "${program[@]}"
    shows "report: both ranks' calls of MPI-IO" 'MPI-IO +write.* 16.00 MiB' ioweir report "$directory/before"
    step "report --json" bash -c 'ioweir report --json "$0" | python -m json.tool >/dev/null' "$directory/before"
    step "report --html" ioweir report --html "$directory/page.html" "$directory/before"
    shows "findings" 'The plan as a file' ioweir findings "$directory/before"
    printf '[[file]]\nmatch = "lattice.data"\nwriters = "auto"\n' >"$directory/plan.toml"
    printf '[[file]]\nmatch = "*.data"\nwriters = "aggregators:3"\nstripe = { size = "1 MiB", count = 3 }\n' >"$directory/explained.toml"
    shows "ioweir doctor" 'ioweir' ioweir doctor -- "${program[@]}"
    step "ioweir tune" ioweir tune "$directory/before" -o "$directory/tuned.toml" --machine sierra
    step "ioweir run --plan --verify" ioweir run -q -o "$directory/after" --plan "$directory/plan.toml" --verify -- "${program[@]}"
    shows "the plan was applied" 'applied: rule "lattice.data": mapping shared' ioweir report "$directory/after"
    shows "the file is verified" 'verified: 16.00 MiB in 1 file' ioweir report "$directory/after"
    shows "compare" 'One pair of runs is not a statistic' ioweir compare "$directory/before" "$directory/after"
    shows "ioweir kernel" 'file verified' ioweir kernel lattice local=16,16,16,16 site=16 --ranks 2 --mpi $mpi --directory "$directory" --verify
    kernel=(ioweir kernel lattice local=8,8,16,16 site=16 --ranks 2 --mpi $mpi --keep)
    mkdir "$directory/plain"
    step "a kernel's file, kept" "${kernel[@]}" --directory "$directory/plain"
    for mapping in grouped:2 log subfiles:2; do
        container=$directory/${mapping%:*}
        mkdir "$container"
        printf '[[file]]\nmatch = "*.data"\nmapping = "%s"\n' $mapping >"$container.toml"
        step "a container: $mapping" ioweir run -q -o "$container.trace" --plan "$container.toml" -- "${kernel[@]}" --directory "$container"
        step "ioweir check" ioweir check "$container/lattice.data"
        step "ioweir merge" ioweir merge "$container/lattice.data" -o "$container.merged"
        step "the bytes of the plain file" cmp "$container.merged" "$directory/plain/lattice.data"
    done
    while read -r words; do
        read -ra words <<<"$words"
        shows "kernel ${words[0]}" 'file verified' ioweir kernel "${words[@]}" --mpi $mpi --directory "$directory" --verify </dev/null
    done <<'KERNELS'
coll_perf local=8,8,8 variables=2 --ranks 2
ior-segmented data=64KiB transfer=16KiB --ranks 2
ior-strided data=64KiB transfer=64KiB piece=4KiB --ranks 2
btio class=S writes=2 --ranks 4
flash local=4,4,4 blocks=2 --ranks 2
s3d local=4,4,4 species=2 --ranks 2
gcrm-pnetcdf level=2 layers=4 --ranks 2
gcrm-hdf5 cells=64 layers=4 steps=2 --ranks 2
vorpal local=4,4,4 steps=2 --ranks 2
chombo boxes=2 --ranks 2
phasta data=64KiB --ranks 2
KERNELS
    step "ioweir replay" ioweir replay "$directory/before" --directory "$directory"
    step "the libraries for ioweir.h load" python -c "import ctypes; ctypes.CDLL('$library/libioweir_partition_$mpi.so').ioweir_error_text"
done
echo "== without MPI"
step "ioweir simulate" ioweir simulate --kernel lattice local=16,16,16,16 site=16 --ranks 4 --machine sierra
shows "ioweir explain" 'aggregators' ioweir explain --plan openmpi/explained.toml --kernel ior-segmented data=3MiB transfer=3MiB --ranks 6
end
