#!/usr/bin/env python3
"""Checks that README.md, docs/ and the newest section of CHANGELOG.md can be read by people who do not know ioweir.

No long sentence, no crowded table cell, no word that says nothing, no abbreviation that is explained nowhere.
tools/prose.toml has the limits, the words and the names.

Lives here: what a sentence, a cell and an abbreviation are. Not here: Markdown (markdown-it-py parses it), links
(`make docs` checks them), spelling.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
WORDS = Path(__file__).resolve().parent / "prose.toml"
CHANGES = "CHANGELOG.md"
GLOSSARY = "docs/reference/glossary.md"
# A colon and a semicolon end a thought, too. Not those of a short form, a figure or a file name.
SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bal)[.:;?!](?=[\s)\"]|$)")
# Capitals and digits, in the plural, too: ABI, XXH64, OSTs. Not a part of a name or a path.
ABBREVIATION = re.compile(r"(?<![\w/.-])(?P<word>[A-Z][A-Z0-9]+)s?(?![\w/]|\.\w)")
# What stands for a span of code: one word, which a reader takes in at a glance.
CODE = "code"
# The next block may break the rules, for the reason that is given.
EXCEPTION = re.compile(r"<!--\s*prose:\s*(?P<reason>.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Limits:
    """The most words of a sentence and of a cell of a table."""

    sentence_words: int
    cell_words: int


@dataclass
class Exempt:
    """The block behind a comment may break the rules; `needed` once it does."""

    line: int
    reason: str
    needed: bool = False


@dataclass(frozen=True)
class Block:
    """A paragraph, a heading, a point of a list or a cell, without its marks."""

    line: int
    text: str
    is_cell: bool
    exempt: Exempt | None = None


@dataclass
class Page:
    """What is read of a page, its exceptions, and the words in its code."""

    blocks: list[Block] = field(default_factory=list)
    exempt: list[Exempt] = field(default_factory=list)
    in_code: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Offence:
    """What is to be said better, and where."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Rules:
    """tools/prose.toml."""

    limits: Limits
    looser: Mapping[str, Limits]
    avoid: Mapping[str, str]
    terms: tuple[str, ...]
    names: frozenset[str]
    name_patterns: tuple[re.Pattern[str], ...]
    made_from: Mapping[str, str]
    left_out: frozenset[str]

    @staticmethod
    def load(path: Path) -> Rules:
        """The rules of a file; a group of looser limits or a page left out needs a reason."""
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        reasons = [group["why"] for group in (*table.get("looser", []), *table.get("left_out", []))]
        if not all(reasons):
            raise ValueError(f"{path}: an empty reason")
        return Rules(
            limits=Limits(**table["limits"]),
            looser={
                page: Limits(group["sentence_words"], group["cell_words"])
                for group in table.get("looser", [])
                for page in group["pages"]
            },
            avoid=table.get("avoid", {}),
            terms=tuple(table.get("terms", {}).get("words", [])),
            names=frozenset(" ".join(table.get("names", {}).get("words", [])).split()),
            name_patterns=tuple(re.compile(text) for text in table.get("names", {}).get("patterns", [])),
            made_from=table.get("made_from", {}),
            left_out=frozenset(group["page"] for group in table.get("left_out", [])),
        )

    def limits_of(self, path: str) -> Limits:
        """Those of the page or of the nearest folder above it."""
        for place in (path, *(f"{parent.as_posix()}/" for parent in Path(path).parents)):
            if place in self.looser:
                return self.looser[place]
        return self.limits


def words_in(text: str) -> int:
    """Signs alone, such as arrows and dashes, are no words."""
    return sum(1 for word in text.split() if re.search(r"\w", word))


def text_of(inline: Token) -> str:
    """What is read: without marks and the targets of links, with a span of code as one word."""
    parts = []
    for child in inline.children or []:
        if child.type in {"softbreak", "hardbreak"}:
            parts.append(" ")
        elif child.type == "code_inline":
            parts.append(CODE)
        elif child.type in {"text", "image"}:
            parts.append(child.content)
    return "".join(parts)


def newest_section(text: str) -> str:
    """The text up to the second heading of the second level: lines keep their numbers."""
    starts = [found.start() for found in re.finditer(r"^## ", text, re.MULTILINE)]
    return text[: starts[1]] if len(starts) > 1 else text


def read(text: str) -> Page:
    """The parts of a page."""
    page = Page()
    waiting: Exempt | None = None
    level_of_waiting, is_cell = 0, False
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "html_block" and (found := EXCEPTION.search(token.content)):
            waiting, level_of_waiting = Exempt(line, found["reason"]), token.level
            page.exempt.append(waiting)
        elif token.type in {"td_open", "th_open"}:
            is_cell = True
        elif token.type in {"td_close", "th_close"}:
            is_cell = False
        elif token.type == "inline":
            page.blocks.append(Block(line, text_of(token), is_cell, waiting))
        if token.type in {"fence", "code_block"}:
            page.in_code.update(re.findall(r"\w+", token.content))
        for child in token.children or []:
            if child.type == "code_inline":
                page.in_code.update(re.findall(r"\w+", child.content))
        # The exception ends with the block behind it, however many points or cells that has.
        if waiting and token.nesting == -1 and token.level == level_of_waiting:
            waiting = None
    return page


