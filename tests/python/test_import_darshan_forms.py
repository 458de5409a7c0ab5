"""Darshan logs of other versions, byte orders and compressions than those at hand, and odd ones (darshan_logs.py)."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tempfile
from pathlib import Path

import pytest
from darshan_logs import DarshanLog
from ioweir.errors import IoweirError
from ioweir.imports import darshan_bzip2, darshan_log
from ioweir.imports import run as imports
from ioweir.imports.run import import_log
from ioweir.report import build, report_text, to_dict
from ioweir.report.run_findings import findings_of
from ioweir.site import rows
from ioweir.trace import counted, reader

MIB = 1 << 20
SHARED, OWN = 11, 12


def small(version: str = "3.41", order: str = "<", compression: int = 0) -> DarshanLog:
    """A file that four ranks write, and one of rank 2."""
    log = DarshanLog(version, order, compression, names={SHARED: b"/scratch/shared", OWN: b"/scratch/own"})
    log.add(
        "POSIX", SHARED, -1,
        {"POSIX_OPENS": 4, "POSIX_WRITES": 40, "POSIX_BYTES_WRITTEN": 40 * MIB, "POSIX_SIZE_WRITE_100K_1M": 40,
         "POSIX_SLOWEST_RANK": 3, "POSIX_F_WRITE_TIME": 8.0, "POSIX_F_META_TIME": 1.0, "POSIX_F_SLOWEST_RANK_TIME": 6.0,
         "POSIX_F_MAX_WRITE_TIME": 0.5, "POSIX_F_WRITE_START_TIMESTAMP": 1.0, "POSIX_F_WRITE_END_TIMESTAMP": 7.5},
    )  # fmt: skip
    log.add("POSIX", OWN, 2, {"POSIX_OPENS": 1, "POSIX_READS": 5, "POSIX_BYTES_READ": 500, "POSIX_F_READ_TIME": 0.5})
    return log


def written(folder: Path, log: DarshanLog) -> Path:
    path = folder / "log.darshan"
    path.write_bytes(log.data())
    return path


@pytest.mark.one_of(3)
@pytest.mark.parametrize("version", ["3.00", "3.10", "3.20", "3.21", "3.41"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("compression", [0, 1, 2])
def test_every_form_has_the_same_figures(version: str, order: str, compression: int, tmp_path: Path) -> None:
    made = import_log(written(tmp_path, small(version, order, compression)), tmp_path / "out")
    assert made.partial == []
    assert (made.tool, made.ranks, made.files, made.calls) == (f"Darshan {version}", 4, 2, 50)
    report = build(reader.load(tmp_path / "out"))
    assert (report.ranks, report.wall_s, report.partial) == (4, 10.0, False)
    assert report.program == "a.out"
    posix = to_dict(report)["layers"]["POSIX"]
    assert (posix["write"]["calls"], posix["write"]["bytes"], posix["write"]["time_s"]) == (40, 40 * MIB, 8.0)
    assert (posix["write"]["longest_s"], posix["write"]["span_s"]) == (0.5, 6.5)
    assert (posix["read"]["calls"], posix["read"]["bytes"], posix["open"]["calls"]) == (5, 500, 5)
    assert posix["meta"]["time_s"] == 1.0
    assert {row.path for row in report.files} == {"/scratch/shared", "/scratch/own"}
    out = io.StringIO()
    report_text.write(report, out)
    assert "from 100 KiB 100 %" in out.getvalue()


def test_the_mean_of_the_ranks_is_that_of_the_log(tmp_path: Path) -> None:
    """9.5 s of four ranks, of which rank 3 had 6: the others share the rest."""
    import_log(written(tmp_path, small()), tmp_path / "out")
    found = build(reader.load(tmp_path / "out")).io
    assert found.mean_s == pytest.approx(9.5 / 4)
    assert found.slowest == 3
    assert found.max_s == pytest.approx(6.0)


def test_ranks_that_can_be_told_apart_are_not_all_that_there_are(tmp_path: Path) -> None:
    """Four ranks wrote the shared file together, and rank 2 a little by itself. Rank 2 alone read."""
    log = small()
    log.add("POSIX", OWN, 2, {"POSIX_WRITES": 1, "POSIX_BYTES_WRITTEN": 10, "POSIX_F_WRITE_TIME": 0.1})
    import_log(written(tmp_path, log), tmp_path / "out")
    report = build(reader.load(tmp_path / "out"))
    assert (report.storage["write"].ranks, report.storage["read"].ranks) == ([], [2])
    assert list(report.slowest["POSIX"]) == ["read"]


def test_no_rank_is_called_the_slowest_where_none_is_known(tmp_path: Path) -> None:
    log = DarshanLog(names={SHARED: b"/shared"})
    log.add("POSIX", SHARED, -1, {"POSIX_WRITES": 4, "POSIX_BYTES_WRITTEN": 40, "POSIX_F_WRITE_TIME": 8.0,
                                  "POSIX_SLOWEST_RANK": -1})  # fmt: skip
    log.add("STDIO", OWN, 0, {"STDIO_WRITES": 4, "STDIO_BYTES_WRITTEN": 40, "STDIO_F_WRITE_TIME": 0.02})
    import_log(written(tmp_path, log), tmp_path / "out")
    found = build(reader.load(tmp_path / "out")).io
    assert (found.mean_s, found.max_s) == pytest.approx((2.005, 2.02))
    assert found.slowest is None


def test_the_mean_of_very_many_ranks_is_that_of_the_log(tmp_path: Path) -> None:
    """More than are told apart one by one."""
    log = small()
    log.ranks = 100_000
    import_log(written(tmp_path, log), tmp_path / "out")
    report = build(reader.load(tmp_path / "out"))
    assert report.ranks == 100_000
    assert report.io.mean_s == pytest.approx(9.5 / 100_000, rel=1e-4)


@pytest.mark.parametrize(("version", "order"), [("3.10", "<"), ("3.21", ">"), ("3.41", "<"), ("3.41", ">")])
def test_the_module_that_ran_out_of_memory_is_named(version: str, order: str, tmp_path: Path) -> None:
    log = small(version, order)
    log.add("STDIO", OWN, 2, {"STDIO_OPENS": 1})
    log.ran_out = ("STDIO",)
    made = import_log(written(tmp_path, log), tmp_path / "out")
    assert made.partial == ["Darshan's module STDIO ran out of memory: its records are not complete"]
    log.ran_out = ("MPI-IO",)
    made = import_log(written(tmp_path, log), tmp_path / "out2")
    assert made.partial == ["1 of Darshan's modules ran out of memory before it had a record"]


@pytest.mark.parametrize("version", ["3.10", "3.21", "3.41"])
def test_a_log_of_a_job_without_files_is_whole(version: str, tmp_path: Path) -> None:
    made = import_log(written(tmp_path, DarshanLog(version)), tmp_path / "out")
    assert (made.partial, made.calls, made.ranks) == ([], 0, 4)
    report = build(reader.load(tmp_path / "out"))
    assert (report.partial, report.wall_s, report.io.mean_s) == (False, 10.0, 0.0)
    log = written(tmp_path, DarshanLog(version))
    log.write_bytes(log.read_bytes()[:-1])
    assert import_log(log, tmp_path / "cut").partial


def test_a_log_of_one_rank(tmp_path: Path) -> None:
    log = DarshanLog(ranks=1, names={OWN: b"/own"})
    log.add("POSIX", OWN, 0, {"POSIX_WRITES": 3, "POSIX_BYTES_WRITTEN": 30, "POSIX_F_WRITE_TIME": 2.5})
    import_log(written(tmp_path, log), tmp_path / "out")
    trace = reader.load(tmp_path / "out")
    report = build(trace)
    assert (report.ranks, report.io.mean_s, report.io.max_s) == (1, 2.5, 2.5)
    assert "rank0-io" not in [one.code for one in findings_of(trace, report).findings]


@pytest.mark.parametrize("order", ["<", ">"])
def test_layouts_of_lustre_and_heatmaps(order: str, tmp_path: Path) -> None:
    """A layout of two parts, one whose second target is not known, and one that says it has more than there are."""

    def layout(file: int, *parts: tuple[int, list[int]], count: int | None = None) -> bytes:
        targets = [target for _, some in parts for target in some]
        out = struct.pack(f"{order}Qqqq", file, -1, len(parts), len(targets))
        for stripe, some in parts:
            number = len(some) if count is None else count
            out += struct.pack(f"{order}7q16s", stripe, number, 1, 16, 0, -1, 0, b"pool\xff")
        return out + struct.pack(f"{order}{len(targets)}q", *targets)

    log = small(order=order)
    log.names[9] = b"heatmap:POSIX"
    log.versions["LUSTRE"] = 2
    log.raw("LUSTRE", layout(SHARED, (MIB, [5]), (4 * MIB, [7, 8])))
    log.raw("LUSTRE", layout(OWN, (MIB, [5, -1])))
    log.raw("HEATMAP", struct.pack(f"{order}Qqdq2Q4q", 9, 3, 0.5, 2, 0, 0, 1, 2, 3, 4))
    made = import_log(written(tmp_path, log), tmp_path / "out")
    assert made.partial == []
    trace = reader.load(tmp_path / "out")
    assert trace.counted is not None
    shared = trace.counted.files.index("/scratch/shared")
    assert [(one.file, one.stripe_bytes, one.targets) for one in trace.counted.targets] == [
        (shared, MIB, (5,)),
        (shared, 4 * MIB, (7, 8)),
    ]
    found = build(trace).imported
    assert found is not None
    assert found.heatmaps == [{"rank": 3, "bin_s": 0.5, "write": [1, 2], "read": [3, 4], "layer": "heatmap:POSIX"}]
    log.records["LUSTRE"] = [layout(SHARED, (MIB, [5]), count=1 << 40)]
    assert import_log(written(tmp_path, log), tmp_path / "lies").partial


@pytest.mark.parametrize("order", ["<", ">"])
def test_records_of_older_versions(order: str, tmp_path: Path) -> None:
    """PnetCDF's of Darshan 3.1 to 3.3 count opens only, Lustre's have one part."""
    log = small("3.21", order)
    log.versions |= {"PNETCDF_FILE": 2, "LUSTRE": 1}
    log.raw("PNETCDF_FILE", struct.pack(f"{order}Qqqqdddd", SHARED, -1, 3, 4, 0.5, 0.6, 0.7, 8.0))
    log.raw("LUSTRE", struct.pack(f"{order}Qq5q2q", SHARED, -1, 100, 1, -1, MIB, 2, 5, 7))
    made = import_log(written(tmp_path, log), tmp_path / "out")
    assert made.partial == []
    assert not any("negative" in words for words in made.unseen)
    trace = reader.load(tmp_path / "out")
    assert trace.counted is not None
    assert [one.targets for one in trace.counted.targets] == [(5, 7)]
    report = build(trace)
    assert to_dict(report)["layers"]["PnetCDF"]["open"]["calls"] == 7
    assert report.io.mean_s == pytest.approx(9.5 / 4)


@pytest.mark.parametrize("compression", [0, 2])
def test_sizes_that_do_not_fit_the_records(compression: int, tmp_path: Path) -> None:
    log = small(compression=compression)
    log.raw("POSIX", bytes(100))
    log.add("STDIO", OWN, 0, {"STDIO_OPENS": 1})
    log.raw("MPI-IO", bytes(60))
    made = import_log(written(tmp_path, log), tmp_path / "out")
    assert made.calls == 51
    assert made.partial == [
        "POSIX: 2 records of its 1,508 bytes could be read, and the rest is no record",
        "MPI-IO: 0 records of its 60 bytes could be read, and the rest is no record",
    ]


def test_a_module_that_ends_the_reader_leaves_those_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library below PyDarshan crashes on damaged records of Lustre, say: it is asked again for the others."""
    fake = tmp_path / "child.py"
    fake.write_text(
        "import json, os, sys\n"
        "say = lambda **what: print(json.dumps(what), flush=True)\n"
        "say(job={'nprocs': 1, 'run_time': 1.0})\n"
        "say(modules={'POSIX': {}, 'LUSTRE': {}, 'STDIO': {}})\n"
        "for name in ('POSIX', 'LUSTRE', 'STDIO'):\n"
        "    if name in sys.argv[2:]: continue\n"
        "    say(begin=name)\n"
        "    if name == 'LUSTRE': os.abort()\n"
        "    say(columns=name, counters=[name + '_OPENS'], seconds=[])\n"
        "    say(record=name, id=1, rank=0, file=0, counters=[7], seconds=[])\n"
        "say(end=True)\n"
    )
    monkeypatch.setattr(darshan_log, "CHILD", fake)
    read = darshan_log.read(written(tmp_path, small()))
    assert read.troubles == ["the reader ended by signal 6 in the records of LUSTRE"]
    assert {name: table.records[0].counters for name, table in read.tables.items()} == {"POSIX": [7], "STDIO": [7]}
    assert len(read.tables["POSIX"].records) == 1


