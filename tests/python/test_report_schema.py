"""What `ioweir report --json` prints keeps to docs/reference/report.schema.json, and that says all that is printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from ioweir import report
from ioweir.report import compare, timeline
from ioweir.trace import LAYERS, OPS, Note
from test_report import two_writers
from test_report_oracle import builders
from traces import FUNCTIONS, Builder, Call, printed

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
SCHEMA = json.loads((DOCS / "report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def check(builder: Builder, **more: Any) -> dict[str, Any]:
    document = printed(builder.trace(**more))
    VALIDATOR.validate(document)
    return document


def everything() -> Builder:
    """A trace in which every optional part of a report occurs."""
    builder = two_writers()
    builder.process(executable="/bin/sh")
    builder.add(
        Call(1, "fcntl_lock", 30, 31, "/data/log", 1, failed=True),
        Call(0, "write", 40, 41, "/dev/shm/vader_segment.n.0.1.0", 40),
        Call(2, "read", 0, 1, "job.sh", 80),
        Call(0, "pread", 50, 51, "/data/log", 8, site=1),
        Call(0, "MPI_Barrier", 70, 80),
    )
    names = {function.name for function in FUNCTIONS}
    for layer in LAYERS:
        for function in FUNCTIONS:
            if function.layer == layer and function.op in ("write", "lock", "meta") and function.name in names:
                builder.add(Call(0, function.name, 60, 61, f"/data/{layer}", 3))
    for code in ("plan_applied", "passed_through", "engine_summary", "verify_ok", "verify_mismatch", "message"):
        builder.notes.append(Note(0, code, "/data/dump", 3, "words"))
    return builder


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert list(SCHEMA["properties"]["layers"]["properties"]) == list(LAYERS)
    assert list(SCHEMA["$defs"]["operations"]["properties"]) == list(OPS)


@settings(max_examples=30, deadline=None)
@given(builder=builders())
def test_random_reports(builder: Builder) -> None:
    check(builder)


def test_reports_with_everything_and_with_nothing() -> None:
    document = check(everything(), run={"plan": "p.toml", "verify": True, "signal": 9, "exit_code": None}, dropped=2)
    for key in ("call_sites", "not_counted", "damage", "partial_reasons", "messages"):
        assert document[key] or key == "damage", key
    assert document["layers"]["MPI"]["wait"]["calls"] == 1
    assert all("MPI" not in row["layers"] for row in document["files"]), "waiting is in no file's figures"
    assert document["locks"]["longest"]
    assert document["runtime_files"]["files"] == 1
    assert check(Builder())["events"] == 0


@pytest.mark.parametrize("key", sorted(SCHEMA["required"]))
def test_the_page_names_every_key(key: str) -> None:
    assert f"`{key}`" in (DOCS / "report.md").read_text(encoding="utf-8")


def test_the_schema_refuses_what_is_not_described() -> None:
    document = check(two_writers())
    changes: tuple[Callable[[Any], object], ...] = (
        lambda r: r.update(news=1),
        lambda r: r["layers"]["POSIX"]["write"].update(news=1),
        lambda r: r["layers"].pop("STDIO"),
        lambda r: r["files"][0]["layers"].pop("POSIX"),
        lambda r: r["layers"]["POSIX"]["write"].update(bytes=-1),
    )
    for change in changes:
        broken = json.loads(json.dumps(document))
        change(broken)
        assert not VALIDATOR.is_valid(broken)


def test_comparisons_and_timelines_keep_their_keys() -> None:
    trace = two_writers().trace()
    result = report.build(trace)
    assert {key: result[key] for key in vars(result)} == report.to_dict(result)
    comparison = report.to_dict(compare.compare(result, result))
    assert set(comparison) == {
        "time", "before", "after", "first_lines", "warnings", "changes", "findings", "credited", "caution",
        "before_runs", "after_runs",
    }  # fmt: skip
    assert set(comparison["before"]) == {
        "trace", "program", "command", "ranks", "wall_s", "io_mean_s", "exit_code", "partial", "storage", "plan",
    }  # fmt: skip
    assert comparison["before"]["plan"] == printed(trace)["plan"]
    assert set(comparison["changes"][0]) == {"what", "unit", "before", "after", "ratio", "sentence", "low", "high"}
    shown = report.to_dict(timeline.of_trace(trace, timeline.Options()))
    assert set(shown) == {
        "trace", "op", "by", "ranks_are", "bins", "bin_s", "begin_s", "end_s", "rows", "left_out", "mean_time_s",
        "deviation_s", "layers_recorded", "dropped", "damage", "unreadable", "first_lines", "picture",
    }  # fmt: skip
    assert set(shown["rows"][0]) == {
        "name", "bytes", "calls", "time_s", "first_s", "last_s", "ranks", "busy", "moved",
    }  # fmt: skip
    assert set(shown["left_out"]) == {"rows", "bytes"}
