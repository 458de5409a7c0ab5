"""Plans are read as spec/plan_keys.toml declares their keys, and docs/reference/plan-file.schema.json says the same.

Plans come from the documentation, from other tests, and at random from the declaration.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from generator.plan_keys import UNITS, bound, most_of
from generator.spec import load
from hypothesis import given, settings
from hypothesis import strategies as st
from ioweir.base.compiled import compiled

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
TABLES: Final = {table["name"]: table for table in load(ROOT / "spec").plan_tables}
SCHEMA: Final = json.loads((ROOT / "docs" / "reference" / "plan-file.schema.json").read_text(encoding="utf-8"))
NO_SCHEMA_SAYS: Final = (
    "a pattern stands in the plan twice",
    "a page buffer smaller than a page",
    "a size that no probe can be made with: size",
    "a value that HDF5 cannot have",
    "not the shape of a chunk",
)
"""What only the reader refuses."""


def is_integer(_checker: object, value: object) -> bool:
    """TOML tells 1.0 from 1, and JSON does not."""
    return isinstance(value, int) and not isinstance(value, bool)


VALIDATOR = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer),
)(SCHEMA)


def refusal(text: str) -> str:
    """What the reader says; empty: it accepts the plan."""
    try:
        compiled().parse_plan(text, "plan.toml")
    except ValueError as error:
        return str(error)
    return ""


def compare(text: str) -> None:
    """Reader and schema say the same of a plan."""
    said = refusal(text)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assert "not valid TOML" in said
        return
    if VALIDATOR.is_valid(document):
        assert not said or said.startswith(NO_SCHEMA_SAYS), text
    else:
        assert said, f"{text}\n{[error.message for error in VALIDATOR.iter_errors(document)]}"


# Plans that stand somewhere


def of_pages() -> Iterator[tuple[Path, str]]:
    """Lines of plans, in blocks or indented."""
    line = r"(?:(?:\[|\w+ *= |#).*)?\n"
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = re.sub(r"^ +", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for plan in re.findall(rf"^\[\[file\]\]\n(?:{line})*", text, re.MULTILINE):
            yield page, plan


def of_python() -> Iterator[tuple[Path, str]]:
    for path in sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "[[file]]" in node.value:
                yield path, node.value


def of_cpp() -> Iterator[tuple[Path, str]]:
    literal = r'"(?:\\.|[^"\\\n])*"'
    for path in sorted([*(ROOT / "src").rglob("*.cpp"), *(ROOT / "tests").rglob("*.cpp")]):
        text = path.read_text(encoding="utf-8")
        for raw in re.findall(r'R"\((.*?)\)"', text, re.DOTALL):
            if "[[file]]" in raw:
                yield path, raw
        for row in re.findall(rf"{literal}(?:\s*{literal})*", text):
            if "[[file]]" in row and not re.search(r"\\(?![nt\"\\])", row):
                yield path, "".join(json.loads(one) for one in re.findall(literal, row))


def of_files() -> Iterator[tuple[Path, str]]:
    for folder in ("examples", "tests", "bench"):
        for path in sorted((ROOT / folder).rglob("*.toml")):
            if "[[file]]" in (text := path.read_text(encoding="utf-8")):
                yield path, text


@pytest.mark.parametrize(("source", "least"), [(of_pages, 5), (of_files, 3), (of_python, 20), (of_cpp, 40)])
def test_schema_and_reader_agree_on_plans_of_pages_and_tests(source: Any, least: int) -> None:
    found = list(source())
    assert len(found) >= least
    for _, text in found:
        compare(text)


def test_plans_of_pages_and_examples_are_accepted() -> None:
    for path, text in (*of_pages(), *of_files()):
        assert refusal(text) == "", path
        VALIDATOR.validate(tomllib.loads(text))


# Plans made at random


def number(table: dict[str, Any], key: dict[str, Any], *, legal: bool) -> st.SearchStrategy[Any]:
    least, most = bound(key.get("least", 1)), most_of(table, key)
    largest = bound(most) if most is not None else (1 << 63) - 1
    if legal:
        return st.integers(least, largest) | st.sampled_from([least, largest])
    beyond = [largest + 1] if most is not None else []
    return st.sampled_from([least - 1, -5, *beyond, 1.5, float(least), True, [least], {"a": 1}])


def size(table: dict[str, Any], key: dict[str, Any], *, legal: bool) -> st.SearchStrategy[Any]:
    numbers = number(table, key, legal=legal)
    if not legal:
        return numbers | st.sampled_from(["", "16 mib", "1.5 GiB", "0", "-1", "MiB", "1 M", "auto "])
    least, most = bound(key.get("least", 1)), bound(most_of(table, key) or "1024 TiB")
    texts = [f"{n} {u}" for n in (1, 3, 512) for u in UNITS if least <= n * UNITS[u] <= most]
    return numbers | st.sampled_from([*texts, f"  {most}", f"{most}B"])


def choice(key: dict[str, Any], *, legal: bool) -> st.SearchStrategy[Any]:
    forms = {"none": ("",), "number": (":1", ":64"), "number_or_auto": (":1", ":64", ":auto"), "one_in": (":1/8",)}
    wrong = {
        "none": (":1", ":auto"),
        "number": ("", ":0", ":auto"),
        "number_or_auto": ("", ":", ":0"),
        "one_in": (":8",),
    }
    ends = forms if legal else wrong
    texts = [value["name"] + end for value in key["values"] for end in ends[value.get("count", "none")]]
    return st.sampled_from(texts if legal else [*texts, "", "none", 3, True, ["shared"]])


def inner_table(name: str, *, legal: bool) -> st.SearchStrategy[Any]:
    return values_of(TABLES[name], legal=True) if legal else st.sampled_from([3, "a", True, [1], {"colour": 1}])


SHAPES: Final = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def value(table: dict[str, Any], key: dict[str, Any], *, legal: bool) -> st.SearchStrategy[Any]:
    """A value that the declaration allows, or one that it does not."""
    kind = key["type"]
    words = ["", "nothing", 3, 1.5, True, [], {}]
    plain: dict[str, tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
        "text": (st.text("ab*/", min_size=1), st.sampled_from(["", 3, True, ["a"]])),
        "word": (st.sampled_from(key.get("words", [""])), st.sampled_from(words)),
        "share": (st.floats(0, 1) | st.integers(0, 1), st.sampled_from([-0.1, 1.5, 2, "0.5", True, [0.5]])),
        "truth": (st.booleans(), st.sampled_from([0, 1, "true", []])),
        "list": (st.lists(st.text("ab/", min_size=1), min_size=1), st.sampled_from([[], [""], [1], "a", 3, {}])),
        "chunks": (SHAPES | st.dictionaries(st.text("ab*", min_size=1), SHAPES, min_size=1),
                   st.sampled_from([[], [0], ["a"], "all", 3, {}, {"a": []}, [1] * 33])),
    }  # fmt: skip
    if kind == "table":
        return inner_table(key["name"], legal=legal)
    if kind == "choice":
        return choice(key, legal=legal)
    bounded = {"number": number, "size": size}
    found = bounded[kind](table, key, legal=legal) if kind in bounded else plain[kind][not legal]
    return found | st.just(key["besides"]) if legal and "besides" in key else found


@st.composite
def values_of(draw: st.DrawFn, table: dict[str, Any], *, legal: bool) -> dict[str, Any]:
    """Some keys of a table; with one mistake unless it is `legal`."""
    keys = [key for key in table["key"] if key.get("required") or draw(st.integers(0, 2)) == 0]
    wrong = "" if legal else draw(st.sampled_from([key["name"] for key in table["key"]]))
    keys += [key for key in table["key"] if key["name"] == wrong and key not in keys]
    return {key["name"]: draw(value(table, key, legal=key["name"] != wrong)) for key in keys}


def together(table: dict[str, Any], values: dict[str, Any]) -> bool:
    """Whether the combinations allow this, and the one comparison that no table makes."""
    usual = {key["name"]: key.get("default") for key in table["key"]}

    def holds(name: str, wanted: Any) -> bool:
        if wanted is True:
            return name in values
        given = values.get(name, usual[name])
        return isinstance(given, str) and given.split(":")[0] == wanted

    for row in (row for row in table.get("combination", []) if "checked" not in row):
        asked = all(holds(*item) for item in row.get("if", {}).items()) and any(key in values for key in row["keys"])
        if asked and not any(holds(*item) for one in row["needs"] for item in one.items()):
            return False
    inner = [together(TABLES[key], found) for key, found in values.items() if key in TABLES]
    return all(inner) and not ("page_buffer" in values and bytes_of(values["page_buffer"]) < bytes_of(values["page"]))


def bytes_of(written: int | str) -> int:
    if isinstance(written, int):
        return written
    digits, unit = re.fullmatch(r"\s*(\d+)\s*(\w*)", written).groups()  # type: ignore[union-attr]
    return int(digits) * UNITS[unit or "B"]


def toml(found: Any) -> str:
    if isinstance(found, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in found.items()) + " }"
    if isinstance(found, list):
        return "[" + ", ".join(toml(one) for one in found) + "]"
    return json.dumps(found)


def text_of(values: dict[str, Any]) -> str:
    return "[[file]]\n" + "".join(f"{key} = {toml(found)}\n" for key, found in values.items())


@settings(max_examples=300, deadline=None)
@given(values=values_of(TABLES["rule"], legal=True))
def test_what_the_declaration_allows_is_read(values: dict[str, Any]) -> None:
    text = text_of(values)
    said = refusal(text)
    assert bool(said) != together(TABLES["rule"], values), f"{text}{said}"
    compare(text)


@settings(max_examples=200, deadline=None)
@given(values=values_of(TABLES["rule"], legal=False))
def test_one_value_that_the_declaration_does_not_allow_is_refused(values: dict[str, Any]) -> None:
    assert refusal(text_of(values))
    compare(text_of(values))


@pytest.mark.parametrize("name", TABLES)
def test_each_key_takes_its_type_and_range_and_nothing_else(name: str) -> None:
    table = TABLES[name]

    @settings(max_examples=20, deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        for key in table["key"]:
            wrong = data.draw(value(table, key, legal=False))
            inner = {"subfiles": 2, key["name"]: wrong} if name == "netcdf" else {key["name"]: wrong}
            values = {"match": "*", **(inner if name == "rule" else {name: inner})}
            said = refusal(text_of(values))
            assert key["name"] in said or (wrong == {"colour": 1} and "'colour'" in said), (values, said)
            compare(text_of(values))

    check()
