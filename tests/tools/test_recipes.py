"""The recipes below packaging/: Spack's and EasyBuild's need what pyproject.toml names, the image what `packages` does.

The recipes are executed with stand-ins for what Spack and EasyBuild define. Not here: whether these two accept them.
"""

from __future__ import annotations

import hashlib
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import types
from pathlib import Path
from typing import Any, Final

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGING: Final = ROOT / "packaging"
SPACK_REPO: Final = PACKAGING / "spack" / "spack_repo" / "ioweir"
SPACK: Final = SPACK_REPO / "packages" / "ioweir" / "package.py"
EASYCONFIGS: Final = sorted((PACKAGING / "easybuild").glob("*.eb"))
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK: Final = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def version_of_ioweir() -> str:
    found = re.search(r"project\(ioweir VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def requirements() -> dict[str, str]:
    """What pyproject.toml asks for, by name: the versions."""
    wanted = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
    parted = [re.match(r"([A-Za-z0-9-]+)([^;]*)", line) for line in wanted]
    return {found[1]: found[2].strip() for found in parted if found is not None}


def as_spack(versions: str) -> str:
    """As Spack writes them, where both ends belong to a range: >=0.15,<0.29 is @0.15:0.28."""
    least = re.search(r">=([0-9.]+)", versions)
    below = re.search(r"<([0-9.]+)", versions)
    last = ""
    if below is not None:
        *front, minor = below[1].split(".")
        last = ".".join([*front, str(int(minor) - 1)])
    return f"@{least[1] if least else ''}:{last}"


def test_ranges_are_written_as_spack_does() -> None:
    assert as_spack(">=0.15,<0.29") == "@0.15:0.28"
    assert as_spack(">=1.26") == "@1.26:"


class Recorded:
    """What Spack's recipe says, by directive."""

    def __init__(self) -> None:
        self.said: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {}

    def directive(self, name: str) -> Any:
        def say(*words: Any, **named: Any) -> None:
            self.said.setdefault(name, []).append((words, named))

        return say

    def dependencies(self) -> dict[str, dict[str, Any]]:
        """By name: version, and the words that come with it."""
        found = {}
        for (spec,), named in self.said["depends_on"]:
            name, _, version = spec.partition("@")
            assert name not in found, f"{name} is there twice"
            found[name] = {"version": version and f"@{version}", "type": ("build", "link"), **named}
        return found


@pytest.fixture
def spack(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Recorded]:
    """The class of the recipe, and what it said."""
    recorded = Recorded()
    api = types.ModuleType("spack.package")
    for name in ("conflicts", "depends_on", "license", "requires", "variant", "version"):
        setattr(api, name, recorded.directive(name))
    builtin = types.ModuleType("spack_repo.builtin.build_systems.python")
    builtin.PythonPackage = type("PythonPackage", (), {})  # type: ignore[attr-defined]
    for module in (api, builtin):
        parts = module.__name__.split(".")
        for end in range(1, len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return runpy.run_path(str(SPACK))["Ioweir"], recorded


def test_spack_finds_the_recipe_where_its_api_has_it() -> None:
    said = dict(re.findall(r"^  (\w+): (\S+)$", (SPACK_REPO / "repo.yaml").read_text(encoding="utf-8"), re.MULTILINE))
    assert said == {"namespace": "ioweir", "api": "v2.0"}
    # From 2.0 on the folders are modules of Python, and their names the repository's name.
    assert SPACK.relative_to(PACKAGING / "spack").parts == ("spack_repo", "ioweir", "packages", "ioweir", "package.py")
    assert f"spack repo add {SPACK_REPO.relative_to(ROOT)}" in SPACK.read_text(encoding="utf-8").splitlines()[0]


def test_spack_builds_this_version_from_this_checkout(spack: tuple[Any, Recorded]) -> None:
    recipe, recorded = spack
    assert version_of_ioweir() in [words[0] for words, _ in recorded.said["version"]]
    assert recipe.git == ROOT.as_uri()
    assert recipe.url == f"{ROOT.as_uri()}/build/source/ioweir-{version_of_ioweir()}.tar.gz"
    assert recorded.said["license"][0][0] == (PROJECT["project"]["license"],)


def test_spack_asks_for_what_pyproject_asks_for(spack: tuple[Any, Recorded]) -> None:
    found = spack[1].dependencies()
    of_python = {name.removeprefix("py-"): known["version"] for name, known in found.items() if name.startswith("py-")}
    assert of_python == {name: as_spack(versions) for name, versions in requirements().items()}
    assert found["python"]["version"] == as_spack(PROJECT["project"]["requires-python"])
    assert found["cmake"]["version"] == as_spack(PROJECT["tool"]["scikit-build"]["cmake"]["version"])
    at_run_time = {name for name, known in found.items() if "run" in known["type"]}
    wanted = {re.match("[A-Za-z0-9-]+", line)[0] for line in PROJECT["project"]["dependencies"]}  # type: ignore[index]
    assert at_run_time == {"python", *(f"py-{name}" for name in wanted)}


class Spec(dict[str, Any]):
    """A concrete spec, as far as the recipe looks at it."""

    def __init__(self, *variants: str) -> None:
        super().__init__()
        self.variants = variants
        for kind in ("openmpi", "mpich"):
            place = types.SimpleNamespace(bin=types.SimpleNamespace(mpicc=f"/spack/{kind}/bin/mpicc"))
            self[kind] = types.SimpleNamespace(prefix=place)

    def satisfies(self, variant: str) -> bool:
        return variant in self.variants


@pytest.mark.parametrize("kinds", [["openmpi"], ["mpich"], ["openmpi", "mpich"]], ids=" ".join)
def test_spack_names_the_wrapper_of_each_mpi_library(spack: tuple[Any, Recorded], kinds: list[str]) -> None:
    recipe, recorded = spack
    settings = recipe().config_settings(Spec(*(f"+{kind}" for kind in kinds)), "/prefix")
    for kind in ("openmpi", "mpich"):
        wrapper = f"/spack/{kind}/bin/mpicc" if kind in kinds else "OFF"
        assert settings.pop(f"cmake.define.IOWEIR_MPICC_{kind.upper()}") == wrapper
        # Neither in what users load, nor in the other's include directories.
        assert recorded.dependencies()[kind] == {"version": "", "type": "build", "when": f"+{kind}"}
    assert not settings


def easyconfig(path: Path) -> dict[str, Any]:
    """The parameters of one. None uses a constant of EasyBuild's."""
    return runpy.run_path(str(path))


@pytest.mark.parametrize("path", EASYCONFIGS, ids=lambda path: path.name)
def test_an_easyconfig_has_what_every_one_has(path: Path) -> None:
    said = easyconfig(path)
    # Those of EasyBuild 5 without a default, and those that a recipe without an easyblock of its own must have.
    for name in ("name", "version", "homepage", "description", "toolchain", "easyblock", "moduleclass"):
        assert said[name], name
    toolchain = said["toolchain"]
    # By this name EasyBuild finds one that another one depends on.
    assert path.name == f"{said['name']}-{said['version']}-{toolchain['name']}-{toolchain['version']}.eb"
    for dependency in said.get("builddependencies", []) + said.get("dependencies", []):
        assert len(dependency) == 2


@pytest.mark.parametrize("path", EASYCONFIGS, ids=lambda path: path.name)
def test_an_easyconfig_passes_what_eb_check_contrib_asks(path: Path) -> None:
    """As easybuild.framework.easyconfig.style and check_checksums have it: 120 columns, a checksum for each source."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 120 or line != line.rstrip()] == []
    said = easyconfig(path)
    assert len(said.get("checksums", [])) == len(said.get("sources", []))
    assert said["sanity_check_paths"].keys() == {"files", "dirs"}
    for name, _, options in said.get("exts_list", []):
        assert len(options["checksums"]) == 1, name


def of_ioweir() -> dict[str, Any]:
    [path] = [path for path in EASYCONFIGS if path.name.startswith("ioweir-")]
    return easyconfig(path)


def satisfied(version: str, versions: str) -> bool:
    """Whether a version lies in a range of pyproject.toml."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)]

    least, below = re.search(r">=([0-9.]+)", versions), re.search(r"<([0-9.]+)", versions)
    return (least is None or numbers(version) >= numbers(least[1])) and (
        below is None or numbers(version) < numbers(below[1])
    )


def test_easybuild_has_each_requirement_from_a_module_or_an_extension() -> None:
    said = of_ioweir()
    assert said["version"] == version_of_ioweir()
    modules = dict(said["builddependencies"] + said["dependencies"])
    # Modules that bring packages of several names; their lists are EasyBuild's, and this one Python's.
    bundles = {"numpy": "SciPy-bundle", "scipy": "SciPy-bundle", "pyarrow": "Arrow", "rich": "Python-bundle-PyPI"}
    extensions = {name: version for name, version, _ in said["exts_list"]}
    for name, versions in requirements().items():
        if name == "tomli":
            assert satisfied(modules["Python"], ">=3.11"), "Python's own tomllib"
        elif name in bundles:
            assert bundles[name] in modules
        else:
            assert satisfied({**modules, **extensions}[name], versions), name
    assert satisfied(modules["Arrow"], requirements()["pyarrow"])
    assert satisfied(modules["CMake"], PROJECT["tool"]["scikit-build"]["cmake"]["version"])


def test_easybuild_fetches_what_the_lock_has_and_ioweir_from_nowhere() -> None:
    *others, (name, version, own) = of_ioweir()["exts_list"]
    assert (name, version, own["source_urls"]) == ("ioweir", version_of_ioweir(), [])
    for name, version, options in others:
        [entry] = re.findall(rf"^{name}=={re.escape(version)}[ ;].*(?:\n    --hash.*)+", LOCK, re.MULTILINE)
        checksums = options["checksums"]
        assert checksums
        for checksum in checksums:
            for one in checksum.values() if isinstance(checksum, dict) else [checksum]:
                assert f"sha256:{one}" in entry, name


def debian_packages(text: str) -> set[str]:
    """What apt-get is told to install in a Containerfile."""
    commands = re.findall(r"apt-get install((?: +[^\s&\\]+)+)", text)
    return {word for command in commands for word in command.split() if not word.startswith("-")}


def test_the_image_has_packages_that_ioweir_is_known_to_work_with() -> None:
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    listed = (ROOT / "packages").read_text(encoding="utf-8").partition("# for tests alone")[0]
    needed = {line for line in listed.splitlines() if line and not line.startswith("#")}
    named = debian_packages(text)
    assert {"python3", "openmpi-bin", "mpich"} <= named
    assert named <= needed


def test_the_image_is_made_of_the_archive_and_names_no_registry() -> None:
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    build, image = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    assert "\nADD ioweir-*.tar.gz " in build
    assert 'make -C "$1" install PREFIX=/opt/ioweir' in build
    assert "\nCOPY --from=build /opt/ioweir /opt/ioweir" in image
    assert re.findall(r"^(?:ARG BASE=|FROM )(\S+)", text, re.MULTILINE) == ["debian:12-slim", "${BASE}", "${BASE}"]


@pytest.mark.parametrize("versions", [["0.1.0"], ["0.1.0", "0.2.0"]], ids=["one", "two"])
def test_the_image_is_made_of_one_version(tmp_path: Path, versions: list[str]) -> None:
    # make would take the second directory for a target that is up to date, and install the first.
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    commands = re.search(r"^RUN (set -- .*?[^\\])\n", text, re.MULTILINE | re.DOTALL)
    assert commands
    script = commands[1].replace("\\\n", "").replace("/build/", f"{tmp_path}/")
    for version in versions:
        (tmp_path / f"ioweir-{version}").mkdir()
        makefile = tmp_path / f"ioweir-{version}" / "Makefile"
        makefile.write_text(f"install:\n\t@echo {version} at $(PREFIX)\n", encoding="utf-8")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    if len(versions) == 1:
        assert "0.1.0 at /opt/ioweir" in done.stdout
    else:
        assert (done.returncode, done.stdout) == (1, "")
        assert "several versions" in done.stderr


def fetches(checkout: Path, commands: str) -> None:
    """Put a script at the place of the one that fetches the library of the web report."""
    script = checkout / "tools" / "web.sh"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\n{commands}\n", encoding="utf-8")
    script.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with what the archive is made of, and little else."""
    place = tmp_path / "checkout"
    (place / "packaging").mkdir(parents=True)
    shutil.copy(PACKAGING / "source.sh", place / "packaging")
    (place / "CMakeLists.txt").write_text("project(ioweir VERSION 4.5.6 LANGUAGES C)\n", encoding="utf-8")
    (place / ".gitignore").write_text("/build/\n", encoding="utf-8")
    fetches(place, "mkdir -p build/web\nprintf one >build/web/echarts.min.js")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "one")):
        subprocess.run(["git", "-C", place, *words], check=True)
    return place


def archive(checkout: Path) -> subprocess.CompletedProcess[str]:
    script = checkout / "packaging" / "source.sh"
    return subprocess.run([script], capture_output=True, text=True, check=False)


def test_the_source_archive_has_what_is_committed_and_the_library_of_the_web_report(checkout: Path) -> None:
    (checkout / "not-committed").write_text("", encoding="utf-8")
    done = archive(checkout)
    assert done.returncode == 0, done.stderr
    made = checkout / "build" / "source" / "ioweir-4.5.6.tar.gz"
    assert done.stdout.split() == [hashlib.sha256(made.read_bytes()).hexdigest(), "build/source/ioweir-4.5.6.tar.gz"]
    with tarfile.open(made) as opened:
        names = [name for name in opened.getnames() if not name.endswith("/")]
        held = opened.extractfile("ioweir-4.5.6/build/web/echarts.min.js")
        assert held is not None
        assert held.read() == b"one"
    files = {"CMakeLists.txt", ".gitignore", "packaging/source.sh", "build/web/echarts.min.js"}
    assert files <= {name.removeprefix("ioweir-4.5.6/") for name in names}
    assert not [name for name in names if "not-committed" in name or not name.startswith("ioweir-4.5.6")]
    # The same tree, the same archive.
    first = made.read_bytes()
    done = subprocess.run(
        [checkout / "packaging" / "source.sh", "other"], cwd=checkout.parent, capture_output=True, text=True, check=True
    )
    assert (checkout.parent / "other" / made.name).read_bytes() == first, done


def test_without_the_library_of_the_web_report_no_archive_is_made(checkout: Path) -> None:
    fetches(checkout, "echo no network >&2\nexit 1")
    done = archive(checkout)
    assert done.returncode == 1
    assert "no network" in done.stderr
    assert not (checkout / "build").exists()
