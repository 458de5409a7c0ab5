"""Mistakes that people make on the command line: each is answered by what, which value, and what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from ioweir.base import units
from ioweir.base.guarded_files import Folder
from ioweir.base.new_folder import require_writable
from ioweir.cli.app import app
from ioweir.errors import IoweirError, reason
from ioweir.findings.model import Findings
from ioweir.findings.text import plan_of
from typer.testing import CliRunner

COMMAND = "-- mpirun -n 4 ./my_simulation input.nml"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no trace\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("rnu", "No such command 'rnu'. Did you mean 'run'?"),
        ("run --verfy -- true", "No such option: --verfy"),
        ("run", f"Missing argument '-- CMD...'. The command, as without ioweir. Example: ioweir run {COMMAND}"),
        ("lab run", f"Example: ioweir lab run {COMMAND}"),
        ("link", "Example: ioweir link -- mpicc -o my_simulation main.c"),
        ("report", "Missing argument 'DIR'. What `ioweir run` wrote."),
        ("export full", "Missing option '--format'. perfetto|parquet|csv"),
        ("kernel lattice --ranks two", "Invalid value for '--ranks': 'two' is no whole number."),
        ("kernel lattice --pause x", "Invalid value for '--pause': 'x' is no number."),
        ("kernel lattice --mpi mpich --directory file", "--directory file: it is a file; name a directory"),
        ("kernel lattice --mpi mpich --directory no", "--directory no: there is no such directory; make it first"),
        ("gc nowhere", "'nowhere' does not exist. Check the path."),
        ("gc file", "'file' is a file. Name a directory."),
        ("ls nowhere", "'nowhere' does not exist: name the file that the program wrote"),
        ("merge nowhere -o new", "'nowhere' does not exist: name the file that the program wrote"),
        ("merge file", "not an ioweir container: file; it is an ordinary file, in one piece"),
        ("import nowhere -o new", "'nowhere' cannot be read: No such file or directory; check the path"),
        (
            "explain --kernel lattice --ranks 2 --plan no.toml",
            "plan 'no.toml' cannot be read: No such file or directory; check the path",
        ),
        ("findings --explain sync-cosst", "no finding is called 'sync-cosst'; did you mean 'sync-cost'? known: "),
        ("findings --explain xyz", "no finding is called 'xyz'; known: small-requests, "),
        ("replay full -o full", "'full' holds something: give a directory that is new or empty"),
        ("simulate lattice --machine perlmutter", "did you mean '--kernel lattice'?"),
        (
            "simulate --kernel lattice --ranks 2 --machine no.toml",
            "no.toml' cannot be read: No such file or directory; check",
        ),
    ],
)
def test_the_answer_says_what_to_do(place: Path, words: str, answer: str) -> None:
    result = CliRunner().invoke(app, words.split(), prog_name="ioweir")
    assert result.exit_code != 0
    assert isinstance(result.exception, SystemExit | IoweirError), "no traceback"
    assert answer in f"{result.output}{result.exception}"
    assert sorted(path.name for path in place.iterdir()) == ["file", "full"], "nothing is made"


def test_a_finding_that_the_run_has_not_is_answered_by_those_it_has() -> None:
    with pytest.raises(IoweirError, match="this run has no finding 'slow-target'; known: none"):
        plan_of(Findings([], 1.0, 0.0, []), "slow-target")


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        (errno.ENOENT, "No such file or directory; check the path"),
        (errno.ENOSPC, "No space left on device; make room, or name a place on another file system"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_what_the_system_refuses_comes_with_what_to_do(number: int, answer: str) -> None:
    assert reason(OSError(number, os.strerror(number), "file")) == answer


def test_words_of_other_libraries_stay() -> None:
    assert reason(OSError("a codec is missing")) == "a codec is missing"
    assert reason(OSError(errno.EPERM, "is a pipe", "file")) == "is a pipe"


def test_a_file_that_cannot_be_made_is_called_by_its_name(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*words: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(words[1]))

    monkeypatch.setattr(Folder, "create", refused)
    with Folder.open(place) as folder, pytest.raises(PermissionError) as raised:
        folder.write("report.html", "")
    assert raised.value.filename == str(place / "report.html")


def test_a_directory_that_takes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(IoweirError, match="you may not write there; name another, or change its rights"):
        require_writable(place / "full")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (0.00123, "1.23 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (-0.9996, "-1.00 s"),
        (9.996e-4, "1 ms"),
    ],
)
def test_times_keep_their_unit_where_they_are_rounded(value: float, text: str) -> None:
    assert units.seconds(value) == text
