"""spec/hints.toml -> the engine's table of hints and the reference page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generator import plan_keys

if TYPE_CHECKING:
    from generator.spec import Spec

VALUES = {
    "count": "a whole number from 1",
    "size": 'bytes: `4194304` or `"4 MiB"`',
    "index": "a whole number from 0",
    "switch": "`enable`, `disable` or `automatic`",
    "truth": "`true` or `false`",
    "text": "as in a plan file",
}
EFFECTS = ("read.holes", "read.together", "")  # no keys of a plan


def member(value: str) -> str:
    """The name in C++, where switch is a keyword."""
    return value + "_" if value == "switch" else value


def outputs(spec: Spec) -> dict[str, str]:
    """The table, in the order of the file."""
    known = (*plan_keys.paths(spec), *EFFECTS)
    for hint in spec.hints:
        if hint["value"] not in VALUES or hint["sets"] not in known:
            raise ValueError(f"spec/hints.toml: {hint['name']!r}: unknown value or sets")
    names = dict.fromkeys(hint["sets"].replace(".", "_") or "nothing" for hint in spec.hints)
    out = [
        "// Generated from spec/hints.toml: the MPI hints that the engine understands. See docs/reference/hints.md.",
        "#pragma once", "", "namespace ioweir::engine {", "",
        "enum class HintValue { " + ", ".join(member(value) for value in VALUES) + " };",
        "enum class HintSets { " + ", ".join(names) + " };", "",
        "struct HintSpec {", "    const char* name;", "    HintValue value;", "    HintSets sets;", "};",
        "inline constexpr HintSpec known_hints[] = {",
    ]  # fmt: skip
    for hint in spec.hints:
        sets = hint["sets"].replace(".", "_") or "nothing"
        out.append(f'    {{"{hint["name"]}", HintValue::{member(hint["value"])}, HintSets::{sets}}},')
    out += ["};", "", "}  // namespace ioweir::engine", ""]
    return {"ioweir_generated/hints.hpp": "\n".join(out)}


def pages(spec: Spec) -> dict[str, str]:
    """docs/reference/hints.md."""
    out = [
        "# MPI hints", "", "Generated from spec/hints.toml by `tools/generate.py --docs docs/reference`.", "",
        "For a file that a rule of the [plan](plan-file.md) matches, these info keys of `MPI_File_open` say what the rule leaves open: a key",
        "that stands in the rule wins over any hint. Of two hints for one key, the later one in the table wins.", "",
        "| hint | value | key of the plan | meaning | where it comes from |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for hint in spec.hints:
        sets = f"`{hint['sets']}`" if hint["sets"] and not hint["sets"].startswith("read.") else ""
        out.append(f"| `{hint['name']}` | {VALUES[hint['value']]} | {sets} | {hint['doc']} | {hint['source']} |")
    out += [
        "", "- ioweir does not use a value that it cannot read; that is never an error, and a note in the trace says so. The same holds for a",
        "  value that asks for what this version does not carry out, and for one that differs between ranks (then ioweir uses no hint).",
        "- The MPI library gets all hints, too, with the striping of the rule in the place of the program's. So drivers that can",
        "  stripe a new file (Lustre) do so. Only `romio_ds_write` is always `disable` there.",
        "- Hints count when the program opens the file. `MPI_File_set_view` and `MPI_File_set_info` change those of the MPI library, which",
        "  hold for the calls that ioweir leaves to it.",
        "- `MPI_File_get_info` returns what is in effect: `ioweir_mapping`, `ioweir_writers`, `ioweir_domains`, `ioweir_order`. With aggregators",
        "  it also has `cb_nodes` (unless ioweir finds the number for each call), `cb_buffer_size` if somebody chose it, `romio_cb_write` and",
        "  `romio_cb_read`. `romio_cb_write` is `disable` if the plan or a hint chose `everyone`. The rest is as the MPI library has it. For a",
        "  file that no rule matches, or that ioweir leaves to the MPI library, the answer is the library's own.", "",
    ]  # fmt: skip
    return {"hints.md": "\n".join(out)}