def offences_of(block: Block, limits: Limits, avoid: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with one block by itself."""
    for sentence in SENTENCE_END.split(block.text):
        if (words := words_in(sentence)) > limits.sentence_words:
            start = " ".join(sentence.split()[:6])
            yield f"{words} words in a sentence, {limits.sentence_words} at most: {start} ..."
    if block.is_cell and (words := words_in(block.text)) > limits.cell_words:
        yield f"{words} words in a cell, {limits.cell_words} at most: {' '.join(block.text.split()[:6])} ..."
    for phrase, instead in avoid.items():
        if re.search(rf"\b{phrase}\b", block.text, re.IGNORECASE):
            yield f'"{phrase}": {instead}'


def explained_in(glossary: str) -> frozenset[str]:
    """The words of the first column."""
    rows = re.findall(r"^\| (.+?) \|", glossary, re.MULTILINE)
    return frozenset(word for row in rows for word in re.findall(r"[\w-]+", row))


def entries_of(glossary: str) -> frozenset[str]:
    """What the first column explains, in small letters: "bandwidth, effective" is two entries."""
    rows = re.findall(r"^\| (.+?) \|", glossary, re.MULTILINE)
    return frozenset(entry.lower() for row in rows for entry in row.split(", "))


def undefined_terms(page: Page, text: str, rules: Rules, entries: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Lines with the first use of a term that neither the page nor the glossary explains."""
    for term in rules.terms:
        name = re.escape(term)
        if term.lower() in entries or re.search(rf"\*{name}e?s?\*", " ".join(text.split()), re.IGNORECASE):
            continue
        used = (block.line for block in page.blocks if re.search(rf"\b{name}e?s?\b", block.text, re.IGNORECASE))
        if line := next(used, None):
            yield line, term


def is_explained(word: str, page: str) -> bool:
    """The page says what it means: "object storage target (OST)", "OST (object ...)" or a row "| OST | ...".

    In brackets behind a word stand two words or more, else they explain nothing.
    """
    name = re.escape(word)
    return bool(
        re.search(rf"[a-z] \({name}s?[),;:]", page)
        or re.search(rf"\b{name}s?`?\**\]?(?:\([^)]*\))? \((?:\[)?[^)]*\w \w", page)
        or re.search(rf"^\| \**`?{name}`?\** \|", page, re.MULTILINE)
    )


def unexplained(text: str, page: str, in_code: set[str], rules: Rules, glossary: frozenset[str]) -> Iterator[str]:
    """Abbreviations that a reader is not told of. A word that stands in the page's code is a name of that code's."""
    for match in ABBREVIATION.finditer(text):
        word = match["word"]
        if word in in_code or word in glossary or word in rules.names or is_explained(word, page):
            continue
        if not any(pattern.fullmatch(word) for pattern in rules.name_patterns):
            yield word


def check(path: str, text: str, rules: Rules, glossary_page: str) -> list[Offence]:
    """Every offence of one page, in order of lines."""
    page = read(text)
    glossary = explained_in(glossary_page)
    limits = rules.limits_of(path)
    found: list[Offence] = []
    said: set[str] = set()
    for block in page.blocks:
        for offence in offences_of(block, limits, rules.avoid):
            if block.exempt:
                block.exempt.needed = True
            else:
                found.append(Offence(path, block.line, offence))
        for word in unexplained(block.text, text, page.in_code, rules, glossary):
            if word not in said:
                said.add(word)
                found.append(Offence(path, block.line, f"{word} is explained neither here nor in {GLOSSARY}"))
    for line, term in undefined_terms(page, text, rules, entries_of(glossary_page)):
        found.append(Offence(path, line, f'"{term}" is explained neither here (as *{term}*) nor in {GLOSSARY}'))
    for one in page.exempt:
        if not one.reason:
            found.append(Offence(path, one.line, "an exception without a reason"))
        elif not one.needed:
            found.append(Offence(path, one.line, "an exception that nothing needs any more"))
    return sorted(found, key=lambda offence: offence.line)


def pages(root: Path, rules: Rules) -> list[str]:
    """README, changes and everything in docs/ that is kept."""
    found = sorted(path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))
    return ["README.md", CHANGES, *(path for path in found if path not in rules.left_out)]


def main(arguments: list[str] | None = None) -> int:
    """Prints every offence; the exit code is 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="pages, from the checkout's root; all without one")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    parser.add_argument("--rules", type=Path, default=WORDS, help="limits, words and names")
    options = parser.parse_args(arguments)
    root: Path = options.root
    rules = Rules.load(options.rules)
    glossary = (root / GLOSSARY).read_text(encoding="utf-8")
    paths = options.pages or pages(root, rules)
    offences = []
    for path in paths:
        text = (root / path).read_text(encoding="utf-8")
        found = check(path, newest_section(text) if path == CHANGES else text, rules, glossary)
        offences += found
        if found and path in rules.made_from:
            print(f"{path} is made from {rules.made_from[path]}: mend it there", file=sys.stderr)
    for offence in offences:
        print(offence, file=sys.stderr)
    print(f"prose: {len(paths)} pages, {len(offences)} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
