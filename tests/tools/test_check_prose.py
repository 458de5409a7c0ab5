"""The check of prose, on pages made for the purpose and on this checkout."""

from __future__ import annotations

import re
from pathlib import Path

import check_prose
import pytest

RULES = check_prose.Rules(
    limits=check_prose.Limits(sentence_words=5, cell_words=7),
    looser={"docs/internal/": check_prose.Limits(9, 9), "docs/internal/one.md": check_prose.Limits(20, 20)},
    avoid={"just(?! as)": "leave it out"},
    terms=("stripe", "token bucket", "page cache"),
    names=frozenset({"AMD"}),
    name_patterns=(re.compile("SIG[A-Z]+"),),
    made_from={"docs/made.md": "spec/made.toml"},
    left_out=frozenset({"docs/functions.md"}),
)
GLOSSARY = (
    "| word | meaning |\n|---|---|\n| OST | a volume |\n| CephFS, OSD | a file system |\n| page cache | memory |\n"
)


def offences(text: str, path: str = "docs/page.md") -> list[tuple[int, str]]:
    return [(one.line, one.text) for one in check_prose.check(path, text, RULES, GLOSSARY)]


@pytest.mark.parametrize(
    "text",
    [
        "One two three four five.",
        "One two three. Four five six: seven eight nine; ten.",
        "One two three\nfour `a long span of code` .",
        "[One two](https://example.org/a?b=c) three four five.",
        "    one two three four five six seven\n",
        "```sh\none two three four five six seven\n```",
        "# One two\n\n- three four\n- five six\n",
        "One -> two = three + four .. five.",
        "| one two three. four five. six |\n|---|\n",
    ],
)
def test_short_sentences_are_none(text: str) -> None:
    assert offences(text) == []


SIX = "one two three four five six"


@pytest.mark.parametrize(
    ("text", "line", "quoted"),
    [
        (f"{SIX}.", 1, SIX),
        ("One. Two\nthree 5.5 file.md e.g. six.", 1, "Two three 5.5 file.md e.g. six."),
        (f"# {SIX}", 1, SIX),
        (f"\n- {SIX}\n", 2, SIX),
        ("> one two three\n> four **five six**\n", 1, SIX),
        (f"| a |\n|---|\n| {SIX} |\n", 3, SIX),
        (f"![{SIX}](a.svg)", 1, SIX),
    ],
)
def test_long_ones_are_named(text: str, line: int, quoted: str) -> None:
    assert offences(text) == [(line, f"6 words in a sentence, 5 at most: {quoted.rstrip('.')} ...")]


def test_cells_have_a_limit_of_their_own() -> None:
    (found,) = offences("| a b c. d e f. g h |\n|---|\n")
    assert found == (1, "8 words in a cell, 7 at most: a b c. d e f. ...")


@pytest.mark.parametrize(
    ("path", "most"),
    [("docs/page.md", 5), ("docs/internal/notes.md", 9), ("docs/internal/one.md", 20), ("docs/internal.md", 5)],
)
def test_the_nearest_limit_counts(path: str, most: int) -> None:
    assert offences("w " * most, path) == []
    assert len(offences("w " * (most + 1), path)) == 1


def test_words_to_avoid_are_found_whole() -> None:
    assert offences("It is Just\nso.") == [(1, '"just(?! as)": leave it out')]
    assert offences("Adjust it, just as here. `just`") == []


@pytest.mark.parametrize(
    "text",
    [
        "An OST.",
        "OSTs.",
        "An OSD.",
        "AMD.",
        "SIGTERM.",
        "`XYZ`",
        "    ioweir ls XYZ\n\nXYZ is it.",
        "XYZ.md",
        "a/XYZ",
        "volumes on disks (XYZ).",
        "XYZ (a kind of disk).",
        "| XYZ |\n|---|\n| `XYZ` |\n",
    ],
)
def test_abbreviations_that_are_explained(text: str) -> None:
    assert offences(text) == []


