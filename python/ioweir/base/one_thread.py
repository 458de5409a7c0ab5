"""numpy without the threads of its linear algebra, for commands of ours.

ioweir has no use for them, and each one that numpy starts waits busily for work: a processor's 30 ms for nothing.
"""

from __future__ import annotations

import os
import sys
from typing import Final

_THREADS: Final = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Load numpy so, unless it is there or somebody has said how many. The environment of programs stays as it is."""
    if "numpy" in sys.modules or _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401, PLC0415
    finally:
        del os.environ[_THREADS]
