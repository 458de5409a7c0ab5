"""What is in an HDF5 file, wherever the library has put it, as a checksum.

Of small files all that h5dump prints; it needs a quarter of an hour for the text of 2 GiB: of those with 8 MiB of
values and more, and of netCDF's, the values count, read piece by piece, and what h5dump prints of all else. A file's
own size does not count, nor where in it an object lies that a reference leads to (netCDF's dimension scales have
such): both are others with another layout. Not here: what is compared.
"""

from __future__ import annotations

import hashlib
import math
import re
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

H5DUMP_S: Final = 300.0
LARGE_BYTES: Final = 8 << 20
READ_BYTES: Final = 16 << 20
PYTHON: Final = "/usr/bin/python3"
"""The one that Debian's h5py is for."""
REFERENCE: Final = re.compile(rb'\b(DATASET|GROUP|DATATYPE) [0-9:]+ (?="/)')
"""As h5dump prints one: the kind of object, its address, its name."""
VALUES: Final = Path(__file__).with_name("hdf5_values.py")


def checksum(path: Path) -> str:
    """Empty where it is no HDF5 file that can be read."""
    digest = hashlib.sha256()
    if not _dumped(digest, path, ["-A"]):
        return ""
    least_bytes = 0 if path.suffix == ".nc" else LARGE_BYTES
    command = [PYTHON, str(VALUES), str(path), str(READ_BYTES), str(least_bytes)]
    values = subprocess.run(command, capture_output=True, text=True, timeout=H5DUMP_S, check=False)
    if values.returncode != 0 or not (values.stdout or _dumped(digest, path, [])):
        return ""
    digest.update(values.stdout.encode())
    return digest.hexdigest()[:16]


def _dumped(digest: hashlib._Hash, path: Path, options: Sequence[str]) -> bool:
    with subprocess.Popen(["h5dump", *options, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as dump:
        too_long = threading.Timer(H5DUMP_S, dump.kill)
        too_long.start()
        try:
            assert dump.stdout is not None
            dump.stdout.readline()  # the file's name
            for line in dump.stdout:
                digest.update(without_address(line))
        finally:
            too_long.cancel()
    return dump.returncode == 0


def without_address(line: bytes) -> bytes:
    """A line of h5dump's that shows a reference: what it leads to, and not where that lies."""
    return REFERENCE.sub(rb"\1 ", line)


def pieces(shape: Sequence[int], item_bytes: int, most_bytes: int) -> Iterator[tuple[slice, ...]]:
    """An array's parts of at most so many bytes (one element at least), in the order of its elements."""
    if 0 in shape:
        return
    if math.prod(shape) * item_bytes <= most_bytes or not shape:
        yield tuple(slice(0, length) for length in shape)
        return
    rows = max(1, most_bytes // (math.prod(shape[1:]) * item_bytes))
    for row in range(0, shape[0], rows):
        own = slice(row, min(row + rows, shape[0]))
        if rows > 1:
            yield (own, *(slice(0, length) for length in shape[1:]))
        else:
            for rest in pieces(shape[1:], item_bytes, most_bytes):
                yield (own, *rest)
