"""`ioweir convert`: sets of partitioned files in another number of files, as serial files, or as HDF5.

Sets and serial files are written by the compiled part (src/partition/files/convert.hpp); here is what HDF5 gets.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import Folder
from ioweir.base.units import plural, size
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FORMS: Final = ("set", "serial", "hdf5")
TYPES: Final = {"float64": "f8", "int32": "i4", "bytes": "u1"}
CHUNK: Final = 4 << 20


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    source: Path
    target: Path
    form: str = "set"
    files: int | None = None
    step: int | None = None
    flat: bool = False
    types: tuple[str, ...] = ()
    replaces: bool = False


def convert(wanted: Wanted) -> str:
    """Does it, and says what there is now."""
    if wanted.form not in FORMS:
        raise IoweirError(f"--to {wanted.form}: is none of {', '.join(FORMS)}", EXIT_USAGE)
    if wanted.form != "set" and (wanted.files is not None or wanted.flat):
        raise IoweirError(f"--files and --flat are for sets, not for --to {wanted.form}", EXIT_USAGE)
    if wanted.form != "hdf5" and wanted.types:
        raise IoweirError("--type is for --to hdf5: other forms keep the bytes as they are", EXIT_USAGE)
    types = types_of(wanted.types)
    try:
        source = compiled().PartitionedSource(str(wanted.source))
        step = source.step if wanted.step is None else wanted.step
        if wanted.form == "hdf5":
            return to_hdf5(source, wanted, step, types)
        if wanted.form == "serial":
            paths, total = source.to_serial(str(wanted.target), step, wanted.replaces)
        else:
            is_set = compiled().describe_set(str(wanted.source)) is not None
            files = wanted.files if wanted.files is not None else source.files if is_set else 1
            paths, total = source.to_set(str(wanted.target), step, files, not wanted.flat, wanted.replaces)
    except ValueError as error:
        raise IoweirError(str(error)) from error
    return f"{paths[0]}: step {step}, {_parts(source)} in {len(paths)} {plural('file', len(paths))}, {size(total)}"


def _parts(source: Any) -> str:
    return f"{source.parts} {plural('part', source.parts)}"


def types_of(words: Sequence[str]) -> dict[str, str]:
    """FIELD=TYPE, by field."""
    types = {}
    for word in words:
        field, equals, name = word.partition("=")
        if not equals or name not in TYPES:
            raise IoweirError(f"--type {word}: FIELD=TYPE, with a type of {', '.join(TYPES)}", EXIT_USAGE)
        types[field] = name
    return types


def item_type(field: str, held: int, types: Mapping[str, str]) -> str:
    """As the user says; else float64 where whole ones fit, then int32, then bytes: the files do not say."""
    if field in types:
        name = types[field]
        width = int(TYPES[name][1])
        if held % width:
            raise IoweirError(f"--type {field}={name}: {held} bytes are no whole number of items of {width} bytes")
        return name
    return "float64" if held % 8 == 0 else "int32" if held % 4 == 0 else "bytes"


def shape_of(items: int, parameters: Sequence[int]) -> tuple[int, ...]:
    """PHASTA's arrays are (nodes, variables) in Fortran's order, and the first two parameters say so; else one row."""
    if items and len(parameters) >= 2 and parameters[1] > 1 and parameters[0] * parameters[1] == items:
        return (parameters[1], parameters[0])
    return (items,)


def to_hdf5(source: Any, wanted: Wanted, step: int, types: Mapping[str, str]) -> str:
    """A group for each field, in it a dataset for each part, in the files' byte order, chunk by chunk."""
    try:
        import h5py  # noqa: PLC0415
    except ImportError as error:
        raise IoweirError("--to hdf5 needs h5py, which is not installed: pip install h5py") from error
    unknown = set(types) - set(source.fields)
    if unknown:
        raise IoweirError(f"--type {min(unknown)}: no such field; there are: {', '.join(source.fields)}", EXIT_USAGE)
    if os.path.lexists(wanted.target) and not wanted.replaces:
        raise IoweirError(f"{wanted.target}: is there already; write elsewhere, or --replace")
    order = "<" if (sys.byteorder == "little") != source.swapped else ">"
    total = 0
    with (
        Folder.open(wanted.target.parent) as folder,
        folder.drafting(wanted.target.name) as draft,
        h5py.File(draft, "w") as file,
    ):
        file.attrs["step"] = step
        file.attrs["parts"] = source.parts
        for field in source.fields:
            group = file.create_group(field.replace("/", "|"))
            group.attrs["field"] = field
            for part in range(1, source.parts + 1):
                total += _put(group, source, field, part, types, order)
    return f"{wanted.target}: step {step}, {_parts(source)}, {len(source.fields)} fields, {size(total)} of items"


def _put(group: Any, source: Any, field: str, part: int, types: Mapping[str, str], order: str) -> int:
    held, parameters = source.header(field, part)
    name = item_type(field, held, types)
    kind = np.dtype(order + TYPES[name])
    items = held // kind.itemsize
    shape = shape_of(items, parameters)
    data = group.create_dataset(str(part), shape=shape, dtype=kind)
    data.attrs["parameters"] = np.asarray(parameters, dtype="i8")
    rows = shape[0]
    per_row = items // rows if rows else 0
    step = max(1, CHUNK // max(1, per_row * kind.itemsize))
    for row in range(0, rows, step):
        count = min(step, rows - row)
        row_bytes = per_row * kind.itemsize
        chunk = source.read(field, part, row * row_bytes, count * row_bytes)
        data[row : row + count] = np.frombuffer(chunk, dtype=kind).reshape(count, *shape[1:])
    return int(held)
