"""Who may use the parts of a divided file: those who may use the file, whoever made them and whatever the umask was."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from netcdf_subfiling import library, netcdf_plan
from tracing import IOWEIR, MPIS, OPEN_MPI, Mpi, build, ioweir_run, preload_library

RANKS: Final = 2
BLOCK: Final = 40_000
NOBODY: Final = 65534
SOMEBODY: Final = 65533
TEAM: Final = 54321
KINDS: Final = {
    "grouped": 'mapping = "grouped:2"',
    "log": 'mapping = "log"',
    "subfiles": 'mapping = "subfiles:2"\nstripe = { size = "16 KiB" }',
    "log-on-targets": 'mapping = "log"\ntargets = ["TARGETS"]',
    "subfiles-on-targets": 'mapping = "subfiles:2"\nstripe = { size = "16 KiB" }\ntargets = ["TARGETS"]',
}
as_root: Final = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that others may look into, with one for storage targets in it."""
    folder = Path(tempfile.mkdtemp(prefix="ioweir-access-"))
    folder.chmod(0o755)
    targets = folder / "targets"
    targets.mkdir()
    targets.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def expected() -> bytes:
    return bytes(1 + (rank * 31 + at) % 251 for rank in range(RANKS) for at in range(BLOCK))


def as_user(user: int, group: int, *words: str | Path) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *map(str, words)]


def command(mpi: Mpi, place: Path, kind: str, path: Path, *words: str) -> tuple[list[str], list[str]]:
    """Options of `ioweir run`, and what it runs."""
    plan = place / f"{kind}.toml"
    if not plan.exists():
        plan.write_text(f'[[file]]\nmatch = "*file*"\n{KINDS[kind]}\n'.replace("TARGETS", str(place / "targets")))
    program = place / "access"
    if not program.exists():
        shutil.copy(build("access.c", mpi.cc), program)
    return ["--plan", str(plan)], mpi.launch(RANKS, program, path, *(words or ("never",)))


def write(mpi: Mpi, place: Path, kind: str, path: Path, *words: str, umask: int = 0o022) -> None:
    options, program = command(mpi, place, kind, path, *words)
    before = os.umask(umask)
    try:
        ioweir_run(Path(tempfile.mkdtemp(dir=place)), program, options=options)
    finally:
        os.umask(before)
    assert path.read_bytes().startswith(b"ioweir container ")


def parts(place: Path, path: Path) -> list[Path]:
    """Folders and files with anything of the container in them."""
    (directory,) = path.parent.glob(".ioweir-*")
    return [directory, *directory.rglob("*"), *(place / "targets").iterdir()]


def expect_modes(place: Path, path: Path, mode: int, folder_mode: int) -> None:
    for part in parts(place, path):
        found = stat.S_IMODE(part.stat().st_mode) & 0o777
        assert found == (folder_mode if part.is_dir() else mode), f"{part}: {found:o}"


