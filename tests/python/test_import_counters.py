"""What Darshan's counters mean, as figures and as findings: on small logs, worked out by hand.

What each counter says is in Darshan's own documentation (darshan-util, "Darshan-parser" and "I/O performance data").
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from darshan_logs import DarshanLog
from ioweir.cli import app
from ioweir.exports.run import export
from ioweir.findings import counted as rules
from ioweir.imports import darshan, heatmaps
from ioweir.imports.darshan_log import Log, Module, Record
from ioweir.imports.run import import_log
from ioweir.report import build, compare, to_dict
from ioweir.trace import counted, reader

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ioweir.findings.model import Finding

MIB = 1 << 20
FILE, OTHER, DATASET = 1, 2, 9
NAMES = {FILE: "/f", OTHER: "/g", DATASET: "/f:/x"}


def log_of(*rows: tuple[str, int, int, Mapping[str, float]], ranks: int = 4, names: Mapping[int, str] = NAMES) -> Log:
    """A log of records (module, file, rank, counters); all names of counters stand among the seconds."""
    log = Log(job={"nprocs": ranks, "run_time": 10.0, "log_ver": "3.41"}, names=dict(names))
    for module, file, rank, values in rows:
        log.modules.setdefault(module, {})
        table = log.tables.setdefault(module, Module([], []))
        table.seconds += [name for name in values if name not in table.seconds]
        table.records.append(Record(file, rank, 0, [], [0.0] * len(table.seconds)))
        table.records[-1].seconds = [float(values.get(name, 0)) for name in table.seconds]
    return log


def rows_of(log: Log) -> dict[tuple[str, str, int, int], counted.Counts]:
    made = darshan.counted(log, "log")
    return {(row.layer, row.op, row.file, row.rank): row for row in made.counts}


def found(log: Log) -> dict[str, Finding]:
    return {one.code: one for one in rules.find(darshan.counted(log, "log"), 10.0).findings}


# ------------------------------------------------------------------------------------------------------------ figures


def test_opens_of_streams_have_fdopen_among_them() -> None:
    rows = rows_of(log_of(("STDIO", FILE, 0, {"STDIO_OPENS": 5, "STDIO_FDOPENS": 2, "STDIO_FLUSHES": 7})))
    assert rows["STDIO", "open", 0, 0].calls == 5
    assert rows["STDIO", "sync", 0, 0].calls == 7
    assert ("STDIO", "meta", 0, 0) not in rows


def test_flushes_of_datasets_are_there() -> None:
    rows = rows_of(log_of(("H5D", FILE, 0, {"H5D_OPENS": 1, "H5D_FLUSHES": 3, "H5D_F_META_TIME": 0.5})))
    assert (rows["HDF5", "sync", 0, 0].calls, rows["HDF5", "meta", 0, 0].time_s) == (3, 0.5)


def test_waiting_for_nonblocking_calls_of_pnetcdf_is_its_time() -> None:
    values = {
        "PNETCDF_FILE_CREATES": 4, "PNETCDF_FILE_REDEFS": 8, "PNETCDF_FILE_COLL_WAITS": 12,
        "PNETCDF_FILE_INDEP_WAITS": 1, "PNETCDF_FILE_F_WAIT_TIME": 6.0, "PNETCDF_FILE_F_META_TIME": 1.0,
    }  # fmt: skip
    rows = rows_of(
        log_of(
            ("PNETCDF_FILE", FILE, -1, values), ("MPI-IO", FILE, -1, {"MPIIO_COLL_WRITES": 12, "MPIIO_F_WRITE_TIME": 5})
        )
    )
    assert (rows["PnetCDF", "wait", 0, -1].calls, rows["PnetCDF", "wait", 0, -1].time_s) == (13, 6.0)
    assert (rows["PnetCDF", "meta", 0, -1].calls, rows["PnetCDF", "open", 0, -1].calls) == (8, 4)
    assert [key for key, row in rows.items() if row.outermost] == [
        ("PnetCDF", "open", 0, -1), ("PnetCDF", "meta", 0, -1), ("PnetCDF", "wait", 0, -1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("hdf5_s", "mpi_s", "posix_s", "outermost"),
    [(6.0, 5.0, 4.0, "HDF5"), (0.0, 5.0, 4.0, "MPI-IO"), (-1.0, 0.0, 4.0, "POSIX"), (5.0, 5.01, 4.0, "HDF5")],
)
def test_the_layer_that_has_the_time_is_outermost(hdf5_s: float, mpi_s: float, posix_s: float, outermost: str) -> None:
    """Older versions do not time HDF5; what has no time cannot hold the calls below it."""
    log = log_of(
        ("H5F", FILE, -1, {"H5F_OPENS": 4, "H5F_F_META_TIME": hdf5_s}),
        ("MPI-IO", FILE, -1, {"MPIIO_COLL_WRITES": 8, "MPIIO_F_WRITE_TIME": mpi_s}),
        ("POSIX", FILE, -1, {"POSIX_WRITES": 8, "POSIX_F_WRITE_TIME": posix_s}),
        ("POSIX", OTHER, 0, {"POSIX_WRITES": 8, "POSIX_F_WRITE_TIME": 1.0}),
    )
    rows = rows_of(log)
    assert {key[0] for key, row in rows.items() if row.outermost and row.file == 0} == {outermost}
    assert rows["POSIX", "write", 1, 0].outermost
    assert not any("negative" in words for words in darshan.counted(log, "log").unseen)


def test_the_slowest_rank_is_that_of_all_shared_records() -> None:
    def of(file: int, rank: int, slow_s: float, module: str = "POSIX") -> tuple[str, int, int, dict[str, float]]:
        p = {"MPI-IO": "MPIIO"}.get(module, module)
        return (module, file, -1, {f"{p}_WRITES": 1, f"{p}_COLL_WRITES": 1, f"{p}_F_WRITE_TIME": 9.0,
                                   f"{p}_SLOWEST_RANK": rank, f"{p}_F_SLOWEST_RANK_TIME": slow_s})  # fmt: skip

    made = darshan.counted(log_of(of(FILE, 3, 4.0), of(OTHER, 3, 2.0), of(DATASET, 1, 5.0)), "log")
    assert (made.busiest, made.busiest_s) == (3, 6.0)
    # POSIX calls lie in those of MPI-IO, and the job has no rank 77.
    made = darshan.counted(
        log_of(of(FILE, 2, 4.0), of(FILE, 2, 4.5, "MPI-IO"), of(DATASET, 3, 4.4), of(OTHER, 77, 8.0)), "log"
    )
    assert (made.busiest, made.busiest_s) == (2, 4.5)


def test_a_colon_in_a_name_makes_no_object_of_a_file() -> None:
    """Only records of datasets and variables are of a part of a file."""
    one = ("POSIX", FILE, 0, {"POSIX_OPENS": 1})
    assert darshan.counted(log_of(one, ("POSIX", DATASET, 0, {"POSIX_OPENS": 1})), "log").files == ("/f", "/f:/x")
    assert darshan.counted(log_of(one, ("H5D", DATASET, 0, {"H5D_OPENS": 1})), "log").files == ("/f",)


def test_storage_targets_that_are_not_known() -> None:
    """Darshan writes -1 where Lustre did not say; a file that has parts lies on the targets of all of them."""
    log = log_of(("POSIX", FILE, 0, {"POSIX_OPENS": 1}))
    log.lustre = [
        {"lustre": FILE, "stripe_bytes": [MIB, 4 * MIB], "targets": [[3], [4, 5]]},
        {"lustre": FILE, "stripe_bytes": [MIB, 4 * MIB], "targets": [[3], [4, 5]]},
        {"lustre": OTHER, "stripe_bytes": [MIB], "targets": [[1, -1]]},
    ]
    made = darshan.counted(log, "log")
    assert [(one.file, one.stripe_bytes, one.targets) for one in made.targets] == [(0, MIB, (3,)), (0, 4 * MIB, (4, 5))]
    assert "of 1 file the log does not say on which storage targets it lies" in made.unseen
    content = json.loads(json.dumps(counted.to_json(made), default=list))
    assert counted.from_json(content) == made


def test_heatmaps_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(rank: int, bin_s: float, write: list[int]) -> dict[str, object]:
        return {"heatmap": FILE, "rank": rank, "bin_s": bin_s, "write": write, "read": [0, 1]}

    made = heatmaps.Heatmaps()
    for row in (one(0, 0.5, [1, -2]), one(1, float("nan"), [1]), one(2, 0.5, [1 << 63]), one(1 << 40, 0.5, [1])):
        made.add(row)
    assert [(row["rank"], row["write"]) for row in made.rows()] == [(0, [1, 0]), (2, [1 << 62])]
    assert list(made.words()) == ["2 heatmaps of ranks or times that cannot be, left out"]
    monkeypatch.setattr(heatmaps, "MOST", 2)
    made.add(one(3, 0.5, [10, 20, 30]))
    made.add(one(4, 0.5, [1]))
    (row,) = made.rows()
    assert (row["rank"], row["write"], row["read"]) == (-1, [1 << 62, 20, 30], [0, 4])
    assert next(made.words()).startswith("4 heatmaps are added up over the ranks")


# ----------------------------------------------------------------------------------------------------------- findings


def test_an_aggregator_is_not_one_rank_that_does_all() -> None:
    """Four ranks write through collective calls, and the MPI library writes on one of them."""
    together = (
        "MPI-IO",
        FILE,
        -1,
        {"MPIIO_COLL_WRITES": 8, "MPIIO_BYTES_WRITTEN": 64 * MIB, "MPIIO_F_WRITE_TIME": 8.0},
    )
    below = ("POSIX", FILE, 0, {"POSIX_WRITES": 8, "POSIX_BYTES_WRITTEN": 64 * MIB, "POSIX_F_WRITE_TIME": 4.0})
    assert "rank0-io" not in found(log_of(together, below))
    finding = found(log_of(below))["rank0-io"]
    assert (finding.layer, finding.ranks, finding.seconds) == ("POSIX", [0], 4.0)


def test_what_a_program_prints_is_no_data() -> None:
    values = {"STDIO_WRITES": 9000, "STDIO_BYTES_WRITTEN": 64 * MIB, "STDIO_F_WRITE_TIME": 4.0}
    assert {"stdio-data", "rank0-io"} <= found(log_of(("STDIO", FILE, 0, values))).keys()
    assert found(log_of(("STDIO", FILE, 0, values), names={FILE: "<STDOUT>"})) == {}


def test_flushing_is_no_asking() -> None:
    values = {"STDIO_OPENS": 1, "STDIO_FLUSHES": 10_000, "STDIO_WRITES": 10, "STDIO_F_META_TIME": 3.0}
    assert "metadata-storm" not in found(log_of(("STDIO", FILE, 0, values)))


def test_split_collective_calls_are_collective() -> None:
    values = {"MPIIO_INDEP_WRITES": 1000, "MPIIO_COLL_WRITES": 0, "MPIIO_INDEP_READS": 0, "MPIIO_COLL_READS": 0,
              "MPIIO_SPLIT_READS": 0, "MPIIO_BYTES_WRITTEN": 64000, "MPIIO_F_WRITE_TIME": 8.0}  # fmt: skip
    finding = found(log_of(("MPI-IO", FILE, -1, values | {"MPIIO_SPLIT_WRITES": -1})))["independent-shared-file"]
    assert finding.summary == "1,000 independent writes of 64 B to a file that all ranks share"
    assert "independent-shared-file" not in found(log_of(("MPI-IO", FILE, -1, values | {"MPIIO_SPLIT_WRITES": 9})))


def test_bytes_that_are_not_known_are_not_called_none() -> None:
    """Darshan 2 has sizes of MPI-IO's calls, and no bytes."""
    values = {f"MPIIO_{how}_{op}S": 0.0 for how in ("INDEP", "COLL", "SPLIT") for op in ("READ", "WRITE")}
    values |= {"MPIIO_INDEP_WRITES": 1000, "MPIIO_F_WRITE_TIME": 8.0}
    few = found(log_of(("MPI-IO", FILE, -1, values | {"MPIIO_SIZE_WRITE_AGG_0_100": 1000})))
    assert few["independent-shared-file"].summary == "1,000 independent writes to a file that all ranks share"
    large = found(log_of(("MPI-IO", FILE, -1, values | {"MPIIO_SIZE_WRITE_AGG_10M_100M": 1000})))
    assert "independent-shared-file" not in large


