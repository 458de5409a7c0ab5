"""What stands in the place of a cluster where the commands of how-tos are run, and which of them cannot be run here.

Lives here: one `Page` a page. Not here: running (test_howtos.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

TRACE: Final = "ioweir run -q -o {} -- mpirun -n 2 ./my_simulation input.nml"
PLAN: Final = 'printf \'[[file]]\\nmatch = "run.chk"\\nwriters = "auto"\\n\' > plan.toml'
GROUPED: Final = (
    'printf \'[[file]]\\nmatch = "run.chk"\\nmapping = "grouped:1"\\nvisibility = "sync"\\n\' > grouped.toml'
)
DIVIDE: Final = "rm -f run.chk && ioweir run -q --discard --plan grouped.toml -- mpirun -n 2 ./my_simulation input.nml"
SETS: Final = """mkdir -p run new
ioweir convert restart-dat.10.1 run/restart
ioweir convert restart-dat.10.1 run/restart --to serial"""
"""A set of partitioned files and the same as serial files, from PHASTA's own (test_howtos.py writes it)."""

EVERYWHERE: Final = (
    (r"srun --ntasks-per-node=1 --ntasks=\$SLURM_NNODES ", ""),
    (r"\b(?:mpirun|srun) -n \d+\b", "mpirun -n 2"),
    (r"\./(?:my|old|new)_simulation(?: input\.nml| --restart plot\.dat)?|\./(?:solver|preprocess)(?: input\.nml)?",
     "./my_simulation input.nml"),
    (r"\$SLURM_JOB_ID", "7"),
    (r"/scratch/me\b", "scratch"),
    (r"/opt/ioweir/bin/", ""),
)  # fmt: skip
"""Regular expressions, and what is run instead: two ranks under mpirun, one program, directories below the test's."""

IN_LMOD: Final = "loads modules of a site: tests/tools/test_site_modules.py"
PACKS: Final = "packs an installed ioweir, for minutes: tests/tools/test_deb_rpm.py, test_recipes.py"
BUILDS: Final = "builds ioweir, for minutes"
IN_LUSTRE: Final = "needs Lustre; tests/python/test_lab_ceph.py probes a CephFS"


@dataclass(frozen=True)
class Page:
    """What is run before a page's commands, what instead of words of them, and which are not run, with the reason.

    A command that is not run is named by how it begins.
    """

    before: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    not_run: dict[str, str] = field(default_factory=dict)


PAGES: Final = {
    "index.md": Page(
        instead=(("CODE", "collective-scattered"),),
        not_run={"make install": BUILDS},
    ),
    "faq.md": Page(),
    "how-to/add-a-finding.md": Page(
        not_run={
            ".venv/bin/python tools/generate.py --docs": "writes into the checkout; `make lint` compares",
            "make package && .venv/bin/python -m pytest tests/findings": BUILDS,
            ".venv/bin/python bench/bench_findings.py": "measures for minutes",
            "make bench-findings RECORD=1": "measures for an hour",
        }
    ),
    "how-to/find-out-what-is-slow.md": Page(),
    "how-to/for-a-whole-site.md": Page(
        before=("mkdir -p scratch/me/ioweir-traces", TRACE.format("scratch/me/ioweir-traces/1")),
        instead=(
            ("/var/lib/ioweir/store", "store"),
            ("/scratch/*/ioweir-traces", "scratch/*/ioweir-traces"),
            ("apptainer exec --bind /opt/ioweir my.sif ", ""),
        ),
        not_run={
            "make install PREFIX=/opt/ioweir": BUILDS,
            "CMAKE_ARGS=": BUILDS,
            "packaging/": PACKS,
            "spack ": PACKS,
            "eb ": PACKS,
            "podman ": PACKS,
            "apptainer build ioweir.sif": "Debian 12 has no Apptainer",
            "apptainer exec ioweir.sif": "Debian 12 has no Apptainer",
            "make wheels": BUILDS,
            "python3 -m venv /opt/ioweir": "needs a wheel: tools/wheels/try.sh",
            "/opt/ioweir/bin/pip install": "needs a wheel: tools/wheels/try.sh",
            "module ": IN_LMOD,
            "srun -n 4 ./my_simulation": IN_LMOD,
            'ioweir findings "$IOWEIR_DIR"': IN_LMOD,
        },
    ),
    "how-to/let-ioweir-choose.md": Page(),
    "how-to/many-small-files.md": Page(before=(SETS,), instead=(("for i in 1 2 3", "for i in 1"),)),
    "how-to/my-checkpoint-is-slow.md": Page(instead=(("CODE", "collective-scattered"),)),
    "how-to/on-lustre.md": Page(
        before=("mkdir -p scratch/run",),
        instead=(("$SCRATCH", "scratch"),),
        not_run={"lfs setstripe": IN_LUSTRE, "ioweir probe": IN_LUSTRE},
    ),
    "how-to/on-slurm.md": Page(
        before=(PLAN, TRACE.format("trace.first")),
        instead=(
            ("-o trace --plan", "-o planned --plan"),
            ("-o trace.7 --tune", "-o tuned.7 --tune"),
            ("ioweir run -o trace ", "ioweir run -o alone "),
        ),
        not_run={"module load": IN_LMOD},
    ),
    "how-to/read-a-finding.md": Page(),
    "how-to/replay-a-trace.md": Page(before=(PLAN, "mkdir scratch"), instead=(("--ranks 64", "--ranks 3"),)),
    "how-to/restart-on-another-number-of-ranks.md": Page(
        before=(SETS, GROUPED, DIVIDE),
        instead=(
            ("ioweir check plot.dat", f"{DIVIDE}\nioweir check plot.dat"),  # the job above has merged it
            ("ioweir merge plot.dat -o saved.dat", f"{DIVIDE}\nioweir merge plot.dat -o saved.dat"),
            ("plot.dat", "run.chk"),
        ),
    ),
    "how-to/trace-a-static-binary.md": Page(
        before=(
            "mpicc -c my_simulation.c -o main.o && echo > solver.c && mpicc -c solver.c",
            "echo 'my_simulation: my_simulation.c' > Makefile && printf '\t$(CC) -o $@ $<\\n' >> Makefile",
        ),
        instead=(
            ("mpicc -static", "mpicc"),  # Open MPI has no archives; tests/trace/test_linked.py links static programs
            ("make CC", "make -B CC"),
            ("-lhdf5", "-L/usr/lib/$(uname -m)-linux-gnu/hdf5/openmpi -lhdf5"),
        ),
    ),
    "how-to/troubleshooting.md": Page(),
    "how-to/which-plan.md": Page(
        before=(PLAN, TRACE.format("before")),
        instead=(("DIR --plan CODE", "before --plan collective-scattered"),),
        not_run={"ioweir calibrate --kernels": "measures for minutes"},
    ),
}
