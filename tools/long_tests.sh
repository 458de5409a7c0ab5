#!/bin/bash
# The random comparisons of the engine with the MPI library in full: CASES (default 300) random views and memory types under both
# MPIs, by the direct path at 1 to 16 ranks, through exchanges at 3 to 16 ranks on one or several nodes (as the test may have it), with faults of the storage,
# written behind at 1 to 16, in groups at 1 to 16, and the calls of subgroups; a third as many cases at 7 ranks and a sixth at 16, which share
# the processors; PLANS (default 100,000) random plans; netCDF-4's own parallel tests (fetched) with every option of HDF5 files on; HDF5 1.14 (fetched) under plans; and processes killed at each of their system calls, also those that write partitioned
# files; and KILLS (default 300) jobs killed at random under every strategy (SEED chooses which). `make test` runs fewer. KINDS="mpich" leaves out the other library.
# Closes with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.."
cases=${CASES:-300}
passed=0
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# PROGRAM RANKS RANKS_PER_NODE
compare() {
    local program=$PWD/build/dev/tests/engine/$1_$kind started=$SECONDS some=$cases code
    if [ "$2" -gt 7 ]; then some=$((cases / 6)); elif [ "$2" -gt 4 ]; then some=$((cases / 3)); fi
    (cd "$work" && IOWEIR_TEST_CASES=$some IOWEIR_TEST_RANKS_PER_NODE=$3 timeout -k 5 3000 "${launcher[@]}" -n "$2" "$program") \
        >"$work/log" 2>&1
    code=$?
    echo "$1, $kind, $2 ranks, $3 a node, $some cases: exit $code, $((SECONDS - started)) s"
    if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
}
started=$SECONDS
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 3000 ctest --preset dev --label-regex long >"$work/log" 2>&1
code=$?
echo "engine and exchange, the numbers of ranks that make test leaves to the other library: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
for kind in ${KINDS:-openmpi mpich}; do
    [ -x "build/dev/tests/engine/engine_mpi_test_$kind" ] || continue
    launcher=(mpiexec.mpich -genv LD_PRELOAD "$PWD/build/dev/tests/engine/libmpich_yields.so")
    [ "$kind" = openmpi ] && launcher=(mpirun.openmpi --allow-run-as-root --oversubscribe)
    for ranks in 1 3 4 7 16; do compare engine_mpi_test $ranks $ranks; done
    for shape in "3 3" "4 2" "7 7" "7 3" "16 16" "16 4"; do compare exchange_test $shape; done
    for shape in "4 2" "5 2"; do compare any_fault_test $shape; done
    for shape in "1 1" "3 3" "4 2" "7 7" "16 4"; do compare behind_test $shape; done
    for shape in "1 1" "3 3" "4 2" "7 7" "16 4"; do compare mapped_test $shape; done
    for shape in "3 1" "4 2" "7 3"; do compare subgroups_test $shape; done
    for shape in "1 1" "3 3" "4 2" "7 7" "7 2"; do compare plan_conformance_test $shape; done
done
started=$SECONDS
IOWEIR_TEST_PLANS=${PLANS:-100000} build/dev/src/planner/test_planner --gtest_filter='RandomPlans.*' >"$work/log" 2>&1
code=$?
echo "${PLANS:-100000} random plans: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_CRASH_STEP=1 timeout -k 5 3000 build/dev/src/container/container_test --gtest_filter='Shapes/Crash.*' >"$work/log" 2>&1
code=$?
echo "jobs and merges killed at each of their system calls: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_PNETCDF=mpich timeout -k 5 3000 .venv/bin/python -m pytest -q tests/trace/test_netcdf_*.py >"$work/log" 2>&1
code=$?
echo "netCDF subfiles with MPICH: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
timeout -k 5 3000 .venv/bin/python tests/conformance/conformance.py --suite netcdf4 --strategy hdf5 >"$work/log" 2>&1
code=$?
echo "netCDF-4's own parallel tests with every option of HDF5 files on: exit code $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_HDF5=$(.venv/bin/python tests/conformance/hdf5_library.py) \
    timeout -k 5 3000 .venv/bin/python -m pytest -q tests/trace/test_hdf5_forms.py tests/trace/test_hdf5_plan.py >"$work/log" 2>&1
