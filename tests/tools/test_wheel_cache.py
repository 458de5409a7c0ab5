"""Wheels that are kept: what makes the key, whose folder is believed, how many stay; that a kept one is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import wheel_cache

ROOT = Path(wheel_cache.__file__).resolve().parents[1]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "a.cpp", tmp_path / "b.hpp"]
    for path in made:
        path.write_text(f"// {path.name}\n")
    return made


def test_the_key_is_of_names_contents_and_words(files: list[Path]) -> None:
    first = wheel_cache.key(files, ["gcc 12"])
    assert wheel_cache.key(reversed(files), ["gcc 12"]) == first
    assert wheel_cache.key(files, ["gcc 13"]) != first
    assert wheel_cache.key(files, ["gcc ", "12"]) != first
    assert wheel_cache.key(files[:1], ["gcc 12"]) != first
    files[1].write_text("// other\n")
    assert wheel_cache.key(files, ["gcc 12"]) != first


def test_another_checkout_has_the_same_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    outside = tmp_path / "outside.h"
    outside.write_text("int b;\n")
    for name in ("one", "two"):  # the header's path lies between theirs
        source = tmp_path / name / "src" / "a.cpp"
        source.parent.mkdir(parents=True)
        source.write_text("int a;\n")
        monkeypatch.setattr(wheel_cache, "ROOT", tmp_path / name)
        keys.add(wheel_cache.key([source, outside], []))
    assert len(keys) == 1


def test_what_compilers_are_given_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel_cache, "headers", lambda *_: set())
    with_flags, without = ({**os.environ, "CXXFLAGS": flags} for flags in ("-O3", ""))
    assert wheel_cache.surroundings(with_flags)[1] != wheel_cache.surroundings(without)[1]
    assert wheel_cache.surroundings(without) == wheel_cache.surroundings({**without, "UNRELATED": "1"})


def test_headers_are_those_that_a_source_includes(tmp_path: Path) -> None:
    (tmp_path / "inner.h").write_text("int inner;\n")
    (tmp_path / "outer.h").write_text('#include "inner.h"\n')
    found = wheel_cache.headers(["c++", "-x", "c++", f"-I{tmp_path}"], "#include <outer.h>\n")
    assert {tmp_path / "outer.h", tmp_path / "inner.h"} <= found
    assert wheel_cache.headers(["no-such-compiler"], "") == set()


def test_the_package_s_own_surroundings_have_its_libraries() -> None:
    found, words = wheel_cache.surroundings(os.environ)
    assert {"toml.h", "xxhash.h", "vector", "mpi.h"} <= {path.name for path in found}
    assert any(word.startswith("nanobind ") for word in words)


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"HOME": "/h"}, Path("/h/.cache/ioweir/wheels")),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/c"}, Path("/c/ioweir/wheels")),
        ({"HOME": "/h", "IOWEIR_WHEEL_CACHE": "/w"}, Path("/w")),
        ({"HOME": "/h", "IOWEIR_WHEEL_CACHE": "off"}, None),
        ({"HOME": "/h", "IOWEIR_WHEEL_CACHE": ""}, None),
        ({}, None),
    ],
)
def test_where_wheels_are_kept(variables: dict[str, str], place: Path | None) -> None:
    assert wheel_cache.folder(variables) == place


def test_a_folder_into_which_others_can_write_is_not_believed(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "wheels"
    assert wheel_cache.problem(place) is None
    assert place.stat().st_mode & 0o777 == 0o700
    for mode in (0o720, 0o702, 0o777):
        place.chmod(mode)
        assert "others can write into it" in str(wheel_cache.problem(place))
    place.chmod(0o700)
    place.parent.chmod(0o777)
    assert "others can put another folder into the place of" in str(wheel_cache.problem(place))
    place.parent.chmod(0o1777)
    assert wheel_cache.problem(place) is None
    (tmp_path / "link").symlink_to(place)
    assert "is no directory" in str(wheel_cache.problem(tmp_path / "link"))


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_another_user_s_folder_is_not_believed(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    assert "belongs to another user" in str(wheel_cache.problem(tmp_path))


def test_the_last_used_stay(tmp_path: Path) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    place = tmp_path / "cache"
    assert wheel_cache.problem(place) is None
    names = [f"{number:064x}" for number in range(wheel_cache.KEPT + 2)]
    for number, name in enumerate(names[:-1]):
        wheel_cache.keep(place, name, wheel)
        os.utime(place / name, (number, number))
    kept = names[1]
    assert wheel_cache.found(place, kept) == place / kept / wheel.name  # is used now
    wheel_cache.keep(place, names[-1], wheel)
    assert {path.name for path in place.iterdir()} == {kept, *names[3:]}
    assert wheel_cache.found(place, names[0]) is None


def test_a_wheel_that_others_can_write_is_none(tmp_path: Path) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    wheel_cache.keep(tmp_path, "k", wheel)
    there = wheel_cache.found(tmp_path, "k")
    assert there is not None
    there.chmod(0o666)
    assert wheel_cache.found(tmp_path, "k") is None


def test_a_full_disk_stops_no_build(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = [sys.executable, str(ROOT / "tools" / "wheel_cache.py"), "put", "k", str(tmp_path / "gone.whl")]
    done = subprocess.run(
        words, env={**os.environ, "IOWEIR_WHEEL_CACHE": str(tmp_path / "c")}, capture_output=True, text=True, check=True
    )
    assert "no wheel is kept or taken from the cache" in done.stderr
    assert [path.name for path in (tmp_path / "c").iterdir()] == []


CMAKE = """cmake_minimum_required(VERSION 3.22)
project(small VERSION 0.1.0 LANGUAGES CXX)
add_library(small SHARED src/small.cpp)
install(TARGETS small LIBRARY DESTINATION small)
"""
PROJECT = """[build-system]
requires = ["scikit-build-core"]
build-backend = "scikit_build_core.build"
[project]
name = "small-package"
version = "1"
[tool.scikit-build]
build-dir = "build/python"
"""


def checkout(place: Path) -> Path:
    """A small package that tools/package.sh builds, in an environment of its own."""
    for name, text in {
        "CMakeLists.txt": CMAKE,
        "pyproject.toml": PROJECT,
        "src/small.cpp": "int small() { return 1; }\n",
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    (place / "tools").mkdir()
    for name in ("package.sh", "wheel_cache.py"):
        (place / "tools" / name).write_bytes((ROOT / "tools" / name).read_bytes())
        (place / "tools" / name).chmod(0o755)
    script = '#!/bin/bash\ncd "$(dirname "$0")/.."\nfind CMakeLists.txt pyproject.toml src -type f\n'
    (place / "tools" / "package_sources.sh").write_text(script)
    (place / "tools" / "package_sources.sh").chmod(0o755)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / ".venv")], check=True)
    # What builds is this environment's.
    (inside,) = (place / ".venv" / "lib").glob("python3*/site-packages")
    (inside / "outer.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return place


def packaged(place: Path, cache: Path | str) -> str:
    done = subprocess.run(
        ["tools/package.sh"], cwd=place, env={**os.environ, "IOWEIR_WHEEL_CACHE": str(cache)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((place / ".venv" / "lib").glob("python3*/site-packages/small/libsmall.so"))
    assert list((place / "build" / "wheel").glob("*.whl"))
    return done.stdout


def test_a_second_checkout_compiles_nothing(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert "nothing to compile" not in packaged(checkout(tmp_path / "first"), cache)
    second = checkout(tmp_path / "second")
    assert "nothing to compile" in packaged(second, cache)
    assert not (second / "build" / "python").exists()
    (kept,) = cache.glob("*/*.whl")
    assert "small/libsmall.so" in zipfile.ZipFile(kept).namelist()

    (second / "src" / "small.cpp").write_text("int small() { return 2; }\n")
    assert "nothing to compile" not in packaged(second, cache)
    assert len(list(cache.glob("*/*.whl"))) == 2
    assert "nothing to compile" not in packaged(second, "off")
