"""What a trace comes to: figures and their words, timelines, comparisons of runs.

The names of figures.py that are for everybody are found here too, and loaded when they are asked for: `ioweir run`
needs parts of this package before its program starts, and no figures.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ioweir.report.figures import DEFINITIONS, REPORT_VERSION, Report, build
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ioweir.report import figures  # noqa: PLC0415

        return getattr(figures, name)


__all__ = ["DEFINITIONS", "REPORT_VERSION", "Report", "build"]
