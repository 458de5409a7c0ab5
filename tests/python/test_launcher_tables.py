"""The tables of options, against the launchers and wrappers that are installed, and random commands made from them.

Every option of a table is put before a real launcher, followed by one that no launcher has: it must complain of that
one, and does not where the option takes more words, or fewer, than the table says.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ioweir.launch import launchers, options, wrappers
from wheels import INTEL_MPI, MPICH_5, OPEN_MPI_5

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NONE_HAS: Final = "--ioweir-none-has-this"
PROGRAM: Final = "./a.out"
ENVIRONMENT: Final[dict[str, str]] = dict(os.environ) | {
    "LC_ALL": "C",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def said(command: Sequence[str], **variables: str) -> str:
    ended = subprocess.run(
        command, env=ENVIRONMENT | variables, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
    )
    return (ended.stdout + ended.stderr).decode(errors="replace")


def words_of(table: options.Table, name: str, value: str = "1") -> list[str]:
    """The option with as many words behind it as the table says."""
    dash = "-" if len(name) == 1 or table.style is options.Style.HYDRA else "--"
    return [dash + name, *([value] * table.counts.get(table.letters.get(name, name), 0))]


def all_names(table: options.Table) -> list[str]:
    return [*table.counts, *table.letters]


def getopt_agrees(command: str, table: options.Table, name: str, **variables: str) -> bool:
    """Whether getopt_long in the command takes the option as the table says."""
    needs, refuses = "requires an argument", "doesn't allow an argument"
    if table.counts[name]:
        return needs in said([command, f"--{name}"], **variables)
    joined = said([command, f"--{name}=1", NONE_HAS], **variables)
    if name not in table.attached:
        return refuses in joined
    alone = said([command, f"--{name}", NONE_HAS], **variables)
    return all(text not in joined + alone for text in (needs, refuses, f"option '--{name}", "ambiguous"))


# ------------------------------------------------------------------------------------------------- the real launchers

ENDING: Final = {"help", "h", "version", "V", "info", "list"}
"""Options with which a launcher only prints something."""


ONLY_PRTERUN: Final = {
    "keepalive",
    "set-cwd-to-session-dir",
    "set-sid",
    "system-server",
    "pmix-prefix",
    "add-host",
    "add-hostfile",
}
# Its help has them, and it says that it does not know them.
IN_NO_PRTERUN: Final = {"no-ready-msg", "set-env", "singleton", "gpmixmca"}


def complains(launcher: launchers.Launcher, command: str, names: Sequence[str], value: str = "1") -> bool:
    """Whether the launcher reads all of `names`, with the words the table says, and then the one that none has."""
    table = launcher.options
    words = [command]
    for name in names:
        # The next option would be swallowed by one that takes more than the table says, and its value be the program.
        words += [*words_of(table, name, value), "-x", "1"]
    return re.search(rf"(unknown option|Option:).*{NONE_HAS}", said([*words, NONE_HAS, PROGRAM])) is not None


def assert_all_read(launcher: launchers.Launcher, command: str) -> None:
    names = [name for name in all_names(launcher.options) if name not in ENDING]
    assert len(names) > 80
    if not complains(launcher, command, names):
        assert [name for name in names if not complains(launcher, command, [name])] == []


def test_open_mpi_4_reads_every_option_as_the_table_says() -> None:
    assert_all_read(launchers.OPEN_MPI_4, "mpirun.openmpi")


def test_open_mpi_4_has_no_option_that_the_table_lacks() -> None:
    listed: dict[str, int] = {}
    for line in said(["mpirun.openmpi", "--help", "all"]).splitlines():
        found = re.match(r" {0,3}(-[-\w|]+)((?: <arg\d>)*)(?: |$)", line)
        if found:
            listed |= dict.fromkeys((name.lstrip("-") for name in found[1].split("|")), found[2].count("<arg"))
    assert listed == dict(launchers.OPEN_MPI_4.options.counts)


@pytest.fixture(scope="module")
def open_mpi_5() -> Iterator[Path]:
    place = OPEN_MPI_5.installed()
    with pytest.MonkeyPatch.context() as patch:
        # mpirun knows where it lies, prterun wants to be told.
        for name in ("PMIX_PREFIX", "PRTE_PREFIX"):
            patch.setitem(ENVIRONMENT, name, str(place))
        yield place / "bin"


@pytest.mark.parametrize(
    ("launcher", "name"),
    [(launchers.OPEN_MPI_5, "mpirun"), (launchers.PRTERUN, "prterun")],
    ids=["mpirun", "prterun"],
)
def test_open_mpi_5_reads_every_option_as_the_table_says(
    open_mpi_5: Path, launcher: launchers.Launcher, name: str
) -> None:
    assert launchers.identify(str(open_mpi_5 / name)) is launcher
    assert_all_read(launcher, str(open_mpi_5 / name))


def test_open_mpi_5_has_no_option_that_the_table_lacks(open_mpi_5: Path) -> None:
    """Of what the help of prterun lists; that of mpirun lists nothing."""
    text = said([str(open_mpi_5 / "prterun"), "--help"])
    # Its tables break long names at dashes.
    listed = {name for name in re.findall(r'"--([a-z][\w-]+)', text) if not name.endswith("-")}
    assert len(listed) > 20
    assert listed - set(launchers.OPEN_MPI_5.options.counts) - ONLY_PRTERUN - IN_NO_PRTERUN == set()
    for name in listed - set(launchers.PRTERUN.options.counts):
        assert f"Option: --{name}\n" in said([str(open_mpi_5 / "prterun"), f"--{name}", "1", "1", PROGRAM])


# What Hydra wants to see as a value, where it is not satisfied with a number.
HYDRA_VALUES: Final = {"order-nodes": "up", "f": "/dev/null", "hostfile": "/dev/null", "machinefile": "/dev/null"}


def hydra_reads(command: str, name: str) -> bool:
    words = words_of(launchers.HYDRA.options, name, HYDRA_VALUES.get(name, "1"))
    if name == "pmi_args":
        words = [words[0], "1", "1", "1", "1"]
    text = said([command, *words, NONE_HAS, PROGRAM])
    return f"unrecognized argument {NONE_HAS.lstrip('-')}" in text or "profiling support not compiled in" in text


@pytest.mark.parametrize("version", [4, 5])
def test_hydra_reads_every_option_as_the_table_says(version: int) -> None:
    command = "mpiexec.mpich" if version == 4 else str(MPICH_5.installed() / "bin" / "mpiexec")
    assert launchers.identify(shutil.which(command) or command) is launchers.HYDRA
    newer = {"rankmap", "memory-alloc-kinds", "report-bindings", "gpu-subdevs-per-proc", "hybrid-hosts", "pmi_args"}
    older = {"dac"}
    names = set(launchers.HYDRA.options.counts) - ENDING - (newer if version == 4 else older)
    assert len(names) > 60
    assert [name for name in sorted(names) if not hydra_reads(command, name)] == []


def test_hydra_has_no_option_that_the_table_lacks() -> None:
    listed: set[str] = set()
    for line in said(["mpiexec.mpich", "--help"]).splitlines():
        if line.startswith("    -"):
            listed |= {name.lstrip("-") for name in line.split()[0].split("/")}
    assert len(listed) > 40
    assert listed - set(launchers.HYDRA.options.counts) == set()


# In its manual, or in older versions; not in that of PyPI.
IN_NO_INTEL_MPI: Final = {
    "dir",
    "disable-hostname-propagation",
    "order-nodes",
    "skip-launch-node",
    "topolib",
    "umask",
    "validate",
}
intel: Final = pytest.mark.skipif(not INTEL_MPI.is_for_this_machine(), reason="Intel MPI is for x86-64 alone")


@intel
def test_intel_mpi_reads_every_option_as_the_table_says(tmp_path: Path) -> None:
    command = str(INTEL_MPI.installed() / "bin" / "mpiexec")
    table = launchers.INTEL_MPI.options
    assert launchers.identify(command) is launchers.INTEL_MPI
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost\n")
    tools = tmp_path / "tools"
    tools.write_text("echo:0\n")
    values = dict.fromkeys(("f", "hostfile", "machine", "machinefile"), str(hosts))
    values |= {"rmk": "slurm", "gtool": "echo:0", "gtoolfile": str(tools)}
    names = set(table.counts) - ENDING - IN_NO_INTEL_MPI
    assert len(names) > 70
    unknown = f"unrecognized argument {NONE_HAS.lstrip('-')}"
    wrong = [
        name
        for name in sorted(names)
        if unknown not in said([command, *words_of(table, name, values.get(name, "1")), NONE_HAS, PROGRAM])
    ]
    assert wrong == []


@intel
def test_intel_mpi_has_no_option_that_the_table_lacks() -> None:
    listed: set[str] = set()
    for line in said([str(INTEL_MPI.installed() / "bin" / "mpiexec"), "--help"]).splitlines():
        if line.startswith("    -"):
            listed |= {name.lstrip("-") for name in line.split()[0].split("/")}
    assert len(listed) > 35
    assert listed - set(launchers.INTEL_MPI.options.counts) == set()


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A configuration with which srun reads its command line; there is no cluster."""
    file = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    file.write_text("ClusterName=x\nSlurmctldHost=localhost\nNodeName=localhost\nPartitionName=a Nodes=ALL\n")
    return str(file)


