"""PHASTA's syncIO files by the format's description alone: an oracle that shares nothing with ioweir."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

MAGIC: Final = 12180
UNIT: Final = 4 << 20
BLOCK_HEADER: Final = 1024


@dataclass
class Block:
    """One data block."""

    part: int
    parameters: list[int]
    items: bytes
    offset: int = 0


@dataclass
class PhastaFile:
    """One file: for each field the blocks of its parts, in their order."""

    fields: dict[str, list[Block]] = field(default_factory=dict)
    parts: int = 0
    header_bytes: int = UNIT
    version: int = 1


def _text(data: bytes) -> str:
    return data.split(b"\0")[0].decode("ascii")


def read(path: Path, order: str = "<") -> PhastaFile:
    """The file at `path`, of byte order `order` ("<" or ">")."""
    data = path.read_bytes()
    assert data.startswith(b"MPI_IO_Tag : ")
    assert struct.unpack_from(order + "i", data, 13)[0] == MAGIC
    version = 0
    header_bytes = UNIT
    if data[64:76].startswith(b"version : "):
        version = int(_text(data[64:96]).split(":")[1])
        assert data[96:105] == b"mhsize : "
        header_bytes = struct.unpack_from(order + "i", data, 105)[0]
    match = re.fullmatch(r"\nnFields : (\d+)\n", _text(data[128:256]))
    assert match is not None
    names = []
    for j in range(int(match[1])):
        slot = _text(data[256 + 128 * j : 384 + 128 * j])
        assert slot.startswith("\n")
        assert slot.endswith(f" : {j}\n")
        names.append(slot[1 : -len(f" : {j}\n")])
    at = 256 + 128 * len(names)
    match = re.fullmatch(r"\nnPPF : (\d+)\n", _text(data[at : at + 128]))
    assert match is not None
    parts = int(match[1])
    result = PhastaFile({}, parts, header_bytes, version)
    for j, name in enumerate(names):
        offsets = struct.unpack_from(f"{order}{parts}Q", data, 8192 + 8 * j * parts)
        result.fields[name] = []
        for offset in offsets:
            line = _text(data[offset : offset + BLOCK_HEADER])
            match = re.fullmatch(rf"\n{re.escape(name)}@(\d+) : < (\d+) >((?: -?\d+)*) \n", line)
            assert match is not None, line
            counted = int(match[2])
            size = counted - 1 if counted else 0
            begin = offset + BLOCK_HEADER
            assert begin + size <= len(data)
            result.fields[name].append(
                Block(int(match[1]), [int(word) for word in match[3].split()], data[begin : begin + size], offset)
            )
    return result


def write(path: Path, contents: PhastaFile, order: str = "<") -> None:
    """A file as PHASTA's own library would lay it out for one rank with all parts: field by field, part by part."""
    table = 8192 + 8 * len(contents.fields) * contents.parts
    header_bytes = UNIT if contents.version == 0 else -(-table // UNIT) * UNIT
    data = bytearray(header_bytes)

    def put(at: int, text: bytes) -> None:
        data[at : at + len(text)] = text

    put(0, b"MPI_IO_Tag : " + struct.pack(order + "i", MAGIC))
    if contents.version:
        put(64, b"version : 1")
        put(96, b"mhsize : " + struct.pack(order + "i", header_bytes))
    put(128, f"\nnFields : {len(contents.fields)}\n".encode())
    for j, name in enumerate(contents.fields):
        put(256 + 128 * j, f"\n{name} : {j}\n".encode())
    put(256 + 128 * len(contents.fields), f"\nnPPF : {contents.parts}\n".encode())
    for j, (name, blocks) in enumerate(contents.fields.items()):
        for i, block in enumerate(blocks):
            put(8192 + 8 * (j * contents.parts + i), struct.pack(order + "Q", len(data)))
            counted = len(block.items) + 1 if block.items else 0
            words = "".join(f" {number}" for number in block.parameters)
            line = f"\n{name}@{block.part} : < {counted} >{words} \n".encode()
            data += line + bytes(BLOCK_HEADER - len(line)) + block.items
    path.write_bytes(data)
