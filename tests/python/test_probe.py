"""`ioweir probe` on directories whose rates are known, for token buckets keep them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from forked import completed
from ioweir.base.units import duration
from ioweir.errors import IoweirError
from ioweir.targets import probe as probing

IOWEIR = Path(sys.executable).with_name("ioweir")
MB = 1_000_000
BRIEF = ("--window", "150ms", "--discard", "20ms")


def ioweir(*words: str | Path, cache: Path | None = None, code: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"XDG_CACHE_HOME": str(cache)} if cache else {})}
    done = completed([IOWEIR, *words], timeout=120, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def probe(*words: str | Path, cache: Path | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ioweir("probe", *words, "--json", cache=cache).stdout)
    return found


def make(folder: Path, rates: list[float]) -> Path:
    """A directory per rate (bytes a second), and their manifest."""
    text = f'state = "{folder}/buckets"\n'
    for number, rate in enumerate(rates):
        (folder / f"d{number}").mkdir()
        text += f'[[target]]\nname = "d{number}"\ndirectory = "d{number}"\nrate = "{int(rate)} B"\n'
    (folder / ".ioweir-targets.toml").write_text(text)
    return folder


@pytest.fixture
def four(tmp_path: Path) -> Path:
    """Four targets, the third slow."""
    return make(tmp_path, [10 * MB, 10 * MB, MB / 2, 10 * MB])


def test_the_slow_target_is_left_out_and_nothing_stays(four: Path) -> None:
    found = probe(four / "file-to-be", *BRIEF)
    assert found["chosen"] == ["d0", "d1", "d3"]
    assert found["excluded"] == ["d2"]
    assert [row["chosen"] for row in found["targets"]] == [True, True, False, True]
    assert found["kind"] == "directories"
    assert found["token_bucket"]
    for row, rate in zip(found["targets"], (10, 10, 0.5, 10), strict=True):
        assert 0 < row["bytes_per_second"] <= rate * MB * 1.001  # a bucket never lets more through
        assert row["token_bucket_rate"] == rate * MB
        assert row["alone"]
    curve = found["curve"]
    assert curve[-1]["target"] == "d2"
    for number, step in enumerate(curve, start=1):
        assert step["aggregate"] == pytest.approx(number * step["bytes_per_second"])
        before = curve[number - 2]["aggregate"] if number > 1 else 0
        assert step["slope"] == pytest.approx(step["aggregate"] - before)
    assert found["bytes"] == sum(row["bytes"] for row in found["targets"]) > 0
    assert [list((four / f"d{number}").iterdir()) for number in range(4)] == [[], [], [], []]


def test_the_text_says_how_it_was_found(four: Path) -> None:
    text = ioweir("probe", four, *BRIEF, "--repeats", "3").stdout
    assert "4 targets (directories), windows of 150 ms after 20 ms, median of 3" in text
    assert "limited by a token bucket, not by a device" in text
    assert "O_DIRECT" in text or "flushed after every write" in text
    assert "use 3 of 4: d0 d1 d3\nnot: d2\n" in text
    assert "64.00 KiB written to each" in ioweir("probe", four, "--size", "64 KiB").stdout


def test_a_threshold_of_everything_keeps_all(four: Path) -> None:
    assert probe(four, *BRIEF, "--threshold", "1")["excluded"] == []
    assert "a threshold that is no share" in ioweir("probe", four, *BRIEF, "--threshold", "2", code=1).stderr


def test_the_picture_holds_every_target_twice(four: Path, tmp_path: Path) -> None:
    ioweir("probe", four, *BRIEF, "--plot", tmp_path / "p.svg")
    root = ElementTree.parse(tmp_path / "p.svg").getroot()
    circles = [element for element in root.iter() if element.get("aria-roledescription") == "circle"]
    assert len(circles) == 8
    assert [circle.get("fill") for circle in circles[:4]] == ["#1a66b3"] * 3 + ["#cc0000"]
    heights = [float(re.split("[,)]", circle.get("transform", ""))[1]) for circle in circles[:4]]
    assert heights == sorted(heights)  # falling bandwidths
    text = (tmp_path / "p.svg").read_text()
    for words in ("token bucket", "targets, fastest first", "bandwidth of each target, ", "iB/s", "left out"):
        assert words in text


def test_results_are_kept_for_the_time_asked_for_only(four: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = probe(four, *BRIEF, "--cache", "10m", cache=cache)
    again = probe(four, *BRIEF, "--cache", "10m", cache=cache)
    assert again["probed_at"] == first["probed_at"]
    assert again["targets"] == first["targets"]
    assert probe(four, *BRIEF, cache=cache)["probed_at"] != first["probed_at"]  # without being asked to
    assert probe(four, *BRIEF, "--cache", "1ms", cache=cache)["probed_at"] != first["probed_at"]  # too old
    assert (
        probe(four, "--window", "151ms", "--discard", "20ms", "--cache", "10m", cache=cache)["method"]["window_s"]
        == 0.151
    )
    (file, *_) = sorted((cache / "ioweir").iterdir())
    for other in (cache / "ioweir").iterdir():
        other.write_text("{cut sho")
    assert probe(four, *BRIEF, "--cache", "10m", cache=cache)["chosen"] == ["d0", "d1", "d3"]
    assert file.name.startswith("probe-")


def test_who_has_no_home_probes_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(probing, "_chosen", lambda _described, found, *_: found)
    monkeypatch.setattr(probing, "_measure", lambda *_: {"targets": []})
    described = {"targets": [], "kind": "none"}
    core = SimpleNamespace(describe_targets=lambda _: described, default_threshold=0.05)
    monkeypatch.setattr(probing, "compiled", lambda: core)
    assert probing.probe(Path(), probing.Options(), None) == {"targets": []}
    with pytest.raises(IoweirError, match="--cache: no home folder; set XDG_CACHE_HOME"):
        probing.probe(Path(), probing.Options(), None, "10m")


def test_mistakes_are_said(tmp_path: Path) -> None:
    assert "no storage targets are known here" in ioweir("probe", tmp_path, code=1).stderr
    make(tmp_path, [10 * MB])
    for option, value, words in (
        ("--window", "300", "not a time: '300'"),
        ("--window", "1us", "a window that nothing can be measured in"),
        ("--size", "1", "a size that is too small to be measured"),
        ("--size", "5M", "5M"),
        ("--cache", "soon", "not a time: 'soon'"),
        ("--repeats", "0", "a number of repetitions"),
    ):
        done = completed([IOWEIR, "probe", tmp_path, option, value])
        assert done.returncode in (1, 2)
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    (tmp_path / "d0").rmdir()
    done = ioweir("probe", tmp_path, code=1)
    assert "none of the storage targets" in done.stderr
    assert "d0" in done.stderr


def test_killed_it_leaves_nothing(tmp_path: Path) -> None:
    folder = make(tmp_path, [1 * MB, 1 * MB])
    process = subprocess.Popen(
        [IOWEIR, "probe", folder, "--window", "60s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + 60
        while not _has_open(process.pid, folder / "d1"):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert list((folder / "d0").iterdir()) == list((folder / "d1").iterdir()) == []


def _has_open(pid: int, directory: Path) -> bool:
    """A file in the directory, which has no name there."""
    try:
        links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(link.startswith(f"{directory}/") for link in links)


@pytest.mark.parametrize(
    ("text", "value"), [("300ms", 0.3), ("10m", 600), ("1.5 h", 5400), ("2d", 172800), ("5us", 5e-6), ("1min", 60)]
)
def test_times_are_read(text: str, value: float) -> None:
    assert duration(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "5", "m", "-1s", "nan s", "inf s", "5 weeks", "1m30s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a time"):
        duration(text)
