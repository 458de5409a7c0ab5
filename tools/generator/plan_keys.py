"""spec/plan_keys.toml -> what src/policy reads and writes plans by, and the names of src/planner/strategy.cpp.

The schema and the reference page: plan_key_pages.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from generator.spec import Spec

Table = dict[str, Any]
Key = dict[str, Any]

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
TYPES = ("text", "choice", "word", "size", "number", "share", "truth", "list", "table", "chunks")
COUNTS = ("none", "number", "number_or_auto", "one_in")
KEY_ATTRIBUTES = {
    "name", "type", "field", "help", "default", "default_is", "required", "written", "missing", "wrong", "remedy", "too_large",
    "remedy_too_large", "least", "most", "unit", "besides", "besides_field", "words", "enum", "values",
}  # fmt: skip
BOUNDED = ("size", "number")
NEEDED = {
    "text": {"wrong", "remedy"}, "choice": {"enum", "values"}, "word": {"words"}, "number": {"wrong", "least"}, "share": {"wrong"},
    "list": {"wrong", "remedy"}, "table": {"remedy"},
}  # fmt: skip
CHECKED = ("read", "run")


def bound(value: int | str) -> int:
    """4096 of 4096 and of "4 KiB"."""
    if isinstance(value, int):
        return value
    number, unit = value.split(" ")
    return int(number) * UNITS[unit]


def most_of(table: Table, key: Key) -> int | str | None:
    most: int | str | None = key.get("most", table.get("most_size") if key["type"] == "size" else None)
    return most


def paths(spec: Spec) -> list[str]:
    """How hints name the keys of a rule: "buffer", "stripe.size"."""
    tables = {table["name"]: table for table in spec.plan_tables}
    found = []
    for key in tables["rule"]["key"]:
        found.append(key["name"])
        if key["type"] == "table":
            found += [f"{key['name']}.{inner['name']}" for inner in tables[key["name"]]["key"]]
    return found


def check(spec: Spec) -> None:
    """What the entries promise each other."""
    made: set[str] = set()
    for table in spec.plan_tables:
        keys = {key["name"]: key for key in table["key"]}
        if len(keys) != len(table["key"]):
            raise ValueError(f"spec/plan_keys.toml: {table['name']}: a key stands there twice")
        for key in table["key"]:
            where = f"spec/plan_keys.toml: {table['name']}.{key['name']}"
            if unknown := set(key) - KEY_ATTRIBUTES:
                raise ValueError(f"{where}: unknown {sorted(unknown)}")
            if key["type"] not in TYPES:
                raise ValueError(f"{where}: unknown type {key['type']!r}; known: {', '.join(TYPES)}")
            if missing := (NEEDED.get(key["type"], set()) | {"field", "help"}) - set(key):
                raise ValueError(f"{where}: no {', '.join(sorted(missing))}")
            if not any(name in key for name in ("default", "default_is", "required")):
                raise ValueError(f"{where}: no default")
            bounded = most_of(table, key) is not None or "least" in key
            if key["type"] == "size" and bounded and not key.get("wrong", table.get("out_of_range")):
                raise ValueError(f"{where}: no wrong, for sizes out of bounds")
            if key["type"] == "table" and key["name"] not in made:
                raise ValueError(f"{where}: there is no table of that name")
            if ("besides" in key) != ("besides_field" in key):
                raise ValueError(f"{where}: besides and besides_field belong together")
        for row in table.get("combination", []):
            others = [name for condition in (row.get("if", {}), *row["needs"]) for name in condition]
            if unknown := {*row["keys"], *others} - set(keys):
                raise ValueError(f"spec/plan_keys.toml: {table['name']}: a combination of unknown keys {sorted(unknown)}")
            if any(len(condition) != 1 for condition in row["needs"]):
                raise ValueError(f"spec/plan_keys.toml: {table['name']}: one key in each of `needs`")
        made.add(table["name"])


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def enumerator(name: str) -> str:
    """In C++, where auto is a keyword."""
    return "automatic" if name == "auto" else name.replace("-", "_")


def literal(value: Any) -> str:
    """A default as it is written in a plan."""
    return quoted(value) if isinstance(value, str) else str(value).lower()


def key_entry(table: Table, key: Key) -> str:
    parts = [f".name = {quoted(key['name'])}", f".type = KeyType::{key['type']}"]
    parts += [f".{flag} = true" for flag in ("required", "written") if key.get(flag)]
    least, most = key.get("least", 1 if key["type"] == "size" else None), most_of(table, key)
    if least is not None:
        parts.append(f".least = {bound(least)}")
    if most is not None:
        parts.append(f".most = {bound(most)}")
    if "words" in key:
        parts.append(f".words = {table['name']}_{key['name']}_words")
    texts = {name: key.get(name, "") for name in ("besides", "usual", "wrong", "remedy", "too_large", "remedy_too_large", "missing")}
    if "default" in key:
        texts["usual"] = literal(key["default"])
    if key["type"] == "size":
        texts["wrong"] = texts["wrong"] or table.get("out_of_range", "")
    if key["type"] in BOUNDED and most is not None:
        name = "remedy" if key["type"] == "size" else "remedy_too_large"
        texts[name] = texts[name] or f"write {most} at most"
    if key["type"] == "number":
        texts["remedy"] = texts["remedy"] or f"write a whole number from {least}, or leave the key out for the default"
    parts += [f".{name} = {quoted(text)}" for name, text in texts.items() if text]
    if key["type"] == "table":
        parts.append(f".table = &{key['name']}_table")
    return "    {" + ", ".join(parts) + "},"


def conditions(table: Table, all_of: dict[str, Any]) -> list[str]:
    keys = {key["name"]: key for key in table["key"]}
    return [
        f'{{{quoted(name)}, {quoted("" if value is True else value)}, {str(keys[name].get("default") == value).lower()}}}'
        for name, value in all_of.items()
    ]


def combination_lines(table: Table) -> list[str]:
    """Two tables, of what is checked when a plan is read and before a program runs, and the conditions that they point at."""
    lines = []
    rows: dict[str, list[str]] = {name: [] for name in CHECKED}
    for number, row in enumerate(table.get("combination", [])):
        spans = []
        for part, all_of in (("when", [row["if"]] if "if" in row else []), ("needs", row["needs"])):
            texts = [text for one in all_of for text in conditions(table, one)]
            spans.append(f"{table['name']}_{part}_{number}" if texts else "{}")
            if texts:
                lines.append(f"inline constexpr Condition {spans[-1]}[] = {{{', '.join(texts)}}};")
        for key in row["keys"]:
            texts = [*spans, quoted(row["what"].replace("{key}", key)), quoted(row["remedy"])]
            rows[row.get("checked", "read")].append(f"    {{{quoted(key)}, {', '.join(texts)}}},")
    for name, found in rows.items():
        if found:
            lines += [f"inline constexpr Combination {table['name']}_to_{name}[] = {{", *found, "};"]
    return lines


def visit_line(table: Table, number: int, key: Key) -> str:
    field = key["field"]
    arguments = [f"{table['name']}_keys[{number}]", f"of.{field}", f"usual.{field}"]
    if "besides_field" in key:
        arguments.append(f"&of.{key['besides_field']}")
    if key["type"] == "choice":
        arguments.append(f"planner::parse_{key['name']}")
    if key["type"] == "word" and "enum" in key:
        of_bool = ("true", "false")
        values = of_bool if key["enum"] == "bool" else [f"{key['enum']}::{enumerator(word)}" for word in key["words"]]
        arguments.append(f"{{{', '.join(values[: len(key['words'])])}}}")
    return f"    visit.{key['type']}({', '.join(arguments)});"


def table_lines(table: Table) -> list[str]:
    name = table["name"]
    names = ", ".join(quoted(key["name"]) for key in table["key"])
    out = [f"inline constexpr std::string_view {name}_names[] = {{{names}}};"]
    for key in table["key"]:
        if "words" in key:
            words = ", ".join(quoted(word) for word in key["words"])
            out.append(f"inline constexpr std::string_view {name}_{key['name']}_words[] = {{{words}}};")
    out += [f"inline constexpr Key {name}_keys[] = {{", *(key_entry(table, key) for key in table["key"]), "};"]
    out += combination_lines(table)
    checked = {row.get("checked", "read") for row in table.get("combination", [])}
    combinations = ", ".join(f"{name}_to_{when}" if when in checked else "{}" for when in CHECKED)
    shows = str(table.get("shows_values", False)).lower()
    return [
        *out, f"inline constexpr KeyTable {name}_table{{{quoted(name)}, {name}_keys, {name}_names, {combinations}, {shows}}};", "",
        "template <typename Of, typename Visit>",
        f"void each_key(Of& of, const {table['struct']}& usual, Visit& visit) {{",
        *(visit_line(table, number, key) for number, key in enumerate(table["key"])),
        "}", f"constexpr const KeyTable& keys_of(const {table['struct']}& /*values*/) {{ return {name}_table; }}", "",
    ]  # fmt: skip


def policy_header(spec: Spec) -> str:
    set_by_hints = {hint["sets"] for hint in spec.hints}
    out = [
        "// Generated from spec/plan_keys.toml: the keys of plan files. See docs/reference/plan-file.md.",
        "#pragma once", "", '#include "policy/plan_file.hpp"', '#include "policy/plan_keys.hpp"', "", "namespace ioweir::policy {", "",
        "// each_key() shows `visit` every key of a table with its value in `of` and what that is where the key is left out.", "",
    ]  # fmt: skip
    for table in spec.plan_tables:
        out += table_lines(table)
    out += ["/// The keys that hints set too. `has` knows whether a key (\"stripe.size\") stands in a rule.",
            "template <typename Has>", "GivenKeys given_keys(Has has) {", "    GivenKeys given;"]  # fmt: skip
    out += [f"    given.{path.replace('.', '_')} = has({quoted(path)});" for path in paths(spec) if path in set_by_hints]
    return "\n".join([*out, "    return given;", "}", "", "}  // namespace ioweir::policy", ""])


def planner_header(spec: Spec) -> str:
    out = [
        "// Generated from spec/plan_keys.toml: the choices of a strategy by name.", "#pragma once", "", "#include <array>", "",
        '#include "planner/strategy.hpp"', "", "namespace ioweir::planner {", "",
        '/// How the number of a value such as "aggregators:8" is written.',
        f"enum class CountForm : std::uint8_t {{ {', '.join(COUNTS)} }};", "",
        "template <typename Kind>", "struct Name {", "    Kind kind;", "    std::string_view text;", "    CountForm count;", "};", "",
    ]  # fmt: skip
    for key in (key for table in spec.plan_tables for key in table["key"] if key["type"] == "choice"):
        enum = key["enum"]
        out.append(f"inline constexpr std::array<Name<{enum}>, {len(key['values'])}> {key['name']}_names{{{{")
        for value in key["values"]:
            name, count = value["name"], value.get("count", "none")
            out.append(f"    {{{enum}::{enumerator(name)}, {quoted(name)}, CountForm::{count}}},")
        out += ["}};", ""]
    return "\n".join([*out, "}  // namespace ioweir::planner", ""])


def outputs(spec: Spec) -> dict[str, str]:
    check(spec)
    return {"ioweir_generated/plan_keys.hpp": policy_header(spec), "ioweir_generated/strategy_names.hpp": planner_header(spec)}
