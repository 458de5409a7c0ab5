"""What is known of repeated runs of one program."""

from __future__ import annotations

from typing import Final

RUNS_DIFFER: Final = 0.02
"""Of the run: the least by which repeated production runs of one program were seen to vary (Wright et al. 2013, section
5.1), so that a repair which saves nothing may seem to save, or to cost, as much."""
