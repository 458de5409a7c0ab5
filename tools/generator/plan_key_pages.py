"""spec/plan_keys.toml -> docs/reference/plan-file.schema.json, and the tables in docs/reference/plan-file.md.

What a schema cannot say, and the reader refuses: sizes out of range that are written with a unit, numbers beyond 63 bits, two rules with one
pattern, a page buffer smaller than a page, and chunks of too many elements.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from generator.plan_keys import bound, check, most_of

if TYPE_CHECKING:
    from pathlib import Path

    from generator.plan_keys import Key, Table
    from generator.spec import Spec

Schema = dict[str, Any]

NUMBER = "0*[1-9][0-9]*"  # of writers, files: from 1
SIZE = f"^[ \\t]*{NUMBER}[ \\t]*(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)?[ \\t]*$"
SHAPE: Schema = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": (1 << 32) - 1}, "minItems": 1, "maxItems": 32}
COUNT_PATTERNS = {"number": f":{NUMBER}", "number_or_auto": f":({NUMBER}|auto)", "one_in": f":1/{NUMBER}"}
COUNT_WORDS = {"none": "", "number": ":N", "number_or_auto": ":N", "one_in": ":1/N"}


def plain(text: str) -> str:
    """Without the links and quotes of a page."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")


def integers(table: Table, key: Key) -> Schema:
    schema: Schema = {"type": "integer", "minimum": bound(key.get("least", 1))}
    if (most := most_of(table, key)) is not None:
        schema["maximum"] = bound(most)
    return schema


def choice_schema(key: Key) -> Schema:
    forms: list[Schema] = []
    for value in key["values"]:
        count = value.get("count", "none")
        exact = {"const": value["name"]} if count == "none" else {"pattern": f"^{value['name']}{COUNT_PATTERNS[count]}$"}
        forms.append({**exact, "description": plain(value["help"])})
    return {"type": "string", "anyOf": forms}


