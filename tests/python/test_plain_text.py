"""Names of anybody's choice: nothing that ioweir prints moves a terminal, and its XML and JSON are well-formed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

import pytest
from forked import completed_in_bytes
from hypothesis import given
from hypothesis import strategies as st
from ioweir.base import picture, plain_text
from ioweir.plan import schedule_picture
from traces import Builder, Call

if TYPE_CHECKING:
    from collections.abc import Iterator

IOWEIR: Final = Path(sys.executable).with_name("ioweir")
# ESC, BEL, CR, newline, tab, backspace, a C1 control, overrides of the writing direction, a line separator, markup.
HOSTILE: Final = "\x1b[2J\x1b]0;t\x07\r\n\t\x08\x9b31m\u202e\u2066\u2028<&>\"'[bold]"
NO_UTF_8: Final = os.fsdecode(b"\xff\xfe\xc3(")
OBEYED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
TEXTS: Final = st.text(st.characters(codec=None, categories=None), max_size=40) | st.just(HOSTILE + NO_UTF_8)


@given(text=TEXTS)
def test_text(text: str) -> None:
    shown = plain_text.line(text)
    assert not OBEYED.search(shown)
    assert "\n" not in shown
    assert "\t" not in shown
    shown.encode("utf-8")
    assert plain_text.line(shown) == shown
    assert plain_text.lines(text).count("\n") == text.count("\n")


def test_text_that_means_no_harm_stays() -> None:
    for text in ("/scratch/Zürich/データ/αβγ 🙂.h5", "a\\x1b", "{[(<&>)]}"):
        assert plain_text.line(text) == text
    assert plain_text.line("\x1b[2J" + NO_UTF_8 + "\n\u202e") == "\\x1b[2J\\xff\\xfe\\xc3(\\n\\u202e"


@given(text=TEXTS)
def test_xml(text: str) -> None:
    root = ElementTree.fromstring(f"<t>{plain_text.xml(text)}</t>")
    assert (root.text or "") == plain_text.line(text)


@given(text=TEXTS, more=st.lists(TEXTS, max_size=3))
def test_json(text: str, more: list[str]) -> None:
    printed = plain_text.json(json.dumps({text: [text, *more]}))
    printed.encode("ascii")
    ((key, values),) = json.loads(printed).items()
    key.encode("utf-8")
    "".join(values).encode("utf-8")
    if not re.search("[\ud800-\udfff]", text):
        assert (key, values[0]) == (text, text)


def test_streams_show_what_a_terminal_would_obey(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as file:
        print(f"a{HOSTILE}{NO_UTF_8}é", file=plain_text.Stream(file))
    written = (tmp_path / "out").read_text("ascii")
    assert not OBEYED.search(written)
    assert written.endswith("\\xe9\n")


# ------------------------------------------------------------------------------------------------------ every command


def run(*words: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return completed_in_bytes([IOWEIR, *words], cwd=cwd, env=os.environ | variables)


def check(done: subprocess.CompletedProcess[bytes]) -> str:
    """What was printed, which is text without anything that a terminal obeys; no exception got out."""
    text = (done.stdout + done.stderr).decode("utf-8")
    assert not OBEYED.search(text), text
    assert "Traceback" not in text
    return text


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace of hostile file names in a folder of such a name, and files of such names."""
    root = tmp_path_factory.mktemp("hostile")
    folder = root / name()
    folder.mkdir()
    builder = Builder()
    for rank in range(2):
        builder.rank(rank, 2, executable=f"/bin/x{HOSTILE}")
    for rank in range(2):
        outer = Call(rank, "MPI_File_write_at_all", 1 + rank, 3 + rank, f"/d/{HOSTILE}", 100)
        builder.add(outer, outer.inside("pwrite", 1 + rank, 2 + rank, 200))
        builder.add(Call(rank, "fcntl_lock", 5, 6, f"/e/{HOSTILE}", 1), Call(rank, "write", 7, 8, f"/e/{HOSTILE}", 1))
    builder.write(folder)
    (folder / "run.json").write_text(
        json.dumps({
            "command": [f"./a{HOSTILE}"], "program": f"a{HOSTILE}", "cwd": f"/d{HOSTILE}", "wall_s": 10.0,
            "exit_code": 0, "signal": None, "state": "ended", "plan": f"plan{HOSTILE}",
        })
    )  # fmt: skip
    (root / f"file{name()}").write_bytes(b"plain")
    return root


