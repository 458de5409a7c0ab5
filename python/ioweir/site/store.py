"""A site's store: Parquet files of runs and findings in one folder, which only grows (docs/reference/site.md).

Each `add` writes two files a month of runs: `runs-2026-11-HEX.parquet` and `findings-2026-11-HEX.parquet`. So several
may add at a time, and old months are forgotten by removing files. What a row means: rows.py.
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

from ioweir.base.guarded_files import MOST_TEXT, Folder, UnsafeFileError, loads_bounded
from ioweir.base.new_folder import folder_at
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from ioweir.site.rows import Collected

VERSION: Final = 1
DESCRIPTION: Final = "site.json"
TABLES: Final = ("runs", "findings")
_NAME: Final = re.compile(r"(runs|findings)-(\d{4}-\d{2})-[0-9a-f]{16}\.parquet")
_NEW_MODE: Final = 0o700
_DIGITS: Final = 24


@dataclass(frozen=True)
class Tables:
    """All that is stored, each run once. Columns are the fields of RunRow and FindingRow."""

    runs: pa.Table
    findings: pa.Table


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


class Store:
    """An open store; to be used by `with`."""

    def __init__(self, folder: Folder, secret: str) -> None:
        self.folder = folder
        self.not_read: dict[str, str] = {}
        """Files that are damaged or not safe to read, and why; the others are read all the same."""
        self._secret = secret

    @classmethod
    def make_or_open(cls, path: Path) -> Store:
        """The store at a path; a new one, of the user's alone, where nothing is or an empty folder."""
        folder = folder_at(path, _NEW_MODE)
        if not folder.names():
            content = {"site_version": VERSION, "secret": os.urandom(16).hex()}
            folder.write(DESCRIPTION, json.dumps(content) + "\n", 0o600)
        folder.close()
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Store:
        """The store at a path. IoweirError: there is none."""
        folder = _opened(path)
        try:
            said = loads_bounded(folder, DESCRIPTION, MOST_TEXT)
            version, secret = said["site_version"], str(said["secret"])
        except FileNotFoundError:
            raise IoweirError(
                f"'{path}' is no store: it has no {DESCRIPTION}; `ioweir site add STORE TRACE...` makes one", EXIT_USAGE
            ) from None
        except OSError as error:
            raise IoweirError(f"'{path}/{DESCRIPTION}' {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise IoweirError(f"'{path}/{DESCRIPTION}' is damaged: {error}") from error
        if version != VERSION:
            raise IoweirError(f"'{path}' has version {version} of a store; this ioweir reads version {VERSION}")
        return cls(folder, secret)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.close()

    def key(self, identity: str) -> str:
        """Of a run, which says nothing of it to others."""
        return self._digest(identity)

    def known(self) -> set[str]:
        """The keys of the runs that are in it."""
        return {run for table in self._parts("runs", ["run"]) for run in table.column("run").to_pylist()}

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

    def tables(self) -> Tables:
        """Everything."""
        runs = self._whole("runs")
        findings = self._whole("findings")
        import pyarrow as pa  # noqa: PLC0415

        keys = runs.column("run")
        if len(keys.unique()) < len(keys):  # two `add` of one trace at a time
            first: dict[str, int] = {}
            for at, key in enumerate(keys.to_pylist()):
                first.setdefault(key, at)
            runs = runs.take(pa.array(sorted(first.values())))
            findings = pa.Table.from_pylist(_each_once(findings.to_pylist()), schema("findings"))
        return Tables(runs, findings)

    def forget(self, before: str) -> int:
        """Removes months before one (2026-11); how many files went."""
        gone = [name for name in self.folder.names() if (found := _NAME.fullmatch(name)) and found[2] < before]
        for name in sorted(gone, reverse=True):  # of a month, runs before findings
            self.folder.remove(name, missing_ok=True)
        return len(gone)

    def _anonymous(self, one: Collected) -> Collected:
        run = replace(one.run, program=self._digest(one.run.program), user=self._digest(one.run.user))
        return replace(one, run=run, findings=[replace(row, program=run.program) for row in one.findings])

    def _digest(self, word: str) -> str:
        """The same for the same word in this store; nobody without its secret can try words."""
        return hmac.new(self._secret.encode(), word.encode("utf-8", "surrogateescape"), "sha256").hexdigest()[:_DIGITS]

    def _write(self, table: str, suffix: str, rows: list[dict[str, Any]]) -> None:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        for row in rows:
            row["started"] = round(row["started"] * 1e6)
            for name, value in row.items():
                if isinstance(value, str):
                    row[name] = value.encode("utf-8", "backslashreplace").decode()
        content = pa.Table.from_pylist(rows, schema(table))
        with self.folder.replacing(f"{table}-{suffix}") as file:
            parquet.write_table(content, file, compression="zstd")

    def _whole(self, table: str) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415

        return pa.concat_tables([schema(table).empty_table(), *self._parts(table, None)])

    def _parts(self, table: str, columns: list[str] | None) -> Iterator[pa.Table]:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        names = columns or schema(table).names
        for name in self.folder.names():
            found = _NAME.fullmatch(name)
            if not found or found[1] != table:
                continue
            try:
                with os.fdopen(self.folder.open_file(name), "rb") as file:
                    content = pa.BufferReader(file.read())
                # Without threads: one that still reads ahead when the process ends was seen to abort it.
                read = parquet.read_table(content, columns=names, use_threads=False, pre_buffer=False)
                yield read.select(names).cast(pa.schema([schema(table).field(one) for one in names]))
            except FileNotFoundError:
                continue  # forgotten meanwhile
            except UnsafeFileError as error:
                self.not_read[name] = f"'{self.folder.path}/{name}' {error.strerror}"
            except (OSError, ValueError, KeyError, pa.ArrowException) as error:
                first = str(error).partition("\n")[0]
                self.not_read[name] = f"'{self.folder.path}/{name}' is damaged, and was not read: {first}"


def _opened(path: Path) -> Folder:
    try:
        return Folder.open(path)
    except OSError as error:
        raise IoweirError(f"the store '{path}' cannot be opened: {error.strerror}", EXIT_USAGE) from error


def _each_once(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Findings of a run that two have added: one of each code and figure."""
    return list({(row["run"], row["code"], row["layer"], row["seconds"]): row for row in rows}.values())
