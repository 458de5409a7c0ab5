"""What a trace comes to: figures and their words, timelines, comparisons of runs.

The names that are for everybody are found here too, and loaded when they are asked for: `ioweir run` needs parts of
this package before its program starts, and no figures.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ioweir.base.json_text import to_dict
    from ioweir.report.figures import DEFINITIONS, REPORT_VERSION, build
    from ioweir.report.model import Report
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ioweir.base import json_text  # noqa: PLC0415
        from ioweir.report import figures, model  # noqa: PLC0415

        return getattr({"to_dict": json_text, "Report": model}.get(name, figures), name)


__all__ = ["DEFINITIONS", "REPORT_VERSION", "Report", "build", "to_dict"]