def value_schemas(table: Table, key: Key) -> list[Schema]:
    """What a key takes, one of them."""
    kind = key["type"]
    schemas: dict[str, list[Schema]] = {
        "text": [{"type": "string", "minLength": 1}],
        "share": [{"type": "number", "minimum": 0, "maximum": 1}],
        "truth": [{"type": "boolean"}],
        "list": [{"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}],
        "table": [{"$ref": f"#/$defs/{key['name']}"}],
        "chunks": [SHAPE, {"type": "object", "additionalProperties": SHAPE, "minProperties": 1}],
    }
    if kind == "choice":
        return [choice_schema(key)]
    if kind == "word":
        return [{"enum": key["words"]}]
    if kind == "number":
        return [integers(table, key)]
    if kind == "size":
        return [integers(table, key), {"type": "string", "pattern": SIZE}]
    return schemas[kind]


def key_schema(table: Table, key: Key) -> Schema:
    schemas = value_schemas(table, key)
    if "besides" in key:
        schemas = [*schemas, {"const": key["besides"]}]
    help_text = plain(key["help"])
    if "default_is" in key and "default" not in key:
        help_text += f". Default: {plain(key['default_is'])}"
    schema: Schema = {"description": help_text}
    if "default" in key:
        schema["default"] = key["default"]
    return {**schema, **(schemas[0] if len(schemas) == 1 else {"anyOf": schemas})}


def condition_schema(table: Table, name: str, value: Any) -> Schema:
    if value is True:
        return {"required": [name]}
    key = next(one for one in table["key"] if one["name"] == name)
    exact: Schema = {"pattern": f"^{value}(:|$)"} if key["type"] == "choice" else {"const": value}
    schema: Schema = {"properties": {name: exact}}
    return schema if key.get("default") == value else {**schema, "required": [name]}


def table_schema(table: Table, help_text: str) -> Schema:
    schema: Schema = {
        "description": plain(help_text),
        "type": "object",
        "properties": {key["name"]: key_schema(table, key) for key in table["key"]},
        "additionalProperties": False,
    }
    if required := [key["name"] for key in table["key"] if key.get("required")]:
        schema["required"] = required
    together = []
    for row in (row for row in table.get("combination", []) if "checked" not in row):
        needs = [condition_schema(table, name, value) for one in row["needs"] for name, value in one.items()]
        for name in row["keys"]:
            asked = [{"required": [name]}] + [condition_schema(table, *item) for item in row.get("if", {}).items()]
            together.append({"if": {"allOf": asked}, "then": {"anyOf": needs}})
    return {**schema, "allOf": together} if together else schema


def schema_text(spec: Spec) -> str:
    helps = {key["name"]: key["help"] for table in spec.plan_tables for key in table["key"]}
    helps["rule"] = "A rule: how the bytes of the files are to be moved whose path its pattern fits."
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Generated from spec/plan_keys.toml by tools/generate.py --docs docs/reference.",
        "title": "A plan file of ioweir",
        "description": "How the bytes of which files are to be moved: docs/reference/plan-file.md.",
        "type": "object",
        "properties": {"file": {"type": "array", "items": {"$ref": "#/$defs/rule"}, "minItems": 1}},
        "required": ["file"],
        "additionalProperties": False,
        "$defs": {table["name"]: table_schema(table, helps[table["name"]]) for table in spec.plan_tables},
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def code(text: Any) -> str:
    return f"`{json.dumps(text, ensure_ascii=False)}`"


def value_cell(key: Key) -> str:
    kind = key["type"]
    words = {
        "text": "a text",
        "choice": "[below](#the-four-choices)",
        "share": "0 to 1",
        "truth": "`true`, `false`",
        "list": "a list of texts",
        "table": f"[a table](#{key['name']})",
        "chunks": '`[64, 64]`; `{ "NAME" = [64, 64] }`',
        "size": "a size",
    }
    if kind == "word":
        return ", ".join(code(word) for word in key["words"])
    text = words.get(kind, "")
    if kind in ("size", "number") and "least" in key:
        text = f"{key['least']} to {key['most']}" if "most" in key else f"a whole number from {key['least']}"
    if "unit" in key:
        text += f" ({key['unit']})"
    return f"{text}; {code(key['besides'])}" if "besides" in key else text


def default_cell(key: Key) -> str:
    if key.get("required"):
        return "must be there"
    text: str = key["default_is"] if "default_is" in key else code(key["default"])
    return text


def needs_cell(table: Table, key: Key) -> str:
    mine = [row for row in table.get("combination", []) if key["name"] in row["keys"] and row["needs"]]
    parts = [
        (f"with {condition_text([row['if']])} also " if "if" in row else "") + condition_text(row["needs"])
        for row in sorted(mine, key=lambda row: "if" in row)
    ]
    return "; ".join(parts)


def condition_text(conditions: list[dict[str, Any]]) -> str:
    """`mapping = "subfiles"` or `"log"`, or `netcdf`."""
    values: dict[str, list[str]] = {}
    for name, value in (item for condition in conditions for item in condition.items()):
        values.setdefault(name, []).extend([] if value is True else [json.dumps(value)])
    texts = [f"`{name} = " + "` or `".join(found) + "`" if found else f"`{name}`" for name, found in values.items()]
    return ", or ".join(texts)


def rows(header: list[str], lines: list[list[str]]) -> list[str]:
    """A table without the columns that are empty."""
    kept = [i for i in range(len(header)) if any(line[i] for line in lines)]
    text = ["| " + " | ".join(line[i] for i in kept) + " |" for line in (header, *lines)]
    return [text[0], "|" + "---|" * len(kept), *(line.replace("|  ", "| ") for line in text[1:])]


def key_rows(spec: Spec, table: Table) -> list[str]:
    prefix = "" if table["name"] == "rule" else table["name"] + "."
    lines = []
    for key in table["key"]:
        hints = ", ".join(f"`{hint['name']}`" for hint in spec.hints if hint["sets"] == prefix + key["name"])
        lines.append(
            [f"`{key['name']}`", value_cell(key), key["help"], default_cell(key), needs_cell(table, key), hints]
        )
    return rows(["key", "value", "meaning", "default", "only with", "hints"], lines)


def choice_rows(spec: Spec) -> list[str]:
    lines = []
    for key in (key for table in spec.plan_tables for key in table["key"] if key["type"] == "choice"):
        first = f"`{key['name']}`"
        for value in key["values"]:
            can = value.get("can", "yes")
            name = value["name"]
            planned = value.get("planned", can)
            lines.append([first, f"`{name}{COUNT_WORDS[value.get('count', 'none')]}`", value["help"], planned, can])
            first = ""
            if value.get("count") == "number_or_auto":
                lines.append(["", f"`{name}:auto`", value["help_auto"], can, can])
    return rows(["key", "value", "meaning", "planned", "applied to programs"], lines)


def filled(spec: Spec, page: str) -> str:
    """The page with its generated parts made anew: from a line <!-- generated ...: NAME --> to <!-- end -->."""
    parts = {table["name"]: key_rows(spec, table) for table in spec.plan_tables} | {"choices": choice_rows(spec)}
    for name, lines in parts.items():
        first = f"<!-- generated from spec/plan_keys.toml: {name} -->\n"
        before, found, rest = page.partition(first)
        if not found:
            raise ValueError(f"docs/reference/plan-file.md: no line {first.strip()!r}")
        after = rest[rest.index("<!-- end -->") :]
        page = before + first + "\n".join(lines) + "\n" + after
    return page


def pages(spec: Spec, page: Path) -> dict[str, str]:
    """The schema, and `page` (docs/reference/plan-file.md) with its generated parts made anew."""
    check(spec)
    return {"plan-file.schema.json": schema_text(spec), page.name: filled(spec, page.read_text(encoding="utf-8"))}
