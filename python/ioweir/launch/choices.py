"""`ioweir run --auto`: the plan that leaves the choice of writers to the engine, and what earlier runs found.

What is kept is one small file in the user's cache folder. It names nothing: a program is a digest with a secret number
of the file's own, a series of files is the digest that the engine made of its name, ranks and file system. It is
believed as far as numbers go: whatever stands in it, the engine tries in another order or tries less.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import locate
from ioweir.base.guarded_files import Folder, loads_bounded
from ioweir.errors import IoweirError
from ioweir.report.chosen import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ioweir.report.chosen import ChosenSeries

FILE: Final = "choices.json"
SEED: Final = "IOWEIR_CHOOSE_SEED"
VERSION: Final = 1
_MOST_BYTES: Final = 1 << 20
_MOST_SERIES: Final = 1000
_KEPT_S: Final = 30 * 86400
_LOCK_S: Final = 2.0  # another run's: writing takes milliseconds
_DIGEST: Final = re.compile(r"[0-9a-f]{16}")
_WRITERS: Final = re.compile(r"library|everyone|aggregators:(auto|[0-9]{1,7})")
_LEAST, _MOST = 1e-6, 1e6


def plan_text(known: Iterable[str] = ()) -> str:
    """A plan for every file that all ranks open together."""
    lines = ["[[file]]", 'match = "*"', 'choose = "auto"']
    if entries := list(known):
        lines.append(f"known = [{', '.join(json.dumps(entry) for entry in entries)}]")
    return "\n".join(lines) + "\n"


def new_seed() -> str:
    """In which order writers are tried: another one in each run."""
    return str(secrets.randbits(63))


def known(program: str, environment: Mapping[str, str]) -> list[str]:
    """What earlier runs of the program found, as a plan's `known` has it; nothing where the file cannot be believed."""
    folder = locate.cache_folder(environment)
    if folder is None:
        return []
    try:
        with Folder.open(folder, own=True) as opened:
            content = _read(opened)
    except OSError:
        return []
    shares = content["programs"].get(_program(content, program), {})
    return [
        f"{digest} {writers} {share:.6g}"
        for digest, row in sorted(shares.items())
        for writers, share in sorted(row["shares"].items())
        if writers != LIBRARY
    ]


def remember(program: str, series: Iterable[ChosenSeries], environment: Mapping[str, str]) -> str:
    """Keeps what a run has found; why it cannot, in words, or nothing."""
    found = {row.digest: shares for row in series if (shares := _shares(row))}
    folder = locate.cache_folder(environment)
    if not found or folder is None:
        return ""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Folder.open(folder, own=True) as opened, _locked(opened):
            content = _read(opened)
            rows = content["programs"].setdefault(_program(content, program), {})
            for digest, shares in found.items():
                rows[digest] = {"when": time.time(), "shares": shares}
            _forget(content)
            opened.write(FILE, json.dumps(content) + "\n", 0o600)
    except (OSError, IoweirError) as error:
        return f"what was found is not kept for the next run: {error}"
    return ""


def _shares(row: ChosenSeries) -> dict[str, float]:
    """Of a file's time by the library; nothing where that, or all else, is not known."""
    took = {one.writers: one.file_s for one in row.writers if one.file_s > 0 and _WRITERS.fullmatch(one.writers)}
    usual = took.pop(LIBRARY, 0.0)
    return {name: time_s / usual for name, time_s in took.items() if _LEAST < time_s / usual < _MOST} if usual else {}


def _program(content: Mapping[str, Any], program: str) -> str:
    return hashlib.sha256(f"{content['secret']}\n{program}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _read(folder: Folder) -> dict[str, Any]:
    """What of the file has the form that it should have; a new one where nothing has."""
    content: Any = None
    with contextlib.suppress(OSError, ValueError):
        content = loads_bounded(folder, FILE, _MOST_BYTES, own=True)
    fresh = {"version": VERSION, "secret": secrets.token_hex(16), "programs": {}}
    if not isinstance(content, dict) or content.get("version") != VERSION:
        return fresh
    secret, programs = content.get("secret"), content.get("programs")
    if not isinstance(secret, str) or not re.fullmatch("[0-9a-f]{32}", secret) or not isinstance(programs, dict):
        return fresh
    now = time.time()
    good = {
        name: {digest: row for digest, row in rows.items() if _DIGEST.fullmatch(digest) and _is_row(row, now)}
        for name, rows in programs.items()
        if re.fullmatch("[0-9a-f]{32}", name) and isinstance(rows, dict)
    }
    return {"version": VERSION, "secret": secret, "programs": good}


def _is_row(row: object, now: float) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("shares"), dict):
        return False
    when = row.get("when")
    return (
        isinstance(when, float)
        and now - _KEPT_S < when <= now + 60
        and set(row) == {"when", "shares"}
        and all(
            _WRITERS.fullmatch(name) and isinstance(share, float) and _LEAST < share < _MOST
            for name, share in row["shares"].items()
        )
    )


def _forget(content: dict[str, Any]) -> None:
    """The oldest, where there are too many."""
    rows = [(row["when"], name, digest) for name, found in content["programs"].items() for digest, row in found.items()]
    for _, name, digest in sorted(rows)[: max(len(rows) - _MOST_SERIES, 0)]:
        del content["programs"][name][digest]
    content["programs"] = {name: found for name, found in content["programs"].items() if found}


@contextlib.contextmanager
def _locked(folder: Folder) -> Any:
    """Two runs that end together do not lose each other's; a file system without locks is used without."""
    until = time.monotonic() + _LOCK_S
    with contextlib.suppress(OSError):
        while not _has_locked(folder.descriptor) and time.monotonic() < until:
            time.sleep(0.01)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(folder.descriptor, fcntl.LOCK_UN)


def _has_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What the ranks need besides the plan; the user's own seed is kept."""
    given = environment.get(SEED, "")
    return {SEED: given if re.fullmatch("[0-9]{1,19}", given) else new_seed()}
