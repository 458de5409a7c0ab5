"""What makes PnetCDF call MPI-IO, so that a plan reaches its bytes.

Not here: how ranks get variables (launchers.py, shim.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HINTS: Final = "PNETCDF_HINTS"
DRIVER: Final = "nc_driver"


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """PNETCDF_HINTS for ranks under a plan: the user's hints, and `nc_driver=mpiio` where they do not name a driver.

    PnetCDF 1.15 and later move bytes past MPI-IO unless told otherwise; earlier ones ignore a hint they do not know.
    """
    hints = [hint for hint in environment.get(HINTS, "").split(";") if hint.strip()]
    if not any(hint.partition("=")[0].strip() == DRIVER for hint in hints):
        hints.append(f"{DRIVER}=mpiio")
    return {HINTS: ";".join(hints)}
