"""Recorded calls on another number of ranks, where the ranks' pieces are regular enough to know what they would be.

Recognised: in a call each rank has a box of an array of bytes, all boxes are equal, and the ranks are dealt over
the array in a grid as MPI_Dims_create makes it, in one to three of its dimensions; strides and one segment a rank are
such arrays, too. Every rank keeps its box when ranks are added (the array grows), or, where two traces show it, the
array stays and boxes shrink. A form is taken only if it gives every request of every trace exactly.

What cannot be known is refused: a dimension that no trace divides, where more ranks might, or whose parts are one entry
thick. Both at once are considered of several traces only, more than three divided dimensions not at all. Lives here:
forms and their sizes. Not here: reading traces (workload.py).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioweir.trace.pattern import Extents

Call = list["Extents"]
"""Of each rank what it asked for."""

MOST_DIVIDED: Final = 3
MOST_PIECES: Final = 1 << 22
"""Of all ranks and calls, to be simulated."""
WEAK: Final = "every rank keeps its part, and the array grows"
STRONG: Final = "the array stays, and the ranks' parts shrink"


@dataclass(frozen=True)
class Words:
    """What a command says to do where something is not known."""

    option: str
    """That gives another trace."""
    more: str
    """How another trace is given."""
    instead: str


SIMULATE: Final = Words(
    "--trace", "--trace DIR twice", "Simulate it as it was recorded (without --ranks), or take a kernel (--kernel)"
)


@dataclass(frozen=True)
class Dimension:
    """Of an array of bytes: `own` entries of a rank, each `stride` bytes from the next, and `parts` ranks along it."""

    stride: int
    own: int
    parts: int = 1
    fixed: bool = False
    """Its stride is more than what lies within: it does not change with the number of ranks."""


@dataclass(frozen=True)
class Form:
    """A call: dimensions from the slowest to single bytes."""

    base: int
    dimensions: tuple[Dimension, ...]
    last_first: bool
    """Ranks are counted along the fastest dimension first, as C's arrays are; else along the slowest."""
    rising: bool
    """The grid has its smaller numbers first."""

    @property
    def divided(self) -> list[int]:
        """How many ranks there are along each dimension that is divided."""
        return [one.parts for one in self.dimensions if one.parts > 1]

    @property
    def span(self) -> int:
        """Bytes from one such array to the next."""
        outer = self.dimensions[0]
        return outer.stride * outer.own * outer.parts


class _IrregularError(Exception):
    """Why a call has no form."""


# ------------------------------------------------------------------------------------------------------- recognising


