"""Headers of netCDF files in the three classic formats, read without a netCDF library or anything of ioweir's.

Not here: what is tested with them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from typing import Final

MAGIC: Final = b"CDF"
TYPE_BYTES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}


@dataclass(frozen=True)
class Variable:
    """`lengths`: of its dimensions, 0 for the unlimited one; `bytes`: all of it, or one record, with padding."""

    name: str
    lengths: tuple[int, ...]
    type: int
    bytes: int
    begin: int

    @property
    def is_record(self) -> bool:
        """Does it have records?"""
        return bool(self.lengths) and self.lengths[0] == 0

    @property
    def element_bytes(self) -> int:
        """Of its elements, or of those of one record, without padding."""
        return prod(self.lengths[1 if self.is_record else 0 :]) * TYPE_BYTES[self.type]


@dataclass(frozen=True)
class Header:
    """`end`: where it ends."""

    records: int
    dimensions: tuple[tuple[str, int], ...]
    variables: tuple[Variable, ...]
    end: int


class _Words:
    """The big-endian words of a header."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 4
        version = data[3]
        if data[:3] != MAGIC or version not in (1, 2, 5):
            raise ValueError("no netCDF file in a classic format")
        self.number = ">q" if version == 5 else ">i"
        self.offset = ">i" if version == 1 else ">q"

    def take(self, form: str) -> int:
        (number,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return int(number)

    def count(self) -> int:
        return self.take(self.number)

    def skip(self, length: int) -> None:
        self.at += -(-length // 4) * 4

    def name(self) -> str:
        length = self.count()
        text = self.data[self.at : self.at + length].decode()
        self.skip(length)
        return text

    def entries(self) -> int:
        self.take(">i")  # what is listed
        return self.count()

    def skip_attributes(self) -> None:
        for _ in range(self.entries()):
            self.name()
            size = TYPE_BYTES[self.take(">i")]
            self.skip(self.count() * size)


def read_header(data: bytes) -> Header:
    """The header that a file begins with; ValueError, struct.error or KeyError where it is none."""
    words = _Words(data)
    records = words.count()
    dimensions = tuple((words.name(), words.count()) for _ in range(words.entries()))
    words.skip_attributes()
    variables = []
    for _ in range(words.entries()):
        name = words.name()
        lengths = tuple(dimensions[words.count()][1] for _ in range(words.count()))
        words.skip_attributes()
        kind, size = words.take(">i"), words.count()
        variables.append(Variable(name, lengths, kind, size, words.take(words.offset)))
    return Header(records, dimensions, tuple(variables), words.at)


def without_gaps(data: bytes) -> bytes:
    """The file with zeros where neither its header nor an element of a variable is.

    What libraries leave there is what they have moved away when a header grew, and behind a variable whose last word
    is not full what ROMIO's buffer for sieving had there: nobody writes it.
    """
    header = read_header(data)
    kept = bytearray(len(data))
    kept[: header.end] = data[: header.end]
    of_records = [variable for variable in header.variables if variable.is_record]
    sizes = [variable.element_bytes for variable in of_records]
    # The records of a variable that is alone are not padded.
    record = sizes[0] if len(sizes) == 1 else sum(-(-size // 4) * 4 for size in sizes)
    for variable in header.variables:
        for number in range(header.records if variable.is_record else 1):
            begin = variable.begin + number * record
            if begin >= len(data) or (number and not record):
                break  # a number of records that the file does not have
            end = begin + variable.element_bytes
            kept[begin:end] = data[begin:end]
    return bytes(kept)