def test_srun_has_no_option_that_the_table_lacks(slurm: str) -> None:
    table = launchers.SRUN.options
    listed: dict[str, int] = {}
    attached: set[str] = set()
    letters: dict[str, str] = {}
    for line in said(["srun", "--help"], SLURM_CONF=slurm).splitlines():
        found = re.match(r" {2,6}(?:-(\w),? +)?--([a-z][\w-]+)(\[?=?)", line)
        if found and line.startswith("  "):
            letter, name, value = found[1], found[2], found[3]
            listed[name] = int(value == "=") if value != "[=" else 0
            if value == "[=":
                attached.add(name)
            if letter:
                letters[letter] = name
    assert len(listed) > 90
    # What the help has wrong: these have values, --bcast, --no-kill and the like may have one.
    wrong = {"container", "bcast", "no-kill", "kill-on-bad-exit", "resv-ports", "overlap"}
    assert {name for name in listed if table.counts.get(name) != listed[name] and name not in wrong} == set()
    assert attached - table.attached == set()
    assert {letter: name for letter, name in letters.items() if table.letters.get(letter) != name} == {}


def test_srun_reads_every_option_as_the_table_says(slurm: str) -> None:
    """By what getopt says of an option without a value, and of one with a value that hangs on."""
    table = launchers.SRUN.options
    names = set(table.counts) - ENDING - {"usage"}
    assert [name for name in sorted(names) if not getopt_agrees("srun", table, name, SLURM_CONF=slurm)] == []


