"""`ioweir merge`, `ls` and `check` on containers that a real program under a plan has written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked import completed

PLAN = '[[file]]\nmatch = "*.data"\nmapping = "%s"\n'
MPI_KINDS = ("openmpi", "mpich")


IOWEIR = Path(sys.executable).with_name("ioweir")


def ioweir(*words: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = completed(
        [IOWEIR, *words],
        cwd=cwd, timeout=300,
        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


def kernel(folder: Path, kind: str, name: str, mapping: str = "grouped:2", more: str = "") -> bytes:
    """Runs a kernel twice in the same place, without and with the plan, and returns the plain file's bytes."""
    (folder / "plan.toml").write_text(PLAN % mapping + more)
    words = ["kernel", "ior-strided", "data=64KiB", "transfer=64KiB", "piece=4KiB", "--ranks", "3", "--mpi", kind,
             "--keep"]  # fmt: skip
    ioweir(*words, "--directory", str(folder), cwd=folder)
    plain = (folder / "ior-strided.data").read_bytes()
    (folder / "ior-strided.data").rename(folder / "plain")
    traced = ("run", "-q", "-o", "trace", "--plan", "plan.toml", "--", IOWEIR)
    ioweir(*traced, *words, "--directory", str(folder), cwd=folder)
    (folder / "ior-strided.data").rename(folder / name)
    return plain


@pytest.fixture(params=MPI_KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, bytes]:
    """A container at "file", and what the file would be without a plan."""
    if shutil.which(f"mpirun.{request.param}") is None:
        pytest.skip(f"mpirun.{request.param} is not installed")
    return tmp_path, kernel(tmp_path, request.param, "file")


def directory(folder: Path) -> Path:
    (found,) = folder.glob(".ioweir-*")
    return found


@pytest.mark.one_of(2)
def test_merged_it_is_what_the_program_writes_without_ioweir(place: tuple[Path, bytes]) -> None:
    folder, plain = place
    assert len(plain) == 3 * 65536
    assert (folder / "file").read_bytes().startswith(b"ioweir container 3\n")
    (row,) = json.loads(ioweir("ls", "file", "--json", cwd=folder).stdout)
    assert (row["mapping"], row["version"]) == ("grouped:2", 3)
    assert row["bytes"] == row["held_bytes"] == len(plain)
    assert sorted(row["part_bytes"]) == [65536, 2 * 65536]  # one rank, and two
    assert (row["problems"], row["open_generations"]) == ([], [])
    assert ioweir("check", "file", cwd=folder).stdout == "file: whole, 192 KiB\n"
    text = ioweir("ls", "file", cwd=folder).stdout
    assert "group 1" in text
    assert "never written" not in text
    assert ioweir("merge", "file", "-o", "other", cwd=folder).stdout.startswith("other: 192 KiB")
    assert (folder / "other").read_bytes() == plain
    assert directory(folder).is_dir()
    ioweir("merge", "file", cwd=folder)
    assert (folder / "file").read_bytes() == plain
    assert not list(folder.glob(".ioweir-*"))


