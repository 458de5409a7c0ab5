"""What `ioweir run` can be told about tracing: which layers, and names that nobody can read.

The words themselves and their errors: tests/python/test_tracing_options.py. Call sites: test_callsites.py.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest
from tracing import OPEN_MPI, Mpi, Recorded, build, ioweir_run, preloaded, run, totals

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("layers", "seen"), [("posix", {"POSIX"}), ("mpiio", {"MPI-IO"}), ("mpiio,posix", {"POSIX", "MPI-IO"})]
)
def test_only_the_layers_asked_for_are_recorded(mpi: Mpi, layers: str, seen: set[str], tmp_path: Path) -> None:
    program = build("one_write.c", mpi.cc)
    traced = ioweir_run(tmp_path / "t", mpi.launch(3, program, tmp_path), options=("--layers", layers))
    events = traced.trace.of(tmp_path / "file")
    assert {event.layer for event in events} == seen
    assert traced.trace.ranks() == [0, 1, 2]
    assert traced.trace.is_whole()
    moved = {layer: sum(e.bytes for e in events if e.layer == layer and e.op == "write") for layer in seen}
    assert moved == dict.fromkeys(seen, 3 * 4096)
    # Who made a call is known whether or not the call around it is recorded.
    origins = {event.origin for event in events if event.layer == "POSIX"}
    assert origins == ({"mpi_library"} if "POSIX" in seen else set())
    assert traced.report["layers"].keys() >= seen


def test_a_wrong_word_in_the_environment_is_said_and_everything_is_traced(tmp_path: Path) -> None:
    program = build("plain.c", "cc", libraries=("-lpthread",))
    (tmp_path / "t").mkdir()
    traced = preloaded(
        tmp_path / "t", [program, "write", tmp_path, "f", "3", "10"], env={"IOWEIR_LAYERS": "posix,posxi"}
    )
    traced.expect()
    assert "IOWEIR_LAYERS" in traced.err
    assert "posxi" in traced.err
    assert sum(event.op == "write" for event in traced.trace.of(tmp_path / "f")) == 3


def _strings(data: bytes) -> str:
    """What a reader of the bytes can make out."""
    return " ".join(text.decode() for text in re.findall(rb"[\x20-\x7e]{3,}", data))


def figures_of_own_files(trace: Recorded) -> list[tuple[int, int]]:
    """Calls and bytes of each file that the program itself used, without its name."""
    own = {event.path for event in trace.events if event.origin == "application"}
    return sorted(totals((event for event in trace.events if event.path in own), "path").values())


def test_anonymised_traces_name_nothing(mpi: Mpi, tmp_path: Path) -> None:
    folder = tmp_path / "secretproject" / "quarterly.d"
    folder.mkdir(parents=True)
    program = folder / "confidentialsolver"
    program.write_bytes(build("known.c", mpi.cc).read_bytes())
    program.chmod(0o755)
    traced = ioweir_run(
        tmp_path / "t", mpi.launch(3, program, folder), options=("--anonymise", "--callsites"), cwd=folder
    )
    # ROMIO asks a file that is not there yet once more of which kind its file system is.
    for file in folder.iterdir():
        if file != program:
            file.unlink()
    plain = ioweir_run(tmp_path / "plain", mpi.launch(3, program, folder), cwd=folder)
    names = {
        part
        for path in [str(program), *(event.path for event in plain.trace.under(folder))]
        for part in path.split("/")
        if len(part) > 3  # "tmp" and the like are found in anything
    } - {""}
    assert {"secretproject", "quarterly.d", "confidentialsolver", "posix.0"} <= names
    for file in [path for path in (tmp_path / "t").rglob("*") if path.is_file()]:
        text = _strings(file.read_bytes())
        # Names as they begin: the runtime's ompi.1234 (a hash) is not our mpi.1, nor the report's missing_bytes
        # our file missing.
        shown = [name for name in sorted(names) if re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?!_bytes)", text)]
        assert shown == [], file.name
    # The same files with as many calls and bytes, under other names.
    assert figures_of_own_files(traced.trace) == figures_of_own_files(plain.trace)
    assert {row["path"].rpartition(".")[2] for row in traced.report["files"]} >= {"shared", "0", "1", "2"}


def test_the_same_key_gives_the_same_names(tmp_path: Path) -> None:
    program = build("plain.c", "cc", libraries=("-lpthread",))
    command: list[str | Path] = [program, "write", tmp_path, "f.dat", "3", "10"]
    found = [
        {event.path for event in ioweir_run(tmp_path / name, command, options=("--anonymise",), env=env).trace.events}
        for name, env in (
            ("a", {"IOWEIR_ANONYMISE": "0123456789abcdef" * 2}),
            ("b", {"IOWEIR_ANONYMISE": "0123456789abcdef" * 2}),
            ("c", {}),
            ("d", {}),
        )
    ]
    assert found[0] == found[1]
    assert len({frozenset(paths) for paths in found}) == 3
    assert all(path.endswith(".dat") for paths in found for path in paths)


def test_a_key_that_is_none_stops_tracing_not_the_program(tmp_path: Path) -> None:
    program = build("plain.c", "cc", libraries=("-lpthread",))
    (tmp_path / "t").mkdir()
    traced = preloaded(tmp_path / "t", [program, "write", tmp_path, "f", "3", "10"], env={"IOWEIR_ANONYMISE": "yes"})
    traced.expect()
    assert "IOWEIR_ANONYMISE" in traced.err
    assert not list((tmp_path / "t").iterdir())


def test_ranks_of_a_batch_script_are_traced_and_its_launcher_is_not(mpi: Mpi, tmp_path: Path) -> None:
    program = build("one_write.c", mpi.cc)
    script = tmp_path / "job.sh"
    launch = " ".join(f"'{word}'" for word in mpi.launch(2, program, tmp_path))
    script.write_text(
        f'#!/bin/sh\nset -e\neval "$("$IOWEIR_PYTHON" -m ioweir env -o {tmp_path}/t --layers mpiio)"\n'
        f'[ -z "$LD_PRELOAD" ]\n{launch}\n'
    )
    run(["sh", script], env={"IOWEIR_PYTHON": sys.executable}).expect()
    trace = Recorded.read(tmp_path / "t")
    assert trace.ranks() == [0, 1]
    assert {event.layer for event in trace.of(tmp_path / "file")} == {"MPI-IO"}
    assert {process["rank"] for process in trace.processes} == {0, 1}


def test_env_for_one_rank_preloads(tmp_path: Path) -> None:
    program = build("one_write.c", OPEN_MPI.cc)
    lines = run([sys.executable, "-m", "ioweir", "env", "--rank", "-o", tmp_path / "t"]).expect().out
    (tmp_path / "trace.env").write_text(lines)
    run(OPEN_MPI.launch(2, "sh", "-c", f". {tmp_path}/trace.env; exec {program} {tmp_path}")).expect()
    assert Recorded.read(tmp_path / "t").ranks() == [0, 1]