def test_orders_that_are_not_known_are_not_called_random() -> None:
    values = {"POSIX_READS": 500, "POSIX_WRITES": 0, "POSIX_SEQ_READS": 100, "POSIX_SEQ_WRITES": 0,
              "POSIX_BYTES_READ": 5000, "POSIX_BYTES_WRITTEN": 0, "POSIX_F_READ_TIME": 5.0}  # fmt: skip
    assert found(log_of(("POSIX", FILE, 0, values)))["random-access"].evidence[1].figure == 400
    assert "random-access" not in found(log_of(("POSIX", FILE, 0, values | {"POSIX_SEQ_READS": -1})))


def test_a_file_of_several_parts_does_not_stand_for_the_target_of_one() -> None:
    """Ten files on targets 0 to 4, two each; those on 4 are slow. With another part elsewhere they say nothing."""
    values = {"POSIX_WRITES": 8, "POSIX_BYTES_WRITTEN": 8 * MIB}
    names = {file: f"/f{file}" for file in range(1, 11)}
    log = log_of(
        *(("POSIX", file, 0, values | {"POSIX_F_WRITE_TIME": 2.0 if file % 5 == 4 else 0.1}) for file in names),
        names=names,
    )
    log.lustre = [{"lustre": file, "stripe_bytes": [MIB], "targets": [[file % 5]]} for file in names]
    assert found(log)["slow-target"].files == ["/f4", "/f9"]
    for row in log.lustre:
        if row["targets"] == [[4]]:
            row |= {"stripe_bytes": [MIB, MIB], "targets": [[7, 8], [4]]}
    assert "slow-target" not in found(log)