def test_srun_reads_every_letter_as_the_table_says(slurm: str) -> None:
    table = launchers.SRUN.options
    wrong: list[str] = []
    for letter, name in table.letters.items():
        if name in ENDING:
            continue
        alone = said(["srun", f"-{letter}"], SLURM_CONF=slurm)
        if "invalid option" in alone or ("requires an argument" in alone) != (table.counts[name] == 1):
            wrong.append(letter)
    assert wrong == []


# ------------------------------------------------------------------------------------------------- the real wrappers


@pytest.mark.parametrize("name", [name for name in wrappers.known() if shutil.which(name)])
def test_wrappers_read_every_option_as_the_table_says(name: str) -> None:
    table = wrappers.known()[name].options
    command = shutil.which(name)
    assert command is not None
    assert [
        option for option in table.counts if option not in ENDING if not getopt_agrees(command, table, option)
    ] == []


@pytest.mark.parametrize("name", [name for name in wrappers.known() if shutil.which(name)])
def test_wrappers_have_no_option_that_the_table_lacks(name: str) -> None:
    wrapper = wrappers.known()[name]
    table = wrapper.options
    command = shutil.which(name)
    assert command is not None
    listed: set[str] = set()
    for line in said([command, "--help"]).splitlines():
        if re.match(r" {1,8}-", line):
            listed |= set(re.findall(r"(?<![\w-])--([a-z0-9][\w.-]+)", re.split(r"  +", line.strip(), maxsplit=1)[0]))
            listed |= set(re.findall(r"(?<![\w-])-(\w)\b", re.split(r"  +", line.strip(), maxsplit=1)[0]))
    assert listed
    assert listed - set(table.counts) - set(table.letters) - {word.lstrip("-") for word in wrapper.string} == set()


def test_a_wrapper_starts_what_unwrap_finds() -> None:
    """Real wrappers with real options: what runs is what was found."""
    commands = [
        ["env", "-i", "-u", "HOME", "-C", "/", "--", "A=1", "b.c=2"],
        ["env", "-", "A=1"],
        ["env", "-iu", "HOME", "--unset=PATH", "--default-signal", "--block-signal=PIPE"],
        ["nice", "-5"],
        ["nice", "-n", "1"],
        ["nice", "--adj", "1"],
        ["timeout", "-k5", "-s", "KILL", "--foreground", "60"],
        ["timeout", "--kill-after=5", "--sig", "KILL", "--", "60"],
        ["setsid", "-w"],
        ["taskset", "-c", "0"],
        ["ionice", "-c", "2", "-n0", "-t"],
        ["stdbuf", "-oL", "-e", "0"],
        ["setarch", "x86_64", "-R"],
        ["setarch", "-R"],
        ["prlimit", "--core=0", "-n"],
        ["flock", "-w", "5", "/dev/null"],
        ["choom", "-n", "0", "--"],
        ["nohup"],
    ]
    for wrapper in commands:
        words = [*wrapper, "/bin/echo", "-n", "found"]
        assert words[wrappers.unwrap(words)] == "/bin/echo", wrapper
        assert said(words).endswith("found"), wrapper


