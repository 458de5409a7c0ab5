"""Traces: reading them (docs/reference/python-trace.md), who made which events, and one log of all.

The names of reader.py are found here too. They are loaded when they are asked for: `ioweir run` needs parts of this
package before its program starts, and no trace.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ioweir.trace.reader import (
        BATCH_EVENTS,
        DATA_OPS,
        FLAG_FAILED,
        FLAG_SHORT,
        LAYERS,
        MPI_IO,
        NODE_FILES,
        OPS,
        POSIX,
        STDIO,
        Access,
        ChosenFile,
        Clock,
        Datatype,
        EngineWork,
        Events,
        Function,
        Module,
        Note,
        Process,
        Requests,
        Thread,
        Trace,
        Verdict,
        View,
        WeighedCalls,
        load,
        read,
    )
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ioweir.trace import reader  # noqa: PLC0415

        return getattr(reader, name)


__all__ = [
    "BATCH_EVENTS",
    "DATA_OPS",
    "FLAG_FAILED",
    "FLAG_SHORT",
    "LAYERS",
    "MPI_IO",
    "NODE_FILES",
    "OPS",
    "POSIX",
    "STDIO",
    "Access",
    "ChosenFile",
    "Clock",
    "Datatype",
    "EngineWork",
    "Events",
    "Function",
    "Module",
    "Note",
    "Process",
    "Requests",
    "Thread",
    "Trace",
    "Verdict",
    "View",
    "WeighedCalls",
    "load",
    "read",
]
