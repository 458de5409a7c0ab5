#!/bin/bash
# What try_new_user.sh runs within the tree, in a directory with the wheel and README's program. Closes with "N passed, N failed".
set -uo pipefail
passed=0 failed=0
holds() { # NAME PATTERN COMMAND...: it succeeds, and prints a line that matches
    local name=$1 pattern=$2
    shift 2
    if "$@" >out 2>&1 && grep -Eq -e "$pattern" out; then
        passed=$((passed + 1)); echo "ok      $name"
    else
        failed=$((failed + 1)); echo "FAILED  $name: $*"; tail -n 30 out
    fi
}
below() { # NAME VALUE LIMIT UNIT
    if awk -v value="$2" -v limit="$3" 'BEGIN { exit !(value < limit) }'; then
        passed=$((passed + 1)); echo "ok      $1: $2 $4, below $3"
    else
        failed=$((failed + 1)); echo "FAILED  $1: $2 $4, not below $3"
    fi
}
least() { # COMMAND...: seconds by the clock, the least of ten
    ioweir-venv/bin/python - "$@" <<'PYTHON'
import subprocess, sys, time
def once():
    begin = time.perf_counter()
    subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin
print(f"{min(once() for _ in range(10)):.3f}")
PYTHON
}
seconds() { awk -v begin="$1" -v end="$(date +%s.%N)" 'BEGIN { printf "%.1f", end - begin }'; }

# Open MPI refuses to run as root unless it is told; docs/how-to/troubleshooting.md says how.
if [ "$(id -u)" -eq 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
mpicc -O2 -o my_simulation my_simulation.c || exit 1
printf '&run steps = 1 /\n' >input.nml
simulation=(mpirun -n 2 ./my_simulation input.nml)

begin=$(date +%s.%N)
holds "a virtual environment" '' python3 -m venv ioweir-venv
holds "pip install ioweir-*.whl" '' ioweir-venv/bin/pip install --disable-pip-version-check ./ioweir-*.whl
installed=$(seconds "$begin")
export PATH=$PWD/ioweir-venv/bin:$PATH
holds "ioweir run: the first finding" 'collective-scattered\]: costs' ioweir run -o before -- "${simulation[@]}"
below "installed, traced, and the first finding" "$(seconds "$begin")" 300 "s (installed after $installed s)"
holds "its plan" 'writers = "auto"' bash -c 'ioweir findings before --plan collective-scattered >plan.toml && cat plan.toml'
holds "ioweir run --plan --verify" '^verified: 16\.00 MiB in 1 file' ioweir run -o after --plan plan.toml --verify -- "${simulation[@]}"
holds "ioweir compare" '^Findings gone: .*collective-scattered' ioweir compare before after
below "import ioweir" "$(least ioweir-venv/bin/python -c 'import ioweir')" 0.15 s
below "ioweir --help" "$(least ioweir --help)" 0.2 s
below "the wheel" "$(stat -c %s ./ioweir-*.whl | awk '{ printf "%.1f", $1 / 1e6 }')" 25 MB
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