@pytest.mark.parametrize(
    "command",
    [
        "env -S /bin/echo",
        "env --split-string=x /bin/echo",
        "flock /dev/null -c /bin/echo",
        "taskset -p 1",
        "env --option-of-tomorrow x /bin/echo",
        "ionice -p 1",
    ],
)
def test_what_a_wrapper_starts_is_not_guessed(command: str) -> None:
    words = command.split()
    assert wrappers.unwrap(words) == 0


# --------------------------------------------------------------------------------------------------- random commands

ALL: Final = {
    "open_mpi_4": launchers.OPEN_MPI_4,
    "open_mpi_5": launchers.OPEN_MPI_5,
    "prterun": launchers.PRTERUN,
    "hydra": launchers.HYDRA,
    "intel_mpi": launchers.INTEL_MPI,
    "slurm": launchers.SRUN,
}
VALUES: Final = st.sampled_from(["1", "node", PROGRAM, "ls", "a=b", "-1", "x,y", "/bin/sh", "--", "", "-n"])
ARGUMENTS: Final = st.lists(
    st.sampled_from(["--export=NONE", "-x", "LD_PRELOAD=/u.so", "-n", "4", PROGRAM, "--", "ls", "-genv", "stdout", ""])
)


@st.composite
def option_words(draw: st.DrawFn, table: options.Table) -> list[str]:
    """An option with its values, in one of the forms that its launcher takes."""
    name = draw(st.sampled_from(all_names(table)))
    whole = table.letters.get(name, name)
    count = table.counts[whole]
    values = [draw(VALUES) for _ in range(count)]
    if whole in {"env", "genv"}:
        values[0] = draw(st.sampled_from(["A", "LD_PRELOAD", "OMP_NUM_THREADS"]))
        if table.style is options.Style.HYDRA and draw(st.booleans()):
            values = ["A=" + values[1]]
    single = len(name) == 1
    match table.style:
        case options.Style.OPAL:
            return [draw(st.sampled_from(["-", "--"])) + name, *values]
        case options.Style.HYDRA:
            dashed = draw(st.sampled_from(["-", "--"])) + name
            if draw(st.booleans()) and values:
                return [f"{dashed}={values[0]}", *values[1:]]
            return [dashed, *values]
        case options.Style.PRRTE | options.Style.GETOPT:
            is_prrte = table.style is options.Style.PRRTE
            if single:
                glued = not is_prrte and (count == 1 or whole in table.attached) and bool(draw(st.booleans()))
                if glued:
                    return [f"-{name}{values[0] or '1'}" if count else f"-{name}1"]
                return [f"-{name}", *values]
            dashed = draw(st.sampled_from(["-", "--"] if is_prrte else ["--"])) + name
            if whole in table.attached:
                return [dashed + draw(st.sampled_from(["", "=1"]))]
            if draw(st.booleans()) and count:
                return [f"{dashed}={values[0]}", *values[1:]]
            return [dashed, *values]


@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
def test_the_program_is_found_behind_any_options(name: str, data: st.DataObject) -> None:
    launcher = ALL[name]
    table = launcher.options
    chosen = data.draw(st.lists(option_words(table), max_size=6))
    words = ["launcher", *(word for option in chosen for word in option)]
    if table.style is not options.Style.HYDRA and data.draw(st.booleans()):
        words.append("--")
    at = len(words)
    words += [PROGRAM, *data.draw(ARGUMENTS)]
    (context,) = launchers.parse(launcher, words, lambda word: word in {"ls", "/bin/sh", "node", PROGRAM})
    assert context.program == at, words
    assert context.unknown == ()
    assert [option.end - option.first for option in context.options] == [len(option) for option in chosen]


def test_names_are_whole_words() -> None:
    """No entry is what a line break made of two."""
    for launcher in ALL.values():
        for name in all_names(launcher.options):
            assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*(?<!-)", name), name
    for wrapper in wrappers.known().values():
        for name in all_names(wrapper.options):
            assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?<!-)", name), name
