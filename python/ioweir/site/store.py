"""A site's store: Parquet files of runs and findings in one folder, which only grows (docs/reference/site.md).

Each `add` writes two files a month of runs: `runs-2026-11-HEX.parquet` and `findings-2026-11-HEX.parquet`. So several
may add at a time, and old months are forgotten by removing files. What a row means: rows.py. Who adds up: engines.py.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import GROUP_FILE, MOST_TEXT, Folder, UnsafeFileError, loads_bounded
from ioweir.base.new_folder import folder_at
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.site.queries import stored_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from ioweir.site.rows import Collected

VERSION: Final = 2
"""In version 1 the secret stands in the description, which a group could not be let read."""
READABLE: Final = (1, VERSION)
DESCRIPTION: Final = "site.json"
SECRET: Final = "secret"
TABLES: Final = ("runs", "findings")
_NAME: Final = re.compile(r"(runs|findings)-(\d{4}-\d{2})-[0-9a-f]{16}\.parquet")
_NEW_MODE: Final = 0o700
_OWN_FILE: Final = 0o600
_DIGITS: Final = 24


def schema(table: str) -> pa.Schema:
    """Of one of TABLES."""
    import pyarrow as pa  # noqa: PLC0415

    when = pa.timestamp("us", tz="UTC")
    common = [("run", pa.string()), ("started", when), ("program", pa.string())]
    if table == "runs":
        own = [
            ("user", pa.string()), ("source", pa.string()), ("mpi", pa.string()), ("ranks", pa.int64()),
            ("nodes", pa.int64()), ("wall_s", pa.float64()), ("io_s", pa.float64()), ("waiting_s", pa.float64()),
            ("read_bytes", pa.int64()), ("written_bytes", pa.int64()), ("events", pa.int64()),
            ("partial", pa.bool_()), ("exit_code", pa.int64()),
        ]  # fmt: skip
    else:
        own = [
            ("nodes", pa.int64()), ("code", pa.string()), ("severity", pa.string()), ("layer", pa.string()),
            ("seconds", pa.float64()), ("gain_low", pa.float64()), ("gain_high", pa.float64()),
        ]  # fmt: skip
    return pa.schema(common + own, metadata={"ioweir.site_version": str(VERSION)})


@dataclass
class Forgotten:
    """What `forget` removed, or would remove: runs, and whole files."""

    runs: int = 0
    files: int = 0


class Store:
    """An open store; to be used by `with`."""

    def __init__(self, folder: Folder, secret: str | None) -> None:
        self.folder = folder
        self.not_read: dict[str, str] = {}
        """Files that are damaged or not safe to read, and why; the others are read all the same."""
        self._said = secret
        """Of a store of version 1."""

    @classmethod
    def make_or_open(cls, path: Path, group: int | None = None) -> Store:
        """The store at a path; a new one where nothing is or an empty folder.

        It is the user's alone, and with `group` that group's, to read.
        """
        with folder_at(path, _NEW_MODE) as folder:
            if not folder.names():
                folder.close_to_others()
                folder.write(SECRET, os.urandom(16).hex() + "\n", _OWN_FILE)
                folder.write(DESCRIPTION, json.dumps({"site_version": VERSION}) + "\n", _OWN_FILE)
        store = cls.open(path)
        try:
            if group is not None:
                store._share(group)
        except OSError as error:
            store.folder.close()
            raise IoweirError(f"--group: '{path}' cannot be shared: {error.strerror}") from error
        return store

    @classmethod
    def open(cls, path: Path) -> Store:
        """The store at a path. IoweirError: there is none."""
        folder = _opened(path)
        try:
            said = loads_bounded(folder, DESCRIPTION, MOST_TEXT)
            version = said["site_version"]
            secret = str(said["secret"]) if version == 1 else None
        except FileNotFoundError:
            raise IoweirError(
                f"'{path}' is no store: it has no {DESCRIPTION}; `ioweir site add STORE TRACE...` makes one", EXIT_USAGE
            ) from None
        except OSError as error:
            raise IoweirError(f"'{path}/{DESCRIPTION}' {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise IoweirError(f"'{path}/{DESCRIPTION}' is damaged: {error}") from error
        if version not in READABLE:
            raise IoweirError(
                f"'{path}' has version {version} of a store; this ioweir reads versions {READABLE[0]} and {VERSION}"
            )
        return cls(folder, secret)

    def _share(self, group: int) -> None:
        """Lets a group read everything but the secret, with which names could be guessed and confirmed."""
        if why := self.folder.why_not_own():
            raise IoweirError(f"--group: the store '{self.folder.path}' {why}; only its owner can share it", EXIT_USAGE)
        if self._said is not None:
            self.folder.write(SECRET, f"{self._said}\n", _OWN_FILE)
            self.folder.write(DESCRIPTION, json.dumps({"site_version": VERSION}) + "\n", _OWN_FILE)
            self._said = None
        self.folder.let_group_read(group)
        for name in (DESCRIPTION, *self.file_names("runs"), *self.file_names("findings")):
            try:
                descriptor = self.folder.open_file(name, own=True)
            except UnsafeFileError:
                continue  # a link, or somebody else's: `show` will say so
            try:
                os.fchown(descriptor, -1, group)
                os.fchmod(descriptor, GROUP_FILE)
            finally:
                os.close(descriptor)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.close()

    def key(self, identity: str) -> str:
        """Of a run, which says nothing of it to others."""
        return self._digest(identity)

    def known(self) -> set[str]:
        """The keys of the runs that are in it."""
        found: set[str] = set()
        for name in self.file_names("runs"):
            rows = self._rows(name, "runs", ["run"])
            found |= set() if rows is None else set(rows.column("run").to_pylist())
        return found

    def add(self, collected: Sequence[Collected], *, anonymise: bool = False) -> None:
        """Writes what traces came to; the runs must be new. Findings go first: a run is there with all of its own."""
        by_month: dict[str, list[Collected]] = defaultdict(list)
        for one in collected:
            by_month[time.strftime("%Y-%m", time.gmtime(one.run.started))].append(one)
        for month, some in by_month.items():
            hidden = [self._anonymous(one) for one in some] if anonymise else some
            suffix = f"{month}-{os.urandom(8).hex()}.parquet"
            self._write("findings", suffix, [asdict(row) for one in hidden for row in one.findings])
            self._write("runs", suffix, [asdict(one.run) for one in hidden])

    def parts(self, table: str, names: Sequence[str] | None = None) -> Iterator[tuple[str, pa.Table]]:
        """The stored rows of a table, of these files or of all, in the order of names; an empty one comes first.

        The word says which `add` and month wrote them: it is the same of runs and of their findings. What cannot be
        read is left out, and noted in `not_read`.
        """
        yield "", schema(table).empty_table()
        for name in self.file_names(table) if names is None else names:
            rows = self._rows(name, table, stored_columns(table))
            if rows is not None:
                yield name.removeprefix(f"{table}-"), rows

    def file_names(self, table: str) -> list[str]:
        """Of a table's files, sorted."""
        return [name for name in self.folder.names() if (found := _NAME.fullmatch(name)) and found[1] == table]

    def forget(self, before: float, *, dry_run: bool = False) -> Forgotten:
        """Removes the runs that began before a time (seconds since 1970), and then their findings."""
        done = Forgotten()
        last = time.strftime("%Y-%m", time.gmtime(before))
        gone: set[str] = set()
        for table in TABLES:
            for name in self.file_names(table):
                part = name.removeprefix(f"{table}-")
                month = part[: len(last)]
                if month > last:
                    continue
                rows = self._rows(name, table, schema(table).names)
                if rows is None and month == last:
                    continue  # damaged, and perhaps not old
                kept = None if rows is None or month < last else _begun_since(rows, before)
                left = 0 if kept is None else kept.num_rows
                if rows is not None and left == rows.num_rows and month == last and part not in gone:
                    continue
                if rows is not None and table == "runs":
                    done.runs += rows.num_rows - left
                if not left:
                    gone.add(part)
                    done.files += 1
                if not dry_run and left:
                    self._write_table(name, kept)
                elif not dry_run:
                    self.folder.remove(name, missing_ok=True)
                    self.not_read.pop(name, None)
        return done

    def _anonymous(self, one: Collected) -> Collected:
        run = replace(one.run, program=self._digest(one.run.program), user=self._digest(one.run.user))
        return replace(one, run=run, findings=[replace(row, program=run.program) for row in one.findings])

    def _digest(self, word: str) -> str:
        """The same for the same word in this store; nobody without its secret can try words."""
        return hmac.new(self._secret().encode(), word.encode("utf-8", "surrogateescape"), "sha256").hexdigest()[
            :_DIGITS
        ]

    def _secret(self) -> str:
        if self._said is None:
            try:
                self._said = self.folder.read_text(SECRET, own=True).strip()
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or "is damaged"
                raise IoweirError(
                    f"'{self.folder.path}/{SECRET}' cannot be read: {why}; only the owner of a store adds to it"
                ) from error
        return self._said

    def _write(self, table: str, suffix: str, rows: list[dict[str, Any]]) -> None:
        import pyarrow as pa  # noqa: PLC0415

        for row in rows:
            row["started"] = round(row["started"] * 1e6)
            for name, value in row.items():
                if isinstance(value, str):
                    row[name] = value.encode("utf-8", "backslashreplace").decode()
        self._write_table(f"{table}-{suffix}", pa.Table.from_pylist(rows, schema(table)))

    def _write_table(self, name: str, content: pa.Table) -> None:
        from pyarrow import parquet  # noqa: PLC0415

        with self.folder.replacing(name, _OWN_FILE) as file:
            if self.folder.is_for_group():
                os.fchmod(file.fileno(), GROUP_FILE)
            parquet.write_table(content, file, compression="zstd")

    def _rows(self, name: str, table: str, columns: Sequence[str]) -> pa.Table | None:
        """These columns of a file; None where it has gone meanwhile, or cannot be read."""
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        try:
            with os.fdopen(self.folder.open_file(name), "rb") as file:
                content = pa.BufferReader(file.read())
            # Without threads: one that still reads ahead when the process ends was seen to abort it.
            read = parquet.read_table(content, columns=list(columns), use_threads=False, pre_buffer=False)
            return read.select(columns).cast(pa.schema([schema(table).field(one) for one in columns]))
        except FileNotFoundError:
            return None  # forgotten meanwhile
        except UnsafeFileError as error:
            self.not_read[name] = f"'{self.folder.path}/{name}' {error.strerror}"
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            first = str(error).partition("\n")[0]
            self.not_read[name] = f"'{self.folder.path}/{name}' is damaged, and was not read: {first}"
        return None


def _begun_since(rows: pa.Table, since: float) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    micros = pc.fill_null(rows.column("started").cast(pa.int64()), 0)
    return rows.filter(pc.greater_equal(micros, round(since * 1e6)))


def _opened(path: Path) -> Folder:
    try:
        return Folder.open(path)
    except OSError as error:
        raise IoweirError(f"the store '{path}' cannot be opened: {error.strerror}", EXIT_USAGE) from error
