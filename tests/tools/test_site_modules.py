"""What a site loads by default: the script and the modules that trace what a batch job starts, and never fail it.

Not here: what is traced (tests/trace), how traces are collected (tests/python/test_site.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
LMOD: Final = Path("/usr/share/lmod/lmod/init/bash")
ENVIRONMENT_MODULES: Final = Path("/usr/share/modules/init/bash")
SHOW: Final = 'echo "$IOWEIR_DIR"; echo "$PATH"; echo "$LD_PRELOAD"; (set | grep -c "^ioweir_") || true'


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation whose command is this one."""
    place = tmp_path_factory.mktemp("prefix")
    subprocess.run([sys.executable, ROOT / "tools" / "shell_files.py", place], check=True)
    (place / "bin").mkdir()
    (place / "bin" / "ioweir").symlink_to(Path(sys.executable).parent / "ioweir")
    return place


def shell(script: str, home: Path, name: str = "sh", **variables: str) -> tuple[list[str], str]:
    """Lines that a shell prints, and its messages. It must end well."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL") if key in os.environ}
    environment = {**kept, "HOME": str(home), **variables}
    done = subprocess.run([name, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def sourced(prefix: Path) -> str:
    """The script's words."""
    return f'set -eu; LD_PRELOAD=; . "{prefix}/share/ioweir/watch.sh"; {SHOW.replace("$IOWEIR_DIR", "${IOWEIR_DIR:-}")}'


@pytest.mark.parametrize("name", ["sh", "bash"])
def test_a_job_is_traced_into_a_directory_of_its_own(prefix: Path, tmp_path: Path, name: str) -> None:
    lines, _ = shell(sourced(prefix), tmp_path, name, SLURM_JOB_ID="4711", SCRATCH=str(tmp_path / "scratch"))
    trace = Path(lines[0])
    assert trace.parent == tmp_path / "scratch" / "ioweir-traces"
    assert trace.name.startswith("4711-")
    assert trace.stat().st_mode & 0o777 == 0o700
    assert trace.parent.stat().st_mode & 0o777 == 0o700
    assert lines[1].startswith(f"{trace}/shims:")
    assert lines[2:] == ["", "0"], "no preload for the script, and no variable of ours is left"
    assert json.loads((trace / "run.json").read_text())["state"] == "environment"