code=$?
echo "HDF5 1.14 under plans, with its calls for several datasets and asynchronous ones: exit code $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_KILLS=all timeout -k 5 3000 .venv/bin/python -m pytest -q tests/partition/test_faults.py >"$work/log" 2>&1
code=$?
echo "writers of partitioned files killed at each of their calls: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_ALL=1 timeout -k 5 3000 .venv/bin/python -m pytest -q tests/trace/test_hdf5_plan.py tests/kernels tests/partition >"$work/log" 2>&1
code=$?
echo "HDF5 files under plans, all keys at 1, 3 and 5 ranks; kernels and partitioned files, all cases with both MPIs: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
timeout -k 5 21600 .venv/bin/python tests/crash/crash.py --kills "${KILLS:-300}" --seed "${SEED:-24}" >"$work/log" 2>&1
code=$?
echo "jobs killed at random: $(tail -1 "$work/log"): exit code $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_ALL=1 timeout -k 5 3000 .venv/bin/python -m pytest -q tests/python/test_hostile_files.py >"$work/log" 2>&1
code=$?
echo "traces, sets, manifests and plans, each file replaced in each way, under each command: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_ALL=1 timeout -k 5 3000 .venv/bin/python -m pytest -q tests/trace/test_verify.py tests/trace/test_netcdf_fill.py \
    tests/trace/test_netcdf_many.py tests/trace/test_small_calls.py tests/trace/test_endings.py tests/trace/test_containers_by_name.py \
    tests/python/test_container.py tests/python/test_lab.py >"$work/log" 2>&1
code=$?
echo "verification, fill values, very many requests, small calls, ends of ranks, containers and labs, all cases with both MPIs: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_ALL=1 timeout -k 5 10000 .venv/bin/python -m pytest -q tests/python/test_hostile_containers.py >"$work/log" 2>&1
code=$?
echo "containers, divided netCDF files and labs, each file replaced in each way, under each command and under programs: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_ALL=1 timeout -k 5 3000 .venv/bin/python -m pytest -q tests/trace/test_io_errors.py >"$work/log" 2>&1
code=$?
echo "storage that fails in a part of each file, processes without descriptors, all strategies and both MPIs: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_ALL=1 IOWEIR_TEST_CYCLES=5000 timeout -k 5 10000 .venv/bin/python -m pytest -q tests/trace/test_cycles.py >"$work/log" 2>&1
code=$?
echo "5,000 files opened and closed under each strategy, both MPIs: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
# Slurm's daemons are installed for it where that is allowed; where it is not, the tests say why they are skipped.
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && ! command -v slurmctld >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends slurmctld slurmd slurm-client munge >"$work/log" 2>&1
fi
started=$SECONDS
IOWEIR_TEST_ALL=1 timeout -k 5 3000 .venv/bin/python -m pytest -q -rs tests/slurm >"$work/log" 2>&1
code=$?
echo "jobs on a Slurm cluster: $(tail -1 "$work/log"): exit code $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
# Files that have more cases, or larger ones, with IOWEIR_TEST_ALL.
started=$SECONDS
IOWEIR_TEST_ALL=1 timeout -k 5 10000 .venv/bin/python -m pytest -q tests/trace/test_exact.py tests/trace/test_extents.py tests/trace/test_hdf5_objects.py \
    tests/trace/test_killed_chunks.py tests/trace/test_plans_of_programs.py tests/python/test_damaged_figures.py tests/findings/test_contract.py >"$work/log" 2>&1
code=$?
echo "known programs call by call, extents, HDF5 objects, killed ranks, plans of programs, damaged figures, findings of random traces: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
started=$SECONDS
IOWEIR_TEST_ALL=1 timeout -k 5 10000 .venv/bin/python -m pytest -q -m left_out tests $(printf -- '--ignore tests/%s ' partition kernels slurm findings/test_contract.py \
    python/test_{container,lab,damaged_figures,hostile_containers}.py \
    trace/test_{cycles,io_errors,hdf5_plan,verify,netcdf_fill,netcdf_many,small_calls,endings,containers_by_name,exact,extents,hdf5_objects,killed_chunks,plans_of_programs}.py) \
    >"$work/log" 2>&1
code=$?
echo "every other case that make test leaves out: exit $code, $((SECONDS - started)) s"
if [ $code -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 "$work/log"; fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
