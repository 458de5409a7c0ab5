"""Checkpoints of partitioned solvers from Python: ioweir.h through mpi4py. What arguments mean is in that header.

    from ioweir import checkpoint

    with checkpoint.create(comm, "run/restart", step, parts=1, fields=["solution"]) as written:
        written.write("solution", 0, values)              # the set appears when the block is left
    with checkpoint.open_set(comm, "run/restart") as last:
        values = [last.read("solution", part, numpy.float64) for part in last.my_parts]

Imports mpi4py, which the program has; nothing else of ioweir does.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_int, c_int64, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.base import locate
from ioweir.errors import IoweirError
from ioweir.programs import linking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    import numpy.typing as npt

SUCCESS, ARGUMENT, IO, NO_SPACE, NOT_FOUND, DAMAGED, EXISTS, MEMORY, MPI_FAILED = range(9)
NO_PART: Final = -1
_TYPES: Final = {np.dtype(np.float64): 1, np.dtype(np.int32): 2}


class CheckpointError(Exception):
    """`code` is one of the constants above; the text says what happened and what to do."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _mpi() -> Any:
    from mpi4py import MPI  # noqa: PLC0415

    return MPI


@cache
def _library() -> ctypes.CDLL:
    """The one for the MPI library that mpi4py uses."""
    said = _mpi().Get_library_version()
    kind = linking.OPEN_MPI if "Open MPI" in said else linking.MPICH
    name = linking.PARTITION_LIBRARY.format(kind)
    for directory in locate.candidate_directories():
        if (directory / name).is_file():
            library = ctypes.CDLL(str(directory / name))
            library.ioweir_error_text.restype = c_char_p
            return library
    raise IoweirError(f"{name} is not installed: install the headers of that MPI library and ioweir again")


def _check(code: int) -> None:
    if code != SUCCESS:
        raise CheckpointError(code, os.fsdecode(_library().ioweir_error_text()))


def _handle(thing: Any) -> Any:
    """An MPI object's handle as C has it: an int (MPICH) or an address (Open MPI)."""
    mpi = _mpi()
    width = mpi._sizeof(thing)
    kind = c_int if width == ctypes.sizeof(c_int) else c_void_p
    return kind.from_address(mpi._addressof(thing))


def _info(keys: Mapping[str, str] | None) -> Any:
    info = _mpi().Info.Create()
    for key, value in (keys or {}).items():
        info.Set(key, str(value))
    return info


def _names(fields: Sequence[str]) -> Any:
    return (c_char_p * len(fields))(*(field.encode() for field in fields))


class Written:
    """A set that is being written. Leaving the `with` block closes it; by an exception, nothing more is done with it:
    other ranks may not come, and what was written stays hidden."""

    def __init__(self, handle: c_void_p) -> None:
        self._set = handle

    def write(self, field: str, part: int, items: npt.ArrayLike | None = None, parameters: Sequence[int] = ()) -> None:
        """Collective over the file's ranks: one block. items: float64 or int32, any shape, in C's order; part: from 0
        on each rank, or NO_PART where it has none left."""
        data = np.ascontiguousarray(() if items is None else items)
        kind = _TYPES.get(data.dtype)
        if kind is None:
            # The library must still be called, for others wait: it refuses this type.
            kind = 0
        numbers = (c_int64 * len(parameters))(*parameters)
        _check(
            _library().ioweir_set_write(
                self._set, field.encode(), c_int64(part), kind, c_int64(data.size), len(parameters), numbers,
                c_void_p(data.ctypes.data),
            )
        )  # fmt: skip

    def close(self) -> None:
        """Collective: the set appears, or every rank raises."""
        _check(_library().ioweir_set_close(byref(self._set)))

    def abandon(self) -> None:
        """Collective: there is no set."""
        _check(_library().ioweir_set_abandon(byref(self._set)))

    def __enter__(self) -> Written:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._set:
            self.close()


def _begin(
    function: Any, where: Any, base: str, step: int, parts: int, fields: Sequence[str], files: int,
    keys: Mapping[str, str] | None,
) -> Written:  # fmt: skip
    handle = c_void_p()
    info = _info(keys)
    try:
        _check(
            function(
                where, os.fsencode(base), c_int64(step), c_int64(parts), c_int64(files), len(fields), _names(fields),
                _handle(info), byref(handle),
            )
        )  # fmt: skip
    finally:
        info.Free()
    return Written(handle)


def create(
    comm: Any, base: str, step: int, parts: int, fields: Sequence[str], files: int = 0,
    keys: Mapping[str, str] | None = None,
) -> Written:  # fmt: skip
    """Collective over `comm`: ioweir_set_create(). keys: of the MPI_Info."""
    return _begin(_library().ioweir_set_create, _handle(comm), base, step, parts, fields, files, keys)