def grid(ranks: int, dimensions: int) -> list[int]:
    """As MPI_Dims_create: the largest number as small as it can be, then the second largest, and so on."""
    if dimensions == 1:
        return [ranks]
    for first in range(1, ranks + 1):
        if ranks % first == 0 and first**dimensions >= ranks:
            rest = grid(ranks // first, dimensions - 1)
            if rest[0] <= first:
                return [first, *rest]
    raise AssertionError(ranks)


def _levels(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """(count, distance) from the slowest on, whose sums are these rising numbers that begin at 0."""
    if len(offsets) == 1:
        return []
    step = offsets[1]
    count = 1
    while count < len(offsets) and offsets[count] == count * step:
        count += 1
    if len(offsets) % count:
        raise _IrregularError("its pieces are not equally far from each other")
    outer = offsets[::count]
    for number, at in enumerate(outer):
        if any(offsets[number * count + inner] != at + inner * step for inner in range(count)):
            raise _IrregularError("its pieces are not equally far from each other")
    return [*_levels(outer), (count, step)]


def _joined(pieces: Extents) -> list[tuple[int, int]]:
    """Of neighbouring pieces one, in the order of the file."""
    joined: list[tuple[int, int]] = []
    for offset, length in sorted(pieces):
        if joined and joined[-1][0] + joined[-1][1] == offset:
            joined[-1] = (joined[-1][0], joined[-1][1] + length)
        elif length > 0:
            joined.append((offset, length))
    return joined


def _form(call: Call) -> Form:
    ranks = [_joined(pieces) for pieces in call]
    if not all(ranks):
        raise _IrregularError("some ranks have nothing in a call")
    first = ranks[0]
    bases = [pieces[0][0] for pieces in ranks]
    if len({length for pieces in ranks for _, length in pieces}) > 1:
        raise _IrregularError("the ranks' pieces have different sizes")
    shape = [offset - bases[0] for offset, _ in first]
    if any([offset - base for offset, _ in pieces] != shape for pieces, base in zip(ranks, bases, strict=True)):
        raise _IrregularError("the ranks have different parts")
    dimensions = [Dimension(1, first[0][1]), *(Dimension(step, count) for count, step in _levels(shape))]
    base = min(bases)
    for parts, step in _levels(sorted(at - base for at in bases)):
        for number, one in enumerate(dimensions):
            if one.parts == 1 and one.stride * one.own == step:
                dimensions[number] = replace(one, parts=parts)
                break
        else:
            dimensions.append(Dimension(step, 1, parts))
    dimensions.sort(key=lambda one: -one.stride)
    for number, (outer, inner) in enumerate(itertools.pairwise(dimensions)):
        within = inner.stride * inner.own * inner.parts
        if outer.stride < within:
            raise _IrregularError("the ranks' parts overlap or interleave")
        dimensions[number] = replace(outer, fixed=outer.stride != within)
    return _dealt(Form(base, tuple(dimensions), True, False), bases)


def _dealt(form: Form, bases: list[int]) -> Form:
    """With the order in which the ranks are dealt over the grid."""
    wanted = grid(len(bases), max(1, len(form.divided)))
    if len(form.divided) > MOST_DIVIDED or sorted(form.divided, reverse=True) != [one for one in wanted if one > 1]:
        raise _IrregularError(f"{len(bases)} ranks are not dealt as a grid of MPI_Dims_create, {form.divided} instead")
    # Arrays of C, of Fortran with ranks dealt as MPI_Cart_create does, and of Fortran with the first dimension first.
    for rising, last_first in ((False, True), (True, False), (False, False)):
        if form.divided == (sorted(form.divided) if rising else sorted(form.divided, reverse=True)):
            one = replace(form, rising=rising, last_first=last_first)
            if list(_bases(one, len(bases))) == bases:
                return one
    raise _IrregularError("the ranks are not dealt over the array in rows or in columns")


def _bases(form: Form, ranks: int) -> Iterator[int]:
    """Where each rank's part begins."""
    order = form.dimensions[::-1] if form.last_first else form.dimensions
    for rank in range(ranks):
        at, rest = form.base, rank
        for one in order:
            at += rest % one.parts * one.stride * one.own
            rest //= one.parts
        yield at


# ------------------------------------------------------------------------------------------------------------ scaling


def _resized(form: Form, ranks: int, how: str) -> Form:
    """The same on so many ranks, its base unchanged."""
    parts = grid(ranks, max(1, len(form.divided)))
    if form.rising:
        parts.reverse()
    wanted = iter(parts)
    numbers = [next(wanted) if one.parts > 1 else 1 for one in form.dimensions]
    within = 1
    made: list[Dimension] = []
    for one, count in zip(reversed(form.dimensions), reversed(numbers), strict=True):
        own = one.own
        if how == STRONG and one.parts > 1:
            whole = one.own * one.parts
            if whole % count:
                raise _IrregularError(f"{whole} entries of a dimension are not divided evenly by {count} ranks")
            own = whole // count
        if one.fixed and within > one.stride:
            raise _IrregularError("with more ranks their parts would overlap")
        stride = one.stride if one.fixed else within
        made.append(Dimension(stride, own, count, one.fixed))
        within = stride * own * count
    return replace(form, dimensions=tuple(reversed(made)))


def _call(form: Form, ranks: int) -> Call:
    """What each rank asks for."""
    *outer, inner = form.dimensions
    shape = [0]
    for one in outer:
        shape = [at + number * one.stride for at in shape for number in range(one.own)]
    return [_joined([(base + at, inner.own) for at in shape]) for base in _bases(form, ranks)]


@dataclass(frozen=True)
class Series:
    """All calls of one direction."""

    forms: tuple[Form, ...]
    follow: bool
    """Each array lies behind that of the call before; else they stay where they are."""

    def on(self, ranks: int, how: str) -> list[Call]:
        """The calls of so many ranks."""
        pieces = 0
        calls = []
        base = self.forms[0].base if self.forms else 0
        for form in self.forms:
            resized = _resized(form, ranks, how)
            pieces += ranks * math.prod(one.own for one in resized.dimensions[:-1])
            if pieces > MOST_PIECES:
                raise _IrregularError(f"{ranks} ranks would have more than {MOST_PIECES:,} pieces")
            calls.append(_call(replace(resized, base=base) if self.follow else resized, ranks))
            base += resized.span
        return calls


def _series(calls: Sequence[Call]) -> Series:
    forms = tuple(_form(call) for call in calls)
    base = forms[0].base if forms else 0
    follow = True
    for form in forms:
        follow = follow and form.base == base
        base += form.span
    return Series(forms, follow)


def _equal(one: Sequence[Call], other: Sequence[Call]) -> bool:
    return [[_joined(pieces) for pieces in call] for call in one] == [
        [_joined(pieces) for pieces in call] for call in other
    ]


def _looks(ranks: int, dimensions: int, together: tuple[int, ...]) -> list[int]:
    """The grid as pieces show it: neighbouring dimensions in groups of so many, those not divided left out."""
    parts = iter(grid(ranks, dimensions))
    products = [math.prod(next(parts) for _ in range(count)) for count in together]
    return [one for one in products if one > 1]


def _hidden(forms: Sequence[Form], sizes: Sequence[int], ranks: int) -> int | None:
    """A number of dimensions that would look the same in the traces, and other ones on so many ranks; None: none.

    A dimension may not be divided, or its parts may be one entry thick, so that it and the next look like one.
    """
    for form in forms:
        seen = max(1, len(form.divided))
        own = (1,) * seen
        for more in range(seen + 1, MOST_DIVIDED + 1):
            ways = [one for one in itertools.product(range(1, more + 1), repeat=seen) if sum(one) == more]
            if len(sizes) == 1 and 1 in grid(sizes[0], more):
                ways = []
            for together in (*ways, (1,) * more):
                same = all(_looks(size, more, together) == _looks(size, seen, own) for size in sizes)
                if same and _looks(ranks, more, together) != _looks(ranks, seen, own):
                    return more
    return None


def require_different(sizes: Sequence[int], words: Words) -> None:
    """Traces of equally many ranks do not show what more ranks ask for: any rule of growth agrees with both."""
    twice = next((size for size in sizes if sizes.count(size) > 1), None)
    if twice is not None:
        raise IoweirError(
            f"{words.option}: two traces of {twice} ranks say no more than one; give one of each number of ranks",
            EXIT_USAGE,
        )


def scaled(
    name: str, recorded: Sequence[tuple[int, Sequence[Call], Sequence[Call]]], ranks: int, dimensions: int = 0,
    *, words: Words = SIMULATE,
) -> tuple[list[Call], list[Call], str]:  # fmt: skip
    """What would be written and read on so many ranks, and in words how that is known.

    `recorded`: of each trace its ranks, and the calls that write and read; `dimensions`: of the program's arrays, 0:
    not known; `words`: of the command. Raises IoweirError where it is not known what would be asked for.
    """
    if ranks > MOST_PIECES:
        raise IoweirError(f"--ranks {ranks}: at most {MOST_PIECES:,} ranks are simulated, a piece each", EXIT_USAGE)
    recorded = sorted(recorded, key=lambda one: -one[0])
    sizes = [one[0] for one in recorded]
    try:
        base = [_series(calls) for calls in recorded[0][1:]]
        how = _how(base, recorded)
        forms = [form for series in base for form in series.forms]
        if dimensions > MOST_DIVIDED:
            raise _IrregularError(
                f"its arrays have {dimensions} dimensions, and more than {MOST_DIVIDED} are not looked into"
            )
        more = _hidden(forms, sizes, ranks)
        if more is not None:
            seen = max(len(form.divided) for form in forms)
            raise _IrregularError(
                f"{' and '.join(map(str, sorted(sizes)))} ranks divide {seen} of its dimensions, and would do so if "
                f"it were an array of {more}: add a trace of a number of ranks that tells ({words.more})"
            )
        written, read = (series.on(ranks, how) for series in base)
    except _IrregularError as error:
        raise IoweirError(
            f"--ranks {ranks}: what {name} would ask for on so many is not known: {error}. {words.instead}",
            EXIT_USAGE,
        ) from error
    divided = max((len(form.divided) for form in forms), default=1)
    checked = f"checked against {' and '.join(map(str, sizes))} ranks" if len(sizes) > 1 else "assumed, from one trace"
    return written, read, f"arrays divided in {divided} dimension{'s' if divided != 1 else ''}; {how} ({checked})"


def _how(base: Sequence[Series], recorded: Sequence[tuple[int, Sequence[Call], Sequence[Call]]]) -> str:
    """By which rule the largest trace gives all others."""
    if len(recorded) == 1:
        return WEAK
    reasons = []
    for how in (WEAK, STRONG):
        try:
            if all(
                _equal(series.on(size, how), calls)
                for size, *both in recorded[1:]
                for series, calls in zip(base, both, strict=True)
            ):
                return how
        except _IrregularError as error:
            reasons.append(str(error))
    raise _IrregularError("; ".join(["neither trace follows from the other", *reasons]))
