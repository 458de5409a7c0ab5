"""Who may read traces and stores: their owner alone, and a group by choice (`--group`). Real files and real users.

Users and groups are numbers that the machine need not know; root becomes them by setpriv. Not here: what else a trace
directory may hold (test_run.py), which files are trusted (test_guarded_files.py).
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ioweir.base import groups
from ioweir.base.guarded_files import Folder
from ioweir.errors import IoweirError
from ioweir.site.store import Store
from site_runs import traced
from tracing import IOWEIR, Finished, run

OWNER, MEMBER, STRANGER, GROUP, OTHER_GROUP = 64101, 64102, 64103, 64200, 64201
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root, and setpriv to become others"
)
WORKS = "mkdir -p data && echo text > data/file && cat data/file"


def being(user: int, *more_groups: int, umask: str = "022", words: list[str | Path], cwd: Path) -> Finished:
    """A command as a user whose own group has the user's number."""
    supplementary = f"--groups={','.join(map(str, more_groups))}" if more_groups else "--clear-groups"
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", supplementary]
    shell = ["sh", "-c", f'umask {umask}; exec "$@"', "sh"]
    return run([*become, *shell, *words], cwd=cwd, env={"HOME": str(cwd), "XDG_CACHE_HOME": str(cwd / ".cache")})


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of the owner's in one that all may pass through; pytest's own are root's alone."""
    above = Path(tempfile.mkdtemp(prefix="ioweir-shared-"))
    above.chmod(0o755)
    place = above / "home"
    place.mkdir(mode=0o755)
    os.chown(place, OWNER, OWNER)
    yield place
    shutil.rmtree(above)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def files(trace: Path) -> dict[str, tuple[int, int]]:
    """Mode and group of what is in a trace."""
    return {path.name: (mode(path), path.stat().st_gid) for path in trace.iterdir() if path.is_file()}


@as_root
@pytest.mark.parametrize("umask", ["000", "022", "077"])
@pytest.mark.parametrize("given", ["new", "empty folder"])
def test_a_trace_is_its_owners_alone_by_default(home: Path, umask: str, given: str) -> None:
    trace = home / "trace"
    if given != "new":
        trace.mkdir(mode=0o755)
        os.chown(trace, OWNER, OWNER)
    being(OWNER, umask=umask, words=[*IOWEIR, "run", "-o", trace, "--", "sh", "-c", WORKS], cwd=home).expect()
    assert mode(trace) == 0o700
    for user, more in ((MEMBER, OWNER), (STRANGER, GROUP)):
        refused = being(user, more, words=[*IOWEIR, "report", trace], cwd=home)
        assert refused.code != 0
        assert "Permission denied" in refused.err


@as_root
@pytest.mark.parametrize("umask", ["000", "022", "077"])
@pytest.mark.parametrize("options", [[], ["--no-compress"]], ids=["compressed", "plain"])
def test_a_group_reads_a_trace_and_nobody_else(home: Path, umask: str, options: list[str]) -> None:
    trace = home / "trace"
    words: list[str | Path] = [*IOWEIR, "run", "-o", trace, "--group", str(GROUP), *options, "--", "sh", "-c", WORKS]
    being(OWNER, GROUP, umask=umask, words=words, cwd=home).expect()
    assert (mode(trace), trace.stat().st_gid) == (0o2750, GROUP)
    assert {name.partition("-")[0] for name in files(trace)} >= {"run.json", "node"}
    assert set(files(trace).values()) == {(0o640, GROUP)}
    told = being(MEMBER, GROUP, words=[*IOWEIR, "report", trace, "--json"], cwd=home).expect()
    assert json.loads(told.out)["events"] > 0
    assert "Permission denied" in being(STRANGER, OTHER_GROUP, words=[*IOWEIR, "report", trace], cwd=home).err
    assert being(MEMBER, GROUP, words=["touch", trace / "more"], cwd=home).code != 0, "the group reads, and no more"
    written = home / "data" / "file"
    assert (written.stat().st_gid, mode(written)) == (OWNER, 0o666 & ~int(umask, 8)), "the program's files are its own"


@as_root
def test_a_batch_jobs_trace_is_for_the_group_too(home: Path) -> None:
    words: list[str | Path] = [*IOWEIR, "env", "-o", home / "trace", "--group", str(GROUP), "--rank"]
    told = being(OWNER, GROUP, umask="077", words=words, cwd=home).expect()
    being(OWNER, GROUP, umask="077", words=["sh", "-c", f"{told.out}\n{WORKS}"], cwd=home).expect()
    assert mode(home / "trace") == 0o2750
    assert "node" in {name.partition("-")[0] for name in files(home / "trace")}
    assert set(files(home / "trace").values()) == {(0o640, GROUP)}
    being(MEMBER, GROUP, words=[*IOWEIR, "report", home / "trace"], cwd=home).expect()


@as_root
@pytest.mark.parametrize("command", ["run", "env", "site"])
def test_a_group_of_others_is_refused_before_anything_is_made(home: Path, command: str) -> None:
    words: dict[str, list[str | Path]] = {
        "run": ["run", "-o", home / "made", "--group", str(GROUP), "--", "touch", home / "started"],
        "env": ["env", "-o", home / "made", "--group", str(GROUP)],
        "site": ["site", "add", home / "made", home, "--group", str(GROUP)],
    }
    refused = being(OWNER, OTHER_GROUP, words=[*IOWEIR, *words[command]], cwd=home)
    assert refused.code != 0
    assert f"--group {GROUP}: you do not belong to that group" in refused.err
    assert not (home / "made").exists()
    assert not (home / "started").exists()


