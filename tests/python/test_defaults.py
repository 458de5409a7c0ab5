"""Defaults of options and plans from files: which counts, what is refused, and whose files are believed.

Not here: what the options do.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from ioweir.cli import app, defaults
from ioweir.errors import IoweirError
from tracing import IOWEIR, run

OPTIONS = ("files", "options", "plans")


def write(folder: Path, text: str, mode: int = 0o600) -> Path:
    """A defaults.toml in FOLDER/ioweir."""
    file = folder / "ioweir" / "defaults.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path, dict[str, str]]:
    """The site's folder, the user's, and the environment in which they count."""
    site, user = tmp_path / "site", tmp_path / "user"
    environment = {"IOWEIR_SITE_DEFAULTS": str(site / "ioweir" / "defaults.toml"), "XDG_CONFIG_HOME": str(user)}
    return site, user, environment


def quota_of(tmp_path: Path, environment: dict[str, str], *options: str, before: tuple[str, ...] = ()) -> Any:
    """The quota that a run was traced with."""
    trace = tmp_path / f"trace{len(list(tmp_path.iterdir()))}"
    command: list[str | Path] = [*IOWEIR, *before, "run", "-q", "-o", trace, *options, "--", sys.executable, "-c", ""]
    run(command, env=environment).expect()
    return json.loads((trace / "run.json").read_text())["tracing"]["quota_bytes"]


def test_the_command_line_counts_most_then_the_user_then_the_site(
    places: tuple[Path, Path, dict[str, str]], tmp_path: Path
) -> None:
    site, user, environment = places
    assert quota_of(tmp_path, environment) is None
    write(site, '[run]\nquota = "1 GiB"\n')
    assert quota_of(tmp_path, environment) == 1 << 30
    write(user, '[run]\nquota = "2 GiB"\n')
    assert quota_of(tmp_path, environment) == 2 << 30
    assert quota_of(tmp_path, environment, "--quota", "3 GiB") == 3 << 30
    assert quota_of(tmp_path, environment, before=("--no-defaults",)) is None


def test_it_says_what_holds_and_where_it_stands(places: tuple[Path, Path, dict[str, str]]) -> None:
    site, user, environment = places
    first = write(site, '[run]\nquota = "1 GiB"\ncompress = false\n[lab.up]\ntargets = 4\n')
    second = write(user, '[run]\nquota = "2 GiB"\n[plans]\n"lmp*" = "/p/lammps.toml"\n')
    said = json.loads(run([*IOWEIR, "defaults", "--json"], env=environment).expect().out)
    assert set(said) == set(OPTIONS)
    assert said["files"] == [{"file": str(first), "read": True}, {"file": str(second), "read": True}]
    assert {(one["command"], one["option"]): (one["value"], one["file"]) for one in said["options"]} == {
        ("run", "quota"): ("2 GiB", str(second)),
        ("run", "compress"): (False, str(first)),
        ("lab up", "targets"): (4, str(first)),
    }
    assert said["plans"] == [{"program": "lmp*", "plan": "/p/lammps.toml", "file": str(second)}]


def test_a_program_has_its_plan(places: tuple[Path, Path, dict[str, str]], tmp_path: Path) -> None:
    plans = {name: tmp_path / f"{name}.toml" for name in ("site", "user")}
    for plan in plans.values():
        plan.write_text('[[file]]\nmatch = "*.out"\nwriters = "everyone"\n')
    program = Path(sys.executable).name
    write(places[0], f'[plans]\n"{program[:4]}*" = "{plans["site"]}"\n"*" = "/nowhere.toml"\n')

    def planned(*options: str, before: tuple[str, ...] = ()) -> tuple[Any, str]:
        trace = tmp_path / f"trace{len(list(tmp_path.iterdir()))}"
        command: list[str | Path] = [
            *IOWEIR,
            *before,
            "run",
            "-q",
            "-o",
            trace,
            *options,
            "--",
            sys.executable,
            "-c",
            "",
        ]
        done = run(command, env=places[2]).expect()
        return json.loads((trace / "run.json").read_text())["plan"], done.err

    assert planned()[0] == str(plans["site"])
    assert f"under {plans['site']}, the plan of {program[:4]}* in" in planned()[1]
    assert planned(before=("--no-defaults",)) == (None, "")
    write(places[1], f'[plans]\n"{program}" = "{plans["user"]}"\n')
    assert f"under {plans['user']}" in planned()[1]
    assert planned("--plan", str(plans["site"])) == (str(plans["site"]), "")
    write(places[1], "[run]\nauto = true\n")
    assert planned("--plan", str(plans["site"])) == (str(plans["site"]), "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[run\n", "Expected"),
        ("x = " + "[" * 100_000, "defaults.toml"),
        ("run = 1\n", "'run' is no table"),
        ("[rum]\n", "[rum] is no command of ioweir; did you mean 'run'?"),
        ('[run]\nqouta = "1 GiB"\n', "has 'qouta', which has no default there; did you mean 'quota'?"),
        ('[run]\noutput = "x"\n', "has 'output', which has no default there"),
        ("[run]\nquota = true\n", "it takes a word or a number"),
        ('[run]\nquiet = "yes"\n', "it takes true or false"),
        ("[run]\nquota = [1]\n", "it takes a word or a number"),
        ('[site]\nadd = "x"\n', "[site.add] is no command"),
        ('[plans]\nlmp = "here.toml"\n', "it must be the absolute path of a plan file"),
        ('[plans]\nlmp = "~no-such-user/plan.toml"\n', "it must be the absolute path of a plan file"),
        ("plans = 3\n", "[plans] is a table"),
        ('[run]\nquota = "many"\n', "many"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(
    places: tuple[Path, Path, dict[str, str]], text: str, message: str
) -> None:
    file = write(places[1], text)
    done = run([*IOWEIR, "run", "--", sys.executable, "-c", "print('ran')"], env=places[2])
    assert done.code == 2
    assert message in done.err
    assert str(file) in done.err or "many" in message
    assert "ran" not in done.out


def test_options_that_may_be_given_several_times(
    places: tuple[Path, Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in places[2].items():
        monkeypatch.setenv(name, value)
    group = typer.main.get_command(app.app)
    write(places[1], '[kernel]\nhint = "cb_nodes=4"\n')
    assert defaults.default_map(lambda: group) == {"kernel": {"hint": ["cb_nodes=4"]}}
    write(places[1], '[kernel]\nhint = ["cb_nodes=4", "cb_buffer_size=1"]\n')
    assert defaults.default_map(lambda: group) == {"kernel": {"hint": ["cb_nodes=4", "cb_buffer_size=1"]}}
    write(places[1], "[kernel]\nhint = [[1]]\n")
    with pytest.raises(IoweirError, match="it takes a word or a number"):
        defaults.default_map(lambda: group)


def test_values_that_json_has_not_are_shown(places: tuple[Path, Path, dict[str, str]]) -> None:
    write(places[1], "[run]\nquota = 2026-11-26\n[kernel]\ndummy = nan\n")
    said = run([*IOWEIR, "defaults", "--json"], env=places[2]).expect().out
    values = [row["value"] for row in json.loads(said, parse_constant=pytest.fail)["options"]]
    assert values == ["2026-11-26", None]


def test_a_file_that_others_may_write_is_not_believed(places: tuple[Path, Path, dict[str, str]]) -> None:
    file = write(places[1], '[run]\nquota = "1 GiB"\n', mode=0o666)
    done = run([*IOWEIR, "run", "--", sys.executable, "-c", ""], env=places[2])
    assert done.code == 2
    assert f"'{file}' is not read: it may be written into by others" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_a_home_that_may_not_be_looked_into_says_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(home / ".config", "[run]\nquiet = true\n")
    home.chmod(0o700)
    script = (
        "import os; os.setuid(65534); from ioweir.launch import defaults; print(defaults.load(os.environ).sections)"
    )
    done = run([sys.executable, "-c", script], env={"HOME": str(home)}).expect()
    assert done.out == "[]\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of another user")
def test_a_file_of_another_user_is_not_believed(places: tuple[Path, Path, dict[str, str]]) -> None:
    file = write(places[0], "[run]\nquiet = true\n")
    os.chown(file, 12345, 12345)
    os.chown(file.parent, 12345, 12345)
    done = run([*IOWEIR, "run", "--", sys.executable, "-c", ""], env=places[2])
    assert done.code == 2
    assert "belongs to user 12345" in done.err


def test_a_link_counts_where_nobody_else_could_have_made_it(
    places: tuple[Path, Path, dict[str, str]], tmp_path: Path
) -> None:
    kept = write(tmp_path / "kept", '[run]\nquota = "1 GiB"\n')
    file = write(places[1], "")
    file.unlink()
    file.symlink_to(kept)
    assert quota_of(tmp_path, places[2]) == 1 << 30
    kept.chmod(0o622)
    done = run([*IOWEIR, "run", "--", sys.executable, "-c", ""], env=places[2])
    assert (done.code, "may be written into by others" in done.err) == (2, True)
    kept.chmod(0o600)
    file.parent.chmod(0o777)
    done = run([*IOWEIR, "run", "--", sys.executable, "-c", ""], env=places[2])
    assert (done.code, "is a symbolic link" in done.err) == (2, True)
