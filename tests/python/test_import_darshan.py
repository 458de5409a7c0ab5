"""Darshan logs as traces. The oracle is PyDarshan's own report of the same log; the logs come with its package."""

from __future__ import annotations

import bz2
import io
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import darshan
import pytest
from darshan.report import DarshanReport
from ioweir.cli import app
from ioweir.errors import IoweirError
from ioweir.findings.model import Findings
from ioweir.imports import darshan as counters
from ioweir.imports import darshan_log, darshan_regions, dxt, node_file
from ioweir.imports.run import import_log
from ioweir.report import build, compare, report_text, to_dict
from ioweir.report.run_findings import findings_of
from ioweir.trace import counted, reader

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(darshan.__file__).parent
LOGS = sorted(PACKAGE.rglob("*.darshan"))
UNIQUE = [log for log in LOGS if not any(other < log and other.read_bytes() == log.read_bytes() for other in LOGS)]
"""Some come twice."""
IDS = [str(log.relative_to(PACKAGE)) for log in LOGS]
SAMPLES = PACKAGE / "tests" / "input"
HEADER_BYTES, HEADER_BYTES_OF_64 = 360, 1328


class Imported(dict[Path, Path]):
    """A log's directory, made when it is first asked for; logs of the same content have one."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._same: dict[bytes, Path] = {}

    def __missing__(self, log: Path) -> Path:
        content = log.read_bytes()
        if content not in self._same:
            self._same[content] = self._folder / str(len(self._same))
            import_log(log, self._same[content])
        self[log] = self._same[content]
        return self[log]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """Every log's directory."""
    return Imported(tmp_path_factory.mktemp("imported"))


def pydarshan(log: Path) -> DarshanReport:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DarshanReport(str(log), read_all=True)


def total(report: DarshanReport, module: str, *names: str) -> float:
    """The sum of counters over all records, without those that the log has not (-1)."""
    records = report.records[module].to_df()
    table = records["fcounters" if "_F_" in names[0] else "counters"]
    return float(sum(table[name][table[name] > 0].sum() for name in names))


def test_there_are_eighteen_logs() -> None:
    assert len(LOGS) == 18


@pytest.mark.one_of(3)
@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_figures_equal_pydarshans(log: Path, imported: dict[Path, Path]) -> None:
    theirs, ours = pydarshan(log), to_dict(build(reader.load(imported[log])))
    job = theirs.metadata["job"]
    assert (ours["ranks"], ours["wall_s"]) == (job["nprocs"], pytest.approx(job["run_time"]))
    assert ours["imported"]["tool"] == f"Darshan {job['log_ver']}"
    assert not ours["partial"]
    prefixes = {"POSIX": "POSIX", "STDIO": "STDIO", "MPI-IO": "MPIIO", "H5D": "H5D"}
    for module, prefix in prefixes.items():
        layer = ours["layers"]["HDF5" if module == "H5D" else module]
        if module not in theirs.modules:
            assert (layer["write"]["calls"], layer["read"]["calls"]) == (0, 0)
            continue
        kinds = ("INDEP_", "COLL_", "SPLIT_", "NB_") if module == "MPI-IO" else ("",)
        for op, moved in (("write", "WRITTEN"), ("read", "READ")):
            assert layer[op]["calls"] == total(theirs, module, *(f"{prefix}_{kind}{op.upper()}S" for kind in kinds))
            assert layer[op]["bytes"] == total(theirs, module, f"{prefix}_BYTES_{moved}")
            assert layer[op]["time_s"] == pytest.approx(
                total(theirs, module, f"{prefix}_F_{op.upper()}_TIME"), rel=1e-6, abs=1e-6
            )
        opens = {"POSIX": ["OPENS"], "STDIO": ["OPENS"], "MPI-IO": ["INDEP_OPENS", "COLL_OPENS"]}.get(module)
        if opens:
            assert layer["open"]["calls"] == total(theirs, module, *(f"{prefix}_{name}" for name in opens))
            assert layer["meta"]["time_s"] == pytest.approx(
                total(theirs, module, f"{prefix}_F_META_TIME"), rel=1e-6, abs=1e-5
            )