def test_a_group_that_there_is_not_is_named() -> None:
    with pytest.raises(IoweirError, match="--group no-such-group: there is no such group"):
        groups.number_of("no-such-group")
    assert groups.number_of(str(os.getegid())) == os.getegid()


@as_root
def test_the_sites_defaults_may_name_the_group(home: Path) -> None:
    defaults = home / "defaults.toml"
    defaults.write_text(f'[run]\ngroup = "{GROUP}"\n')
    words: list[str | Path] = [
        "env",
        f"IOWEIR_SITE_DEFAULTS={defaults}",
        *IOWEIR,
        "run",
        "-o",
        home / "trace",
        "--",
        "true",
    ]
    being(OWNER, GROUP, words=words, cwd=home).expect()
    assert (mode(home / "trace"), (home / "trace").stat().st_gid) == (0o2750, GROUP)


# ------------------------------------------------------------------------------------------------------ hostile folders


@as_root
@pytest.mark.parametrize("planted", ["folder", "link to a folder that holds something", "link to nothing", "file"])
def test_nothing_of_others_is_shared_or_written_into(home: Path, planted: str) -> None:
    """In a folder for all, a stranger has put something where the trace is to lie."""
    shared = home.parent / "for-all"
    shared.mkdir()
    shared.chmod(0o1777)
    secret = home / "secret"
    secret.mkdir(mode=0o755)
    (secret / "key").write_text("precious")
    for path in (secret, secret / "key"):
        os.chown(path, OWNER, OWNER)
    trace = shared / "trace"
    if planted == "folder":
        trace.mkdir()
    elif planted == "file":
        trace.write_text("x")
    else:
        trace.symlink_to(secret if "holds" in planted else shared / "nowhere")
    os.chown(trace, STRANGER, STRANGER, follow_symlinks=False)
    words: list[str | Path] = [*IOWEIR, "run", "-o", trace, "--group", str(GROUP), "--", "touch", home / "started"]
    refused = being(OWNER, GROUP, words=words, cwd=home)
    assert refused.code != 0
    assert not (home / "started").exists()
    assert (mode(secret), secret.stat().st_gid) == (0o755, OWNER)
    assert [path.name for path in secret.iterdir()] == ["key"]
    if planted == "folder":
        assert list(trace.iterdir()) == []


def test_a_file_system_without_acls_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuses)
    with Folder.open(tmp_path) as folder:
        assert not folder.let_group_read(os.getegid())
    assert mode(tmp_path) == 0o2750


# --------------------------------------------------------------------------------------------------------------- stores


@as_root
def test_a_store_is_its_owners_alone_by_default(home: Path) -> None:
    trace = traced(home / "traces", "a")
    for given in ("new", "given"):
        store = home / given
        if given == "given":
            store.mkdir(mode=0o755)
        run([*IOWEIR, "site", "add", store, trace]).expect()
        assert mode(store) == 0o700
        assert {found for found, _ in files(store).values()} == {0o600}


@as_root
@pytest.mark.parametrize("when", ["new", "later"])
def test_a_group_reads_a_store_and_not_its_secret(home: Path, when: str) -> None:
    store, trace = home / "store", traced(home / "traces", "a")
    if when == "later":
        run([*IOWEIR, "site", "add", store, trace]).expect()
    run(
        ["sh", "-c", 'umask 077; exec "$@"', "sh", *IOWEIR, "site", "add", store, trace, "--group", str(GROUP)]
    ).expect()
    run([*IOWEIR, "site", "add", store, traced(home / "traces", "bb")]).expect()
    assert (mode(store), store.stat().st_gid) == (0o2750, GROUP)
    found = files(store)
    assert found.pop("secret")[0] == 0o600
    assert len(found) == 5
    assert set(found.values()) == {(0o640, GROUP)}
    told = being(MEMBER, GROUP, words=[*IOWEIR, "site", "show", store, "--json"], cwd=home).expect()
    assert json.loads(told.out)["runs"] == 2
    assert being(STRANGER, OTHER_GROUP, words=[*IOWEIR, "site", "show", store], cwd=home).code != 0
    refused = being(MEMBER, GROUP, words=[*IOWEIR, "site", "add", store, trace], cwd=home)
    assert refused.code != 0
    assert "only the owner of a store adds to it" in refused.err


@as_root
def test_only_its_owner_shares_a_store(home: Path) -> None:
    store = home / "store"
    Store.make_or_open(store).folder.close()
    for path in (store, *store.iterdir()):
        os.chown(path, STRANGER, STRANGER)
    refused = run([*IOWEIR, "site", "add", store, traced(home / "traces", "a"), "--group", str(GROUP)])
    assert refused.code != 0
    assert "only its owner can share it" in refused.err
    assert (mode(store), store.stat().st_gid) == (0o700, STRANGER)


def test_a_store_of_version_1_is_read_and_loses_its_secret_to_a_file_when_it_is_shared(tmp_path: Path) -> None:
    """So runs that it has are known, and digests stay what they were."""
    store, trace = tmp_path / "store", traced(tmp_path / "traces", "a")
    run([*IOWEIR, "site", "add", store, trace, "--anonymise"]).expect()
    secret = (store / "secret").read_text().strip()
    (store / "secret").unlink()
    (store / "site.json").write_text(json.dumps({"site_version": 1, "secret": secret}))
    again: list[str | Path] = [*IOWEIR, "site", "add", store, trace, "--anonymise"]
    assert run(again).expect().out.startswith("0 runs added, 1 were there")
    assert not (store / "secret").exists()
    assert run([*again, "--group", str(os.getegid())]).expect().out.startswith("0 runs added, 1 were there")
    assert json.loads((store / "site.json").read_text()) == {"site_version": 2}
    assert (store / "secret").read_text().strip() == secret
    assert mode(store / "secret") == 0o600
