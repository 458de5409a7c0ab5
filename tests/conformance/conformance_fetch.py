"""Where the test programs of others come from: Debian's source packages and PyPI, at run time, into the cache.

Nothing on the system is changed: apt works on a source list and state directories of our own, made from the machine's
own Debian mirror and its signature. Not here: which programs there are (conformance_suites.py).
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

FETCH_S: Final = 600.0


class FetchError(Exception):
    """What was asked for, what the tool said."""


def _run(*command: str | Path, cwd: Path) -> str:
    words = [str(word) for word in command]
    finished = subprocess.run(words, capture_output=True, text=True, timeout=FETCH_S, check=False, cwd=cwd)
    if finished.returncode != 0:
        raise FetchError(f"{' '.join(words)} returned {finished.returncode}:\n{finished.stdout}\n{finished.stderr}")
    return finished.stdout


# ----------------------------------------------------------------------------------------------------------- Debian


@dataclass(frozen=True)
class Mirror:
    """A Debian archive of this machine: where binary packages come from, sources do too."""

    address: str
    suite: str
    signed_by: str

    def line(self) -> str:
        """The entry of a source list that asks for source packages."""
        options = f"[signed-by={self.signed_by}] " if self.signed_by else ""
        return f"deb-src {options}{self.address} {self.suite} main\n"


def mirrors(directory: Path = Path("/etc/apt")) -> list[Mirror]:
    """The machine's Debian archives, of both kinds of source list; those of security updates are left out."""
    files = [directory / "sources.list", *sorted((directory / "sources.list.d").glob("*"))]
    found = [mirror for path in files if path.is_file() for mirror in _mirrors_of(path)]
    return [mirror for mirror in found if "/debian" in mirror.address and "security" not in mirror.address]


def _mirrors_of(path: Path) -> Iterator[Mirror]:
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".sources":
        for paragraph in re.split(r"\n\s*\n", text):
            fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", paragraph, re.MULTILINE))
            for suite in fields.get("Suites", "").split():
                yield Mirror(fields.get("URIs", "").split()[0], suite, fields.get("Signed-By", ""))
    elif path.suffix == ".list":
        for options, address, suite in re.findall(r"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)", text, re.MULTILINE):
            signed = re.search(r"signed-by=(\S+)", options)
            yield Mirror(address, suite, signed[1] if signed else "")


def debian_source(package: str, cache: Path, suite: str = "") -> Path:
    """The unpacked source of a Debian package, of the machine's own release or of another; fetched once."""
    place = cache / "debian" / (f"{package}-{suite}" if suite else package)
    done = place / "fetched"
    if not done.exists():
        known = mirrors()
        if not known:
            raise FetchError(
                "this machine's apt has no Debian archive; conformance tests need Debian's source packages"
            )
        if suite:
            known = [replace(known[0], suite=suite)]
        place.mkdir(parents=True, exist_ok=True)
        state = cache / ("apt-" + suite if suite else "apt")
        for part in ("state/lists/partial", "cache/archives/partial"):
            (state / part).mkdir(parents=True, exist_ok=True)
        listing = state / "sources.list"
        listing.write_text("".join(mirror.line() for mirror in known), encoding="utf-8")
        options = [
            f"-oDir::Etc::sourcelist={listing}", "-oDir::Etc::sourceparts=-", f"-oDir::State={state}/state",
            f"-oDir::Cache={state}/cache", "-oAPT::Sandbox::User=root",
        ]  # fmt: skip
        _run("apt-get", "-q", *options, "update", cwd=place)
        _run("apt-get", "-q", *options, "source", "--download-only", package, cwd=place)
        archives = [path for path in place.iterdir() if ".orig.tar." in path.name and path.suffix != ".asc"]
        if len(archives) != 1:
            raise FetchError(f"apt-get source {package}: expected one .orig.tar, found {archives}")
        _run("tar", "-xf", archives[0], cwd=place)
        done.touch()
    trees = [path for path in place.iterdir() if path.is_dir()]
    if len(trees) != 1:
        raise FetchError(f"{place} holds {len(trees)} source trees, not one; remove it and run again")
    return trees[0]


# ------------------------------------------------------------------------------------------------------------- PyPI


def mpi4py_source(cache: Path) -> Path:
    """The source of the mpi4py that is installed in this environment: its tests are not in the wheel."""
    version = metadata.version("mpi4py")
    place = cache / "pypi" / f"mpi4py-{version}"
    if not (place / "test").is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        download = ["download", "-q", "--disable-pip-version-check", "--no-deps"]
        _run(
            sys.executable, "-m", "pip", *download, "--no-binary", "mpi4py", f"mpi4py=={version}", "-d", place.parent,
            cwd=place.parent,
        )  # fmt: skip
        _run("tar", "-xf", f"mpi4py-{version}.tar.gz", cwd=place.parent)
    return place
