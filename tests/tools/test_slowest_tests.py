"""The tables of tools/slowest_tests.py, from a JUnit file whose sums are known."""

from pathlib import Path

from slowest_tests import Taken, lines, taken

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_x[1]" time="1.5"/><testcase classname="tests.a" name="test_x[2]" time="0.5"/>
<testcase classname="tests.a" name="test_y" time="3"/><testcase classname="tests.b" name="test_x" time="5"/>
</testsuite></testsuites>"""


def test_cases_of_a_function_are_one_row(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(JUNIT)
    files, families = taken(path)
    assert files == {"tests.a": Taken(5.0, 3, 3.0), "tests.b": Taken(5.0, 1, 5.0)}
    assert families["tests.a::test_x"] == Taken(2.0, 2, 1.5)
    said = lines("families", families, 2)
    assert said[0] == "families: 3, 10 s"
    assert [line.split()[0] for line in said[1:]] == ["5.0", "3.0"]
    assert "80%" in said[2]
