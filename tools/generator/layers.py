"""spec/layers.toml -> the bits and words of layers in C++, and the names of layers and operations in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generator.spec import Spec

HEADER = "// Generated from spec/layers.toml.\n"
MODULE = "ioweir/base/spec_names.py"


def outputs(spec: Spec) -> dict[str, str]:
    """The generated files."""
    bits = ", ".join(f"{layer['bit']} = {1 << at}" for at, layer in enumerate(spec.layers))
    rows = [f'    {{"{layer["word"]}", "{layer["name"]}", LayerBit::{layer["bit"]}}},' for layer in spec.layers]
    out = [
        HEADER + "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace ioweir::format {",
        "",
        "/// What --layers chooses from; each layer's hooks only forward when its bit is not in Tracer::layers.",
        f"enum class LayerBit : std::uint32_t {{ {bits} }};",
        f"inline constexpr std::uint32_t all_layers = {(1 << len(spec.layers)) - 1};",
        "",
        "struct LayerName {",
        "    const char* word;  ///< of --layers",
        "    const char* name;  ///< in reports",
        "    LayerBit bit;",
        "};",
        "inline constexpr LayerName layer_names[] = {",
        *rows,
        "};",
        f'inline constexpr const char* layer_words = "{", ".join(layer["word"] for layer in spec.layers)}";',
        "",
        "}  // namespace ioweir::format",
        "",
    ]
    return {"ioweir_generated/layers.hpp": "\n".join(out)}


def modules(spec: Spec) -> dict[str, str]:
    """Python modules, relative to python/: they lie in the tree, for nothing builds them where programs are read."""
    names = [(layer["bit"].upper(), layer["name"]) for layer in spec.layers]
    data = [op["name"] for op in spec.ops if op.get("moves_bytes", False)]
    waiting = [constant for (constant, _), layer in zip(names, spec.layers, strict=True) if layer.get("waiting", False)]
    io = [constant for constant, _ in names if constant not in waiting]
    out = [
        '"""The names of layers and operations. Generated from spec/layers.toml: tools/generate.py --docs docs/reference."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        *(f'{constant}: Final = "{name}"' for constant, name in names),
        "",
        f"LAYERS: Final = ({', '.join(constant for constant, _ in names)})",
        '"""Every layer that a function may belong to."""',
        f"IO_LAYERS: Final = ({', '.join(io)})",
        '"""Those of I/O: calls of the others are waiting for other ranks."""',
        f"WAITING: Final = {waiting[0]}",
        '"""The layer of waiting in MPI outside of I/O."""',
        "LAYER_WORDS: Final = {",
        *(f'    "{layer["word"]}": {constant},' for (constant, _), layer in zip(names, spec.layers, strict=True)),
        "}",
        '"""The words of --layers."""',
        "OPS: Final = (",
        *(f'    "{op["name"]}",' for op in spec.ops),
        ")",
        '"""Every operation that a function may count as."""',
        f"DATA_OPS: Final = ({', '.join(repr(name) for name in data)})".replace("'", '"'),
        '"""Those that move bytes."""',
        "",
    ]
    return {MODULE: "\n".join(out)}
