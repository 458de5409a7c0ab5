"""Sequences of calls as loops: what repeats with arguments that grow evenly, or that stand in a table.

A number of a call is `[first, step of the innermost loop, step of the next one, ...]`; in a loop over a table the first
is a `Column`. Nothing is approximated: a loop is made only where it gives every number back (`unfolded` in the tests).
Not here: how numbers differ between ranks, and the program's text (benchmark.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST: Final = 32
"""Calls in the body of a loop."""
_PASSES: Final = 4
_LEAST_EVEN: Final = 3
"""Iterations of any other loop: through two numbers goes every line."""
_LEAST_TABLE: Final = 4
"""Iterations for which a table is worth it."""


@dataclass
class Column:
    """Of a loop over a table: the number in each iteration."""

    values: list[int]


Number: TypeAlias = "list[int | Column]"


@dataclass
class Call:
    """A call with its numbers, and with lists of numbers where it takes them."""

    name: str
    numbers: list[Number]
    lists: list[tuple[int, ...]] = field(default_factory=list)

    def shape(self) -> object:
        """All but the numbers."""
        columns = tuple(isinstance(number[0], Column) for number in self.numbers)
        return (self.name, columns, tuple(len(number) for number in self.numbers), len(self.lists))


@dataclass
class Loop:
    """So many times the body."""

    count: int
    body: list[Node]

    def shape(self) -> object:
        """All but the numbers."""
        return ("loop", tuple(node.shape() for node in self.body))


Node: TypeAlias = "Call | Loop"


def call(name: str, numbers: Sequence[int], lists: Sequence[Sequence[int]] = ()) -> Call:
    """One that is in no loop yet."""
    return Call(name, [[number] for number in numbers], [tuple(each) for each in lists])


def folded(nodes: Sequence[Node]) -> list[Node]:
    """As loops as far as it goes: even ones first, within each other, then tables."""
    now = _pass(list(nodes), even=True, longest=1)  # loops of one call, before what stands around them is one body
    for _ in range(_PASSES):
        after = _pass(now, even=True)
        if len(after) == len(now):
            break
        now = after
    return _pass(now, even=False)


def _pass(nodes: list[Node], *, even: bool, longest: int = LONGEST) -> list[Node]:
    shapes = [_key(node) for node in nodes]
    done: list[Node] = []
    at = 0
    while at < len(nodes):
        best_length, best_count = 0, 0
        for length in range(1, min(longest, (len(nodes) - at) // 2) + 1):
            if shapes[at] != shapes[at + length]:
                continue
            count = _even(nodes, shapes, at, length) if even else _same(nodes, shapes, at, length)
            if count >= (_LEAST_EVEN if even else _LEAST_TABLE):
                best_length, best_count = length, count
                break  # the shortest: longer ones are found around it
        if best_count:
            done.append(_loop(nodes[at : at + best_length * best_count], best_length, best_count))
            at += best_length * best_count
        else:
            done.append(nodes[at])
            at += 1
    return done


def _key(node: Node) -> object:
    """What must be equal in every iteration: all but the first numbers of calls."""
    if isinstance(node, Loop):
        return ("loop", node.count, tuple(_key(inner) for inner in node.body))
    steps = tuple(tuple(number[1:]) for number in node.numbers)
    columns = any(isinstance(number[0], Column) for number in node.numbers)
    return (node.name, steps, tuple(node.lists), id(node) if columns else 0)


def _firsts(node: Node) -> list[int]:
    if isinstance(node, Loop):
        return [value for inner in node.body for value in _firsts(inner)]
    return [number[0] for number in node.numbers if not isinstance(number[0], Column)]


def _same(nodes: list[Node], shapes: list[object], at: int, length: int) -> int:
    """How often the keys repeat; calls alone."""
    if any(isinstance(node, Loop) for node in nodes[at : at + length]):
        return 0
    count = 1
    while shapes[at + count * length : at + (count + 1) * length] == shapes[at : at + length]:
        count += 1
    return count


def _even(nodes: list[Node], shapes: list[object], at: int, length: int) -> int:
    """How often the block repeats with numbers that grow by the same."""

    def block(number: int) -> list[int]:
        return [value for node in nodes[at + number * length : at + (number + 1) * length] for value in _firsts(node)]

    first, count = block(0), 1
    step: list[int] = []
    while shapes[at + count * length : at + (count + 1) * length] == shapes[at : at + length]:
        now = block(count)
        if count == 1:
            step = [new - old for new, old in zip(now, first, strict=True)]
        elif any(new != old + count * by for new, old, by in zip(now, first, step, strict=True)):
            break
        count += 1
    return count


def _loop(nodes: list[Node], length: int, count: int) -> Loop:
    blocks = [nodes[number * length : (number + 1) * length] for number in range(count)]
    return Loop(count, [_merged([block[place] for block in blocks]) for place in range(length)])


def _merged(nodes: list[Node]) -> Node:
    first = nodes[0]
    if isinstance(first, Loop):
        bodies = [node.body for node in nodes if isinstance(node, Loop)]
        return Loop(first.count, [_merged([body[place] for body in bodies]) for place in range(len(first.body))])
    calls = [node for node in nodes if isinstance(node, Call)]
    numbers: list[Number] = []
    for place, number in enumerate(first.numbers):
        values = [each.numbers[place][0] for each in calls]
        known = [value for value in values if not isinstance(value, Column)]
        step = known[1] - known[0]
        if all(value == known[0] + at * step for at, value in enumerate(known)):
            numbers.append([*number, step])
        else:
            numbers.append([Column(known), *number[1:], 0])
    return Call(first.name, numbers, first.lists)


def unfolded(nodes: Sequence[Node]) -> list[tuple[str, tuple[int, ...], tuple[tuple[int, ...], ...]]]:
    """The calls one after another: name, numbers, lists."""
    found: list[tuple[str, tuple[int, ...], tuple[tuple[int, ...], ...]]] = []

    def walk(inner: Sequence[Node], counters: tuple[int, ...]) -> None:
        for node in inner:
            if isinstance(node, Loop):
                for at in range(node.count):
                    walk(node.body, (at, *counters))
            else:
                found.append((node.name, tuple(_value(number, counters) for number in node.numbers), tuple(node.lists)))

    walk(nodes, ())
    return found


def _value(number: Number, counters: tuple[int, ...]) -> int:
    first = number[0]
    start = first.values[counters[0]] if isinstance(first, Column) else first
    return start + sum(step * at for step, at in zip(number[1:], counters, strict=True) if isinstance(step, int))