def read_by(user: int, group: int, paths: list[Path]) -> list[str]:
    """Those that a user can read."""
    script = 'for path in "$@"; do if cat -- "$path" >/dev/null 2>&1; then echo "$path"; fi; done'
    done = subprocess.run(
        as_user(user, group, "sh", "-c", script, "sh", *paths), capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


@pytest.mark.one_of(6)
@as_root
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_reads_a_byte_of_a_closed_file(mpi: Mpi, place: Path, kind: str) -> None:
    """It is closed by the program, while it writes; the parts were there before."""
    path = place / "file"
    write(mpi, place, kind, path)
    expect_modes(place, path, 0o644, 0o755)
    files = [part for part in parts(place, path) if part.is_file()]
    assert len(read_by(NOBODY, NOBODY, files)) == len(files), "while all may read"
    write(mpi, place, kind, path, "open", "chmod", "600")
    expect_modes(place, path, 0o600, 0o700)
    assert read_by(NOBODY, NOBODY, [*files, *(part for part in parts(place, path) if part.is_file())]) == []


@pytest.mark.one_of(12)
@pytest.mark.parametrize("how", ["chmod", "by-descriptor", "fchmodat", "syscall"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_mode_that_the_program_gives_is_that_of_the_parts_at_once(place: Path, kind: str, how: str) -> None:
    path = place / "file"
    write(OPEN_MPI, place, kind, path, "closed", how, "640")
    expect_modes(place, path, 0o640, 0o750)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "change", ["os.fchmod(0, 0o600)", "os.fchown(0, -1, os.getgid()); os.fchmod(0, 0o600)", "os.chmod(0, 0o600)"]
)
def test_a_mode_given_by_an_inherited_descriptor(place: Path, change: str) -> None:
    path = place / "file"
    write(OPEN_MPI, place, "grouped", path)
    variables = {"LD_PRELOAD": str(preload_library()), "IOWEIR_DIR": str(place)}
    with path.open("rb") as header_file:
        subprocess.run(
            [sys.executable, "-c", f"import os; {change}"],
            stdin=header_file, env=os.environ | variables, check=True, timeout=60,
        )  # fmt: skip
    assert path.read_bytes().startswith(b"ioweir container ")
    expect_modes(place, path, 0o600, 0o700)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_mode_given_by_hand_is_taken_by_check_and_by_the_next_job(place: Path, kind: str) -> None:
    path = place / "file"
    write(OPEN_MPI, place, kind, path, umask=0o077)
    expect_modes(place, path, 0o600, 0o700)
    path.chmod(0o660)
    subprocess.run([*IOWEIR, "check", str(path)], check=True, timeout=60)
    expect_modes(place, path, 0o660, 0o770)
    path.chmod(0o600)
    write(OPEN_MPI, place, kind, path)
    expect_modes(place, path, 0o600, 0o700)
    path.chmod(0o640)
    subprocess.run([*IOWEIR, "merge", str(path)], check=True, timeout=60)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes() == expected()


@as_root
@pytest.mark.one_of(4)
@pytest.mark.parametrize("kind", KINDS)
def test_given_away_and_with_an_acl(place: Path, kind: str) -> None:
    path = place / "file"
    write(OPEN_MPI, place, kind, path, "closed", "acl", "0")
    data = [part for part in parts(place, path) if part.is_file()]
    assert len(read_by(SOMEBODY, TEAM, data)) == len(data)
    assert read_by(NOBODY, NOBODY, data) == []
    write(OPEN_MPI, place, kind, path, "closed", "lchown", str(NOBODY))
    found = {(part.stat().st_uid, part.stat().st_gid) for part in [path, *parts(place, path)]}
    assert found == {(NOBODY, NOBODY)}


@pytest.mark.one_of(8)
@as_root
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("kind", KINDS)
def test_a_member_of_the_group_goes_on_writing(mpi: Mpi, place: Path, kind: str) -> None:
    """Root makes a file in a folder of the group's, two members of it write it over, one reads it, others do not."""
    shared = place / "shared"
    shared.mkdir()
    os.chown(shared, 0, TEAM)
    shared.chmod(0o2770)
    path = shared / "file"
    write(mpi, place, kind, path, umask=0o007)
    expect_modes(place, path, 0o660, 0o770)
    options, program = command(mpi, place, kind, path)
    for user in (NOBODY, SOMEBODY):
        home = place / f"home-{user}"
        home.mkdir()
        os.chown(home, user, TEAM)
        run = [*IOWEIR, "run", "-q", "-o", str(home / "trace"), *options, "--", *program]
        done = subprocess.run(
            as_user(user, TEAM, "sh", "-c", 'umask 077; exec "$@"', "sh", *run),
            cwd=home, env=os.environ | {"HOME": str(home), "TMPDIR": str(home)},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        expect_modes(place, path, 0o660, 0o770)
    words = as_user(NOBODY, TEAM, *IOWEIR, "merge", path)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == expected()
    status = path.stat()
    assert (status.st_gid, stat.S_IMODE(status.st_mode)) == (TEAM, 0o660)


@as_root
@pytest.mark.parametrize("targets", [False, True])
def test_subfiles_of_netcdf_have_the_access_of_their_master(place: Path, targets: bool) -> None:
    mpi, libraries = library()
    plan = netcdf_plan(place, "subfiles = 2")
    if targets:
        plan.write_text(plan.read_text() + f'targets = ["{place / "targets"}"]\n')
    program = build("netcdf_subfiles.c", mpi.cc, libraries=libraries)
    words = mpi.launch(RANKS, program, "write", place / "file.nc")
    ioweir_run(place / "trace", words, options=["--plan", plan], cwd=place)
    files = [*place.glob("file.nc*"), *(place / "targets").iterdir()]
    assert len(files) == (5 if targets else 3)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o644}
    # By a traced program.
    ioweir_run(place / "trace2", ["chmod", "600", str(place / "file.nc")])
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert read_by(NOBODY, NOBODY, files) == []
    # By hand.
    (place / "file.nc").chmod(0o640)
    os.chown(place / "file.nc", 0, TEAM)
    subprocess.run([*IOWEIR, "check", str(place / "file.nc")], check=True, timeout=60)
    assert {(path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) for path in files} == {(TEAM, 0o640)}
    (place / "file.nc").chmod(0o600)
    subprocess.run([*IOWEIR, "merge", str(place / "file.nc"), "-o", str(place / "one.nc")], check=True, timeout=60)
    assert stat.S_IMODE((place / "one.nc").stat().st_mode) == 0o600
