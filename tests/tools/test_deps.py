"""tools/deps.sh on pretended machines: a PATH of a few commands, some of them fakes that keep a record."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HARMLESS = ("bash", "dirname", "sed", "grep", "cat", "mktemp", "rm", "env", "test")


def packages() -> list[str]:
    """Those behind "#?", too, which may be missing."""
    lines = (line.removeprefix("#?") for line in (ROOT / "packages").read_text().splitlines())
    return [name for line in lines if (name := line.partition("#")[0].strip())]


class Machine:
    """A PATH with harmless tools; `fake` adds commands that note how they were called."""

    def __init__(self, directory: Path) -> None:
        self.bin = directory / "bin"
        self.record = directory / "record"
        self.bin.mkdir()
        for tool in HARMLESS:
            found = shutil.which(tool)
            assert found is not None
            (self.bin / tool).symlink_to(found)
        self.fake("id", "echo 0")

    def fake(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>{self.record}\n{body}\n')
        path.chmod(0o755)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", ROOT / "tools" / "deps.sh", *words],
            env={"PATH": str(self.bin), "HOME": "/nonexistent", **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self, name: str) -> list[str]:
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        return [line for line in lines if line.startswith(name + " ")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def installed(names: list[str]) -> str:
    return "\n".join(f"echo 'installed {name}'" for name in names)


def test_nothing_missing_calls_no_apt(machine: Machine) -> None:
    machine.fake("dpkg-query", installed(packages()))
    machine.fake("apt-get", "exit 1")
    done = machine.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.calls("apt-get") == []


def test_exactly_the_missing_packages_are_installed(machine: Machine) -> None:
    machine.fake("dpkg-query", installed([name for name in packages() if name not in ("cmake", "mpich")]))
    machine.fake("apt-get", "exit 0")
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert len(machine.calls("apt-get")) == 1
    assert machine.calls("apt-get")[0].split()[-2:] == ["cmake", "mpich"]
    assert "cmake mpich" in done.stdout


def test_package_lists_are_fetched_when_installing_fails(machine: Machine) -> None:
    machine.fake("dpkg-query", "exit 1")
    flag = machine.bin.parent / "updated"
    machine.fake("apt-get", f"case $1 in update) : >{flag} ;; *) test -e {flag} ;; esac")
    assert machine.run().returncode == 0
    # The last for what is optional.
    assert [call.split()[1] for call in machine.calls("apt-get")] == ["install", "update", "install", "install"]


def test_apt_that_cannot_install_shows_its_messages(machine: Machine) -> None:
    machine.fake("dpkg-query", "exit 1")
    machine.fake("apt-get", "echo 'E: Unable to locate package'; exit 100")
    done = machine.run()
    assert done.returncode == 1
    assert "E: Unable to locate package" in done.stderr


def test_what_is_optional_may_be_missing(machine: Machine) -> None:
    machine.fake("dpkg-query", installed([name for name in packages() if name != "chromium"]))
    machine.fake("apt-get", "exit 100")
    done = machine.run()
    assert done.returncode == 0
    assert "not installed: chromium" in done.stdout
    machine.fake("chromium", "")
    assert machine.run().stdout == ""


def test_without_apt_the_missing_are_named(machine: Machine) -> None:
    machine.fake("lmp", "")
    machine.fake("ninja", "")
    done = machine.run()
    assert done.returncode == 1
    named = [line.strip() for line in done.stderr.splitlines() if line.startswith("    ")]
    assert "cmake" in named
    assert "librapidcheck-dev" in named
    assert "lammps" not in named
    assert "ninja-build" not in named
    assert "chromium" not in named


def test_the_demonstration_needs_no_packages_of_tests(machine: Machine) -> None:
    machine.fake("dpkg-query", installed(["g++", "cmake", "ninja-build", "make", "openmpi-bin"]))
    machine.fake("apt-get", "exit 0")
    done = machine.run("--demo")
    assert done.returncode == 0, done.stderr
    (call,) = machine.calls("apt-get")
    assert {"lammps", "python3-dev", "libtomlplusplus-dev"} <= set(call.split())
    assert not {"librapidcheck-dev", "libgtest-dev", "clang", "chromium", "cmake"} & set(call.split())


def test_without_root_and_sudo_the_missing_are_named(machine: Machine) -> None:
    machine.fake("id", "echo 1000")
    machine.fake("dpkg-query", installed([name for name in packages() if name != "gfortran"]))
    machine.fake("apt-get", "exit 0")
    done = machine.run()
    assert done.returncode == 1
    assert [line.strip() for line in done.stderr.splitlines()[1:]] == ["gfortran"]
    assert machine.calls("apt-get") == []


def named_as_missing(done: subprocess.CompletedProcess[str]) -> set[str]:
    assert done.returncode == 1
    return {line.strip() for line in done.stderr.splitlines() if line.startswith("    ")}


MPI = {"libopenmpi-dev", "openmpi-bin", "libmpich-dev", "mpich"}


def test_an_installation_needs_nothing_that_only_tests_need(machine: Machine) -> None:
    missing = named_as_missing(machine.run("--install"))
    # An interpreter may be there: .venv's.
    assert {"cmake", "ninja-build", "libtomlplusplus-dev", "libxxhash-dev"} | MPI <= missing
    assert missing <= set(packages())
    assert not missing & {"lammps", "libgtest-dev", "librapidcheck-dev", "gfortran", "clang", "git"}


@pytest.mark.parametrize("wrapper", ["mpicc", "mpicc.openmpi", "mpicc.mpich"])
def test_without_apt_one_mpi_library_is_enough_for_an_installation(machine: Machine, wrapper: str) -> None:
    machine.fake(wrapper, "")
    assert not named_as_missing(machine.run("--install")) & MPI
    # For the tests it is not.
    assert named_as_missing(machine.run()) & MPI


def test_a_wrapper_may_be_named_to_cmake(machine: Machine) -> None:
    assert not named_as_missing(machine.run("--install", CMAKE_ARGS="-DIOWEIR_MPICC_MPICH=/opt/mpich/bin/mpicc")) & MPI
    assert named_as_missing(machine.run("--install", CMAKE_ARGS="-G Ninja")) >= MPI


def test_an_installation_with_apt_gets_what_it_needs_and_no_more(machine: Machine) -> None:
    machine.fake("dpkg-query", "exit 1")
    machine.fake("apt-get", "exit 0")
    assert machine.run("--install").returncode == 0
    [call] = machine.calls("apt-get")
    assert "cmake" in call.split()
    assert not set(call.split()) & {"lammps", "chromium", "librapidcheck-dev"}


def test_a_word_that_it_does_not_know_is_refused(machine: Machine) -> None:
    done = machine.run("--installl")
    assert done.returncode == 2
    assert "tools/deps.sh [--install|--demo]" in done.stderr


@pytest.mark.parametrize(
    ("goals", "option"), [("install", "--install"), ("deps", ""), ("", ""), ("install test", ""), ("venv", "")]
)
def test_make_asks_for_less_where_nothing_but_an_installation_is_wanted(goals: str, option: str) -> None:
    # What `deps` would run, whatever else make would: -n runs nothing. The goal comes from the command line.
    makefile = (ROOT / "Makefile").read_text()
    [rule] = [line for line in makefile.splitlines() if line.startswith("\t@tools/deps.sh")]
    shown = subprocess.run(
        ["make", "-f", "-", "-s", *goals.split()],
        input="deps install test venv:;@:\n$(info [" + rule.removeprefix("\t@tools/deps.sh ") + "])\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines()[0] == f"[{option}]"