def test_calls_behind_the_end_of_the_job_are_said(tmp_path: Path) -> None:
    log = small()
    for number, end_s in enumerate((11.9, 98.0)):
        log.records.pop("DXT_POSIX", None)
        log.dxt("DXT_POSIX", OWN, 2, b"host", [(0, 50, 1.0, end_s)])
        made = import_log(written(tmp_path, log), tmp_path / str(number))
        said = "the log says that calls ended 98 s after the start of a job of 10 s: one of these is wrong"
        assert made.partial == [said] * number
        assert build(reader.load(tmp_path / str(number))).partial_reasons == [said] * number


def test_names_that_are_no_utf8_stay_apart(tmp_path: Path) -> None:
    log = DarshanLog(names={SHARED: b"/a\xff", OWN: b"/a\xfe"})
    for file in (SHARED, OWN):
        log.add("POSIX", file, 0, {"POSIX_WRITES": 1, "POSIX_BYTES_WRITTEN": file})
    import_log(written(tmp_path, log), tmp_path / "out")
    report = build(reader.load(tmp_path / "out"))
    assert {row.path: to_dict(report)["files"][at]["layers"]["POSIX"]["write"]["bytes"]
            for at, row in enumerate(report.files)} == {"/a\\xff": SHARED, "/a\\xfe": OWN}  # fmt: skip