# ----------------------------------------------------------------------------------------------- commands, end to end


def test_commands_on_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Export has every row, a comparison with itself says no change, and calibration says what it needs."""
    log = DarshanLog(names={FILE: b"/f", OTHER: b"/g\xff"})
    log.add("POSIX", FILE, -1, {"POSIX_WRITES": 4, "POSIX_BYTES_WRITTEN": 4 * MIB, "POSIX_F_WRITE_TIME": 4.0})
    log.add("POSIX", OTHER, 1, {"POSIX_READS": 2, "POSIX_BYTES_READ": (1 << 63) - 1, "POSIX_F_READ_TIME": 1.0})
    path, output = tmp_path / "log.darshan", tmp_path / "out"
    path.write_bytes(log.data())
    import_log(path, output)
    for form, name in (("csv", "all.csv"), ("parquet", "all")):
        assert export(output, form, tmp_path / name).counts == 2
    rows = (tmp_path / "all-counts.csv").read_text().splitlines()
    assert sum("/g\\xff" in row and str((1 << 62) - 1) in row for row in rows) == 1
    report = build(reader.load(output))
    assert compare.compare(report, report).time.ratio == 1.0
    assert to_dict(report)["io"]["mean_s"] == pytest.approx(1.25)
    for command in (["report"], ["findings"], ["compare", str(output)], ["report", "--json"]):
        monkeypatch.setattr("sys.argv", ["ioweir", command[0], str(output), *command[1:]])
        with pytest.raises(SystemExit) as ended:
            app.main()
        assert not ended.value.code, command
        assert capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["ioweir", "calibrate", "--trace", str(output), "-o", str(tmp_path / "m.toml")])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 1
    assert "holds sums of calls and no events" in capsys.readouterr().err