@pytest.mark.one_of(3)
@pytest.mark.parametrize("log", UNIQUE, ids=lambda log: log.name)
def test_files_equal_pydarshans(log: Path, imported: dict[Path, Path]) -> None:
    theirs, ours = pydarshan(log), to_dict(build(reader.load(imported[log])))
    rows = {row["path"]: row["layers"] for row in ours["files"]}
    if "POSIX" not in theirs.modules:
        return
    sums: dict[str, int] = {}
    for record in theirs.records["POSIX"]:
        path = theirs.name_records[record["id"]]
        sums[path] = sums.get(path, 0) + int(
            record["counters"][theirs.counters["POSIX"]["counters"].index("POSIX_BYTES_WRITTEN")]
        )
    for path, moved in sums.items():
        assert rows.get(path, {}).get("POSIX", {}).get("write", {"bytes": 0})["bytes"] == moved


@pytest.mark.parametrize("log", UNIQUE, ids=lambda log: log.name)
def test_findings_text_and_comparison(log: Path, imported: dict[Path, Path]) -> None:
    trace = reader.load(imported[log])
    report = build(trace)
    found = findings_of(trace, report)
    for one in found.findings:
        assert one.gain.method == "bound"
        assert 0 <= one.gain.low <= one.gain.high <= report.wall_s
        assert one.seconds <= report.wall_s
        assert any("keeps no events" in words or "DXT" in words or "locks" in words for words in one.unseen)
    out = io.StringIO()
    report_text.write(report, out)
    assert f"imported from a log of {report.imported.tool if report.imported else ''}" in out.getvalue()
    assert compare.compare(report, report).time.ratio == (1.0 if report.wall_s else None)


def found_in(log: str, imported: dict[Path, Path]) -> Findings:
    return findings_of(reader.load(imported[SAMPLES / log]))


def test_the_bad_target_is_named(imported: dict[Path, Path]) -> None:
    """OST 14 by hand: the files that PyDarshan's Lustre records put there."""
    log = SAMPLES / "sample-badost.darshan"
    theirs = pydarshan(log)
    on_14 = {
        theirs.name_records[row["id"]] for row in theirs.records["LUSTRE"] if 14 in row["components"][0]["ost_ids"]
    }
    first = found_in(log.name, imported).findings[0]
    assert (first.code, first.severity) == ("slow-target", "high")
    assert "OST 14" in first.summary
    assert first.files
    assert set(first.files) <= on_14
    assert len(on_14) == 85
    assert next(one.figure for one in first.evidence if one.text == "files on OST 14") == 85
    good = found_in("sample-goodost.darshan", imported)
    assert "slow-target" not in [one.code for one in good.findings]


def test_events_of_dxt(imported: dict[Path, Path]) -> None:
    for name in (
        "tests/input/sample-dxt-simple.darshan",
        "examples/example_logs/ior_hdf5_example.darshan",
        "examples/example_logs/dxt.darshan",
    ):
        log = PACKAGE / name
        theirs, trace = pydarshan(log), reader.load(imported[log])
        segments: list[tuple[Any, ...]] = []
        for module in ("DXT_POSIX", "DXT_MPIIO"):
            for record in theirs.records[module] if module in theirs.modules else ():
                for op in ("write", "read"):
                    segments += [
                        (
                            module,
                            record["rank"],
                            theirs.name_records[record["id"]],
                            op,
                            seg["offset"],
                            seg["length"],
                            round(seg["start_time"] * 1e9),
                        )
                        for seg in record[f"{op}_segments"]
                    ]
        events = trace.events
        functions = {function.id: function for function in trace.functions}
        ours = []
        for at in range(len(events)):
            function = functions[int(events.function[at])]
            ours.append(
                (
                    "DXT_MPIIO" if function.layer == "MPI-IO" else "DXT_POSIX",
                    trace.processes[events.process[at]].rank,
                    trace.paths[events.path[at]],
                    function.op,
                    int(events.offset[at]),
                    int(events.bytes[at]),
                    int(events.start_ns[at]),
                )
            )
        assert sorted(ours) == sorted(segments)
        assert not trace.damage


def test_posix_calls_lie_in_the_mpi_io_calls_around_them(imported: dict[Path, Path]) -> None:
    trace = reader.load(imported[PACKAGE / "examples/example_logs/ior_hdf5_example.darshan"])
    events, layer = trace.events, {function.id: function.layer for function in trace.functions}
    by_number = {(int(events.thread[at]), int(events.seq[at])): at for at in range(len(events))}
    nested = [at for at in range(len(events)) if events.parent[at]]
    assert len(nested) == sum(layer[int(f)] == "POSIX" for f in events.function)
    for at in nested:
        above = by_number[int(events.thread[at]), int(events.parent[at])]
        assert layer[int(events.function[above])] == "MPI-IO"
        assert events.start_ns[above] <= events.start_ns[at]
        assert events.start_ns[at] + events.duration_ns[at] <= events.start_ns[above] + events.duration_ns[above]