def test_a_log_whose_own_name_is_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"log\xff.darshan")
    path.write_bytes(small().data())
    assert import_log(path, tmp_path / "out").calls == 50


def test_older_hdf5_records_do_not_hide_the_time_of_posix(tmp_path: Path) -> None:
    """H5F of Darshan 3.1 counts opens, and has no times."""
    log = small("3.10")
    log.raw("H5F", struct.pack("<Qqqdd", SHARED, -1, 4, 0.5, 8.0))
    log.versions["H5F"] = 1
    made = import_log(written(tmp_path, log), tmp_path / "out")
    assert made.partial == []
    assert not any("negative" in words for words in made.unseen)
    report = build(reader.load(tmp_path / "out"))
    assert to_dict(report)["layers"]["HDF5"]["open"]["calls"] == 4
    assert report.io.mean_s == pytest.approx(9.5 / 4)


def test_records_of_ranks_that_cannot_be_leave_the_others(tmp_path: Path) -> None:
    log = small()
    log.add("POSIX", OWN, 1 << 40, {"POSIX_WRITES": 7})
    log.add("POSIX", OWN, -5, {"POSIX_WRITES": 7})
    made = import_log(written(tmp_path, log), tmp_path / "out")
    assert made.partial == ["left out: 2 records of ranks that cannot be"]
    trace = reader.load(tmp_path / "out")
    assert trace.damage == ()
    assert trace.counted is not None
    assert len(trace.counted.tables["POSIX"].rows) == 2
    assert to_dict(build(trace))["layers"]["POSIX"]["write"]["calls"] == 40


