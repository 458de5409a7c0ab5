"""Loads the compiled part of the package when it is needed: the trace reader and the planner."""

from __future__ import annotations

import importlib
from typing import Any

from ioweir.errors import IoweirError


def compiled() -> Any:
    """The module ioweir._core, or an error that says what is missing."""
    try:
        return importlib.import_module("ioweir._core")
    except ImportError as error:
        raise IoweirError(
            f"the compiled part of ioweir (ioweir._core) cannot be loaded: {error}. Reinstall the package, "
            "in a checkout with `make`"
        ) from error
