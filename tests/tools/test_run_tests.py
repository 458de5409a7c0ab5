"""The counting of `make test`: what ctest and pytest write, and runners that die without writing."""

import sys
from pathlib import Path

import pytest
from run_tests import SECOND_TRIES, Counts, Suite, failed_cases, read_junit

CTEST = """<testsuite name="x" tests="3" failures="1">
<testcase name="a" status="run"/><testcase name="b" status="fail"><failure message=""/></testcase>
<testcase name="c" status="notrun"><skipped message="why"/></testcase></testsuite>"""
PYTEST = """<testsuites><testsuite><testcase name="a"/><testcase name="b"><error message="x"/></testcase>
<testcase name="c"><skipped/></testcase><testcase name="d"/></testsuite></testsuites>"""


def test_both_formats_are_counted(tmp_path: Path) -> None:
    for text, expected in ((CTEST, Counts(1, 1, 1)), (PYTEST, Counts(2, 1, 1))):
        path = tmp_path / "junit.xml"
        path.write_text(text)
        assert read_junit(path, 1) == expected


def test_a_runner_that_fails_silently_is_a_failure(tmp_path: Path) -> None:
    assert read_junit(tmp_path / "never-written.xml", 2) == Counts(0, 1, 0)
    path = tmp_path / "junit.xml"
    path.write_text('<testsuite><testcase name="a"/></testsuite>')
    assert read_junit(path, 3) == Counts(1, 1, 0)
    assert read_junit(path, 0) == Counts(1, 0, 0)


def test_a_runner_that_ran_nothing_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text("<testsuite/>")
    assert read_junit(path, 0) == Counts(0, 1, 0)


def test_failed_cases_are_named(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    assert failed_cases(path) == []
    path.write_text(CTEST.replace('name="b"', 'classname="room" name="b"'))
    assert failed_cases(path) == ["room.b"]


# Stands in for a runner: writes as many failed and passed cases as it is told, and fails if one failed.
RUNNER = """
import sys
failed, passed, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
bad = "".join(f'<testcase name="t{i}"><failure/></testcase>' for i in range(failed))
good = "".join(f'<testcase name="t{failed + i}"/>' for i in range(passed))
open(path, "w").write(f"<testsuite>{bad}{good}</testsuite>")
sys.exit(failed > 0)
"""


def runner(failed: int, passed: int) -> tuple[str, ...]:
    """The command line of a runner of which `failed` tests fail and `passed` pass."""
    return (sys.executable, "-c", RUNNER, str(failed), str(passed))


@pytest.mark.parametrize(
    ("first", "again", "expected", "named"),
    [
        ((0, 9), (0, 0), Counts(9, 0), []),
        ((2, 7), (0, 2), Counts(9, 0), ["t0", "t1"]),
        ((2, 7), (1, 1), Counts(8, 1), ["t1"]),
        ((SECOND_TRIES + 1, 1), (0, SECOND_TRIES + 1), Counts(1, SECOND_TRIES + 1), []),
        # Another number of tests than failed: not to be trusted.
        ((2, 7), (0, 1), Counts(7, 2), []),
        ((2, 7), (0, 9), Counts(7, 2), []),
    ],
)
def test_a_few_failed_tests_are_run_again_and_named(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    first: tuple[int, int],
    again: tuple[int, int],
    expected: Counts,
    named: list[str],
) -> None:
    suite = Suite("stage", runner(*first), runner(*again), tmp_path / "junit.xml")
    assert suite.second_try(suite.first_try()) == expected
    said = [line.rpartition(" ")[2] for line in capfd.readouterr().out.splitlines() if "only when run again" in line]
    assert said == named