class Service:
    """Dedicated writers (ioweir_split()). `workers`: None on delegates, which call run()."""

    def __init__(self, comm: Any, delegates: int = 0, keys: Mapping[str, str] | None = None) -> None:
        mpi = _mpi()
        self._service = c_void_p()
        self.workers: Any = mpi.Intracomm()
        info = _info(keys)
        try:
            _check(
                _library().ioweir_split(
                    _handle(comm), c_int64(delegates), _handle(info), c_void_p(mpi._addressof(self.workers)),
                    byref(self._service),
                )
            )  # fmt: skip
        finally:
            info.Free()
        if self.workers == mpi.COMM_NULL:
            self.workers = None

    def run(self) -> None:
        """Delegates: until all workers have called end()."""
        _check(_library().ioweir_service_run(self._service))

    def create(
        self, base: str, step: int, parts: int, fields: Sequence[str], files: int = 0,
        keys: Mapping[str, str] | None = None,
    ) -> Written:  # fmt: skip
        """Collective over the workers: ioweir_set_create_by()."""
        return _begin(_library().ioweir_set_create_by, self._service, base, step, parts, fields, files, keys)

    def wait(self) -> None:
        """Workers: until what was closed is on storage."""
        _check(_library().ioweir_service_wait(self._service))

    def end(self) -> None:
        """Collective over all ranks."""
        _check(_library().ioweir_service_end(byref(self._service)))


class Read:
    """A set that is being read. Parts count from 1 among all."""

    def __init__(self, handle: c_void_p) -> None:
        self._set = handle
        step, files, parts, count = c_int64(), c_int64(), c_int64(), c_int()
        _check(_library().ioweir_set_inquire(handle, byref(step), byref(files), byref(parts), byref(count)))
        self.step, self.files, self.parts = step.value, files.value, parts.value
        name = c_char_p()
        self.fields: list[str] = []
        for index in range(count.value):
            _check(_library().ioweir_set_field(handle, index, byref(name)))
            self.fields.append((name.value or b"").decode())
        first, mine = c_int64(), c_int64()
        _check(_library().ioweir_set_my_parts(handle, byref(first), byref(mine)))
        self.my_parts = range(first.value, first.value + mine.value)

    def query(self, field: str, part: int) -> tuple[int, list[int]]:
        """Local: bytes of a block's items, and its parameters."""
        held, count = c_int64(), c_int(0)
        _check(_library().ioweir_set_query(self._set, field.encode(), c_int64(part), byref(held), byref(count), None))
        numbers = (c_int64 * count.value)()
        _check(_library().ioweir_set_query(self._set, field.encode(), c_int64(part), None, byref(count), numbers))
        return held.value, list(numbers)

    def read(self, field: str, part: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Local: all items of a block, one dimension; dtype: float64 or int32."""
        data = self._place(field, part, dtype)
        _check(
            _library().ioweir_set_read(
                self._set, field.encode(), c_int64(part), _TYPES.get(data.dtype, 0), c_int64(data.nbytes),
                c_void_p(data.ctypes.data),
            )
        )  # fmt: skip
        return data

    def read_all(self, field: str, part: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Collective: the same for a part of `my_parts` on each rank, or NO_PART where there are none left."""
        data, wrong = np.empty(0, np.dtype(dtype)), None
        if part != NO_PART:
            try:
                data = self._place(field, part, dtype)
            except (CheckpointError, MemoryError) as error:
                part, wrong = NO_PART, error  # other ranks are in the call
        code = _library().ioweir_set_read_all(
            self._set, field.encode(), c_int64(part), _TYPES.get(data.dtype, 0), c_int64(data.nbytes),
            c_void_p(data.ctypes.data),
        )  # fmt: skip
        if wrong is not None:
            raise wrong
        _check(code)
        return data

    def _place(self, field: str, part: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Room for a block's items, all of it: the library writes as many bytes as the block has."""
        held, _ = self.query(field, part)
        kind = np.dtype(dtype)
        if held % kind.itemsize:
            raise CheckpointError(
                ARGUMENT,
                f"ioweir: {field} of part {part} is no array of {kind}: {held} bytes; read it as what it was written",
            )
        return np.empty(held // kind.itemsize, kind)

    def close(self) -> None:
        """Collective."""
        _check(_library().ioweir_set_close(byref(self._set)))

    def __enter__(self) -> Read:
        return self

    def __exit__(self, *_: object) -> None:
        if self._set:
            self.close()


def open_set(comm: Any, base: str, step: int = -1) -> Read:
    """Collective over `comm`: ioweir_set_open(); step -1: the last complete one."""
    handle = c_void_p()
    null = _mpi().INFO_NULL
    _check(_library().ioweir_set_open(_handle(comm), os.fsencode(base), c_int64(step), _handle(null), byref(handle)))
    return Read(handle)
