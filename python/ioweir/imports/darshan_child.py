"""Reads a Darshan log through PyDarshan and prints it as lines of JSON: a process of its own, with limits.

The library below PyDarshan is C, and a damaged log can end it or make it ask for any amount of memory; then what was
printed until then is what there is. Knows nothing of ioweir: `python darshan_child.py LOG [MODULE_TO_LEAVE_OUT ...]`.
A line is one object: job, modules, names, begin and columns of a module, record, lustre, heatmap, dxt, unread, stopped,
trouble, and at last end.
"""

from __future__ import annotations

import ctypes
import json
import resource
import signal
import sys
from typing import Any

MOST_BYTES = 4 << 30
MOST_CPU_S = 300
COUNTED = ("POSIX", "MPI-IO", "STDIO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
WHOLE = ("DXT_POSIX", "DXT_MPIIO")
MOST_RECORDS = 1 << 20
"""Of a module: nobody keeps more, and a small file may expand to very many."""
SEGMENTS = 1 << 16
"""Of a DXT record that one line holds."""
PR_SET_PDEATHSIG = 1


def say(**what: Any) -> None:
    """Print a line."""
    sys.stdout.write(json.dumps(what, separators=(",", ":")) + "\n")


def main(path: str, *skipped: str) -> int:
    """Print the log, without the modules that are named."""
    # Whoever asked may be killed. Before this line its end is seen, too: nobody reads what is printed first.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        import darshan.backend.cffi_backend as backend  # noqa: PLC0415
    except ImportError as error:
        say(missing=str(error))
        return 3
    backend.libdutil = _Library(backend.libdutil)
    reader = _Reader(backend, path)
    if reader.log["handle"] == backend.ffi.NULL:
        return 4
    reader.head()
    sys.stdout.flush()
    for module in [name for name in reader.modules if name not in skipped]:
        say(begin=module)
        sys.stdout.flush()
        try:
            reader.module(module)
            if backend.libdutil.answer < 0:
                say(stopped=module)
        except Exception as error:
            say(trouble=f"{module}: {type(error).__name__}: {error}")
        sys.stdout.flush()
    say(end=True)
    sys.stdout.flush()
    return 0


class _Library:
    """The C library; keeps its last answer, as PyDarshan takes an error for the end of the records."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.answer = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def darshan_log_get_record(self, *arguments: Any) -> int:
        """1: there is one; 0: there are no more; less: an error."""
        self.answer = int(self._library.darshan_log_get_record(*arguments))
        return self.answer


class _Reader:
    def __init__(self, backend: Any, path: str) -> None:
        self.backend, self.path = backend, path
        self.modules: dict[str, Any] = {}
        self._records = 0
        self.reopen()

    def reopen(self) -> None:
        """Before each part of the log: once the library met damaged bytes, it expands nothing more of that handle."""
        self.log = self.backend.log_open(self.path)
        if self.modules:
            self.log["modules"] = self.modules

    def _text(self, pointer: Any) -> str:
        words: bytes = self.backend.ffi.string(pointer)
        return words.decode("utf-8", "surrogateescape")  # two names that are no UTF-8 stay two

    def head(self) -> None:
        """Who ran what, which modules there are, and the names of files."""
        b, handle = self.backend, self.log["handle"]
        record = b.ffi.new("struct darshan_job *")
        if b.libdutil.darshan_log_get_job(handle, record) < 0:
            raise SystemExit(5)
        seconds = b.ffi.new("double *")
        b.libdutil.darshan_log_get_job_runtime(handle, record[0], seconds)
        command = b.ffi.new("char[]", 1 << 16)
        b.libdutil.darshan_log_get_exe(handle, command)
        fields = ("uid", "start_time_sec", "start_time_nsec", "end_time_sec", "end_time_nsec", "nprocs", "jobid")
        job: dict[str, Any] = {name: int(getattr(record[0], name)) for name in fields}
        job |= {
            "run_time": float(seconds[0]),
            "exe": self._text(command),
            "log_ver": self._text(b.ffi.cast("char *", handle)),
        }
        say(job=job)
        try:
            self.modules = b.log_get_modules(self.log)
        except Exception as error:
            say(trouble=f"modules: {type(error).__name__}: {error}")
        say(modules=self.modules)
        try:
            self._names()
        except Exception as error:
            say(trouble=f"names of files: {type(error).__name__}: {error}")

    def _names(self) -> None:
        b = self.backend
        self.reopen()
        records, count = b.ffi.new("struct darshan_name_record **"), b.ffi.new("int *")
        b.libdutil.darshan_log_get_name_records(self.log["handle"], records, count)
        for at in range(max(count[0], 0)):
            say(name=int(records[0][at].id), text=self._text(records[0][at].name))

    def module(self, module: str) -> None:
        """All records of a module."""
        b = self.backend
        b.libdutil.answer = 0
        self.reopen()
        self._records = 0
        if module in COUNTED:
            names = {"counters": b.counter_names(module), "seconds": b.fcounter_names(module)}
            say(columns=module, bytes=b.ffi.sizeof(b._structdefs[module].removesuffix("**").strip()), **names)
            while self._wants(module) and (found := b.log_get_record(self.log, module, dtype="numpy")) is not None:
                say(
                    record=module,
                    id=int(found["id"]),
                    rank=int(found["rank"]),
                    file=int(found.get("file_rec_id", 0)),
                    counters=found["counters"].tolist(),
                    seconds=found["fcounters"].tolist(),
                )
        elif module == "LUSTRE":
            self._layouts()
        elif module == "HEATMAP":
            while self._wants(module) and (found := b.log_get_record(self.log, module)) is not None:
                say(
                    heatmap=int(found["id"]),
                    rank=int(found["rank"]),
                    bin_s=float(found["bin_width_seconds"]),
                    write=found["write_bins"].tolist(),
                    read=found["read_bins"].tolist(),
                )
        elif module in WHOLE:
            self._segments(module)
        else:
            say(unread=module)

    def _wants(self, module: str) -> bool:
        """Whether another record of the module is asked for."""
        self._records += 1
        if self._records == MOST_RECORDS + 1:
            say(trouble=f"{module}: records beyond the first {MOST_RECORDS:,} are left out")
        return self._records <= MOST_RECORDS

    def _layouts(self) -> None:
        """Lustre's layouts. PyDarshan reads as many targets as a part says, and stops at names that are no UTF-8."""
        b = self.backend
        names = b.counter_names("LUSTRE_COMP")
        bytes_at, count_at = (names.index(f"LUSTRE_COMP_STRIPE_{what}") for what in ("SIZE", "COUNT"))
        index = self.modules["LUSTRE"]["idx"]
        record = b.libdutil.darshan_log_get_record
        while self._wants("LUSTRE") and record(self.log["handle"], index, buffer := b.ffi.new("void **")) >= 1:
            found = b.ffi.cast("struct darshan_lustre_record *", buffer[0])
            parts = [found.comps[at].counters for at in range(found.num_comps)]
            counts = [int(part[count_at]) for part in parts]
            if min(counts, default=0) < 0 or sum(counts) > found.num_stripes:
                raise ValueError(f"a record says it has {found.num_stripes} targets, and its parts {counts}"[:200])
            ends = [sum(counts[: at + 1]) for at in range(len(counts))]
            say(
                lustre=int(found.base_rec.id),
                stripe_bytes=[int(part[bytes_at]) for part in parts],
                targets=[
                    [int(found.ost_ids[at]) for at in range(end - count, end)]
                    for count, end in zip(counts, ends, strict=True)
                ],
            )
            b.libdutil.darshan_free(buffer[0])

    def _segments(self, module: str) -> None:
        """DXT's events, without PyDarshan's dictionary for each of them."""
        import numpy as np  # noqa: PLC0415

        b = self.backend
        kind = np.dtype([("offset", "<i8"), ("length", "<i8"), ("start", "<f8"), ("end", "<f8")])
        index = self.modules[module]["idx"]
        # Null each time: the library makes the buffer then, else it writes into what is there.
        while b.libdutil.darshan_log_get_record(self.log["handle"], index, buffer := b.ffi.new("void **")) >= 1:
            found = b.ffi.cast("struct dxt_file_record *", buffer[0])
            counts = {"write": int(found.write_count), "read": int(found.read_count)}
            if min(counts.values()) < 0 or sum(counts.values()) * kind.itemsize > MOST_BYTES:
                raise ValueError(f"a record says it has {counts} segments")
            at = b.ffi.cast("char *", buffer[0]) + b.ffi.sizeof("struct dxt_file_record")
            rows = np.frombuffer(b.ffi.buffer(at, sum(counts.values()) * kind.itemsize), dtype=kind)
            begin = 0
            for op, count in counts.items():
                for first in range(begin, begin + count, SEGMENTS):
                    part = rows[first : min(first + SEGMENTS, begin + count)]
                    say(
                        dxt=module,
                        id=int(found.base_rec.id),
                        rank=int(found.base_rec.rank),
                        op=op,
                        host=self._text(found.hostname),
                        **{name: part[name].tolist() for name in kind.names or ()},
                    )
                begin += count
            b.libdutil.darshan_free(buffer[0])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
