"""Subfiles of netCDF files on storage targets: directories that a plan or a manifest names. Whoever reads the file
finds it as it would be in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from netcdf_subfiling import FILE, SOURCE, files, launch, parts, plain, under
from tracing import IOWEIR, ioweir_run, run

if TYPE_CHECKING:
    from pathlib import Path

QUICK: Final = 'probe = { discard_ms = 0, window_ms = 20, size = "64 KiB" }'


def rule(folder: Path, *lines: str) -> list[str | Path]:
    """Options for a plan with these lines."""
    folder.mkdir(exist_ok=True)
    path = folder / "plan.toml"
    path.write_text("\n".join(["[[file]]", 'match = "*.nc"', *lines, ""]))
    return ["--plan", path]


def expect_links(folder: Path, subfiles: int, directories: list[Path]) -> None:
    """Each subfile is a link to a file of its own in the directory that its turn is."""
    for number, name in enumerate(parts(subfiles)):
        target = (folder / name).readlink()
        assert target.parent == directories[number % len(directories)]
        assert target.name.endswith(f".{name}")


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 2), (4, 3)])
def test_subfiles_are_dealt_round_over_the_plans_directories(tmp_path: Path, ranks: int, subfiles: int) -> None:
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    folder = tmp_path / "run"
    targets = ", ".join(f'"{place}"' for place in places)
    options = rule(folder, f"targets = [{targets}]", f"netcdf = {{ subfiles = {subfiles} }}")
    expected = plain(tmp_path / "plain", ranks, "write", FILE)
    # Twice: the second takes the first one's files away.
    for _ in range(2):
        assert under(folder, ranks, "write", FILE, options=options).out == expected
        expect_links(folder, subfiles, places)
        assert sum(len(list(place.iterdir())) for place in places) == subfiles
    assert under(folder, 3, "read", FILE).out == plain(tmp_path / "plain", 3, "read", FILE)
    run([*IOWEIR, "check", FILE], cwd=folder).expect()
    run([*IOWEIR, "merge", FILE], cwd=folder).expect()
    assert (folder / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()
    assert files(folder) == [FILE]
    assert not any(list(place.iterdir()) for place in places)


def test_one_subfile_on_each_target_that_a_manifest_names(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    names = ["t0", "t1", "t2"]
    text = f'state = "{tmp_path}/buckets"\n'
    for name in names:
        (tmp_path / name).mkdir()
        text += f'[[target]]\nname = "{name}"\ndirectory = "{tmp_path / name}"\n'
    (folder / ".ioweir-targets.toml").write_text(text)
    # A threshold of 1 keeps every target, however fast it was just now.
    wished = QUICK.replace(" }", ", threshold = 1 }")
    traced = under(folder, 3, "write", FILE, options=rule(folder, 'netcdf = { subfiles = "auto" }', wished))
    assert traced.out == plain(tmp_path / "plain", 3, "write", FILE)
    expect_links(folder, len(names), [tmp_path / name for name in names])
    notes = traced.report["messages"]
    assert any("3 storage targets" in text and "3 chosen" in text for text in notes), notes
    under(folder, 1, "delete", FILE)
    assert not any(list((tmp_path / name).iterdir()) for name in names)


def test_without_targets_the_file_is_written_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    traced = under(folder, 3, "write", FILE, options=rule(folder, 'netcdf = { subfiles = "auto" }', QUICK))
    assert traced.out == plain(tmp_path / "plain", 3, "write", FILE)
    assert "its arrays are not divided over subfiles: " in traced.err
    assert files(folder) == [FILE]


def test_a_directory_that_cannot_be_written_to_is_an_error_on_all_ranks(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (tmp_path / "nowhere").mkdir()
    options = rule(folder, f'targets = ["{tmp_path}/nowhere"]', "netcdf = { subfiles = 2 }")
    command = " ".join(map(str, launch(SOURCE, 3, "write", FILE)))
    # It goes after the plan was found fit.
    words = ["sh", "-c", f"rmdir {tmp_path}/nowhere; exec {command}"]
    traced = ioweir_run(folder / "trace", words, options=options, cwd=folder, code=None)
    assert traced.code != 0
    assert f"{parts(2)[0]} cannot be made in its place: No such file or directory" in traced.err
