"""ioweir: watches the I/O of an unmodified MPI program, explains it, and says whether a plan helped.

`ioweir.open(DIR)` is a traced run in Python (docs/reference/library.md). Nothing is imported before it is asked for,
not even typing: the command line must start quickly, and the launcher shims even more so.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ioweir.library import Columns, Plot, Run
    from ioweir.library import open_run as open  # noqa: A004 (as in ioweir.open)
else:

    def __getattr__(name: str) -> "Any":
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ioweir import library  # noqa: PLC0415

        return getattr(library, {"open": "open_run"}.get(name, name))


__all__ = ["Columns", "Plot", "Run", "open"]
