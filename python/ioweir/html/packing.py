"""Arrays and texts in a form that a page can hold: bytes of a grid, compressed, in base64; JSON that ends no script.

What does not fit is left out by its owner (Budget), never by the browser.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.base import plain_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from ioweir.html.bins import Floats

BUDGET_BYTES: Final = 6 << 20
"""Of all packed arrays, as base64. With ECharts (1.1 MB) and the tables (2 MB at most) a page stays below 10 MB."""
LINEAR: Final = 1
SQUARE: Final = 2
"""A byte q stands for most * (q / 255) ** power: SQUARE keeps small values apart where few are large."""


class Budget:
    """How much room for arrays is left, and how often there was too little."""

    def __init__(self, most_bytes: int = BUDGET_BYTES) -> None:
        self.left_bytes = most_bytes
        self.refused = 0

    def pack(self, values: npt.NDArray[Any]) -> str | None:
        """The array's bytes (row by row, little endian) as base64 of zlib's format; None: they do not fit any more."""
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 6)).decode()
        if len(packed) > self.left_bytes:
            self.refused += 1
            return None
        self.left_bytes -= len(packed)
        return packed


def quantised(grid: Floats, most: float, power: int = LINEAR) -> npt.NDArray[np.uint8]:
    """Shares of `most` in 255 steps; what is above nothing is at least one step. Example: 0.5 of 1 -> 128."""
    if most <= 0:
        return np.zeros(grid.shape, dtype=np.uint8)
    share = np.clip(grid / most, 0.0, 1.0)
    steps = np.rint(255 * (share if power == LINEAR else np.sqrt(share))).astype(np.uint8)
    return np.where((grid > 0) & (steps == 0), np.uint8(1), steps)


def script_json(value: object) -> str:
    """JSON for an element <script type="application/json">: whatever the texts hold, they end neither it nor a line.

    Characters that a terminal or a reader would obey are shown as `plain_text.line` shows them.
    """
    text = json.dumps(_clean(value), separators=(",", ":"), allow_nan=False)  # ASCII alone
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _clean(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is int:
        return value
    if isinstance(value, str):
        return plain_text.line(value)
    if isinstance(value, dict):
        return {plain_text.line(str(key)): _clean(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, bool | int | float) else _clean(vars(value))
