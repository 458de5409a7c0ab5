"""The lint that keeps the command line to guarded_files: what it finds, what it leaves, and that the package passes."""

from __future__ import annotations

import ast
from pathlib import Path

import check_python_opens as lint
import pytest

PACKAGE = Path(__file__).parents[2] / "python/ioweir"


def found(code: str) -> list[str]:
    return [call for _, call in lint.calls_of(ast.parse(code))]


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("open(path)", "open"),
        ("with open(path) as file: pass", "open"),
        ("os.open(path, 0)", "os.open"),
        ("path.open('rb')", "open"),
        ("path.open(mode='w')", "open"),
        ("(folder_of(x) / 'a').read_text(encoding='utf-8')", "read_text"),
        ("Path(name).write_bytes(b'')", "write_bytes"),
        ("draft.replace(path)", "replace"),
        ("a.rename(b)", "rename"),
        ("a.unlink(missing_ok=True)", "unlink"),
        ("shutil.rmtree(tree)", "shutil.rmtree"),
        ("os.walk(tree)", "os.walk"),
        ("h5py.File(name, 'w')", "h5py.File"),
        ("np.fromfile(name)", "np.fromfile"),
    ],
)
def test_what_goes_by_a_path_is_found(code: str, call: str) -> None:
    assert found(code) == [call]


@pytest.mark.parametrize(
    "code",
    [
        "Folder.open(path)", "lab.open()", "folder.read_text('a')", "inside.rename('a', 'b')", "text.replace('a', 'b')",
        "dataclasses.replace(row, name=1)", "self.rename(a)", "os.path.exists(path)", "path.exists()",
        "open_named(path)",
    ],
)  # fmt: skip
def test_what_does_not_is_left(code: str) -> None:
    assert found(code) == []


def test_an_allowance_is_of_a_module_and_a_call_and_has_to_be_used(tmp_path: Path) -> None:
    for folder in ("base", "launch"):
        (tmp_path / folder).mkdir()
    (tmp_path / "one.py").write_text("open(a)\npath.read_text()\n")
    (tmp_path / "base/guarded_files.py").write_text("open(a)\n")
    (tmp_path / "launch/one.py").write_text("open(a)\n")
    offences, stale = lint.check(tmp_path, {("one.py", "open"): "why", ("two.py", "open"): "why"})
    places = [(offence.path.relative_to(tmp_path).as_posix(), offence.line, offence.call) for offence in offences]
    assert places == [("launch/one.py", 1, "open"), ("one.py", 2, "read_text")]
    assert stale == ["two.py: open is allowed and not there"]


def test_the_package_passes_and_every_allowance_has_a_reason() -> None:
    assert lint.check(PACKAGE) == ([], [])
    assert all(reason for reason in lint.ALLOWED.values())
