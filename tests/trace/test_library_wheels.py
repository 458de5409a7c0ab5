"""h5py and netCDF4 as PyPI has them, in one process: two HDF5 libraries, newer than Debian's, loaded RTLD_LOCAL.

The wheels are locked in tests/library_wheels and installed into a directory below build/.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest
from tracing import BUILD, PROGRAMS, ioweir_run, run, totals

LOCK: Final = Path(__file__).resolve().parent.parent / "library_wheels" / "python.lock"
INSTALL_S: Final = 300.0


def installed() -> Path:
    """An interpreter with what the lock names; made once for each state of the lock."""
    place = BUILD / f"library-wheels-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]}"
    interpreter = place / "bin" / "python"
    done = place / "installed"
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        run([sys.executable, "-m", "venv", "--without-pip", place], timeout=INSTALL_S).expect()
        pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", interpreter, "--disable-pip-version-check"]
        wheels: list[str | Path] = ["--no-input", "--only-binary", ":all:", "--require-hashes", "-r", LOCK]
        run([*pip, "install", "-q", *wheels], timeout=INSTALL_S).expect()
        done.touch()
    return interpreter


@pytest.fixture(scope="module")
def python() -> Path:
    return installed()


@pytest.mark.parametrize("order", ["h5py,netCDF4", "netCDF4,h5py"])
def test_two_hdf5_libraries_in_one_interpreter(python: Path, tmp_path: Path, order: str) -> None:
    command: list[str | Path] = [python, PROGRAMS / "two_hdf5.py", tmp_path, order]
    plain = run(command).expect()
    traced = ioweir_run(tmp_path / "trace", command)
    assert traced.out == plain.out
    assert traced.out.splitlines() == ["545.0 3500 10.0", "True 0", "True 0"]
    recorded = traced.trace
    own, other = recorded.of(tmp_path / "own.h5"), recorded.of(tmp_path / "other.nc")
    moved = totals([e for e in own if e.layer == "HDF5" and e.op in {"read", "write"}], "op")
    assert {op: count for op, (_, count) in moved.items()} == {"write": 800 + 10000, "read": 80 + 2000}
    by_layer = totals([e for e in other if e.layer in {"HDF5", "netCDF"} and e.op == "write"], "layer", "bytes")
    assert by_layer == {("netCDF", 80): (1, 80), ("HDF5", 80): (1, 80)}
    for event in other:
        if event.layer == "HDF5" and event.op in {"read", "write", "close"}:
            above = recorded.parent_of(event)
            assert above is not None
            assert above.layer == "netCDF"
    # One of the two libraries was asked first through ctypes; of the other the trace says that it is not traced.
    last = [e for e in own if e.name == "H5Fopen"][-1:]
    assert [(e.failed, e.parent) for e in last] == [(False, 0)]
    assert any("through dlsym are not traced" in note["text"] for note in recorded.notes)


def test_several_datasets_in_one_call(python: Path, tmp_path: Path) -> None:
    (library,) = (python.parent.parent / "lib").glob("python3*/site-packages/h5py.libs/libhdf5-*")
    path = tmp_path / "file.h5"
    traced = ioweir_run(tmp_path / "trace", [python, PROGRAMS / "hdf5_multi.py", library, path])
    assert traced.out.splitlines() == ["0", "0", "0 45 45"]
    hdf5 = [e for e in traced.trace.of(path) if e.layer == "HDF5"]
    assert totals(hdf5, "name") == {
        "H5Fcreate": (1, 0), "H5Dcreate2": (2, 0), "H5Dwrite_multi": (1, 60), "H5Dread_multi": (1, 60),
        "H5Dclose": (2, 0), "H5Fclose": (1, 0),
    }  # fmt: skip