def test_mistakes_and_damage_are_said(place: tuple[Path, bytes]) -> None:
    folder, plain = place
    for command in ("merge", "ls"):
        assert "not an ioweir container: plain" in ioweir(command, "plain", cwd=folder, code=1).stderr
        assert "'none' does not exist: name the file" in ioweir(command, "none", cwd=folder, code=1).stderr
        assert "it is an ordinary file" in ioweir(command, "plain", cwd=folder, code=1).stderr
    checked = ioweir("check", "plain", cwd=folder, code=1).stdout
    assert checked == "plain: not checked\n  not an ioweir container: plain; it is an ordinary file, in one piece\n"
    assert "the output exists: plain" in ioweir("merge", "file", "-o", "plain", cwd=folder, code=1).stderr
    assert (folder / "plain").read_bytes() == plain
    index = next(directory(folder).glob("group.0/index.*"))
    whole = index.read_bytes()
    index.write_bytes(whole[:-1] + b"\xff")
    checked = ioweir("check", "file", cwd=folder, code=1).stdout
    assert "NOT whole" in checked
    assert str(index.relative_to(folder)) in checked
    ioweir("merge", "file", cwd=folder, code=1)
    index.write_bytes(whole)
    index.unlink()
    gone = f"1 of 3 index files are not there ({index.name})"
    assert gone in ioweir("check", "file", cwd=folder, code=1).stdout
    assert gone in ioweir("ls", "file", cwd=folder, code=1).stderr
    # Another rank's in its place, and a group's bytes in the place of the other's.
    other = next(path for path in directory(folder).glob("group.*/index.*") if path != index)
    index.write_bytes(other.read_bytes())
    wrong = f"{index.relative_to(folder)}: it is {other.name}"
    for command, stream in (("check", "stdout"), ("ls", "stderr"), ("merge", "stderr")):
        assert wrong in getattr(ioweir(command, "file", cwd=folder, code=1), stream)
    index.write_bytes(whole)
    groups = [directory(folder) / f"group.{group}" / "data" for group in (0, 1)]
    kept = groups[1].read_bytes()
    groups[1].write_bytes(groups[0].read_bytes())
    wrong = f"{groups[1].relative_to(folder)}: it is group.0/data"
    assert wrong in ioweir("check", "file", cwd=folder, code=1).stdout
    assert wrong in ioweir("ls", "file", cwd=folder).stdout
    assert wrong in ioweir("merge", "file", cwd=folder, code=1).stderr
    groups[1].write_bytes(kept)
    assert ioweir("check", "file", cwd=folder).stdout == "file: whole, 192 KiB\n"
    next(directory(folder).glob("closed.*")).rename(directory(folder) / "open.1")
    assert "begun and not ended" in ioweir("check", "file", cwd=folder, code=1).stdout
    assert "was not closed" in ioweir("merge", "file", cwd=folder, code=1).stderr
    ioweir("merge", "file", "-o", "rescued", cwd=folder)
    assert (folder / "rescued").read_bytes() == plain
    shutil.rmtree(directory(folder))
    assert "belongs beside the file" in ioweir("check", "file", cwd=folder, code=1).stdout


@pytest.mark.parametrize("kind", MPI_KINDS)
def test_logs(kind: str, tmp_path: Path) -> None:
    if shutil.which(f"mpirun.{kind}") is None:
        pytest.skip(f"mpirun.{kind} is not installed")
    plain = kernel(tmp_path, kind, "file", "log")
    (row,) = json.loads(ioweir("ls", "file", "--json", cwd=tmp_path).stdout)
    assert row["mapping"] == "log"
    assert row["part_bytes"] == [65536] * 3
    assert row["segments"] == 3 * 16
    assert row["index_entries"] == 3, "16 pieces at equal distances are one entry"
    assert "3 logs, each 64.00 KiB to 64.00 KiB of the file, 3 entries" in ioweir("ls", "file", cwd=tmp_path).stdout
    assert ioweir("check", "file", cwd=tmp_path).stdout == "file: whole, 192 KiB\n"
    # A log that is gone, or too short, is named.
    log = next(directory(tmp_path).glob("logs.1/data.*"))
    whole = log.read_bytes()
    assert len(whole) == 4096 + 65536
    log.write_bytes(whole[:-1])
    assert f"{log.relative_to(tmp_path)} is shorter" in ioweir("check", "file", cwd=tmp_path, code=1).stdout
    assert "cannot read" in ioweir("merge", "file", cwd=tmp_path, code=1).stderr
    log.unlink()
    assert f"{log.relative_to(tmp_path)}: No such file" in ioweir("check", "file", cwd=tmp_path, code=1).stdout
    assert str(log.relative_to(tmp_path)) in ioweir("merge", "file", cwd=tmp_path, code=1).stderr
    log.write_bytes(whole)
    # One in the place of another, as long as that.
    second = next(directory(tmp_path).glob("logs.2/data.*"))
    kept = second.read_bytes()
    second.write_bytes(whole)
    wrong = f"{second.relative_to(tmp_path)}: it is logs.1/{log.name}"
    assert wrong in ioweir("check", "file", cwd=tmp_path, code=1).stdout
    assert wrong in ioweir("merge", "file", cwd=tmp_path, code=1).stderr
    second.write_bytes(kept)
    # So is the index of one log in the place of another's.
    index, other = (next(directory(tmp_path).glob(f"logs.{rank}/index.*")) for rank in (1, 2))
    kept = index.read_bytes()
    index.write_bytes(other.read_bytes())
    assert f"it is {other.name}" in ioweir("check", "file", cwd=tmp_path, code=1).stdout
    index.write_bytes(kept)
    ioweir("merge", "file", cwd=tmp_path)
    assert (tmp_path / "file").read_bytes() == plain
    assert not list(tmp_path.glob(".ioweir-*"))


