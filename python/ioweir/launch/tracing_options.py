"""What the user may choose about tracing: layers, call sites, buffer, quota, anonymising, readers.

Lives here: the words, their checks, the variables that the preload reads. Not here: what the preload does with them
(src/preload/preload.cpp, src/tracer).
"""

from __future__ import annotations

import difflib
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import groups
from ioweir.base.spec_names import LAYER_WORDS
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LAYERS: Final = LAYER_WORDS
"""The words of --layers and the names of the layers in reports."""
COMPLETE: Final = "complete"
ANONYMISE: Final = "IOWEIR_ANONYMISE"
VARIABLES: Final = ("IOWEIR_LAYERS", "IOWEIR_CALLSITES", "IOWEIR_BUFFER", "IOWEIR_QUOTA", ANONYMISE)

_UNITS: Final = {
    "": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_SIZE: Final = re.compile(r"\s*(\d+)\s*([A-Za-z]*)\s*")
_MOST_DIGITS: Final = 64
"""Are enough to be too many: Python reads no number of thousands."""
# One chunk of the trace file for each of a few threads; below that every chunk is a switch of chunks.
SMALLEST_BUFFER: Final = 256 * 2**10
# Twice what a node's file takes before its first event.
SMALLEST_QUOTA: Final = 2**20
_KEY: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Tracing:
    """The choices, checked."""

    layers: tuple[str, ...] = tuple(LAYERS)
    call_sites: bool = False
    buffer_bytes: int | None = None
    quota_bytes: int | None = None
    anonymise_key: str | None = None
    group: int | None = None
    """Who, besides the user, may read the trace; nobody without it."""

    def variables(self) -> dict[str, str]:
        """What the preload reads. Only what differs from its defaults."""
        variables: dict[str, str] = {}
        if self.layers != tuple(LAYERS):
            variables["IOWEIR_LAYERS"] = ",".join(self.layers)
        if self.call_sites:
            variables["IOWEIR_CALLSITES"] = "1"
        if self.buffer_bytes is not None:
            variables["IOWEIR_BUFFER"] = str(self.buffer_bytes)
        if self.quota_bytes is not None:
            variables["IOWEIR_QUOTA"] = str(self.quota_bytes)
        if self.anonymise_key is not None:
            variables[ANONYMISE] = self.anonymise_key
        return variables

    def described(self) -> dict[str, Any]:
        """For run.json; never the key, with which paths could be guessed and confirmed."""
        return {
            "layers": [LAYERS[layer] for layer in self.layers],
            "call_sites": self.call_sites,
            "buffer_bytes": self.buffer_bytes,
            "quota_bytes": self.quota_bytes,
            "anonymised": self.anonymise_key is not None,
        }


def parse_layers(text: str) -> tuple[str, ...]:
    """The layers of a comma list. Example: "mpiio,posix" -> ("posix", "mpiio")."""
    words = [word.strip().lower() for word in text.split(",")]
    for word in words:
        if word not in LAYERS and word != COMPLETE:
            raise IoweirError(
                f"--layers: '{word}' is no layer{nearest(word, [*LAYERS, COMPLETE]) or '.'} "
                f"There are {', '.join(LAYERS)}, and {COMPLETE} for all of them",
                EXIT_USAGE,
            )
    return tuple(layer for layer in LAYERS if layer in words or COMPLETE in words)


def nearest(word: str, names: Sequence[str]) -> str:
    """A question that names what was probably meant. Example: "posxi" -> "; did you mean 'posix'?"."""
    # Words that only put hyphens or capitals elsewhere ("MPI-IO", "PnetCDF") are near whatever their length.
    plain = {name.replace("-", ""): name for name in names}
    found = difflib.get_close_matches(word.replace("-", "").lower(), list(plain), n=1, cutoff=0.5)
    return f"; did you mean '{plain[found[0]]}'?" if found else ""


def parse_bytes(option: str, text: str, smallest: int) -> int:
    """A size as plan files write it. Example: "16 MiB" -> 16777216."""
    matched = _SIZE.fullmatch(text)
    if matched is None:
        raise IoweirError(
            f"{option}: '{text}' is no size; write a whole number and a unit, such as '16 MiB'", EXIT_USAGE
        )
    number, unit = matched.groups()
    if unit not in _UNITS:
        raise IoweirError(
            f"{option}: '{text}' has an unknown unit{nearest_unit(unit) or '.'} "
            f"Units are {', '.join(name for name in _UNITS if name)}",
            EXIT_USAGE,
        )
    size = int(number[:_MOST_DIGITS]) * _UNITS[unit]
    if size < smallest:
        raise IoweirError(f"{option}: '{text}' is too small; the least is {smallest} bytes", EXIT_USAGE)
    if size >= 2**63:
        raise IoweirError(f"{option}: '{text}' is too large; the largest is below 2^63 bytes", EXIT_USAGE)
    return size


def nearest_unit(unit: str) -> str:
    """The unit that was probably meant. Example: "mib" -> "; did you mean 'MiB'?", "M" -> the same."""
    for name in _UNITS:
        if name and unit and (name.lower() == unit.lower() or (len(unit) == 1 and name[0].lower() == unit.lower())):
            return f"; did you mean '{name}'?"
    return ""


def make(
    layers: str | None,
    call_sites: bool,
    buffer: str | None,
    quota: str | None,
    anonymise: bool,
    environment: Mapping[str, str],
    group: str | None = None,
) -> Tracing:
    """The choices from the words of the command line."""
    return Tracing(
        layers=parse_layers(layers) if layers is not None else tuple(LAYERS),
        call_sites=call_sites,
        buffer_bytes=parse_bytes("--buffer", buffer, SMALLEST_BUFFER) if buffer is not None else None,
        quota_bytes=parse_bytes("--quota", quota, SMALLEST_QUOTA) if quota is not None else None,
        anonymise_key=_key(environment) if anonymise else None,
        group=groups.number_of(group) if group is not None else None,
    )


def _key(environment: Mapping[str, str]) -> str:
    """A new key; or the user's, with which the same path has the same name in several runs."""
    given = environment.get(ANONYMISE)
    if given is None:
        return secrets.token_hex(16)
    if _KEY.fullmatch(given) is None:
        raise IoweirError(f"{ANONYMISE}={given}: is no key; give 32 hexadecimal digits (0-9, a-f)", EXIT_USAGE)
    return given
