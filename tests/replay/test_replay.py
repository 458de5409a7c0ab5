"""A replay makes the calls that were recorded: same functions, files, offsets, bytes and order of every rank."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import compared
import pytest
import runs
from ioweir.errors import IoweirError
from ioweir.launch import kernel
from ioweir.replay import from_trace, inputs, names, order, posix_files, write
from ioweir.replay.datatypes import Pieces
from ioweir.replay.model import Handle, Instance, Op, RankCalls, Recorded
from ioweir.trace import reader
from ioweir.trace.reader import Datatype
from traces import Builder, Call

LIBRARIES = ("openmpi", "mpich")
KERNELS = {
    "lattice": ["local=4,4,4,8"],
    "coll_perf": ["local=8,8,8"],
    "ior-strided": ["data=256 KiB", "transfer=64 KiB", "piece=4 KiB"],
    "flash": ["local=4,4,4", "blocks=4", "variables=4"],
    "btio": ["class=S", "writes=2"],
}


@pytest.fixture(scope="module", params=LIBRARIES)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, runs.compiled(request.param, tmp_path_factory.mktemp("programs"))


def replayed(trace: Path, tmp_path: Path, *more: object) -> dict[str, Any]:
    """Into tmp_path/out; its trace is tmp_path/again."""
    (tmp_path / "out").mkdir(exist_ok=True)
    words = ("replay", trace, "--directory", tmp_path / "out", "-o", tmp_path / "again", "--think", "drop", "--json")
    result: dict[str, Any] = json.loads(runs.ioweir(*words, *more).stdout)
    return result


def same_calls(tmp_path: Path, data: Path) -> int:
    """Of both traces; how many calls there are."""
    before = compared.calls_of(tmp_path / "trace", lambda path: path.startswith(f"{data}/"))
    after = compared.calls_of(tmp_path / "again", lambda path: path.startswith(f"{tmp_path}/out/"))
    assert not compared.differences(before, after)
    return sum(len(calls) for calls in before.values())


@pytest.mark.one_of(6)
@pytest.mark.parametrize(
    ("kind", "ranks"),
    [
        ("posix", 1), ("posix", 5), ("found", 3), ("pointers", 3), ("views", 5), ("again", 3), ("streams", 2),
        ("pieces", 2), ("parts", 5),
    ],
)  # fmt: skip
def test_programs_make_the_same_calls_again(program: tuple[str, Path], kind: str, ranks: int, tmp_path: Path) -> None:
    mpi, executable = program
    data = tmp_path / "data"
    data.mkdir()
    (data / "found.dat").write_bytes(bytes(100_000))
    runs.recorded(mpi, ranks, [executable, kind, data], tmp_path / "trace")
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    result = replayed(tmp_path / "trace", tmp_path)
    assert same_calls(tmp_path, data) > 0
    assert result["left_out"] == []
    assert result["replayed"]["failed"] == 0
    assert result["replayed"]["written_bytes"] == result["recorded"]["written_bytes"]
    assert list((tmp_path / "out").iterdir()) == []  # nothing is left
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before  # and the originals are as they were


@pytest.mark.one_of(4)
@pytest.mark.parametrize("mpi", LIBRARIES)
@pytest.mark.parametrize(
    ("kernel", "ranks"),
    [("lattice", 1), ("coll_perf", 3), ("ior-strided", 5), ("flash", 3), ("btio", 4)],
)
def test_kernels_make_the_same_calls_again(kernel: str, ranks: int, mpi: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    words = ["kernel", kernel, *KERNELS[kernel], "--ranks", ranks, "--mpi", mpi, "--directory", data]
    runs.ioweir("run", "-q", "-o", tmp_path / "trace", "--", *runs.IOWEIR, *words)
    result = replayed(tmp_path / "trace", tmp_path)
    assert same_calls(tmp_path, data) > 0
    assert result["replayed"]["written_bytes"] == result["recorded"]["written_bytes"] > 0
    assert result["replayed"]["read_bytes"] == result["recorded"]["read_bytes"] > 0


def test_a_plan_is_applied_and_times_between_calls_are_kept(program: tuple[str, Path], tmp_path: Path) -> None:
    mpi, executable = program
    data = tmp_path / "data"
    data.mkdir()
    runs.recorded(mpi, 3, [executable, "views", data], tmp_path / "trace")
    (tmp_path / "plan.toml").write_text('[[file]]\nmatch = "*.dat"\nwriters = "aggregators:1"\n')
    result = replayed(tmp_path / "trace", tmp_path, "--plan", tmp_path / "plan.toml", "--think", 2)
    assert result["think"] == 2
    assert result["replayed"]["failed"] == 0
    notes = reader.read(tmp_path / "again").notes
    assert any(note.code == "plan_applied" and note.path.endswith("views.dat") for note in notes)
    same_calls(tmp_path, data)


def test_a_launch_has_turns_with_folders_hints_and_rules_of_their_own(
    program: tuple[str, Path], tmp_path: Path
) -> None:
    mpi, executable = program
    data = tmp_path / "data"
    data.mkdir()
    runs.recorded(mpi, 3, [executable, "views", data], tmp_path / "trace")
    runs.ioweir("replay", tmp_path / "trace", "--script", tmp_path / "scripts")
    turns = [tmp_path / name for name in ("plain", "planned", "hinted")]
    for turn in turns:
        turn.mkdir()
    (tmp_path / "plan.toml").write_text('[[file]]\nmatch = "planned/*.dat"\nwriters = "aggregators:1"\n')
    words = [word for turn in turns for word in ("--target", turn)]
    runner = kernel.runner(mpi, "replay_runner")
    command = [runs.LAUNCHERS[mpi], "-n", 3, runner, "--script", tmp_path / "scripts", *words, "--hint", "cb_nodes=1"]
    again = tmp_path / "again"
    done = runs.ioweir("run", "-q", "-o", again, "--plan", tmp_path / "plan.toml", "--", *command)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["failed"] for one in told] == [0, 0, 0]
    assert len({(one["written_bytes"], one["read_bytes"], one["calls"]) for one in told}) == 1
    assert all(one["written_bytes"] > 0 for one in told)
    sizes = [(turn / "views.dat").stat().st_size for turn in turns]
    assert sizes[0] > 0
    assert sizes == [sizes[0]] * 3
    applied = [note.path for note in reader.read(again).notes if note.code == "plan_applied"]
    assert applied
    assert {Path(path).parent.name for path in applied} == {"planned"}


def test_what_a_plan_has_put_on_other_targets_goes_with_the_replay(program: tuple[str, Path], tmp_path: Path) -> None:
    mpi, executable = program
    data = tmp_path / "data"
    data.mkdir()
    runs.recorded(mpi, 3, [executable, "views", data], tmp_path / "trace")
    lab = tmp_path / "lab"
    manifest = f'state = "{tmp_path}/buckets"\n'
    for name in ("t0", "t1"):
        (lab / name).mkdir(parents=True)
        manifest += f'[[target]]\nname = "{name}"\ndirectory = "{name}"\nrate = "20 MB"\n'
    (lab / ".ioweir-targets.toml").write_text(manifest)
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*.dat"\nmapping = "subfiles:2"\nvisibility = "sync"\n')
    words = ["replay", tmp_path / "trace", "--directory", lab, "--plan", plan, "-o", tmp_path / "again", "--json"]
    assert json.loads(runs.ioweir(*words).stdout)["replayed"]["failed"] == 0
    parts = [Path(path) for path in reader.read(tmp_path / "again").paths if ".subfile." in path]
    assert {path.parent.name for path in parts} == {"t0", "t1"}
    assert sorted(path.name for path in lab.rglob("*")) == [".ioweir-targets.toml", "t0", "t1"]


def test_a_hint_belongs_to_the_target_before_it(tmp_path: Path) -> None:
    program = kernel.runner("mpich", "replay_runner")
    words = [str(program), "--hint", "cb_nodes=1", "--script", str(tmp_path), "--target", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "--hint cb_nodes=1: write it behind the --target that it is for" in done.stderr


def test_files_are_kept_where_asked_and_scripts_can_be_read(program: tuple[str, Path], tmp_path: Path) -> None:
    mpi, executable = program
    data = tmp_path / "data"
    data.mkdir()
    runs.recorded(mpi, 2, [executable, "parts", data], tmp_path / "trace")
    runs.ioweir("replay", tmp_path / "trace", "--script", tmp_path / "scripts")
    text = (tmp_path / "scripts" / "1.replay").read_text()
    assert text.startswith("ioweir-replay 1\nrank 2 1\nseed 1\n")
    assert "MPI_File_write_at_all 0 0 512" in text
    result = replayed(tmp_path / "trace", tmp_path, "--keep")
    files = Path(result["files"])
    assert files.is_relative_to(tmp_path / "out")
    assert (files / "half-0.dat").stat().st_size == (data / "half-0.dat").stat().st_size
    assert (files / "half-0.dat").read_bytes()[:512] != (data / "half-0.dat").read_bytes()[:512]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--think", "often"), "--think often: write keep, drop, or a factor"),
        (("--ranks", "7"), "has one rank, and of one"),
        (("--ranks", "0"), "--ranks 0: give 1 or more"),
        (("--directory", "/nowhere"), "--directory /nowhere: there is no such directory"),
        (("--mpi", "other"), "--mpi other: a replay needs an MPI library"),
        (("--hint", "cb_nodes"), "--hint cb_nodes: write NAME=VALUE"),
        (("--hint", "=4"), "--hint =4: write NAME=VALUE"),
        (("--hint", "cb_nodes="), "--hint cb_nodes=: write NAME=VALUE"),
        (("--memory", "much"), "--memory: 'much' is no size"),
    ],
)
def test_what_cannot_be_is_said(words: tuple[str, ...], said: str, one_rank: Path) -> None:
    done = runs.ioweir("replay", one_rank, *words, code=2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    (folder / "data").mkdir()
    runs.recorded("mpich", 1, [runs.compiled("mpich", folder), "views", folder / "data"], folder / "trace")
    return folder / "trace"


def test_a_call_that_needs_too_much_memory_is_refused(one_rank: Path, tmp_path: Path) -> None:
    done = runs.ioweir("replay", one_rank, "--directory", tmp_path, "--memory", "1 KiB", code=1)
    assert "and --memory allows 1024" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_trace_without_ranks_cannot_be_replayed(tmp_path: Path) -> None:
    runs.ioweir("run", "-q", "-o", tmp_path / "trace", "--", "cat", __file__)
    assert "there is no MPI program" in runs.ioweir("replay", tmp_path / "trace", code=1).stderr


def opened(mode: int, folder: Path) -> Path:
    """The trace of a rank that opens a file in this mode and closes it."""
    builder = Builder()
    builder.rank(0, 1)
    builder.add(Call(0, "MPI_File_open", 1.0, 1.5, "/scratch/file", offset=mode))
    builder.add(Call(0, "MPI_File_close", 2.0, 2.5, "/scratch/file"))
    folder.mkdir()
    builder.write(folder)
    (folder / "run.json").write_text("{}")
    return folder


def test_calls_that_fail_are_an_exit_code_and_no_times_to_compare(tmp_path: Path) -> None:
    trace = opened(1, tmp_path / "trace")  # neither to read nor to write
    words = ("replay", trace, "--directory", tmp_path, "--mpi", "mpich", "--think", "drop")
    said = runs.ioweir(*words, code=1).stdout
    assert "calls FAILED that did not when recorded" in said
    assert "the first: MPI_File_open" in said
    assert "in calls" not in said
    assert json.loads(runs.ioweir(*words, "--json", code=1).stdout)["replayed"]["failed"] > 0


def test_a_mode_that_the_trace_does_not_hold_is_said_before_anything_runs(tmp_path: Path) -> None:
    trace = opened(-1, tmp_path / "trace")
    said = runs.ioweir("replay", trace, "--directory", tmp_path, "--mpi", "mpich", code=1).stderr
    assert "/scratch/file: the trace does not say in which mode" in said
    assert [place.name for place in tmp_path.iterdir()] == ["trace"]


def test_a_simulated_run_can_be_replayed(tmp_path: Path) -> None:
    words = ("simulate", "--machine", "gigabit12", "--kernel", "ior-strided", "--ranks", 3, *KERNELS["ior-strided"])
    runs.ioweir(*words, "--repeat", 1, "--trace-out", tmp_path / "trace")
    result = replayed(tmp_path / "trace", tmp_path, "--mpi", "mpich")
    assert result["replayed"]["failed"] == 0
    for done in ("written_bytes", "read_bytes"):
        assert result["replayed"][done] == result["recorded"][done] > 0
    assert any("SIMULATED" in remark for remark in result["remarks"])


# ---------------------------------------------------------------------------------------------------- by themselves


def test_names_lead_nowhere_else_and_differ() -> None:
    paths = [
        "/data/a.h5", "/data/../../etc/passwd", "/data/x\ny", "/data/" + "n" * 300, "/data/deep/a.h5", "/data/deep",
        "/data//a.h5", "/data/-rf", "/data/ü.nc", "/data/file-0", "/data/a b",
    ]  # fmt: skip
    found = names.names_of(paths)
    assert len(set(found)) == len(paths)
    for name in found:
        assert not name.startswith("/")
        assert ".." not in name.split("/")
        assert names._is_harmless(name) or name.startswith("file-")
    assert found[0].endswith("a.h5")
    assert found[8].endswith("ü.nc")
    one = found.index(next(name for name in found if name.endswith("deep/a.h5")))
    assert one == 4
    assert found[5].startswith("file-")  # a file where others have a folder


@pytest.mark.parametrize(
    ("path", "is_data"),
    [
        ("/scratch/run/out.h5", True), ("/dev/shm/out.h5", True), ("/usr/lib/x.mod", False), ("/home/me/a.py", False),
        ("/home/me/lib/libx.so.5", False), ("/proc/self/maps", False), ("out.h5", False),
    ],
)  # fmt: skip
def test_what_is_data(path: str, is_data: bool) -> None:
    assert names.is_data(path) is is_data


def test_types_that_would_fall_into_too_many_pieces_are_not_made() -> None:
    byte = Datatype("named", "MPI_BYTE", 1, 0, 1)
    strided = Datatype("vector", "", 1 << 21, 0, 1 << 22, (1 << 21, 1, 2), (1,))
    huge = Datatype("contiguous", "", 1 << 42, 0, 1 << 43, (1 << 21,), (2,))
    long = Datatype("contiguous", "", 1 << 42, 0, 1 << 42, (1 << 42,), (1,))
    broken = Datatype("indexed", "", 8, 0, 8, (1 << 30, 1), (1,))
    circle = Datatype("dup", "", 8, 0, 8, (), (6,))
    pieces = Pieces([Datatype(), byte, strided, huge, long, broken, circle])
    assert [pieces.of(number) for number in range(7)] == [None, 1, 1 << 21, None, 1, None, None]


def _calls(*ranks: list[Op]) -> Recorded:
    calls = [RankCalls(rank, ops) for rank, ops in enumerate(ranks)]
    return Recorded(calls, ["/a"], ["a"], ())


def test_what_is_left_out_is_said_of_what_it_is() -> None:
    """Only of calls that would be made again is it a reason that their descriptor is not known."""
    left_out: Counter[str] = Counter()
    files = posix_files.PosixFiles(RankCalls(0), left_out, Counter())
    for number, name in enumerate(("mkdir", "opendir", "readdir", "symlink", "posix_fadvise", "read", "fsync")):
        function = SimpleNamespace(name=name, op="read" if name == "read" else "meta")
        files.take(cast("Any", SimpleNamespace(function=function, file=0, offset=0, bytes=1, start=number, end=number)))
    unknown = "of a descriptor whose opening is not in the trace"
    assert sorted(left_out) == [
        f"fsync {unknown}", "mkdir", "opendir", "posix_fadvise", f"read {unknown}", "readdir", "symlink",
    ]  # fmt: skip


@pytest.mark.parametrize(("end", "removed", "mode"), [(4096, False, "r+"), (100, False, "w"), (4096, True, "w")])
def test_a_stream_does_not_empty_what_is_read_later(end: int, removed: bool, mode: str) -> None:
    """A header that is written anew, with fopen(r+): emptied, the rest of the file was missing, and reads failed."""
    files = posix_files.PosixFiles(calls := RankCalls(0), Counter(), Counter())

    def take(name: str, offset: int = 0, moved: int = 0, op: str = "meta") -> None:
        row = SimpleNamespace(
            function=SimpleNamespace(name=name, op=op), file=0, offset=offset, bytes=moved, start=0, end=0
        )
        (files.take_stream if name.startswith("f") else files.take)(cast("Any", row))

    for moved in (4096, 100):
        take("fopen")
        take("fwrite", 0, moved, "write")
        take("fclose")
        if removed and moved == 4096:
            take("unlink")
    take("open")
    take("pread", 0, end, "read")
    take("close")
    files.end()
    first, second = [op for op in calls.ops if op.name == "fopen"]
    modes = ("r", "w", "a", "r+", "w+")
    assert (modes[first.arguments[2]], modes[second.arguments[2]]) == ("w", mode)


def test_a_stream_does_not_empty_what_the_program_found() -> None:
    opened = Op("fopen", [0, 0, 1], 0, 1, 0, use="make")
    written = Op("fwrite", [0, 100], 2, 3, 0, use="write", high=100, moved=100)
    read = Op("pread", [0, 4096, 0], 4, 5, 0, use="read", high=4096, moved=4096)
    recorded = _calls([opened, written], [read])
    inputs.find(recorded)
    assert recorded.inputs == {0: 4096}
    assert opened.arguments == [0, 0, 3]


def test_who_reads_waits_for_who_has_written() -> None:
    written = Op("pwrite", [0, 100, 0], 0, 10, 0, use="write", high=100)
    read = Op("pread", [0, 100, 50], 20, 30, 0, use="read", low=50, high=150)
    elsewhere = Op("pread", [0, 100, 100], 20, 30, 0, use="read", low=100, high=200)
    at_once = Op("pread", [0, 100, 0], 5, 30, 0, use="read", high=100)
    recorded = _calls([written], [read], [elsewhere], [at_once])
    order.put_in_order(recorded)
    assert recorded.ranks[0].before == {0: [(1, 0)]}
    assert [rank.after for rank in recorded.ranks[1:]] == [{0: [(0, 0)]}, {}, {}]


def test_collective_calls_that_do_not_fit_together_are_refused() -> None:
    def op(instance: Instance, rank: int, start: int) -> Op:
        return Op("MPI_File_sync", [0], start, start + 1, 0, Handle(rank, 0, 0, 0, instance=instance), collective=True)

    one, other = (Instance((0, 2, n), {0: Handle(0, 0, 0, 0), 1: Handle(1, 0, 0, 0)}) for n in (0, 1))
    with pytest.raises(IoweirError, match="do not fit together"):
        order.put_in_order(_calls([op(one, 0, 0), op(other, 0, 2)], [op(other, 1, 0), op(one, 1, 2)]))


def test_a_script_that_leads_elsewhere_is_refused(one_rank: Path, tmp_path: Path) -> None:
    """By the program too, whoever wrote the script."""
    recorded = from_trace.read(one_rank)
    recorded.names[0] = "../elsewhere"
    text = "\n".join(write.lines(recorded, recorded.ranks[0], 1))
    (tmp_path / "0.replay").write_text(text + "\n")
    program = kernel.runner("mpich", "replay_runner")
    done = subprocess.run(
        [program, "--script", tmp_path, "--target", tmp_path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "is no name below the target directory" in done.stderr
    assert not (tmp_path.parent / "elsewhere").exists()


def test_a_damaged_trace_is_refused_or_replayed_in_part(one_rank: Path, tmp_path: Path) -> None:
    """Whatever its bytes are: names lead nowhere else, and nothing but an error of ours is raised."""
    source = random.Random(3)
    run, node = (one_rank / "run.json").read_bytes(), next(one_rank.glob("node-*.iowt*"))
    whole = node.read_bytes()
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "run.json").write_bytes(run)
        changed = bytearray(whole)
        for _ in range(source.randrange(1, 30)):
            changed[source.randrange(len(changed))] = source.randrange(256)
        (folder / node.name).write_bytes(changed)
        try:
            recorded = from_trace.read(folder)
        except IoweirError:
            continue
        for name in recorded.names:
            assert not name.startswith("/")
            assert ".." not in name.split("/")
        lines = list(write.lines(recorded, recorded.ranks[0], 1))
        assert lines[0] == "ioweir-replay 1"
