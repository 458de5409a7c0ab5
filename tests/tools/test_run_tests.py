"""The counting of `make test`: what ctest and pytest write, and runners that die without writing."""

from pathlib import Path

from run_tests import Counts, read_junit

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