def test_sums_that_would_overflow(tmp_path: Path) -> None:
    log = DarshanLog(names={file: b"/f%d" % file for file in range(1, 9)})
    huge = (1 << 63) - 1
    for file in range(1, 9):
        log.add("POSIX", file, 0, {"POSIX_WRITES": huge, "POSIX_BYTES_WRITTEN": huge, "POSIX_SIZE_WRITE_0_100": huge,
                                   "POSIX_F_WRITE_TIME": 1e300, "POSIX_F_META_TIME": float("nan"),
                                   "POSIX_F_WRITE_END_TIMESTAMP": float("inf")})  # fmt: skip
    made = import_log(written(tmp_path, log), tmp_path / "out")
    assert any(words.startswith("negative or too large: 48 values") for words in made.unseen)
    trace = reader.load(tmp_path / "out")
    assert trace.counted is not None
    report = build(trace)
    assert to_dict(report)["layers"]["POSIX"]["write"]["bytes"] == (1 << 61) - 1
    row = rows.of_trace(tmp_path / "out", "key").run
    assert 0 < row.written_bytes < 1 << 62
    assert row.io_s <= report.wall_s
    assert report.io.mean_s <= report.wall_s
    for one in findings_of(trace, report).findings:
        assert 0 <= one.gain.low <= one.gain.high <= report.wall_s


def test_cut_anywhere_a_log_is_refused_or_partial(tmp_path: Path) -> None:
    whole = small().data()
    for number, length in enumerate(range(1, len(whole), 131)):
        path = tmp_path / f"{number}.darshan"
        path.write_bytes(whole[:length])
        said = ""
        try:
            made = import_log(path, tmp_path / f"out{number}")
        except IoweirError as error:
            said = str(error)
        if said:
            assert path.name in said
            assert not (tmp_path / f"out{number}").exists()
            continue
        assert made.partial, length
        assert build(reader.load(tmp_path / f"out{number}")).partial


