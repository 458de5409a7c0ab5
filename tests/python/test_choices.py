"""What earlier runs found: a file of the user's alone that names nothing and is believed as far as numbers go."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from ioweir.base import locate
from ioweir.launch import choices
from ioweir.plan.plan_check import check_plan
from ioweir.report.chosen import ChosenSeries, ChosenWriters

DIGEST = "0123456789abcdef"


def series(**times: float) -> ChosenSeries:
    row = ChosenSeries("/somewhere/secret_#.data", DIGEST, 4, 20, "everyone", "", 3.0)
    row.writers = [ChosenWriters(name.replace("_", ":"), 3, 1, 0, time_s) for name, time_s in times.items()]
    return row


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def file_of(environment: dict[str, str]) -> Path:
    return Path(environment["XDG_CACHE_HOME"], "ioweir", "choices.json")


def test_what_is_kept_comes_back(environment: dict[str, str]) -> None:
    assert choices.known("app", environment) == []
    assert choices.remember("app", [series(library=0.2, everyone=0.1, aggregators_auto=0.3)], environment) == ""
    assert choices.known("app", environment) == [f"{DIGEST} aggregators:auto 1.5", f"{DIGEST} everyone 0.5"]
    assert choices.known("another", environment) == []
    text = file_of(environment).read_text()
    assert not any(name in text for name in ("app", "data", "somewhere"))
    assert file_of(environment).stat().st_mode & 0o777 == 0o600


def test_runs_that_end_together_keep_both(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    read = choices._read

    def slowly(folder: Any) -> dict[str, Any]:
        content = read(folder)
        time.sleep(0.1)
        return content

    def keep(program: str) -> None:
        choices.remember(program, [series(library=0.2, everyone=0.1)], environment)

    keep("first")  # or each would make a secret of its own
    with monkeypatch.context() as slow:
        slow.setattr(choices, "_read", slowly)
        runs = [threading.Thread(target=keep, args=(program,)) for program in ("second", "third")]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
    assert all(choices.known(program, environment) for program in ("first", "second", "third"))


def test_nothing_is_kept_without_the_library(environment: dict[str, str]) -> None:
    choices.remember("app", [series(everyone=0.1)], environment)
    assert not file_of(environment).exists()


def test_the_plan_can_be_carried_out(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    for known in ([], [f"{DIGEST} everyone 0.5", f"{DIGEST} aggregators:2 1.25"]):
        plan.write_text(choices.plan_text(known))
        assert check_plan(plan, tmp_path) == choices.plan_text(known)


def hostile(when: object = None, **more: object) -> dict[str, Any]:
    row = {"when": time.time() if when is None else when, "shares": {"everyone": 0.5}, **more}
    return {"version": 1, "secret": "0" * 32, "programs": {"NAME": {DIGEST: row}}}


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "null", "[" * 100_000, "x" * (2 << 20), '{"version": 1}', '{"version": 2, "programs": {}}',
        hostile(when="now"), hostile(when=0.0), hostile(when=1e300), hostile(shares=None),
        hostile(shares={"everyone": 1e300}),
        hostile(shares={'everyone"\n[[file]]': 0.5}), hostile(shares={"everyone": True}), hostile(more=1),
        {"version": 1, "secret": 5, "programs": {}}, {"version": 1, "secret": "0" * 32, "programs": []},
    ],
)  # fmt: skip
def test_broken_and_hostile_files_are_not_believed(environment: dict[str, str], content: object) -> None:
    file = file_of(environment)
    file.parent.mkdir(parents=True, mode=0o700)
    text = content if isinstance(content, str) else json.dumps(content)
    name = choices._program({"secret": "0" * 32}, "app")
    file.write_text(text.replace("NAME", name))
    file.chmod(0o600)
    assert choices.known("app", environment) == []
    assert choices.remember("app", [series(library=0.2, everyone=0.1)], environment) == ""
    assert choices.known("app", environment) == [f"{DIGEST} everyone 0.5"]


def test_a_good_one_is_believed(environment: dict[str, str]) -> None:
    """The form that the hostile ones above depart from."""
    file = file_of(environment)
    file.parent.mkdir(parents=True, mode=0o700)
    name = choices._program({"secret": "0" * 32}, "app")
    file.write_text(json.dumps(hostile()).replace("NAME", name))
    file.chmod(0o600)
    assert choices.known("app", environment) == [f"{DIGEST} everyone 0.5"]


def test_what_others_may_write_is_not_believed(environment: dict[str, str]) -> None:
    choices.remember("app", [series(library=0.2, everyone=0.1)], environment)
    file_of(environment).chmod(0o666)
    assert choices.known("app", environment) == []
    file_of(environment).chmod(0o600)
    assert choices.known("app", environment) != []
    file_of(environment).parent.chmod(0o777)
    assert choices.known("app", environment) == []
    assert "not kept" in choices.remember("app", [series(library=0.2, everyone=0.1)], environment)


def test_links_are_not_followed(environment: dict[str, str], tmp_path: Path) -> None:
    choices.remember("app", [series(library=0.2, everyone=0.1)], environment)
    victim = tmp_path / "victim"
    victim.write_bytes(file_of(environment).read_bytes())
    file_of(environment).unlink()
    file_of(environment).symlink_to(victim)
    before = victim.read_bytes()
    assert choices.known("app", environment) == []
    choices.remember("other", [series(library=0.2, everyone=0.1)], environment)
    assert victim.read_bytes() == before
    assert not file_of(environment).is_symlink()


def test_it_does_not_grow_for_ever(environment: dict[str, str]) -> None:
    rows = []
    for number in range(1200):
        row = series(library=0.2, everyone=0.1)
        row.digest = f"{number:016x}"
        rows.append(row)
    choices.remember("app", rows, environment)
    assert len(choices.known("app", environment)) == 1000


def test_seeds_differ_and_the_users_is_kept() -> None:
    assert choices.variables({}) != choices.variables({})
    assert choices.variables({"IOWEIR_CHOOSE_SEED": "7"}) == {"IOWEIR_CHOOSE_SEED": "7"}
    assert choices.variables({"IOWEIR_CHOOSE_SEED": "7; rm"})["IOWEIR_CHOOSE_SEED"].isdigit()


def test_without_a_home_nothing_is_kept() -> None:
    assert locate.cache_folder({}) is None
    assert locate.cache_folder({"HOME": "/home/a"}) == Path("/home/a/.cache/ioweir")
    assert locate.cache_folder({"XDG_CACHE_HOME": "relative", "HOME": "/home/a"}) == Path("/home/a/.cache/ioweir")
    assert choices.known("app", {}) == []