# ------------------------------------------------------------------------------------------------------- hostile logs


def damaged(folder: Path) -> dict[str, Path]:
    whole = (SAMPLES / "sample-dxt-simple.darshan").read_bytes()
    draw = random.Random(3)
    made = {"empty": b"", "text": b"no log\n" * 99, "version2": b"\x1f\x8b\x08" + bytes(200), "head": whole[:400]}
    for part in (1, 3):
        made[f"cut{part}"] = whole[: len(whole) * part // 4]
    for number in range(2):
        flipped = bytearray(whole)
        for _ in range(20):
            flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        made[f"flipped{number}"] = bytes(flipped)
    huge = bytearray(whole)
    huge[400:440] = b"\xff" * 40
    made["huge"] = bytes(huge)
    paths = {}
    for name, content in made.items():
        paths[name] = folder / f"{name}.darshan"
        paths[name].write_bytes(content)
    return paths


def test_damaged_logs_are_errors_or_partial(tmp_path: Path) -> None:
    for name, path in damaged(tmp_path).items():
        output = tmp_path / f"{name}.d"
        said = ""
        try:
            made = import_log(path, output)
        except IoweirError as error:
            said = str(error)
        if said:
            assert name in said
            continue
        trace = reader.load(output)
        report = build(trace)
        findings_of(trace, report)
        assert made.partial, name
        assert report.partial, name


@pytest.mark.parametrize("log", UNIQUE, ids=lambda log: log.name)
def test_whole_logs_have_no_troubles_and_cut_ones_have(log: Path, tmp_path: Path) -> None:
    assert darshan_regions.troubles(log, {}) == []
    cut = tmp_path / "cut.darshan"
    for part in (0.3, 0.9):
        cut.write_bytes(log.read_bytes()[: int(log.stat().st_size * part)])
        found = darshan_regions.troubles(cut, {})
        assert cut.stat().st_size < HEADER_BYTES or "the log is cut off: it has" in found[0]


def expanded(log: bytes) -> bytes:
    """All of a log but its header: one compressed stream behind the other."""
    data, said = log[HEADER_BYTES:], b""
    while data:
        stream = zlib.decompressobj()
        said += stream.decompress(data)
        data = stream.unused_data
    return said


def test_every_changed_byte_behind_the_header_is_seen(tmp_path: Path) -> None:
    whole = (PACKAGE / "examples/example_logs/ior_hdf5_example.darshan").read_bytes()
    draw, path, seen = random.Random(7), tmp_path / "flipped.darshan", 0
    for at in range(HEADER_BYTES, len(whole), 7):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        found = darshan_regions.troubles(path, {})
        # A stream's last bits before its checksum may stand for nothing.
        assert len(found) == 1 or expanded(bytes(flipped)) == expanded(whole), at
        seen += len(found)
    assert seen > 500


def with_64_modules(log: bytes) -> bytes:
    """As Darshan writes since 3.4.1: flags of 8 bytes, 64 modules; PnetCDF has two instead of one."""
    grown = HEADER_BYTES_OF_64 - HEADER_BYTES
    names, *regions = [
        (begin + grown if length else 0, length) for begin, length in struct.iter_unpack("<QQ", log[24:296])
    ]
    regions = [*regions[:6], (0, 0), *regions[6:], *[(0, 0)] * 47]
    versions = struct.unpack("<16I", log[296:360])
    head = b"3.41".ljust(8, b"\0") + log[8:16] + struct.pack("<QQ", 0, 0)
    head += b"".join(struct.pack("<QQ", *one) for one in (names, *regions))
    return head + struct.pack("<64I", *versions[:6], 0, *versions[6:], *[0] * 47) + log[HEADER_BYTES:]


def test_headers_of_64_modules(tmp_path: Path) -> None:
    """PyDarshan is the oracle of the layout: it finds the same modules."""
    log = PACKAGE / "examples/example_logs/ior_hdf5_example.darshan"
    whole, cut = tmp_path / "whole.darshan", tmp_path / "cut.darshan"
    whole.write_bytes(with_64_modules(log.read_bytes()))
    cut.write_bytes(whole.read_bytes()[:-1])
    read = darshan_log.read(whole)
    assert {name: one["len"] for name, one in read.modules.items()} == {
        name: one["len"] for name, one in darshan_log.read(log).modules.items()
    }
    assert read.troubles == []
    assert "not whole: DXT_MPIIO" in darshan_regions.troubles(cut, read.modules)[0]


def test_headers_that_do_not_fit_their_logs(tmp_path: Path) -> None:
    whole, path = (SAMPLES / "sample-dxt-simple.darshan").read_bytes(), tmp_path / "log.darshan"
    first = next(at for at in range(40, 296, 16) if whole[at + 8 : at + 16] != bytes(8))
    last = max(range(40, 296, 16), key=lambda at: whole[at : at + 8][::-1])
    for at, said in ((first, "no region begins at byte"), (last, "no region has the last 59 bytes")):
        path.write_bytes(whole[: at + 8] + bytes(8) + whole[at + 16 :])
        assert said in darshan_regions.troubles(path, {})[0]
    path.write_bytes(whole + b"more")
    assert "no region has the last 4 bytes" in darshan_regions.troubles(path, {})[0]


@pytest.mark.parametrize(("kind", "pack"), [(0, zlib.compress), (1, bz2.compress)])
def test_large_regions_of_either_compression(
    kind: int, pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A region of two streams, whose bytes are several times what is read and expanded at once."""
    draw = random.Random(1)
    body = b"".join(pack(draw.randbytes(600_000) + bytes(2 << 20)) for _ in range(2))
    head = (SAMPLES / "sample.darshan").read_bytes()[:16] + struct.pack("<QQQ", kind, HEADER_BYTES, len(body))
    path, damaged = tmp_path / "log.darshan", bytearray(head.ljust(HEADER_BYTES, b"\0") + body)
    path.write_bytes(damaged)
    assert darshan_regions.troubles(path, {}) == []
    monkeypatch.setattr(darshan_regions, "MOST_EXPANDED", 4 << 20)
    assert darshan_regions.troubles(path, {}) == ["names of files: not checked, as the log holds more than 4.00 MiB"]
    damaged[HEADER_BYTES + 99] ^= 1
    path.write_bytes(damaged)
    assert "names of files: its bytes are damaged" in darshan_regions.troubles(path, {})[0]


def test_damage_in_one_region_leaves_the_others(tmp_path: Path) -> None:
    log = PACKAGE / "examples/example_logs/ior_hdf5_example.darshan"
    whole, flipped = darshan_log.read(log), tmp_path / "flipped.darshan"
    content = bytearray(log.read_bytes())
    content[1237 + 219 - 1] ^= 1  # the last byte of the checksum of POSIX's only stream
    flipped.write_bytes(content)
    read = darshan_log.read(flipped)
    assert [words.split(":")[0] for words in read.troubles] == ["POSIX"]
    assert read.tables["MPI-IO"] == whole.tables["MPI-IO"]
    assert read.segments == whole.segments


def test_a_module_of_a_version_that_is_not_known_is_said(tmp_path: Path) -> None:
    """The bytes are whole, and PyDarshan refuses them without an error that it would raise."""
    path, content = tmp_path / "log.darshan", bytearray((SAMPLES / "sample.darshan").read_bytes())
    content[296 + 4] = 99  # of POSIX
    path.write_bytes(content)
    read = darshan_log.read(path)
    assert read.tables["POSIX"].records == []
    assert read.troubles == ["POSIX: its records are damaged, and those after the damage are missing"]


# ------------------------------------------------------------------------------------- interrupts and full file systems


def test_an_interrupt_ends_the_reader(tmp_path: Path) -> None:
    """Only ioweir's process gets it, as of `kill -INT`, while the reader waits for room in the pipe."""
    fake = tmp_path / "child.py"
    fake.write_text(
        "import os, signal\n"
        "signal.alarm(30)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGINT)\n"
        "while True:\n"
        '    print(\'{"name":1,"text":"x"}\')\n'
    )
    begin = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(darshan_log, "CHILD", fake)
        with pytest.raises(KeyboardInterrupt):
            darshan_log.read(SAMPLES / "sample.darshan")
    assert time.monotonic() - begin < 10
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


def test_the_reader_ends_with_its_parent() -> None:
    log = PACKAGE / "examples/example_logs/dxt.darshan"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-I', {str(darshan_log.CHILD)!r}, {str(log)!r}])"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        said = os.read(parent.stdout.fileno(), 1)  # it fills the pipe now, and waits
        parent.kill()
        parent.wait()
        said += parent.stdout.read()
    assert said.startswith(b'{"job":')
    assert b'{"end":' not in said


@pytest.mark.parametrize("is_there", [False, True])
def test_files_that_cannot_be_written_leave_nothing(
    is_there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, output = PACKAGE / "examples/example_logs/ior_hdf5_example.darshan", tmp_path / "out"
    if is_there:
        output.mkdir()
    monkeypatch.setattr("sys.argv", ["ioweir", "import", str(log), "-o", str(output)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(SystemExit) as ended:
            app.main()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ended.value.code == 1
    assert capsys.readouterr().err == (f"ioweir: {output}/node-0.iowt: File too large; allow larger files: ulimit -f\n")
    assert [*tmp_path.iterdir()] == [output] * is_there
    assert not is_there or not [*output.iterdir()]


def test_a_full_file_system_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        node_file.finish(node_file.create("/dev/full", "host", 0), "/dev/full")
    with pytest.raises(FileNotFoundError):
        node_file.create(str(tmp_path / "nowhere" / "node-0.iowt"), "host", 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_writes_leaves_nothing(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        (tmp_path / "out" / "node-0.iowt").touch()
        signal.raise_signal(number)

    monkeypatch.setattr(dxt, "write", interrupted)
    monkeypatch.setattr(
        "sys.argv", ["ioweir", "import", str(SAMPLES / "sample-dxt-simple.darshan"), "-o", str(tmp_path / "out")]
    )
    before = signal.signal(number, lambda *_: None)
    try:
        with pytest.raises(SystemExit) as ended:
            app.main()
    finally:
        signal.signal(number, before)
    assert ended.value.code == 128 + number
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------------------------ logs that lack


def test_segments_of_a_rank_that_cannot_be_are_left_out(tmp_path: Path) -> None:
    row = {"dxt": "DXT_POSIX", "id": 7, "op": "write", "host": "a", "offset": [0], "length": [9], "start": [0.0]}
    log = darshan_log.Log(job={"nprocs": 2}, segments=[row | {"rank": rank, "end": [1.0]} for rank in (1, 1 << 40)])
    made = dxt.write(log, lambda _: "/file", lambda _: str(tmp_path / "node-0.iowt"), 0)
    assert (made.events, made.left_out) == (1, 1)
    assert [process.rank for process in reader.load(tmp_path).processes] == [1]


def test_names_that_the_log_has_not() -> None:
    """As of a log whose names were taken out."""
    log = darshan_log.read(SAMPLES / "sample.darshan")
    named = counters.counted(log, "log")
    log.names.clear()
    made = counters.counted(log, "log")
    assert [row.bytes for row in made.counts] == [row.bytes for row in named.counts]
    assert all(name.startswith("(name not in the log: ") for name in made.files)


def test_modules_that_ran_out_of_memory_make_it_partial() -> None:
    log = darshan_log.read(SAMPLES / "sample.darshan")
    log.modules["POSIX"]["partial_flag"] = True
    assert counters.counted(log, "log").partial == (
        "Darshan's module POSIX ran out of memory: its records are not complete",
    )


def test_sums_survive_json_and_refuse_what_cannot_be() -> None:
    made = counters.counted(darshan_log.read(SAMPLES / "sample-goodost.darshan"), "log")
    content = json.loads(json.dumps(counted.to_json(made), default=list))
    assert counted.from_json(content) == made
    for key, value in (("ranks", -1), ("counts", [{}]), ("busiest_s", "nan"), ("files", 3), ("sums_version", 2)):
        with pytest.raises(ValueError, match=r"."):
            counted.from_json(content | {key: value})


def test_without_pydarshan_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['darshan'] = None\n"
        f"sys.argv = ['x', {str(SAMPLES / 'sample.darshan')!r}]\n"
        f"exec(open({str(darshan_log.CHILD)!r}).read())\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "missing" in json.loads(said.stdout)
    fake = tmp_path / "child.py"
    fake.write_text('print(\'{"missing":"No module named darshan"}\')\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(darshan_log, "CHILD", fake)
        with pytest.raises(IoweirError, match=r"pip install 'ioweir\[darshan\]'"):
            darshan_log.read(SAMPLES / "sample.darshan")


def test_a_directory_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(IoweirError, match="new or empty"):
        import_log(SAMPLES / "sample.darshan", tmp_path)
    assert (tmp_path / "mine").read_text() == "x"
