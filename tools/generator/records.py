"""spec/records.toml -> C++ structs and the reference page of the trace format."""

from __future__ import annotations

import re
from typing import Any

from generator.spec import Spec

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i32": 4, "i64": 8}
CPP = {"u8": "std::uint8_t", "u16": "std::uint16_t", "u32": "std::uint32_t", "u64": "std::uint64_t",
       "i32": "std::int32_t", "i64": "std::int64_t"}
META_PREFIX = [
    {"name": "kind", "type": "u16", "doc": "record kind, stored last"},
    {"name": "unused", "type": "u16", "doc": "zero"},
    {"name": "size_bytes", "type": "u32", "doc": "whole record with its text, a multiple of 16"},
]


def layout(fields: list[dict[str, Any]], figures: dict[str, int]) -> tuple[list[tuple[int, int, dict[str, Any]]], int]:
    """(offset, size, field) of each field and the total; refuses implicit padding. `figures`: sizes of groups of figures."""
    rows, offset = [], 0
    for field in fields:
        array = re.fullmatch(r"char\[(\d+)\]", field["type"])
        size = int(array[1]) if array else SIZES.get(field["type"]) or figures[field["type"]]
        if not array and offset % min(size, 8):
            raise ValueError(f"spec/records.toml: field {field['name']!r} at {offset} is not aligned; add padding")
        rows.append((offset, size, field))
        offset += size
    return rows, offset


def sizes_of_figures(spec: Spec) -> dict[str, int]:
    return {group["name"]: 8 * len(group["fields"]) for group in spec.records["figures"]}


def all_structs(spec: Spec) -> list[dict[str, Any]]:
    structs = list(spec.records["struct"])
    for record in spec.records["record"]:
        structs.append({**record, "fields": META_PREFIX + record["fields"]})
    return structs


def outputs(spec: Spec) -> dict[str, str]:
    records = spec.records
    out = ["// Generated from spec/records.toml. The trace format: see docs/reference.", "#pragma once", "",
           "#include <cstddef>", "#include <cstdint>", "", "namespace ioweir::format {", "",
           f"inline constexpr std::uint32_t format_version = {records['version']};",
           f"inline constexpr std::uint32_t chunk_alignment = {records['alignment']};",
           f"inline constexpr std::uint64_t file_magic = {magic(records['magic_file'])};  // \"{records['magic_file']}\"",
           f"inline constexpr std::uint64_t chunk_magic = {magic(records['magic_chunk'])};  // \"{records['magic_chunk']}\"",
           "inline constexpr std::uint16_t first_meta_kind = 0x8000;",
           "inline constexpr std::uint8_t padding_tag = 0x7f;", ""]
    for enum in records["enum"]:
        out += [f"/// {enum['doc']}", f"enum class {enum['name']} : {CPP[enum['type']]} {{"]
        out += [f"    {v['name']},  ///< {v['doc']}" for v in enum["values"]]
        out += ["};",
                f"inline constexpr const char* {enum['name'].lower()}_names[] = {{"
                + ", ".join(f'"{v["name"]}"' for v in enum["values"]) + "};", ""]
    for group in records["figures"]:
        out += figures_struct(group)
    for struct in all_structs(spec):
        rows, size = layout(struct["fields"], sizes_of_figures(spec))
        out += ["/// " + struct["doc"].strip().replace("\n", "\n/// "), f"struct {struct['name']} {{"]
        if "kind" in struct:
            out.append(f"    static constexpr std::uint16_t record_kind = {struct['kind']:#x};")
        for _, _, field in rows:
            array = re.fullmatch(r"char\[(\d+)\]", field["type"])
            declaration = f"char {field['name']}[{array[1]}]" if array else (
                f"{CPP[field['type']]} {field['name']}" if field["type"] in CPP else f"{field['type']}<std::int64_t> {field['name']}")
            out.append(f"    {declaration};  ///< {field['doc']}")
        out += ["};", f"static_assert(sizeof({struct['name']}) == {size});", ""]
    out += ["}  // namespace ioweir::format", ""]
    return {"ioweir_generated/records.hpp": "\n".join(out)}


def figures_struct(group: dict[str, Any]) -> list[str]:
    """A struct of numbers of any type, and a visitor: for counting, for a record, for tables."""
    out = [f"/// {group['doc']}", "template <typename Number>", f"struct {group['name']} {{"]
    out += [f"    Number {field['name']}{{0}};  ///< {field['doc']}" for field in group["fields"]]
    out += ["", "    /// The same figures of another type.", "    template <typename Other>",
            f"    static {group['name']} of(const Other& other) {{",
            f"        return {{{', '.join('other.' + field['name'] for field in group['fields'])}}};", "    }"]
    out += ["    /// visit(name, whether the largest counts and not the sum, figure) for each.",
            "    template <typename Self, typename Visit>", "    static void for_each(Self&& self, Visit visit) {"]
    out += [f"        visit(\"{field['name']}\", {str(field.get('combine') == 'max').lower()}, self.{field['name']});"
            for field in group["fields"]]
    return [*out, "    }", "};", ""]


def magic(text: str) -> str:
    return hex(int.from_bytes(text.encode("ascii"), "little")) + "ULL"


def pages(spec: Spec) -> dict[str, str]:
    records = spec.records
    out = ["# The trace format", "", "Generated from spec/records.toml. Format version "
           f"{records['version']}; chunks at multiples of {records['alignment']} bytes; little-endian.", ""]
    for struct in all_structs(spec):
        kind = f" (kind {struct['kind']:#x})" if "kind" in struct else ""
        out += [f"## {struct['name']}{kind}", "", struct["doc"].strip(), "", "| byte | size | field | meaning |", "|---|---|---|---|"]
        rows, size = layout(struct["fields"], sizes_of_figures(spec))
        out += [f"| {offset} | {width} | {f['name']} | {f['doc']} |" for offset, width, f in rows]
        out += ["", f"{size} bytes" + (", then the text, padded with zeros to a multiple of 16." if kind else "."), ""]
    for group in records["figures"]:
        out += [f"## {group['name']}", "", f"{group['doc']} Each is an i64.", "", "| byte | figure |", "|---|---|"]
        out += [f"| {8 * i} | {f['name']}: {f['doc']} |" for i, f in enumerate(group["fields"])] + [""]
    out += ["## Event", "", records["event"]["doc"].strip(), "", "| field | form | meaning |", "|---|---|---|"]
    out += [f"| {f['name']} | {f['type']} | {f['doc']} |" for f in records["event"]["fields"]] + [""]
    for enum in records["enum"]:
        out += [f"## {enum['name']}", "", enum["doc"], "", "| value | name | meaning |", "|---|---|---|"]
        out += [f"| {i} | {v['name']} | {v['doc']} |" for i, v in enumerate(enum["values"])]
        out.append("")
    return {"trace-format.md": "\n".join(out)}
