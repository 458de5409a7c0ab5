"""The kernel's rate limits of block devices: cgroup version 1 (blkio.throttle.*) and version 2 (io.max).

Version 1 has them for the root group, which holds every process. Version 2 has not: there the limits are those of a
group of the lab's own, and only programs started by `ioweir lab run` are in it.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ioweir.errors import IoweirError

DIRECTIONS: Final = ("write", "read")
MOUNTS: Final = Path("/proc/self/mountinfo")


@dataclass(frozen=True)
class Limits:
    """Where limits are set. `group` is the lab's own with version 2, the root group with version 1."""

    version: int
    group: Path

    def set(self, device: str, bytes_per_second: int) -> None:
        """Limits reads and writes of a device ("7:3") each to that; 0 lifts the limits."""
        if self.version == 1:
            for direction in DIRECTIONS:
                _write(self.group / f"blkio.throttle.{direction}_bps_device", f"{device} {bytes_per_second}")
        else:
            value = bytes_per_second or "max"
            _write(self.group / "io.max", f"{device} rbps={value} wbps={value}")

    def get(self, device: str) -> int:
        """The limit of writes; 0: there is none."""
        file = self.group / ("blkio.throttle.write_bps_device" if self.version == 1 else "io.max")
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except OSError:
            return 0
        for line in lines:
            words = line.split()
            if not words or words[0] != device:
                continue
            if self.version == 1:
                return int(words[1])
            limits = dict(word.split("=", 1) for word in words[1:])
            return 0 if limits.get("wbps", "max") == "max" else int(limits["wbps"])
        return 0

    def make(self) -> None:
        """With version 2, the group."""
        if self.version == 2:
            parent = self.group.parent
            if "io" not in (parent / "cgroup.subtree_control").read_text(encoding="utf-8").split():
                _write(parent / "cgroup.subtree_control", "+io")
            self.group.mkdir(exist_ok=True)

    def join(self) -> None:
        """Puts this process, and what it starts, under the limits."""
        if self.version == 2:
            _write(self.group / "cgroup.procs", str(os.getpid()))

    def remove(self) -> None:
        """With version 2, the group, once nothing runs in it."""
        if self.version == 2:
            with contextlib.suppress(OSError):
                self.group.rmdir()


def find(name: str, mounts: Path = MOUNTS) -> Limits | None:
    """The limits that this kernel has for a lab of that name; None where it has none that can be used."""
    for line in mounts.read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        place, kind = Path(before.split()[4]), after.split()
        if kind[0] == "cgroup" and "blkio" in kind[2].split(","):
            if (place / "blkio.throttle.write_bps_device").exists():
                return Limits(1, place)
        elif kind[0] == "cgroup2":
            with contextlib.suppress(OSError):
                if "io" in (place / "cgroup.controllers").read_text(encoding="utf-8").split():
                    return Limits(2, place / f"ioweir-lab-{name}")
    return None


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise IoweirError(f"the kernel refuses a rate limit: '{text}' to {file}: {error}") from error
