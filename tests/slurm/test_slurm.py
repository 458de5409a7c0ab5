"""ioweir under a real Slurm: jobs as docs/how-to/on-slurm.md has them, and what their traces hold.

Open MPI's ranks are wired up by PMIx, MPICH's by PMI-2, or either by its own launcher. `make test-slurm`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from cluster import Cluster, cluster, why_not

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
BLOCK: Final = 65536
_WHY_NOT: Final = why_not()
pytestmark = pytest.mark.skipif(bool(_WHY_NOT), reason=str(_WHY_NOT))  # daemons are not there, or nobody may start them
OPTIONS: Final = {"openmpi": "--mpi=pmix", "mpich": "--mpi=pmi2"}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as up:
        yield up


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, for each library."""
    place = tmp_path_factory.mktemp("programs")
    for kind in OPTIONS:
        subprocess.run([f"mpicc.{kind}", "-o", place / kind, HERE / "rounds.c"], check=True)
    command = place / "ioweir"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ioweir "$@"\n')
    command.chmod(0o755)
    return place


class User:
    """Somebody in a folder of their own, who starts jobs and reads traces."""

    def __init__(self, slurm: Cluster, programs: Path, folder: Path) -> None:
        self.slurm, self.folder, self.ioweir, self.programs = slurm, folder, programs / "ioweir", programs

    def step(self, kind: str, options: str, file: str, rounds: int = 2, pause_ms: int = 0) -> str:
        return f"srun {OPTIONS[kind]} {options} {self.programs / kind} {self.folder / file} {rounds} {pause_ms}"

    def script(self, *lines: str, name: str = "job.sh") -> Path:
        path = self.folder / name
        path.write_text("\n".join(("#!/bin/bash", *lines, "")))
        path.chmod(0o755)
        return path

    def run(self, *words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = self.slurm.run(
            *words, cwd=self.folder, env={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        )
        log = "".join(path.read_text() for path in self.folder.glob("slurm-*.out"))
        assert done.returncode == code, done.stdout + done.stderr + log
        return done

    def batch(self, options: str, *lines: str) -> str:
        """Run a job to its end; what it printed."""
        path = self.script(*lines)
        self.run("sbatch", "--wait", "-o", self.folder / "slurm-%j.out", *options.split(), path)
        return "".join(path.read_text() for path in sorted(self.folder.glob("slurm-*.out")))

    def env(self, trace: str, options: str = "") -> str:
        return f'eval "$({self.ioweir} env -o {self.folder / trace} {options})"'

    def report(self, trace: str | Path) -> dict[str, Any]:
        done = subprocess.run(
            [self.ioweir, "report", self.folder / trace, "--json"], capture_output=True, text=True, check=True
        )
        return dict(json.loads(done.stdout))

    def nodes(self, trace: str | Path) -> list[str]:
        return sorted({path.name.partition(".")[0] for path in (self.folder / trace).glob("node-*.iowt*")})


@pytest.fixture
def user(slurm: Cluster, programs: Path, tmp_path: Path) -> User:
    return User(slurm, programs, tmp_path)


def written(report: dict[str, Any]) -> dict[str, int]:
    """Bytes that MPI-IO wrote into each file, by its name; Open MPI asks for things of a file's folder as well."""
    rows = [(Path(row["path"]).name, row["layers"].get("MPI-IO")) for row in report["files"]]
    return {name: mpi_io["write"]["bytes"] for name, mpi_io in rows if mpi_io and mpi_io["write"]["bytes"]}


@pytest.mark.parametrize("kind", OPTIONS)
def test_each_node_has_a_file_and_each_rank_its_bytes(user: User, kind: str) -> None:
    user.run(user.ioweir, "run", "-q", "-o", "trace", "--", *user.step(kind, "-N3 -n4", "out").split())
    report = user.report("trace")
    assert user.nodes("trace") == ["node-n1", "node-n2", "node-n3"]
    assert (report["ranks"], report["processes"], report["partial"]) == (4, 4, False)
    assert written(report) == {"out": 4 * 2 * BLOCK}
    assert (user.folder / "out").read_bytes() == b"".join(b"abcd"[i : i + 1] * BLOCK for i in range(4)) * 2
    names = [row["path"] for row in report["files"]]
    assert not [name for name in names if "spmix_appdir" in name or name.endswith(".lock")], "the library's own"


def test_a_script_with_several_steps_and_launchers(user: User) -> None:
    said = user.batch(
        "--nodes=2 --ntasks-per-node=2",
        user.env("trace"),
        user.step("openmpi", "-n 3", "a"),
        user.step("mpich", "--ntasks=2 --ntasks-per-n=1", "b"),
        f"mpirun.openmpi -n 4 {user.programs}/openmpi {user.folder}/c 2 0",
        f"mpirun.mpich -n 4 {user.programs}/mpich {user.folder}/d 2 0",
        "f() { echo in $SLURM_PROCID; }; export -f f",
        "srun -n 2 bash -c f",
    )
    report = user.report("trace")
    assert "ioweir:" not in said
    assert {"in 0", "in 1"} <= set(said.splitlines()), "exported functions reach the ranks"
    assert written(report) == {"a": 6 * BLOCK, "b": 4 * BLOCK, "c": 8 * BLOCK, "d": 8 * BLOCK}
    assert user.nodes("trace") == ["node-n1", "node-n2"]
    assert not report["partial"]


def test_a_list_of_programs_and_a_heterogeneous_step(user: User) -> None:
    program = f"{user.programs}/openmpi {user.folder}"
    (user.folder / "list").write_text(f"0-1 {program}/a 2 0\n2 {program}/a 2 0\n")
    run = (user.ioweir, "run", "-q", "-o")
    user.run(*run, "listed", "--", "srun", "--mpi=pmix", "-n", "3", "--multi-prog", "list")
    assert written(user.report("listed")) == {"a": 6 * BLOCK}
    line = f"srun --mpi=pmix -n 2 {program}/b 2 0 : -n 1 --mpi=pmix {program}/b 2 0"
    user.run(*run, "mixed", "--", *line.split())
    report = user.report("mixed")
    assert (report["ranks"], written(report)) == (3, {"b": 6 * BLOCK})
    assert user.nodes("mixed") == ["node-n1", "node-n2"]


def test_ranks_that_nobody_wires_up_are_worlds_of_their_own(user: User) -> None:
    line = f"srun --mpi=none -n 2 sh -c '{user.programs}/mpich {user.folder}/$SLURM_PROCID 2 0'"
    user.run(user.ioweir, "run", "-q", "-o", "trace", "--", "sh", "-c", line)
    report = user.report("trace")
    assert (report["ranks"], report["processes"]) == (1, 2)
    assert written(report) == {"0": 2 * BLOCK, "1": 2 * BLOCK}


@pytest.mark.parametrize("kind", OPTIONS)
def test_a_plan_is_applied_and_verified(user: User, kind: str) -> None:
    (user.folder / "plan.toml").write_text('[[file]]\nmatch = "*"\nwriters = "everyone"\n')
    user.batch(
        "--nodes=2 --ntasks-per-node=2",
        user.env("trace", f"--plan {user.folder}/plan.toml --verify"),
        user.step(kind, "-n 4", "out"),
    )
    done = subprocess.run([user.ioweir, "report", user.folder / "trace"], capture_output=True, text=True, check=True)
    assert 'applied: rule "*": mapping shared, writers everyone' in done.stdout
    assert "verified: 512 KiB in 1 file as the program passed them in" in done.stdout


def test_an_earlier_trace_tunes_a_job_and_auto_goes_along(user: User) -> None:
    size = "--nodes=2 --ntasks-per-node=2"
    said = user.batch(size, user.env("one", f"--tune {user.folder}/none"), user.step("openmpi", "-n 4", "a"))
    assert "none: is not there yet, so this job is traced without a plan" in said
    user.batch(size, user.env("two", f"--tune {user.folder}/one"), user.step("openmpi", "-n 4", "b"))
    user.batch(size, user.env("three", "--auto"), user.step("openmpi", "-n 4", "c"))
    assert [written(user.report(name)) for name in ("one", "two", "three")] == [{n: 8 * BLOCK} for n in "abc"]


def test_tasks_of_an_array_have_a_trace_each(user: User) -> None:
    line = user.step("openmpi", "-n 2", "a").replace("/a ", "/a$SLURM_ARRAY_TASK_ID ")
    user.batch("--ntasks=2 --array=1-3", user.env("trace.$SLURM_JOB_ID"), line)
    traces = sorted(user.folder.glob("trace.*"))
    found = sorted(name for trace in traces for name in written(user.report(trace)))
    assert (len(traces), found) == (3, ["a1", "a2", "a3"])


def test_the_environment_that_is_not_exported_does_not_keep_ioweir_out(user: User) -> None:
    said = user.batch(
        "--export=NONE --ntasks=2",
        "export MINE=1",
        "/usr/bin/srun -n 1 /usr/bin/env | /usr/bin/grep -vE '^(SLURM|PMI)' | sed s/^/without:/",
        user.env("trace"),
        *(user.step("openmpi", f"-n 2 {export}", name) for name, export in (("a", ""), ("b", "--export=NONE"))),
        user.step("openmpi", "-n 2 --export MINE", "c"),
        "srun -n 1 /usr/bin/env | /usr/bin/grep -vE '^(SLURM|PMI)' | sed s/^/with:/",
    )
    assert written(user.report("trace")) == dict.fromkeys("abc", 4 * BLOCK)
    lines = {
        kind: {ln[len(kind) :] for ln in said.splitlines() if ln.startswith(kind)} for kind in ("without:", "with:")
    }
    more = {line.partition("=")[0] for line in lines["with:"] - lines["without:"]}
    assert lines["without:"] <= lines["with:"]
    assert more == {"LD_PRELOAD", "IOWEIR_DIR", "IOWEIR_CLOCK"}


def test_a_cancelled_job_leaves_a_partial_trace(user: User) -> None:
    job = user.script(user.env("trace"), user.step("openmpi", "-n 3", "out", 100_000, 20))
    number = user.run("sbatch", "--parsable", "--nodes=2", "--ntasks=3", job).stdout.strip()
    end = time.monotonic() + 60
    while time.monotonic() < end and not (
        (user.folder / "out").exists() and (user.folder / "out").stat().st_size > 20 * BLOCK
    ):
        time.sleep(0.2)
    user.run("scancel", number)
    while time.monotonic() < end and user.run("squeue", "-h").stdout:
        time.sleep(0.2)
    report = user.report("trace")
    assert report["partial_reasons"] == ["never reached MPI_Finalize: ranks 0-2"]
    assert written(report)["out"] >= 20 * BLOCK
    subprocess.run([user.ioweir, "compress", "--unfinished", user.folder / "trace"], check=True, capture_output=True)
    assert written(user.report("trace")) == written(report)
    assert user.nodes("trace") == ["node-n1", "node-n2"]


def test_a_job_that_a_watched_job_submits_has_a_trace_of_its_own(user: User) -> None:
    prefix = user.folder / "prefix"
    subprocess.run([sys.executable, ROOT / "tools" / "shell_files.py", prefix], check=True, capture_output=True)
    (prefix / "bin").mkdir()
    (prefix / "bin" / "ioweir").symlink_to(user.ioweir)
    watch = f". {prefix}/share/ioweir/watch.sh"
    second = user.script(watch, user.step("openmpi", "-n 2", "b"), name="second.sh")
    user.batch(
        "--ntasks=2", f"export IOWEIR_SITE_TRACES={user.folder}/traces", watch, user.step("openmpi", "-n 2", "a"),
        f"sbatch --wait --ntasks=2 -o {user.folder}/slurm-2.out {second}",
    )  # fmt: skip
    found = [written(user.report(trace)) for trace in sorted((user.folder / "traces").iterdir())]
    assert found == [{"a": 4 * BLOCK}, {"b": 4 * BLOCK}]


def test_nothing_is_left_of_a_cluster_whose_owner_is_killed(tmp_path: Path) -> None:
    code = (
        f"import sys, time; sys.path.insert(0, {str(HERE)!r}); from cluster import cluster; from pathlib import Path\n"
    )
    code += f"with cluster(Path({str(tmp_path / 'c')!r})): print('up', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        owner.kill()
    end = time.monotonic() + 10
    while (left := _naming(tmp_path)) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []


def _naming(folder: Path) -> list[int]:
    """Processes whose command line names a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (place / "cmdline").read_bytes() and int(place.name) != os.getpid():
                found.append(int(place.name))
        except OSError:  # it has ended meanwhile
            continue
    return found
