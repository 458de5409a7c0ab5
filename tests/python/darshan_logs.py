"""Logs of Darshan 3, made here byte by byte: of any format, byte order and compression (darshan-log-format.h).

Counters are named; PyDarshan says where each one stands in a record of the newest version.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from darshan.backend import cffi_backend as backend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAGIC = 6567223
MODULES = (
    "NULL", "POSIX", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR", "BG/Q", "LUSTRE", "STDIO", "DXT_POSIX",
    "DXT_MPIIO", "MDHIM", "APXC", "APMPI", "HEATMAP",
)  # fmt: skip
"""In the order of formats since 3.41. Those before have no PNETCDF_VAR, those before 3.20 no H5D."""
VERSIONS = {
    "POSIX": 4, "MPI-IO": 3, "H5F": 3, "H5D": 2, "PNETCDF_FILE": 3, "PNETCDF_VAR": 1, "STDIO": 2, "DXT_POSIX": 1,
    "DXT_MPIIO": 1,
}  # fmt: skip
PACK: dict[int, Callable[[bytes], bytes]] = {0: zlib.compress, 1: bz2.compress, 2: bytes}
START = 1_600_000_000


@dataclass
class DarshanLog:
    """What a log holds; `data` has its bytes."""

    version: str = "3.41"
    order: str = "<"
    compression: int = 0
    ranks: int = 4
    run_s: int = 10
    command: bytes = b"/home/somebody/a.out -n 3"
    names: dict[int, bytes] = field(default_factory=dict)
    records: dict[str, list[bytes]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    ran_out: tuple[str, ...] = ()

    @property
    def modules(self) -> list[str]:
        """By number."""
        lacking = {"PNETCDF_VAR"} if self.version < "3.41" else set()
        lacking |= {"H5D"} if self.version < "3.20" else set()
        return [name for name in MODULES if name not in lacking]

    def add(self, module: str, file: int, rank: int, values: Mapping[str, float], of: int | None = None) -> None:
        """A record with these counters, all others 0. `of`: the file of an HDF5 or PnetCDF object."""
        counters, seconds = backend.counter_names(module), backend.fcounter_names(module)
        assert set(values) <= {*counters, *seconds}, values
        self.raw(
            module,
            struct.pack(f"{self.order}Qq", file, rank)
            + (b"" if of is None else struct.pack(f"{self.order}Q", of))
            + struct.pack(f"{self.order}{len(counters)}q", *(int(values.get(name, 0)) for name in counters))
            + struct.pack(f"{self.order}{len(seconds)}d", *(float(values.get(name, 0)) for name in seconds)),
        )

    def raw(self, module: str, record: bytes) -> None:
        """A record as it is."""
        self.records.setdefault(module, []).append(record)

    def dxt(self, module: str, file: int, rank: int, host: bytes, writes: list[tuple[int, int, float, float]]) -> None:
        """Segments: (offset, length, start, end)."""
        head = struct.pack(f"{self.order}Qqq64sqq", file, rank, 0, host, len(writes), 0)
        self.raw(module, head + b"".join(struct.pack(f"{self.order}qqdd", *one) for one in writes))

    def data(self) -> bytes:
        """The log."""
        new, pack = self.version >= "3.41", PACK[self.compression]
        times = (START, 0, START + self.run_s, 0) if new else (START, START + self.run_s - 1)
        job = struct.pack(f"{self.order}{3 + len(times)}q", 1000, *times, self.ranks, 77) + bytes(1024)
        job += self.command + b"\next4\t/\n"
        body = pack(job.ljust(4096, b"\0"))
        slots = 64 if new else 16
        at = (32 if new else 24) + 16 + slots * 20
        old = self.version == "3.00"  # the length before a name in place of the zero behind it
        names = b"".join(
            struct.pack(f"{self.order}Q", number)
            + (struct.pack(f"{self.order}I", len(name)) + name if old else name + b"\0")
            for number, name in self.names.items()
        )
        maps = []
        for content in (names, *(b"".join(self.records.get(module, [])) for module in self.modules)):
            packed = pack(content) if content else b""
            maps.append((at + len(body) if packed else 0, len(packed)))
            body += packed
        maps += [(0, 0)] * (1 + slots - len(maps))
        flags = sum(1 << self.modules.index(module) for module in self.ran_out)
        versions = [
            self.versions.get(module, VERSIONS.get(module, 1)) if module in self.records else 0
            for module in self.modules
        ]
        head = self.version.encode().ljust(8, b"\0") + struct.pack(f"{self.order}qB", MAGIC, self.compression)
        head += struct.pack(f"{self.order}7xQ" if new else f"{self.order}3xI", flags)
        head += b"".join(struct.pack(f"{self.order}QQ", *one) for one in maps)
        head += struct.pack(f"{self.order}{slots}I", *versions, *[0] * (slots - len(versions)))
        return head + body
