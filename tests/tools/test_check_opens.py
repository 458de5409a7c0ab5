"""tools/check_opens.py finds what opens, changes and removes files by their paths."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import check_opens
import pytest

CXX = r"""
#include <filesystem>
// ::open("a comment") and fopen too
const char* text = "::unlink(path)";
int bad() {
    const int fd = ::open(path.c_str(), O_RDONLY);
    std::ifstream stream(path);
    for (fs::directory_iterator at(folder), end; at != end; ++at) {}
    unlink(path.c_str());
    std::rename(a, b);
    mkdir(path, 0777); raw::openat(AT_FDCWD, path, 0, 0);
    below_.open(path.c_str(), O_RDWR);
    return ::stat(path.c_str(), &info);
}
int good() {
    const auto file = folder.value()->file(name);
    folder.remove(name);
    container::Container::open(below_, clock, directory, role);
    struct stat info{};
    return ::fstat(fd, &info) + ::ftruncate(fd, 0) + ::unlinkat_of(fd);
}
"""


def test_calls_are_found_and_nothing_else() -> None:
    found = [call for _, call in check_opens.cxx_calls(CXX)]
    assert sorted(found) == sorted(
        ["open", "ifstream", "fs", "unlink", "rename", "mkdir", "openat", "open", "stat"],
    )
    lines = CXX.splitlines()
    assert all("bad" not in lines[line - 1] for line, _ in check_opens.cxx_calls(CXX))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    room = tmp_path / "src" / "room"
    room.mkdir(parents=True)
    (room / "file.cpp").write_text('int a = ::open("a", 0);\n')
    (room / "file_test.cpp").write_text('int a = ::unlink("a");\n')
    return tmp_path


def judged(checkout: Path, allow: list[dict[str, Any]]) -> list[str]:
    table = check_opens.parse_table({"folders": ["src/room"], "allow": allow})
    return check_opens.offences(checkout, table)


def test_what_the_table_does_not_allow_is_named(checkout: Path) -> None:
    (wrong,) = judged(checkout, [])
    assert wrong.startswith("src/room/file.cpp:1: open: ")
    allowed: dict[str, Any] = {"file": "src/room/file.cpp", "calls": {"open": 1}, "why": "the user's own path"}
    assert judged(checkout, [allowed]) == []


def test_what_it_allows_in_vain_is_named_too(checkout: Path) -> None:
    (wrong,) = judged(checkout, [{"file": "src/room/file.cpp", "calls": {"open": 2}, "why": "the user's own path"}])
    assert "open is allowed 2 times and there 1 times" in wrong


def test_a_table_that_says_nothing_is_refused(checkout: Path) -> None:
    with pytest.raises(check_opens.TableError, match="say why"):
        judged(checkout, [{"file": "src/room/file.cpp", "calls": {"open": 1}, "why": ""}])
    with pytest.raises(check_opens.TableError, match="no folder"):
        check_opens.offences(checkout, check_opens.parse_table({"folders": ["src/none"]}))


def test_this_checkout_keeps_the_rule(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["check_opens.py"])
    code = check_opens.main()
    assert code == 0, capsys.readouterr().out
