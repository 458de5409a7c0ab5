"""guarded_files: what others may have put where ioweir's commands read, write and remove is refused, and nothing else
is touched. Cases of files of other users need root, and are left out without.
"""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ioweir.base import guarded_files
from ioweir.base.guarded_files import Folder, UnsafeFileError
from ioweir.errors import IoweirError

STRANGER = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
SPARSE = 1 << 40


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What must not be read, changed or removed."""
    place = tmp_path / "outside"
    (place / "tree").mkdir(parents=True)
    (place / "file").write_text("precious")
    (place / "tree" / "file").write_text("precious")
    return place


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    (tmp_path / "folder").mkdir()
    with Folder.open(tmp_path / "folder") as opened:
        yield opened


def link(to: str) -> Callable[[Path, Path], None]:
    return lambda path, outside: path.symlink_to(outside / to)


def pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def device(path: Path, _: Path) -> None:
    path.symlink_to("/dev/zero")


def sub_folder(path: Path, _: Path) -> None:
    path.mkdir()


def plug(path: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def hard_link_of_a_stranger(path: Path, outside: Path) -> None:
    os.chown(outside / "file", STRANGER, STRANGER)
    path.hardlink_to(outside / "file")


def of_a_stranger(path: Path, _: Path) -> None:
    path.write_text("x")
    os.chown(path, STRANGER, STRANGER)


NOT_FILES = {
    "link to a file": (link("file"), "symbolic link"),
    "link to a folder": (link("tree"), "symbolic link"),
    "link to nothing": (link("none"), "symbolic link"),
    "pipe": (pipe, "a pipe"),
    "device": (device, "symbolic link"),
    "folder": (sub_folder, "a folder"),
    "socket": (plug, "a socket"),
}
PLANTED = NOT_FILES | {
    "another's file": (of_a_stranger, "belongs to user 65534"),
    "hard link to another's file": (hard_link_of_a_stranger, "belongs to user 65534"),
}


def plant(name: str, path: Path, outside: Path) -> str:
    if "another" in name and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    make, why = PLANTED[name]
    make(path, outside)
    return why


def precious(outside: Path) -> list[tuple[str, str]]:
    return [(str(file), file.read_text()) for file in sorted(outside.rglob("file"))]


@pytest.mark.parametrize("name", PLANTED)
def test_nothing_that_was_planted_is_read(name: str, folder: Folder, outside: Path) -> None:
    why = plant(name, folder.path / "x", outside)
    for own in (False, True):
        with pytest.raises(UnsafeFileError) as raised:
            folder.read("x", own=own)
        assert why in str(raised.value.strerror)
        assert raised.value.filename == str(folder.path / "x")


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_written_takes_the_place_of_what_was_planted(name: str, folder: Folder, outside: Path) -> None:
    plant(name, folder.path / "x", outside)
    before = precious(outside)
    if name == "folder":
        with pytest.raises(OSError, match="directory"):
            folder.write("x", "mine")
    else:
        folder.write("x", "mine")
        assert folder.read_text("x") == "mine"
        assert stat.S_ISREG((folder.path / "x").lstat().st_mode)
    assert precious(outside) == before
    assert folder.names() == ["x"]
    with pytest.raises(FileExistsError):
        folder.create("x")


@pytest.mark.parametrize("name", PLANTED)
def test_a_tree_goes_with_what_was_planted_in_it_and_nothing_else(name: str, folder: Folder, outside: Path) -> None:
    (folder.path / "tree" / "deep").mkdir(parents=True)
    plant(name, folder.path / "tree" / "deep" / "x", outside)
    (folder.path / "other").write_text("stays")
    before = precious(outside)
    folder.remove_tree("tree")
    assert folder.names() == ["other"]
    (folder.path / "other").unlink()
    plant(name, folder.path / "x", outside) if name.startswith("link") else None
    folder.remove_tree("x")
    assert precious(outside) == before


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc/passwd", "a\0b"])
def test_names_are_single_names(name: str, folder: Folder) -> None:
    for work in (folder.read, folder.status, folder.remove, folder.remove_tree, folder.make_folder, folder.create):
        with pytest.raises(UnsafeFileError, match="single name"):
            work(name)
    with pytest.raises(UnsafeFileError):
        folder.write(name, "x")


def test_what_cannot_be_made_is_named_with_its_folder(folder: Folder, tmp_path: Path) -> None:
    for work in (folder.create, folder.make_folder):
        work("there" + work.__name__)
        with pytest.raises(FileExistsError) as raised:
            work("there" + work.__name__)
        assert Path(str(raised.value.filename)).parent.name == folder.path.name
        assert Path(str(raised.value.filename)).is_relative_to(tmp_path)


def test_a_giant_without_content_takes_no_memory(folder: Folder, tmp_path: Path) -> None:
    with (folder.path / "x").open("wb") as file:
        file.truncate(SPARSE)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnsafeFileError, match="at most"):
        folder.read("x")
    with pytest.raises(UnsafeFileError, match="at most"):
        guarded_files.read_named(tmp_path / "folder" / "x")
    assert guarded_files.named_holds(folder.path / "x", (b"a",), most=1 << 24) == set()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


def test_a_folder_that_is_exchanged_for_a_link_is_still_the_one_that_was_opened(folder: Folder, outside: Path) -> None:
    folder.path.rename(folder.path.with_name("moved"))
    folder.path.symlink_to(outside)
    folder.write("file", "mine")
    folder.remove("file")
    folder.write("file", "mine")
    assert (outside / "file").read_text() == "precious"
    assert (folder.path.with_name("moved") / "file").read_text() == "mine"


def test_walking_goes_through_no_link(folder: Folder, outside: Path) -> None:
    (folder.path / "a" / "b").mkdir(parents=True)
    (folder.path / "a" / "link").symlink_to(outside)
    (folder.path / "skipped").mkdir()
    seen = [(str(here.folder.path.relative_to(folder.path)), here.folders, here.files)
            for here in folder.walk(lambda name: name != "skipped")]  # fmt: skip
    assert seen == [(".", ["a", "skipped"], []), ("a", ["b"], ["link"]), ("a/b", [], [])]
    with pytest.raises(OSError, match="directory"):
        folder.below(("a", "link"))


def test_a_library_that_takes_paths_writes_where_nobody_can_interfere(folder: Folder, outside: Path) -> None:
    (folder.path / "x").symlink_to(outside / "file")
    with folder.drafting("x") as path:
        Path(path).write_text("mine")
        # The folder itself is exchanged while the library writes.
        folder.path.rename(folder.path.with_name("moved"))
        folder.path.symlink_to(outside)
    assert (folder.path.with_name("moved") / "x").read_text() == "mine"
    assert precious(outside)[0][1] == "precious"
    with pytest.raises(FileNotFoundError), folder.drafting("y"):
        pass  # a library that wrote nothing
    assert folder.names() == ["x"]


# ------------------------------------------------------------------------------------------------------- whose it is


@AS_ROOT
def test_the_owner_of_the_folder_and_its_group_are_believed(tmp_path: Path) -> None:
    """The same rules as src/base/guarded_files_test.cpp has them."""
    place = tmp_path / "theirs"
    place.mkdir()
    file = place / "x"
    file.write_text("x")

    def refused(owner: int, group: int, mode: int, folder_owner: int, folder_mode: int) -> str:
        os.chown(file, owner, group)
        file.chmod(mode)
        os.chown(place, folder_owner, 4242)
        place.chmod(folder_mode)
        with Folder.open(place) as opened:
            try:
                opened.read("x")
            except UnsafeFileError as error:
                return str(error.strerror)
        return ""

    assert refused(STRANGER, STRANGER, 0o600, STRANGER, 0o755) == ""
    assert refused(0, 0, 0o600, STRANGER, 0o755) == ""
    assert "belongs to user 12345, its folder to user 65534" in refused(12345, 4242, 0o600, STRANGER, 0o755)
    assert refused(12345, 4242, 0o640, STRANGER, 0o775) == ""
    assert "belongs to" in refused(12345, 4242, 0o640, STRANGER, 0o755)
    assert "belongs to" in refused(12345, 4242, 0o600, STRANGER, 0o775)
    assert "belongs to" in refused(12345, 4243, 0o644, STRANGER, 0o777)
    (tmp_path / "second").hardlink_to(file)
    assert "has 2 names" in refused(0, 0, 0o600, STRANGER, 0o755)
    assert refused(STRANGER, 0, 0o600, STRANGER, 0o755) == ""


@AS_ROOT
def test_what_is_believed_blindly_is_the_users_alone(tmp_path: Path) -> None:
    place = tmp_path / "own"
    place.mkdir()
    (place / "x").write_text("x")
    for who, mode, why in ((STRANGER, 0o600, "belongs to user"), (0, 0o666, "by others"), (0, 0o620, "by others")):
        os.chown(place / "x", who, 0)
        (place / "x").chmod(mode)
        with Folder.open(place) as opened, pytest.raises(UnsafeFileError, match=why):
            opened.read("x", own=True)
    for who, mode, why in ((STRANGER, 0o700, "belongs to user"), (0, 0o777, "by others"), (0, 0o1777, "by others")):
        os.chown(place, who, 0)
        place.chmod(mode)
        with pytest.raises(UnsafeFileError, match=why):
            Folder.open(place, own=True)


@AS_ROOT
def test_a_folder_of_the_users_own_is_made_and_never_taken_over(tmp_path: Path) -> None:
    with guarded_files.own_folder(tmp_path / "new") as made:
        assert stat.S_IMODE(made.info.st_mode) == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "new")
    (tmp_path / "file").write_text("")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o770)
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", STRANGER, STRANGER)
    for name, why in (("link", "symbolic link"), ("file", "a file"), ("open", "by others"), ("theirs", "user 65534")):
        with pytest.raises(IoweirError, match=why):
            guarded_files.own_folder(tmp_path / name)


@AS_ROOT
def test_who_may_put_something_else_in_a_folders_place(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert guarded_files.who_may_rename(inner) == ""
    (tmp_path / "a").chmod(0o1777)
    assert guarded_files.who_may_rename(inner) == ""
    (tmp_path / "a").chmod(0o777)
    assert "whoever may write" in guarded_files.who_may_rename(inner)
    (tmp_path / "a").chmod(0o755)
    os.chown(tmp_path / "a", STRANGER, STRANGER)
    assert "user 65534" in guarded_files.who_may_rename(inner)
    (tmp_path / "link").symlink_to(inner)
    assert "user 65534" in guarded_files.who_may_rename(tmp_path / "link")


# ------------------------------------------------------------------------------------------------- named by the user


def test_links_of_the_users_own_are_followed_to_files_only(outside: Path, tmp_path: Path) -> None:
    (tmp_path / "file").symlink_to(outside / "file")
    (tmp_path / "zero").symlink_to("/dev/zero")
    assert guarded_files.read_named(tmp_path / "file") == b"precious"
    with guarded_files.open_named(tmp_path / "file") as file:
        assert file.read() == b"precious"
    for read in (guarded_files.read_named, guarded_files.open_named):
        for name in ("zero", "outside"):
            with pytest.raises(UnsafeFileError, match="not a file"):
                read(tmp_path / name)


def test_a_pipe_is_read_and_one_that_nobody_writes_into_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", f"echo plan > {tmp_path}/pipe"]):
        assert guarded_files.read_named(tmp_path / "pipe") == b"plan\n"
    code = "import sys; from pathlib import Path; from ioweir.base.guarded_files import read_named; " \
           "print(read_named(Path(sys.argv[1])))"  # fmt: skip
    said = subprocess.run(
        ["bash", "-c", f'"$0" -c "{code}" <(sleep 0.5; echo of a shell)', sys.executable],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout == "b'of a shell\\n'\n"
    with pytest.raises(UnsafeFileError, match="not a file"):
        guarded_files.open_named(tmp_path / "pipe")
    monkeypatch.setattr(guarded_files, "WAIT_S", 0.2)
    begun = time.monotonic()
    with pytest.raises(UnsafeFileError, match="nobody has written"):
        guarded_files.read_named(tmp_path / "pipe")
    assert 0.2 <= time.monotonic() - begun < 4
    # Somebody has it open, and says nothing.
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    with pytest.raises(UnsafeFileError, match="nobody has written"):
        guarded_files.read_named(tmp_path / "pipe")
    os.close(writer)


def test_output_that_the_user_names_takes_a_links_place(outside: Path, tmp_path: Path) -> None:
    (tmp_path / "picture.svg").symlink_to(outside / "file")
    guarded_files.write_named(tmp_path / "picture.svg", "<svg/>")
    assert (tmp_path / "picture.svg").read_text() == "<svg/>"
    assert precious(outside)[0][1] == "precious"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        guarded_files.write_named(tmp_path / "pipe", "x")
    with pytest.raises(UnsafeFileError, match="a folder"):
        guarded_files.write_named(outside, "x")
    said = subprocess.run(
        [sys.executable, "-c", "from pathlib import Path; from ioweir.base.guarded_files import write_named; "
         "write_named(Path('/dev/stdout'), 'seen')"], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout == "seen"


def test_texts_are_found_also_across_the_blocks_that_are_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a" * ((1 << 20) - 3) + b"needle" + b"b" * (1 << 20) + b"end")
    assert guarded_files.named_holds(tmp_path / "x", (b"needle", b"end", b"none")) == {b"needle", b"end"}


def test_no_descriptor_is_left_behind(folder: Folder) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    os.mkfifo(folder.path / "pipe")
    for _ in range(20):
        for work in (folder.read, folder.folder, lambda name: guarded_files.open_named(folder.path / name)):
            with pytest.raises(OSError):  # noqa: PT011 (each says something else)
                work("pipe")
        folder.write("x", "y")
        folder.read("x")
        list(folder.walk(lambda _: True))
        guarded_files.write_named(folder.path / "x", "z")
        guarded_files.read_named(folder.path / "x")
        with pytest.raises(OSError):  # noqa: PT011
            folder.below(("pipe",))
    assert count() == before