@pytest.mark.parametrize("text", ["An XYZ.", "XYZs, XYZ.", "XYZ (old).", "(XYZ)", "A SIG1."])
def test_others_are_named_once(text: str) -> None:
    (found,) = offences(text)
    assert re.fullmatch(r"(XYZ|SIG1) is explained neither here nor in docs/reference/glossary.md", found[1])


@pytest.mark.parametrize(
    "text", ["A *stripe* is this. Stripes.", "The page cache.", "Striped; `stripe`.", "*Token\nbuckets* are this."]
)
def test_terms_that_are_explained(text: str) -> None:
    assert offences(text) == []


def test_others_are_named_where_they_are_used_first() -> None:
    assert offences("One.\n\nStripes.\n\nA stripe.") == [
        (3, '"stripe" is explained neither here (as *stripe*) nor in docs/reference/glossary.md')
    ]


@pytest.mark.parametrize("block", [SIX, f"- {SIX}\n- {SIX}", f"| a |\n|---|\n| {SIX} |", f"> {SIX}", f"# {SIX}"])
def test_an_exception_is_for_the_next_block_alone(block: str) -> None:
    assert offences(f"<!-- prose: quoted from a paper -->\n\n{block}\n") == []
    assert len(offences(f"<!-- prose: quoted from a paper -->\n\n{block}\n\n{SIX} again.\n")) == 1


def test_an_exception_needs_a_reason_and_a_need() -> None:
    assert offences(f"<!-- prose: -->\n\n{SIX}\n") == [(1, "an exception without a reason")]
    assert offences("<!-- prose: why -->\n\nShort.\n") == [(1, "an exception that nothing needs any more")]
    assert offences("<!-- another remark -->\n\nShort.\n") == []


def test_of_the_changes_the_newest_section_counts() -> None:
    text = f"# Changes\n\n## New\n\n- short\n\n## Old\n\n- {SIX}\n"
    assert offences(check_prose.newest_section(text)) == []
    assert len(offences(text)) == 1
    assert check_prose.newest_section("no section") == "no section"


def checkout(root: Path, page: str) -> list[str]:
    """A checkout of few pages; the arguments for it."""
    (root / "docs" / "reference").mkdir(parents=True)
    (root / check_prose.GLOSSARY).write_text("| word | meaning |\n|---|---|\n")
    (root / "docs" / "functions.md").write_text("just a list\n")
    for name in ("README.md", "CHANGELOG.md"):
        (root / name).write_text("Short.\n")
    (root / "docs" / "made.md").write_text(page)
    rules = root / "prose.toml"
    rules.write_text(
        "[limits]\nsentence_words = 5\ncell_words = 7\n"
        '[made_from]\n"docs/made.md" = "spec/made.toml"\n'
        '[[left_out]]\npage = "docs/functions.md"\nwhy = "a list"\n'
    )
    return ["--root", str(root), "--rules", str(rules)]


def test_offences_are_told_with_their_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_prose.main(checkout(tmp_path, SIX)) == 1
    said = capsys.readouterr()
    assert "docs/made.md is made from spec/made.toml: mend it there" in said.err
    assert "docs/made.md:1: 6 words in a sentence" in said.err
    assert said.out == "prose: 4 pages, 1 offences\n"


def test_a_checkout_without_one_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_prose.main(checkout(tmp_path, "Short.")) == 0
    assert capsys.readouterr().err == ""


def test_looser_limits_need_a_reason(tmp_path: Path) -> None:
    rules = tmp_path / "prose.toml"
    rules.write_text(
        "[limits]\nsentence_words = 5\ncell_words = 7\n"
        '[[looser]]\npages = ["docs/"]\nwhy = ""\nsentence_words = 9\ncell_words = 9\n'
    )
    with pytest.raises(ValueError, match="an empty reason"):
        check_prose.Rules.load(rules)


def test_this_checkout_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_prose.main([]) == 0
    assert ", 0 offences" in capsys.readouterr().out