def test_logs_by_bzip2_that_are_damaged_or_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small(compression=1)
    path = written(tmp_path, whole)
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-1])
    made = import_log(path, tmp_path / "cut")
    assert made.partial[0].startswith(f"the log is cut off: it has {len(content) - 1:,} of {len(content):,} bytes")
    assert made.partial[0].endswith("not whole: POSIX")
    content[-3] ^= 1  # of the checksum
    path.write_bytes(content)
    made = import_log(path, tmp_path / "damaged")
    assert [words.split(" (")[0] for words in made.partial] == ["POSIX: its bytes are damaged"]
    monkeypatch.setattr(darshan_bzip2, "MOST_EXPANDED", 4096)
    made = import_log(written(tmp_path, whole), tmp_path / "large")
    assert (made.partial, made.calls) == (["the log holds more than 4.00 KiB: the rest is left out"], 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(IoweirError, match=r"cannot be expanded in .*nowhere: No such .*; name a folder with room"):
        import_log(path, tmp_path / "none")


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    pipe, folder, link = tmp_path / "pipe", tmp_path / "folder", tmp_path / "link"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(written(tmp_path, small()))
    for path, said in (
        (pipe, "is a pipe, not a file"),
        (folder, "is a folder, not a file"),
        (tmp_path / "no", "No such"),
    ):
        with pytest.raises(IoweirError, match=said):
            import_log(path, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    assert import_log(link, tmp_path / "out").calls == 50


def test_a_log_that_somebody_compressed_once_more(tmp_path: Path) -> None:
    path = tmp_path / "log.darshan.gz"
    path.write_bytes(gzip.compress(small().data()))
    with pytest.raises(IoweirError, match=r"is a log of Darshan 3 that was compressed as a whole: expand it"):
        import_log(path, tmp_path / "out")


def test_more_records_than_memory_holds_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(darshan_log, "MOST_RECORDS", 1)
    made = import_log(written(tmp_path, small()), tmp_path / "out")
    assert made.partial == ["left out: 1 record of POSIX; 1 of all modules together and 4,194,304 names are kept"]
    assert made.calls == 44
    monkeypatch.setattr(darshan_log, "MOST_NAMES", 1)
    made = import_log(written(tmp_path, small()), tmp_path / "out2")
    assert made.partial[0] == "left out: 1 record of names; 1 of all modules together and 1 names are kept"


def test_a_large_log_keeps_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`report` reads so many bytes of sums, and no more: counters that only findings need make room."""
    import_log(written(tmp_path, small()), tmp_path / "whole")
    whole = (tmp_path / "whole" / reader.SUMS_FILE).stat().st_size
    monkeypatch.setattr(counted, "MOST_BYTES", whole - 1)
    made = import_log(written(tmp_path, small()), tmp_path / "out")
    assert "the counters of 2 records are left out" in made.partial[0]
    trace = reader.load(tmp_path / "out")
    assert trace.counted is not None
    assert trace.counted.tables == {}
    assert to_dict(build(trace))["layers"]["POSIX"]["write"]["bytes"] == 40 * MIB
    monkeypatch.setattr(counted, "MOST_BYTES", 100)
    with pytest.raises(IoweirError, match=r"its sums take .*, and at most 100 B are read"):
        import_log(written(tmp_path, small()), tmp_path / "none")
    assert not (tmp_path / "none").exists()
    assert imports.to_text(made)[1].startswith("PARTIAL: the log is large")


def test_segments_of_dxt(tmp_path: Path) -> None:
    log = small()
    log.add("MPI-IO", SHARED, 0, {"MPIIO_COLL_WRITES": 2})
    log.add("MPI-IO", SHARED, 1, {"MPIIO_INDEP_WRITES": 2})
    log.dxt("DXT_MPIIO", SHARED, 0, b"node-a", [(0, 100, 1.0, 2.0)])
    log.dxt("DXT_POSIX", SHARED, 0, b"node-a", [(0, 100, 1.25, 1.75)])
    log.dxt("DXT_POSIX", OWN, 1, b"node-b", [(0, 50, 1.0, 2.0), (50, 50, 3.0, 2.5)])
    log.dxt("DXT_POSIX", OWN, -1, b"node-b", [(0, 50, 1.0, 2.0)])
    made = import_log(written(tmp_path, log), tmp_path / "out")
    assert made.events == 3
    assert made.partial == ["2 segments of DXT whose ranks, times, sizes or offsets cannot be are left out"]
    trace = reader.load(tmp_path / "out")
    names = {function.id: function.name for function in trace.functions}
    found = {(names[int(trace.events.function[at])], bool(trace.events.parent[at])) for at in range(3)}
    # Rank 1 wrote by itself, so that the file's calls are not known to be collective.
    assert found == {("MPI_File_write_at", False), ("pwrite", True), ("pwrite", False)}
    assert sorted(trace.hosts) == ["node-a", "node-b"]
