"""The installed version. importlib.metadata, which would tell it, loads a parser of e-mail: 30 ms of a processor."""

from __future__ import annotations

import os

_BEGIN, _END = "ioweir-", ".dist-info"


def ioweir_version() -> str:
    """The installed version, "unknown" in a bare checkout."""
    package = os.path.abspath(__file__).rsplit("/", 2)[0]  # noqa: PTH100 (pathlib takes 5 ms)
    return _beside(package.rsplit("/", 1)[0]) or _of_metadata()


def _beside(site: str) -> str | None:
    """By the name of the one folder of metadata that lies there. Example: ioweir-0.1.0.dist-info -> 0.1.0."""
    try:
        names = os.listdir(site)  # noqa: PTH208
    except OSError:
        return None
    found = [name for name in names if name.startswith(_BEGIN) and name.endswith(_END)]
    return found[0][len(_BEGIN) : -len(_END)] if len(found) == 1 else None


def _of_metadata() -> str:
    """Of a package whose metadata lie elsewhere, as an editable installation's do."""
    from importlib import metadata  # noqa: PLC0415

    try:
        return metadata.version("ioweir")
    except metadata.PackageNotFoundError:
        return "unknown"