@pytest.mark.parametrize("kind", MPI_KINDS)
def test_subfiles(kind: str, tmp_path: Path) -> None:
    if shutil.which(f"mpirun.{kind}") is None:
        pytest.skip(f"mpirun.{kind} is not installed")
    folder = tmp_path / "here"
    folders = [tmp_path / "a", tmp_path / "b"]
    for each in (folder, *folders):
        each.mkdir()
    targets = ", ".join(json.dumps(str(each)) for each in folders)
    more = f'stripe = {{ size = "16 KiB" }}\ntargets = [{targets}]\n'
    plain = kernel(folder, kind, "file", "subfiles:3", more)
    (row,) = json.loads(ioweir("ls", "file", "--json", cwd=folder).stdout)
    assert row["mapping"] == "subfiles:3 stripe 16384"
    assert row["part_bytes"] == [65536] * 3
    parts = [Path(path) for path in row["part_paths"]]
    assert [part.parent for part in parts] == [folders[0], folders[1], folders[0]]
    for number, part in enumerate(parts):
        stripes = [plain[at : at + 16384] for at in range(number * 16384, len(plain), 3 * 16384)]
        assert part.read_bytes()[4096:] == b"".join(stripes)
    assert ioweir("check", "file", cwd=folder).stdout == "file: whole, 192 KiB\n"
    whole = parts[1].read_bytes()
    parts[1].write_bytes(parts[2].read_bytes())
    assert f"{parts[1]}: it is subfile 2" in ioweir("check", "file", cwd=folder, code=1).stdout
    parts[1].write_bytes(whole[:-1])
    assert f"{parts[1]}: it has" in ioweir("check", "file", cwd=folder, code=1).stdout
    assert str(parts[1]) in ioweir("merge", "file", cwd=folder, code=1).stderr
    parts[1].unlink()
    assert f"{parts[1]}: No such file" in ioweir("check", "file", cwd=folder, code=1).stdout
    parts[1].write_bytes(whole)
    # What says how long they were, or that anybody has written them, is missed.
    for name, said in (("sizes", "sizes is not there"), ("closed.*", "nothing says that anybody has begun")):
        path = next(directory(folder).glob(name))
        path.rename(folder / "kept")
        for command, stream in (("check", "stdout"), ("ls", "stderr"), ("merge", "stderr")):
            assert said in getattr(ioweir(command, "file", cwd=folder, code=1), stream)
        (folder / "kept").rename(path)
    assert ioweir("check", "file", cwd=folder).stdout == "file: whole, 192 KiB\n"
    ioweir("merge", "file", cwd=folder)
    assert (folder / "file").read_bytes() == plain
    assert not [path for each in (folder, *folders) for path in each.glob(".ioweir-*")]


def test_readers_of_other_formats_say_what_they_have_met(place: tuple[Path, bytes]) -> None:
    folder, plain = place
    header_file = (folder / "file").read_bytes()
    said = "ioweir container, whose bytes lie in other files: {0}; make an ordinary file of it with: ioweir merge {0}"
    for source in ("restart-dat.20.1", "restart.20.1"):
        (folder / source).write_bytes(header_file)
        for form in ("set", "serial", "hdf5"):
            failed = ioweir("convert", source, "to", "--to", form, cwd=folder, code=1)
            assert said.format(source) in " ".join(failed.stderr.split())
        (folder / source).unlink()
    (folder / "file").rename(folder / "restart-dat.20.1")
    ioweir("merge", "restart-dat.20.1", cwd=folder)
    assert (folder / "restart-dat.20.1").read_bytes() == plain
