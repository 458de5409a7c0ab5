"""Recorded calls on other numbers of ranks: exactly what the program itself asks for there, or a reason why not."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from ioweir.base.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.predict import scaling, simulate
from ioweir.predict.simulate import Options

if TYPE_CHECKING:
    from pathlib import Path

Words = tuple[str, ...]


def calls_of(kernel: Words, ranks: int) -> list[Any]:
    """What the kernel itself asks for."""
    return [
        [[(int(offset), int(length)) for offset, length in pieces] for pieces in call]
        for call in compiled().kernel_requests(kernel[0], ranks, list(kernel[1:]))
    ]


def scaled(kernel: Words, sizes: tuple[int, ...], ranks: int, dimensions: int = 0) -> list[Any]:
    written, read, _ = scaling.scaled(
        "a file", [(size, calls_of(kernel, size), []) for size in sizes], ranks, dimensions
    )
    assert read == []
    return written


REGULAR: tuple[tuple[Words, tuple[int, ...]], ...] = (
    (("coll_perf", "local=4,6,8", "variables=3"), (4, 8)),
    (("coll_perf", "local=4,6,8", "variables=2"), (8,)),
    (("coll_perf", "local=5,2,7", "variables=2"), (8,)),
    (("ior-segmented", "data=96KiB", "transfer=16KiB"), (4,)),
    (("ior-segmented", "data=96KiB", "transfer=16KiB"), (4, 8)),
    (("ior-strided", "data=96KiB", "transfer=32KiB", "piece=4KiB"), (4,)),
    (("ior-strided", "data=96KiB", "transfer=32KiB"), (4, 8)),
)


@pytest.mark.parametrize("ranks", [2, 16, 24, 32, 64])
@pytest.mark.parametrize(("kernel", "sizes"), REGULAR)
def test_a_trace_of_few_ranks_gives_the_requests_of_many(kernel: Words, sizes: tuple[int, ...], ranks: int) -> None:
    assert scaled(kernel, sizes, ranks) == calls_of(kernel, ranks)


def test_more_ranks_than_can_be_simulated_are_refused_at_once() -> None:
    """No factors of the number are looked for, which of a trillion takes for ever."""
    with pytest.raises(IoweirError, match="at most 4,194,304 ranks are simulated"):
        scaled(("ior-segmented", "data=96KiB", "transfer=16KiB"), (4,), 1_000_000_000_039)


@settings(max_examples=60, deadline=None)
@given(
    local=some.tuples(*[some.integers(1, 9)] * 3),
    variables=some.integers(1, 3),
    ranks=some.sampled_from([6, 12, 16, 18, 27, 32]),
    fewer=some.sampled_from([(8,), (4, 8), (2, 8), (12,), (8, 12)]),
)
def test_blocks_of_arrays(local: tuple[int, int, int], variables: int, ranks: int, fewer: tuple[int, ...]) -> None:
    kernel = ("coll_perf", f"local={local[0]},{local[1]},{local[2]}", f"variables={variables}")
    try:
        found = scaled(kernel, fewer, ranks)
    except IoweirError as error:
        # A block that is one entry thick can look like one of fewer dimensions.
        assert 1 in local, error  # noqa: PT017
        return
    assert found == calls_of(kernel, ranks)


@settings(max_examples=60, deadline=None)
@given(some.integers(1, 64), some.integers(1, 20), some.sampled_from([3, 4, 5, 8]), some.sampled_from([16, 32, 48]))
def test_strides_and_segments(piece: int, count: int, fewer: int, ranks: int) -> None:
    strided = ("ior-strided", f"data={2 * piece * count}", f"transfer={piece * count}", f"piece={piece}")
    segmented = ("ior-segmented", f"data={3 * piece * count}", f"transfer={piece * count}")
    for kernel in (strided, segmented):
        if fewer in (3, 5):
            with pytest.raises(IoweirError, match="would do so if it were an array of 2"):
                scaled(kernel, (fewer,), ranks)
            assert scaled(kernel, (fewer, 4), ranks) == calls_of(kernel, ranks)
        else:
            assert scaled(kernel, (fewer,), ranks) == calls_of(kernel, ranks)


def test_an_array_that_stays() -> None:
    kernel = ("coll_perf", "global=32,16,16", "variables=2")
    assert scaled(kernel, (4, 8), 32) == calls_of(kernel, 32)
    with pytest.raises(IoweirError, match="not divided evenly by 3 ranks"):
        scaled(kernel, (4, 8), 27)


@pytest.mark.parametrize(
    ("kernel", "sizes", "why"),
    [
        (("btio", "class=S", "writes=1"), (4,), "different sizes"),
        (("flash", "blocks=2"), (4, 8), "different"),
        (("chombo", "boxes=4", "idle=2"), (4,), "nothing in a call|different"),
        (("coll_perf", "local=4,4,4", "variables=1"), (4,), "if it were an array of 3: add a trace"),
        (("coll_perf", "local=4,4,4", "variables=1"), (2, 4), "add a trace"),
    ],
)
def test_what_is_not_regular_is_refused(kernel: Words, sizes: tuple[int, ...], why: str) -> None:
    with pytest.raises(IoweirError, match=why) as refused:
        scaled(kernel, sizes, 16)
    assert str(refused.value).startswith("--ranks 16: what a file would ask for on so many is not known: ")


def test_arrays_of_four_dimensions_are_refused_where_the_program_says_so() -> None:
    with pytest.raises(IoweirError, match="its arrays have 4 dimensions"):
        scaled(("lattice", "local=2,2,4,4", "calls=1"), (8,), 16, dimensions=4)


def test_two_traces_that_do_not_fit_are_refused() -> None:
    one, other = ("coll_perf", "local=4,4,4", "variables=1"), ("coll_perf", "local=4,4,5", "variables=1")
    with pytest.raises(IoweirError, match="neither trace follows from the other"):
        scaling.scaled("a file", [(4, calls_of(one, 4), []), (8, calls_of(other, 8), [])], 16)


def test_one_changed_request_is_noticed() -> None:
    draw = random.Random(1)
    calls = calls_of(("coll_perf", "local=4,6,8", "variables=2"), 8)
    for _ in range(20):
        call, rank = draw.randrange(2), draw.randrange(8)
        piece = draw.randrange(len(calls[call][rank]))
        changed = [[list(pieces) for pieces in ranks] for ranks in calls]
        offset, length = changed[call][rank][piece]
        changed[call][rank][piece] = (offset, length - 4)
        with pytest.raises(IoweirError):
            scaling.scaled("a file", [(8, changed, [])], 16)


def test_traces_are_scaled_to_what_the_kernel_takes(tmp_path: Path) -> None:
    kernel = ("coll_perf", "local=4,8,8", "variables=2")
    folders = []
    for ranks in (4, 8):
        folders.append(tmp_path / str(ranks))
        simulate.simulate(Options("gigabit12", kernel[0], kernel[1:], ranks, trace_out=folders[-1], repeat=1))
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*"\nwriters = "aggregators:2"\n', encoding="utf-8")
    found = simulate.simulate(
        Options("gigabit12", trace=folders[0], more_traces=(folders[1],), ranks=16, plan=plan, repeat=2)
    )
    known = simulate.simulate(Options("gigabit12", kernel[0], kernel[1:], 16, plan=plan, repeat=2))
    assert found["write"] == known["write"]
    assert "scaled to 16 ranks" in found["what"]
    assert "checked against 8 and 4 ranks" in found["what"]