@pytest.mark.parametrize(
    "variables",
    [{}, {"SLURM_JOB_ID": "1", "IOWEIR_DISABLE": "1"}, {"SLURM_JOB_ID": "1", "IOWEIR_DIR": "/already"}],
    ids=["no job", "switched off", "traced already"],
)
def test_nothing_is_done_elsewhere(prefix: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    lines, said = shell(sourced(prefix), tmp_path, **variables)
    assert lines[0] == variables.get("IOWEIR_DIR", "")
    assert lines[1] == os.environ["PATH"]
    assert (said, list(tmp_path.iterdir())) == ("", [])


def test_a_job_that_another_job_submits_gets_a_trace_of_its_own(prefix: Path, tmp_path: Path) -> None:
    one = {"SLURM_JOB_ID": "1", "SCRATCH": str(tmp_path)}
    watch = f'. "{prefix}/share/ioweir/watch.sh"'
    watched = f'{watch}; echo "$IOWEIR_DIR"'
    script = f"{watched}; SLURM_JOB_ID=2 sh -c '{watched}; {watched}'"
    (first, second, again), said = shell(script, tmp_path, **one)
    assert said == ""
    assert Path(first).name.startswith("1-")
    assert Path(second).name.startswith("2-")
    assert again == second, "the module loaded twice in a job"
    script = f"{watch}; SLURM_JOB_ID=2 IOWEIR_DISABLE=1 sh -c '{watch}; echo \"${{IOWEIR_DIR:-none}}\"'"
    assert shell(script, tmp_path, **one)[0] == ["none"]


def test_a_job_goes_on_where_no_trace_can_be_made(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong in ({"IOWEIR_SITE_TRACES": str(tmp_path / "file")}, {"IOWEIR_SITE_OPTIONS": "--no-such-option"}):
        lines, said = shell(sourced(prefix), tmp_path, PBS_JOBID="9", **wrong)
        assert lines[:2] == ["", os.environ["PATH"]]
        assert said.endswith("ioweir: this job is not traced\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can belong to any group")
def test_a_group_may_be_let_read_what_jobs_leave(prefix: Path, tmp_path: Path) -> None:
    watched = {"SLURM_JOB_ID": "4711", "SCRATCH": str(tmp_path / "scratch"), "IOWEIR_SITE_GROUP": "64200"}
    lines, said = shell(f"umask 077; {sourced(prefix)}", tmp_path, **watched)
    assert said == ""
    for folder in (Path(lines[0]), Path(lines[0]).parent):
        assert (folder.stat().st_mode & 0o7777, folder.stat().st_gid) == (0o2750, 64200)
    lines, said = shell(sourced(prefix), tmp_path, **{**watched, "IOWEIR_SITE_GROUP": "no-such-group"})
    assert lines[:2] == ["", os.environ["PATH"]]
    assert "no-such-group" in said
    assert said.endswith("ioweir: this job is not traced\n")


@pytest.mark.parametrize("kind", ["missing", "not executable"])
def test_a_job_goes_on_where_ioweir_is_missing(prefix: Path, tmp_path: Path, kind: str) -> None:
    """As on a node that does not see the installation, or sees half of it."""
    place = tmp_path / "prefix"
    (place / "bin").mkdir(parents=True)
    if kind != "missing":
        (place / "bin" / "ioweir").write_text("#!/bin/sh\n")
    script = (prefix / "share" / "ioweir" / "watch.sh").read_text().replace(str(prefix), str(place))
    (tmp_path / "watch.sh").write_text(script)
    words = f'set -eu; LD_PRELOAD=; . "{tmp_path}/watch.sh"; echo "${{IOWEIR_DIR:-}}"; echo "$PATH"'
    lines, said = shell(words, tmp_path, PBS_JOBID="9")
    assert lines == ["", os.environ["PATH"]]
    assert said.endswith("ioweir: this job is not traced\n")


@pytest.mark.parametrize("init", [LMOD, ENVIRONMENT_MODULES], ids=["Lmod", "Environment Modules"])
def test_modules_are_loaded_and_unloaded(prefix: Path, tmp_path: Path, init: Path) -> None:
    if not init.exists():
        pytest.skip(f"no {init}")
    script = f"""
        . {init}
        module use {prefix}/share/modulefiles
        module load ioweir
        module load ioweir-watch
        echo "$IOWEIR_DIR"; echo "$PATH"
        module unload ioweir-watch
        echo "$IOWEIR_DIR"; echo "$PATH"
    """
    lines, _ = shell(script, tmp_path, "bash", SLURM_JOB_ID="12")
    assert lines[0].startswith(f"{tmp_path}/ioweir-traces/12-")
    assert f"{lines[0]}/shims" in lines[1].split(":")
    assert f"{prefix}/bin" in lines[1].split(":")
    assert lines[2] == ""
    assert not any(part.endswith("/shims") and "ioweir-traces" in part for part in lines[3].split(":"))


def test_a_prefix_that_no_shell_reads_gets_no_modules(tmp_path: Path) -> None:
    place = tmp_path / "a$(b)"
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "shell_files.py", place], check=True, capture_output=True, text=True
    )
    assert "no environment modules are installed" in done.stdout
    assert not (place / "share" / "modulefiles").exists()


def test_each_night_new_traces_are_added_and_old_ones_removed(prefix: Path, tmp_path: Path) -> None:
    from traces import Builder, Call

    place = tmp_path / "traces"
    for name, days in (("old", 40), ("young", 1)):
        trace = place / name
        trace.mkdir(parents=True)
        builder = Builder()
        builder.add(Call(builder.rank(0, 1), "pwrite", 1, 2, "/data/out", 64, offset=0))
        builder.write(trace)
        began = time.time() - days * 86_400
        about = {"wall_s": 2.0, "program": f"/bin/{name}", "state": "ended", "started": began}
        (trace / "run.json").write_text(json.dumps(about))
        for file in trace.iterdir():
            os.utime(file, (began, began))
    night = f"{prefix}/share/ioweir/nightly.sh {tmp_path}/store {place}"
    lines, said = shell(night, tmp_path, PATH=os.environ["PATH"])
    assert said == ""
    assert lines[0] == "2 runs added, 0 were there, 0 are still being written"
    assert lines[-1] == "0 runs forgotten; of 0 files nothing is left"
    assert [path.name for path in place.iterdir()] == ["young"]
    lines, _ = shell(f"IOWEIR_KEEP_RUNS=30d {night}", tmp_path, PATH=os.environ["PATH"])
    assert lines[-1] == "1 runs forgotten; of 2 files nothing is left"
