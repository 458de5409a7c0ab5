"""The check of who writes to standard error, on lines made for the purpose and on this checkout."""

from __future__ import annotations

from pathlib import Path

import check_messages
import pytest


@pytest.mark.parametrize(
    "line",
    [
        'std::fprintf(stderr, "x");',
        'std::cerr << "x";',
        'std::clog << "x";',
        'perror("x");',
        "psignal(1, nullptr);",
        "const ssize_t written = raw::write(2, line, length);",
        "(void)raw::write(STDERR_FILENO, line.data(), line.size());",
        "::write( 2 , line, length);",
        "pwritev2(2, vectors, 1, 0, 0);",
        'dprintf(2, "x");',
        'vdprintf(2, "x", list);',
        'err(1, "x");',
        'warnx("x");',
        "raw::call(SYS_write, 2, word(line), length);",
        "dup2(2, other);",
        'open("/dev/stderr", O_WRONLY);',
        'open("/proc/self/fd/2", O_WRONLY);',
    ],
)
def test_each_way_to_write_there_is_an_offence(line: str) -> None:
    text = f"// what it does\nvoid f() {{\n    {line}\n}}\n"
    found = list(check_messages.offences_in("src/engine/x.cpp", text))
    assert [(offence.line, offence.text) for offence in found] == [(3, line)]


@pytest.mark.parametrize(
    "line",
    [
        "// std::fprintf(stderr, ...) is not for us",
        "/* perror(3),\n   write(2, */",
        "say_line(text);",
        "raw::write(fd, line, length);",
        "write(20, line, length);",
        "error(1);",
        "refuse(stderror, 1);",
        "const int standard_error = 2;",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    assert list(check_messages.offences_in("src/engine/x.cpp", line)) == []


def test_only_the_one_function_programs_and_tests_may() -> None:
    line = 'std::fprintf(stderr, "x");'
    programs = ("src/base/text_test.cpp", "src/ncsub/testing.hpp", "src/a/x_fuzz.cpp", "src/base/fuzz_seeds.cpp")
    for path in (check_messages.THE_ONE, *programs):
        assert list(check_messages.offences_in(path, line)) == []
    assert len(list(check_messages.offences_in("src/base/other.cpp", line))) == 1


def test_a_comment_behind_does_not_hide_the_line() -> None:
    assert len(list(check_messages.offences_in("src/a/b.cpp", 'perror("//"); // said'))) == 1


def test_this_checkout_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_messages.main([]) == 0
    assert ", 0 offences" in capsys.readouterr().out


def test_an_offence_and_a_file_that_is_gone_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "x.cpp").write_text('void f() { std::cerr << "x"; }\n')
    assert check_messages.main(["--root", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "src/x.cpp:1:" in said
    assert f"{check_messages.THE_ONE}: is named" in said
