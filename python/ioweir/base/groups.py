"""A group of users that may read what the user keeps: `--group NAME` of `ioweir run`, `env` and `site add`."""

from __future__ import annotations

import grp
import os

from ioweir.errors import EXIT_USAGE, IoweirError


def number_of(name: str) -> int:
    """The number of a group to which the user belongs, or of any group for root. IoweirError names what is wrong."""
    try:
        number = int(name) if name.isdecimal() else grp.getgrnam(name).gr_gid
    except (KeyError, ValueError):
        raise IoweirError(
            f"--group {name}: there is no such group; `id` says to which ones you belong", EXIT_USAGE
        ) from None
    if os.geteuid() != 0 and number not in {os.getegid(), *os.getgroups()}:
        raise IoweirError(
            f"--group {name}: you do not belong to that group, so you cannot give it anything; `id` says to which ones "
            "you belong. A group you have just joined counts after you have logged in again",
            EXIT_USAGE,
        )
    return number
