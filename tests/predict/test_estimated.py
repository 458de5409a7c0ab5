"""What findings propose and no simulation shows: which of it a plan takes, at what price, and what is said of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from ioweir.base import toml_text
from ioweir.base.compiled import compiled
from ioweir.findings.model import Finding, Gain, Remedy
from ioweir.loop import measure
from ioweir.predict import candidates, estimated, gains, kinds, tune, workload
from ioweir.predict.estimated import Known
from traces import Builder, Call

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WALL_S = 100.0
CHUNKS = '[[file]]\nmatch = "chk.1.h5"\nhdf5 = { chunks = "learn" }\n'
METADATA = '[[file]]\nmatch = "chk.1.h5"\nhdf5 = { metadata_block = "1 MiB", collective_metadata = "writes" }\n'
CLOSE = '[[file]]\nmatch = "chk.1.h5"\nhdf5 = { collective_metadata = "writes" }\n'
OTHERWISE = '[[file]]\nmatch = "chk.1.h5"\nhdf5 = { collective_metadata = "all" }\n'
BEHIND = '[[file]]\nmatch = "chk.1.h5"\nwriters = "behind:1"\n'
SIZE = '[[file]]\nmatch = "chk.1.h5"\nset_size = "deferred"\n'
WRITERS = '[[file]]\nmatch = "chk.1.h5"\nwriters = "aggregators:3"\n'


def finding(code: str, *remedies: Remedy, low: float = 4.0, high: float = 10.0, seconds: float = 8.0) -> Finding:
    files = ["/data/chk.1.h5", "/data/chk.2.h5"]
    return Finding(code, "medium", "HDF5", files, [0], seconds, Gain(low, high), "", "", [], list(remedies), [])


def plan(text: str, doubt: str = "") -> Remedy:
    return Remedy("plan", "do it", text, doubt=doubt)


def known(*findings: Finding) -> Known:
    return estimated.of_findings(findings, WALL_S, ["chk.*.h5", "dump.*"])


def part(path: str, before: float, **after: float) -> tune.Part:
    """Of one file; candidates by their writers, with seconds."""
    rows = [
        {
            "strategy": name, "candidate": candidates.Candidate(name, {"writers": name}), "each": [spent, spent],
            "seconds": spent, "other_form": False, "predicted": gains.range_of([before / spent]),
            "beside": (0.0, 0.0, 0.0),
        }
        for name, spent in after.items()
    ]  # fmt: skip
    program: Any = SimpleNamespace(what=path)
    kind = kinds.Kind(kinds.pattern_of(path), path, 1, 1.0, 0.5)
    return tune.Part(kind, program, [before, before], rows)


def decide(
    proposed: Known, parts: Sequence[tune.Part], picks: tune.Picks, *, measured: bool = False
) -> tuple[list[dict[str, Any] | None], list[estimated.Decision]]:
    return estimated.decided(proposed, parts, picks, estimated.simulated_carriers(parts), measured=measured)


def test_keys_join_the_rule_that_was_simulated_and_its_prediction_stays() -> None:
    parts = [part("dump.1", 5.0, everyone=2.0), part("chk.1.h5", 6.0, everyone=3.0)]
    picks, decisions = decide(known(finding("close-cost", plan(METADATA))), parts, [parts[0].rows[0], parts[1].rows[0]])
    machine: Any = SimpleNamespace(name="none", open={}, unexplained=0.0, gains=None, plans=1.0)
    found = tune.Simulated(machine, parts, [], "two")
    rules = toml_text.loads(found.text(picks))["file"]
    assert rules == [
        {
            "match": "chk.*.h5", "writers": "everyone",
            "hdf5": {"metadata_block": "1 MiB", "collective_metadata": "writes"},
        },
        {"match": "dump.*", "writers": "everyone"},
    ]  # fmt: skip
    assert found.predicted(picks)["ratio"] == pytest.approx(11 / 5)
    (decision,) = decisions
    row = decision.row()
    assert (row["taken"], row["replay_shows_it"], row["files"]) == (True, False, ["chk.*.h5"])
    assert row["gain"] == {"low": 4.0, "high": 10.0, "method": "bound", "may_cost": 0.0}
    said = estimated.told(decisions, None)
    assert "estimated from the trace, not simulated, to save 4.00 s to 10.00 s" in said[0]
    assert "cannot show it" in said[0]
    assert "not in it" in said[1]
    assert "not of Sierra" in " ".join(estimated.told(decisions, "Sierra"))


@pytest.mark.parametrize("after", [{}, {"everyone": 9.0}])
def test_without_writers_that_help_a_table_leaves_the_bytes_to_the_mpi_library(after: dict[str, float]) -> None:
    parts = [part("chk.1.h5", 6.0, **after)]
    picks, (decision,) = decide(known(finding("close-cost", plan(METADATA))), parts, [None])
    assert decision.taken
    assert "chk.*.h5 stays with the MPI library's own writers; a replay makes" in decision.reason
    assert picks[0] is not None
    machine: Any = SimpleNamespace(name="none", open={}, unexplained=0.0, gains=None, plans=1.0)
    found = tune.Simulated(machine, parts, [], "one")
    assert found.predicted(picks) == {"ratio_low": 1.0, "ratio": 1.0, "ratio_high": 1.0}
    (rule,) = toml_text.loads(found.text(picks))["file"]
    assert rule == {
        "match": "chk.*.h5", "writers": "library",
        "hdf5": {"metadata_block": "1 MiB", "collective_metadata": "writes"},
    }  # fmt: skip


def test_without_writers_that_help_the_best_carry_other_keys_if_they_cost_less_than_what_is_saved() -> None:
    """To save 4 s at the least: writers that cost 1 s carry it, those that cost 4 s do not."""
    proposed = known(finding("file-extension", plan(SIZE)))
    for after, taken in ((7.0, True), (10.0, False)):
        parts = [part("chk.1.h5", 6.0, everyone=after, auto=after + 1)]
        picks, (decision,) = decide(proposed, parts, [None])
        assert decision.taken is taken
        assert (picks[0] is not None) is taken
        if picks[0] is not None:
            assert picks[0]["candidate"].keys["writers"] == "everyone"
            assert "simulated to cost up to 1.00 s" in decision.reason


def test_no_writers_that_could_be_simulated_carry_nothing() -> None:
    picks, (decision,) = decide(known(finding("file-extension", plan(SIZE))), [part("chk.1.h5", 6.0)], [None])
    assert picks == [None]
    assert "none for it that do no harm" in decision.reason


@pytest.mark.parametrize(
    ("proposed", "why"),
    [
        (finding("small-requests", plan(CHUNKS, "nobody knows")), "nobody knows"),
        (finding("close-cost", plan(METADATA), low=0.0), "does not show that it saves anything"),
        (finding("close-cost", plan(METADATA), seconds=1.9), "less than 2 % of the run"),
        (finding("no-overlap", plan(BEHIND)), "simulated with the others"),
        (finding("lock-wait", Remedy("hint", "x", hints={"romio_ds_write": "disable"})), "no keys of a plan"),
    ],
)
def test_what_a_plan_does_not_take_is_told_with_the_reason(proposed: Finding, why: str) -> None:
    parts = [part("chk.1.h5", 6.0, everyone=3.0)]
    picks, (decision,) = decide(known(proposed), parts, [parts[0].rows[0]])
    assert not decision.taken
    assert why in decision.reason
    assert picks == [parts[0].rows[0]]
    assert decision.said().startswith("not taken: ")
    assert len(estimated.told([decision], None)) == 1


def test_writing_behind_is_a_candidate_or_it_is_said_why_not() -> None:
    parts = [part("chk.1.h5", 6.0, everyone=3.0)]
    proposed = known(finding("no-overlap", plan(BEHIND)))
    for why in ("", "it is open for reading, too"):
        proposed.behinds = {"chk.*.h5": why}
        _, (decision,) = decide(proposed, parts, [parts[0].rows[0]])
        assert not decision.taken
        assert decision.reason == (why or "it was simulated with the others, and is taken where it is best")


def test_what_a_replay_shows_is_not_taken_by_estimate_where_replays_were_made() -> None:
    parts = [part("chk.1.h5", 6.0, everyone=6.0)]
    proposed = known(finding("file-extension", plan(SIZE)))
    assert decide(proposed, parts, [None])[1][0].taken
    assert not decide(proposed, parts, [None], measured=True)[1][0].taken
    hdf5 = known(finding("close-cost", plan(METADATA)))
    assert decide(hdf5, parts, [None], measured=True)[1][0].taken


def test_two_findings_that_want_one_key_differently() -> None:
    parts = [part("chk.1.h5", 6.0, everyone=3.0)]
    same = known(finding("hdf5-metadata-scattered", plan(METADATA)), finding("close-cost", plan(CLOSE)))
    assert [one.taken for one in decide(same, parts, [parts[0].rows[0]])[1]] == [True, True]
    other = known(finding("hdf5-metadata-scattered", plan(METADATA)), finding("close-cost", plan(OTHERWISE)))
    picks, decisions = decide(other, parts, [parts[0].rows[0]])
    assert [one.taken for one in decisions] == [True, False]
    assert "sets the same key otherwise" in decisions[1].reason
    assert picks[0] is not None
    assert picks[0]["candidate"].keys["hdf5"]["collective_metadata"] == "writes"


def test_keys_that_the_chosen_writers_cannot_have_are_left_out() -> None:
    subfiles = '[[file]]\nmatch = "chk.1.h5"\nnetcdf = { subfiles = 4 }\n'
    parts = [part("chk.1.h5", 6.0, everyone=3.0)]
    log = {**parts[0].rows[0], "strategy": "log", "candidate": candidates.Candidate("log", {"mapping": "log"})}
    picks, (decision,) = decide(known(finding("target-contention", plan(subfiles))), parts, [log])
    assert picks == [log]
    assert decision.reason.startswith("not with log: ")


def test_what_can_be_simulated_becomes_a_candidate() -> None:
    proposed = known(finding("aggregator-count", plan(WRITERS)), finding("lock-wait", plan(WRITERS)))
    assert proposed.proposals == []
    assert proposed.strategies_of("dump.*") == []
    usual = list(candidates.candidates(16, 4, 4))
    more = list(candidates.with_more(iter(usual), proposed.strategies_of("chk.*.h5")))
    assert [one.text("*") for one in more[: len(usual)]] == [one.text("*") for one in usual]
    assert [one.strategy for one in more[len(usual) :]] == ['writers = "aggregators:3"']
    again = list(candidates.with_more(iter(usual), [usual[3].keys]))
    assert len(again) == len(usual)


def test_a_remedy_that_mends_less_has_a_gain_of_its_own() -> None:
    own = Remedy("plan", "do it", METADATA, saves=Gain(0.0, 1.0))
    (one,) = known(finding("close-cost", own)).proposals
    assert (one.low, one.gain.high, one.share) == (0.0, 1.0, 0.01)


def test_hints_of_all_findings_are_one_way_to_measure() -> None:
    first = finding("aggregator-count", Remedy("hint", "x", hints={"cb_nodes": "8"}))
    second = finding("lock-wait", Remedy("hint", "x", hints={"cb_nodes": "4", "romio_ds_write": "disable"}))
    parts = [part("chk.1.h5", 6.0, everyone=3.0)]
    machine: Any = SimpleNamespace(name="none", open={}, unexplained=0.0, gains=None, plans=1.0)
    ways = measure.contenders(tune.Simulated(machine, parts, [], "one", known(first, second)), 2)
    assert [(way.name, way.hints) for way in ways[2:]] == [
        ("no plan, hints cb_nodes=8, romio_ds_write=disable", ("cb_nodes=8", "romio_ds_write=disable"))
    ]
    assert not ways[2].rules


def flushing() -> Builder:
    """100 flushes of metadata, each 0.2 s, of two ranks."""
    builder = Builder()
    for rank in (builder.rank(rank, 2) for rank in range(2)):
        for at in range(50):
            flush = Call(rank, "H5Fflush", at, at + 0.2, "/data/chk.1.h5")
            write = flush.inside("MPI_File_write_at", at + 0.05, at + 0.15, 512, origin="application", offset=4096 * at)
            builder.add(flush, write, write.inside("pwrite", at + 0.06, at + 0.14, 512, offset=4096 * at))
    return builder


def test_the_findings_of_a_trace_are_asked() -> None:
    builder = flushing()
    kind = kinds.Kind("chk.*.h5", "/data/chk.1.h5", 1, 1.0, 1.0)
    found = estimated.of_trace(builder.trace(), [kind])
    assert found.wall_s == pytest.approx(100)
    one = next(one for one in found.proposals if one.code == "hdf5-metadata-scattered")
    assert one.keys == {"hdf5": {"metadata_block": "1 MiB", "collective_metadata": "writes"}}
    # The plan spares the requests and not the flushes: 50 x 0.1 s of a rank, a quarter of it at the least.
    assert (one.low, one.gain.high, one.share) == pytest.approx((1.25, 5.0, 0.05))
    compiled().check_plan(candidates.Candidate("x", one.keys).text("*"), "plan.toml")
    assert estimated.of_trace(builder.trace(), []).proposals == []


def test_the_plan_and_the_result_of_tune_say_what_was_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Traces that are built by hand have no views.
    asked = [[[(8192 * at + 4096 * rank, 512)] for rank in range(2)] for at in range(50)]
    recorded = workload.Recorded("chk.1.h5", "/data/chk.1.h5", 2, True, asked, [], 0.0)
    monkeypatch.setattr(workload, "of_file", lambda *_: recorded)
    folder = flushing().save(tmp_path / "trace", "solver")
    result = tune.tune(tune.Options(tmp_path / "plan.toml", "gigabit12", folder, repeat=2))
    assert result["output"] == str(tmp_path / "plan.toml")
    (rule,) = toml_text.loads(result["plan"])["file"]
    assert rule["match"] == "chk.*.h5"
    assert rule["hdf5"] == {"metadata_block": "1 MiB", "collective_metadata": "writes"}
    assert {"writers", "mapping"} & rule.keys()
    row = next(row for row in result["estimated"] if row["taken"])
    assert row["keys"] == {"hdf5": rule["hdf5"]}
    assert not row["replay_shows_it"]
    told = "\n".join(tune.to_text(result))
    for text in (told, result["plan"]):
        assert "estimated from the trace, not simulated, to save 1.25 s to 5.00 s" in text
        assert "of the storage that the trace met, not of gigabit12" in text
    assert json.loads(json.dumps(result["estimated"])) == result["estimated"]
