"""How commands are rewritten so that ranks get variables and launchers do not: one case a way to start MPI."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ioweir.errors import IoweirError
from ioweir.launch.launchers import (
    HYDRA,
    INTEL_MPI,
    OPEN_MPI_4,
    OPEN_MPI_5,
    PRTERUN,
    SRUN,
    Launcher,
    join_preload,
    launcher_from_version,
    parse,
    rewrite,
    without_preload,
)

OURS = "/opt/ioweir/lib/libioweir_preload.so"
VARIABLES = {"LD_PRELOAD": OURS, "IOWEIR_DIR": "/t"}
X = f"-x LD_PRELOAD={OURS} -x IOWEIR_DIR=/t"
G = f"-genv LD_PRELOAD {OURS} -genv IOWEIR_DIR /t"
E = f"LD_PRELOAD={OURS},IOWEIR_DIR=/t"

PROGRAMS = {"lmp", "./a.out", "./b.out", "python3", "/bin/sh"}


def rewritten(launcher: Launcher, command: str, **environment: str) -> str:
    result = rewrite(launcher, shlex.split(command), VARIABLES, environment, PROGRAMS.__contains__)
    assert not result.warnings
    return shlex.join(result.words)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mpirun ./a.out", f"mpirun {X} ./a.out"),
        ("mpirun -n 4 lmp -in in.melt", f"mpirun {X} -n 4 lmp -in in.melt"),
        (
            "mpirun --oversubscribe -np 4 ./a.out : -np 2 ./b.out y",
            f"mpirun {X} --oversubscribe -np 4 ./a.out : {X} -np 2 ./b.out y",
        ),
        ("mpirun -x OMP_NUM_THREADS=2 -x PATH ./a.out", f"mpirun {X} -x OMP_NUM_THREADS=2 -x PATH ./a.out"),
        # A preload of the user's stays, behind ours.
        ("mpirun -x LD_PRELOAD=/u.so -n 1 ./a.out", f"mpirun -x LD_PRELOAD={OURS}:/u.so -x IOWEIR_DIR=/t -n 1 ./a.out"),
        # The program's own arguments are never touched, whatever they look like.
        ("mpirun -n 1 python3 x.py -x LD_PRELOAD=/u.so", f"mpirun {X} -n 1 python3 x.py -x LD_PRELOAD=/u.so"),
        ("mpirun --mca io romio321 -n 2 ./a.out", f"mpirun {X} --mca io romio321 -n 2 ./a.out"),
        # An outer run's trace directory does not reach the ranks.
        ("mpirun -x IOWEIR_DIR=/old ./a.out", f"mpirun {X} ./a.out"),
        # Open MPI refuses -x beside mca_base_env_list.
        (
            "mpirun --mca mca_base_env_list 'A=1;B' ./a.out",
            f"mpirun --mca mca_base_env_list 'A=1;B;LD_PRELOAD={OURS};IOWEIR_DIR=/t' ./a.out",
        ),
    ],
)
def test_open_mpi(command: str, expected: str) -> None:
    assert rewritten(OPEN_MPI_4, command) == expected
    assert rewritten(OPEN_MPI_5, command) == expected


def test_open_mpi_keeps_the_preload_of_the_environment() -> None:
    assert rewritten(OPEN_MPI_4, "mpirun -x LD_PRELOAD ./a.out : ./b.out", LD_PRELOAD="/u.so") == (
        f"mpirun -x LD_PRELOAD={OURS}:/u.so -x IOWEIR_DIR=/t ./a.out : "
        f"-x LD_PRELOAD={OURS}:/u.so -x IOWEIR_DIR=/t ./b.out"
    )


def test_open_mpi_env_list_of_the_environment() -> None:
    result = rewrite(
        OPEN_MPI_4, ["mpirun", "./a.out"], VARIABLES, {"OMPI_MCA_mca_base_env_list": "A=1;LD_PRELOAD=/u.so"},
        PROGRAMS.__contains__,
    )  # fmt: skip
    assert result.words == ("mpirun", "./a.out")
    assert result.environment == {"OMPI_MCA_mca_base_env_list": f"A=1;LD_PRELOAD={OURS}:/u.so;IOWEIR_DIR=/t"}


def test_programs_in_a_file_get_the_variables_through_the_launcher() -> None:
    for launcher, option in ((OPEN_MPI_4, "--app"), (OPEN_MPI_5, "--app"), (HYDRA, "-configfile")):
        words = ["mpirun", option, "file"]
        result = rewrite(launcher, words, VARIABLES, {"LD_PRELOAD": "/u.so"}, PROGRAMS.__contains__)
        assert result.words == tuple(words)
        assert result.environment == {"LD_PRELOAD": f"{OURS}:/u.so", "IOWEIR_DIR": "/t"}
        assert "stand in a file" in result.warnings[0]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mpiexec -n 4 ./a.out", f"mpiexec {G} -n 4 ./a.out"),
        ("mpiexec -n 4 ./a.out : -n 2 ./b.out", f"mpiexec {G} -n 4 ./a.out : -n 2 ./b.out"),
        (
            "mpiexec -genv LD_PRELOAD /u.so -n 1 ./a.out",
            f"mpiexec -genv LD_PRELOAD {OURS}:/u.so -genv IOWEIR_DIR /t -n 1 ./a.out",
        ),
        # -env of one program outranks -genv, so that it needs ours itself.
        (
            "mpiexec -n 1 -env LD_PRELOAD /u.so ./a.out : -n 1 ./b.out",
            f"mpiexec {G} -n 1 -env LD_PRELOAD {OURS}:/u.so ./a.out : -n 1 ./b.out",
        ),
        ("mpiexec -env IOWEIR_DIR /old ./a.out", f"mpiexec {G} ./a.out"),
        # Hydra takes a variable in one word as well.
        ("mpiexec -env IOWEIR_DIR=/old -n 1 ./a.out 5", f"mpiexec {G} -n 1 ./a.out 5"),
        ("mpiexec -env LD_PRELOAD=/u.so ./a.out", f"mpiexec {G} -env LD_PRELOAD={OURS}:/u.so ./a.out"),
        (
            "mpiexec -genv=LD_PRELOAD=/u.so ./a.out",
            f"mpiexec -genv LD_PRELOAD {OURS}:/u.so -genv IOWEIR_DIR /t ./a.out",
        ),
        (
            "mpiexec -genv A 1 -bind-to core ./a.out -genv LD_PRELOAD z",
            f"mpiexec {G} -genv A 1 -bind-to core ./a.out -genv LD_PRELOAD z",
        ),
    ],
)
def test_hydra(command: str, expected: str) -> None:
    assert rewritten(HYDRA, command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("srun -n 4 ./a.out", f"srun --export=ALL,{E} -n 4 ./a.out"),
        ("srun -n4 -N2 --mpi=pmix ./a.out", f"srun --export=ALL,{E} -n4 -N2 --mpi=pmix ./a.out"),
        ("srun --export=ALL,OMP_NUM_THREADS=2 ./a.out", f"srun --export=ALL,OMP_NUM_THREADS=2,{E} ./a.out"),
        ("srun --export NONE ./a.out", f"srun --export={E} ./a.out"),
        ("srun --export=PATH,HOME ./a.out", f"srun --export=PATH,HOME,{E} ./a.out"),
        (
            "srun --export=ALL,LD_PRELOAD=/u.so ./a.out",
            f"srun --export=ALL,LD_PRELOAD={OURS}:/u.so,IOWEIR_DIR=/t ./a.out",
        ),
        ("srun -n 1 ./a.out : -n 2 ./b.out", f"srun --export=ALL,{E} -n 1 ./a.out : --export=ALL,{E} -n 2 ./b.out"),
        ("srun -l ./a.out --export=NONE", f"srun --export=ALL,{E} -l ./a.out --export=NONE"),
        (
            "srun --use-min-nodes ./a.out --export=NONE x",
            f"srun --export=ALL,{E} --use-min-nodes ./a.out --export=NONE x",
        ),
        ("srun --multi-prog list.conf", f"srun --export=ALL,{E} --multi-prog list.conf"),
    ],
)
def test_slurm(command: str, expected: str) -> None:
    assert rewritten(SRUN, command) == expected


def test_slurm_takes_values_with_commas_from_its_environment() -> None:
    result = rewrite(SRUN, ["srun", "./a.out"], VARIABLES | {"IOWEIR_DIR": "/a,b"}, {}, PROGRAMS.__contains__)
    assert result.words == ("srun", f"--export=ALL,LD_PRELOAD={OURS},IOWEIR_DIR", "./a.out")
    assert result.environment == {"IOWEIR_DIR": "/a,b"}
    with pytest.raises(IoweirError, match="comma"):
        rewrite(SRUN, ["srun", "./a.out"], {"LD_PRELOAD": "/a,b.so"}, {}, PROGRAMS.__contains__)


def test_slurm_export_of_the_environment_is_the_default() -> None:
    assert rewritten(SRUN, "srun ./a.out", SLURM_EXPORT_ENV="PATH") == f"srun --export=PATH,{E} ./a.out"


@pytest.mark.parametrize(
    ("launcher", "command", "program"),
    [
        (OPEN_MPI_4, "mpirun -n 4 --bind-to core -hostfile h ./a.out 7", "./a.out"),
        (OPEN_MPI_4, "mpirun --map-by node ./a.out", "./a.out"),
        (OPEN_MPI_4, "mpirun -debug-daemons -merge-stderr-to-stdout ./a.out stdout", "./a.out"),
        (OPEN_MPI_4, "mpirun -qn 4 ./a.out 7", "./a.out"),
        (OPEN_MPI_5, "mpirun --hostfile=h -oversubscribe ./a.out 7", "./a.out"),
        (OPEN_MPI_5, "mpirun --map-by node --prepend-env A lmp ./a.out 7", "./a.out"),
        (OPEN_MPI_5, "mpirun --overs --display-topo lmp ./a.out 7", "./a.out"),
        (PRTERUN, "prterun --display-topo ./a.out lmp", "./a.out"),
        (OPEN_MPI_4, "mpirun --mca a b -- ./a.out 7", "./a.out"),
        (HYDRA, "mpiexec -genv A 1 -n 4 -wdir / ./a.out 7", "./a.out"),
        (HYDRA, "mpiexec -genvall -l -ppn 2 ./a.out 7", "./a.out"),
        (HYDRA, "mpiexec -genv A=1 ./a.out lmp", "./a.out"),
        (HYDRA, "mpiexec -np=2 --order-nodes lmp ./a.out", "./a.out"),
        (SRUN, "srun -n 4 --cpu-bind cores -u ./a.out 7", "./a.out"),
        (SRUN, "srun -N1 --exclusive --label -t 10 ./a.out 7", "./a.out"),
        (SRUN, "srun --use-min-nodes ./a.out --export=NONE keep", "./a.out"),
        (SRUN, "srun -K1 -K -lN 2 --kill-on ./a.out lmp", "./a.out"),
        (SRUN, "srun --x11 --mem 5 --cpu-bind=none ./a.out lmp", "./a.out"),
    ],
)
def test_the_program_behind_the_options_is_found(launcher: Launcher, command: str, program: str) -> None:
    words = shlex.split(command)
    (context,) = parse(launcher, words, PROGRAMS.__contains__)
    assert context.program is not None
    assert words[context.program] == program


@given(
    launcher=st.sampled_from([OPEN_MPI_4, OPEN_MPI_5, PRTERUN, HYDRA, INTEL_MPI, SRUN]),
    arguments=st.lists(st.sampled_from(["-x", "-n", "A=1", "--export=NONE", "-genv", "LD_PRELOAD", "-", "--", "x y"])),
    options=st.lists(st.sampled_from(["-n 2", "-v", "--verbose"]), max_size=2),
    contexts=st.integers(1, 3),
)
def test_nothing_of_the_users_command_is_lost(
    launcher: Launcher, arguments: list[str], options: list[str], contexts: int
) -> None:
    one = [*shlex.split(" ".join(options)), "./a.out", *arguments]
    words = ["launcher"]
    for number in range(contexts):
        words += [":", *one] if number else one
    result = list(rewrite(launcher, words, VARIABLES, {}, PROGRAMS.__contains__).words)
    ours = iter(result)
    assert all(word in ours for word in words)  # a subsequence, in order
    assert [word for word in result if OURS in word]
    assert result[-len(one) :] == one


@pytest.mark.parametrize(
    ("text", "launcher"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/", OPEN_MPI_4),
        ("orterun (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/", OPEN_MPI_4),
        ("mpirun (Open MPI) 1.10.7", OPEN_MPI_4),
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/", OPEN_MPI_5),
        ("mpirun (Open MPI) 6.1.0a1", OPEN_MPI_5),
        ("prterun (PRRTE) 3.0.3", PRTERUN),
        ("HYDRA build details:\n    Version:  4.0.2\n", HYDRA),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9", INTEL_MPI),
        ("slurm 22.05.8", SRUN),
        ("mpiexec (PALS) 1.2", None),
        ("", None),
    ],
)
def test_launchers_by_what_they_say(text: str, launcher: Launcher | None) -> None:
    assert launcher_from_version(text) is launcher


def test_preload_lists() -> None:
    assert join_preload("/o", None) == "/o"
    assert join_preload("/o", "/a /b:/o") == "/o:/a:/b"
    assert without_preload("/o", "/o:/a") == "/a"
    assert without_preload("/o", "/o") is None


@pytest.mark.parametrize(
    ("launcher", "command", "said"),
    [
        (OPEN_MPI_4, "mpirun --option-of-tomorrow value ./a.out 7", "taken to be 'value', and the program './a.out'"),
        (OPEN_MPI_5, "mpirun --flag-of-tomorrow ./a.out 7", "no value, and the program './a.out'"),
        (HYDRA, "mpiexec -flag-of-tomorrow ./a.out 7", "no value, and the program './a.out'"),
        (SRUN, "srun --of-tomorrow=3 ./a.out 7", "no value, and the program './a.out'"),
    ],
)  # fmt: skip
def test_an_unknown_option_is_said(launcher: Launcher, command: str, said: str) -> None:
    words = shlex.split(command)
    (context,) = parse(launcher, words, PROGRAMS.__contains__)
    assert context.program == words.index("./a.out")
    (warning,) = rewrite(launcher, words, VARIABLES, {}, PROGRAMS.__contains__).warnings
    assert words[1] in warning
    assert said in warning