def name() -> str:
    """As a file can be called: no slash."""
    return (HOSTILE + NO_UTF_8).replace("/", "")


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield key
            yield from texts_in(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from texts_in(entry)


TRACE_COMMANDS: Final = (
    ("report",), ("report", "--json"), ("timeline",), ("timeline", "--by", "target"), ("timeline", "--json"),
    ("merge-trace",),
)  # fmt: skip


@pytest.mark.parametrize("words", TRACE_COMMANDS, ids=" ".join)
def test_commands_on_a_trace(place: Path, words: tuple[str, ...]) -> None:
    done = run(*words, name(), cwd=place)
    text = check(done)
    assert done.returncode == 0, text
    if "--json" in words:
        assert any(HOSTILE in value for value in texts_in(json.loads(done.stdout)))


def test_a_name_cannot_make_a_line_of_its_own(place: Path, tmp_path: Path) -> None:
    builder = Builder()
    builder.add(Call(builder.rank(0, 1), "write", 1, 2, "/d/a\nDropped events: 99.\n", 5))
    builder.write(tmp_path)
    lines = check(run("report", tmp_path, cwd=place)).splitlines()
    assert [line for line in lines if line.startswith("Dropped events")] == ["Dropped events: 0."]


def test_compare(place: Path) -> None:
    assert "wall time" in check(run("compare", name(), name(), cwd=place))
    assert "wall time" in check(run("compare", name(), name(), "--json", cwd=place))


def test_pictures(place: Path) -> None:
    done = run("timeline", name(), "--picture", "timeline.svg", cwd=place)
    assert done.returncode == 0, check(done)
    names = [element.get("aria-label", "") for element in ElementTree.parse(place / "timeline.svg").iter()]
    assert any(plain_text.line(HOSTILE) in name for name in names)
    targets = place / "targets"
    targets.mkdir()
    manifest = "".join(
        f'[[target]]\nname = {json.dumps(f"t{number}{HOSTILE}")}\ndirectory = "{number}"\n' for number in range(2)
    )
    for number in range(2):
        (targets / str(number)).mkdir()
    (targets / ".ioweir-targets.toml").write_text(manifest)
    done = run("probe", "targets", "--window", "10ms", "--discard", "1ms", "--plot", "probe.svg", cwd=place)
    text = check(done)
    if done.returncode == 0:
        ElementTree.parse(place / "probe.svg")
    else:
        assert "targets" in text  # a manifest with such names may be refused, in words


def test_the_picture_of_a_schedule_is_xml() -> None:
    chart = schedule_picture.chart({(0, 1): {0: 1}}, f't"{HOSTILE}{NO_UTF_8}', f"s{HOSTILE}")
    ElementTree.fromstring(picture.to_svg(chart))
    assert "</script><b>" not in picture.to_html(schedule_picture.chart({}, "</script><b>", ""))


FILE_COMMANDS: Final = (
    ("ls",), ("ls", "--json"), ("check",), ("check", "--json"), ("merge",), ("convert",), ("gc",), ("gc", "--json"),
    ("probe",), ("report",), ("timeline",), ("merge-trace",), ("compare", "."), ("explain", "--plan"),
    ("doctor", "--"), ("run", "--quiet", "--"), ("run", "--plan"), ("lab", "status", "--directory"),
    ("lab", "status", "--name"), ("kernel",), ("link", "--"), ("nonsense",),
)  # fmt: skip


@pytest.mark.parametrize("words", FILE_COMMANDS, ids=" ".join)
@pytest.mark.parametrize("there", ["there", "missing"])
def test_commands_on_files(place: Path, words: tuple[str, ...], there: str) -> None:
    """Whether they can do anything with it or say that they cannot."""
    if words[0] == "merge" and there == "there":
        return  # refuses or replaces it: the others want it as it is
    file = f"file{name()}" if there == "there" else f"missing{name()}"
    more = ["target"] if words[0] == "convert" else ["--", "true"] if words[:2] == ("run", "--plan") else []
    check(run(*words, file, *more, cwd=place))


def test_a_traced_run_with_hostile_names(tmp_path: Path) -> None:
    folder = tmp_path / name()
    folder.mkdir()
    script = folder / f"prog{name()}"
    script.write_text('#!/bin/sh\necho x > "out$1"\ncat "out$1" > /dev/null\n')
    script.chmod(0o755)
    done = run("run", "-o", "trace", "--", script, HOSTILE.replace("/", ""), cwd=folder)
    text = check(done)
    assert done.returncode == 0, text
    for words in TRACE_COMMANDS:
        check(run(*words, "trace", cwd=folder))
