"""The C of a generated benchmark: what each call stands for, numbers as formulas of rank and iteration, tables, README.

What does not live here: which calls there are and how they repeat (benchmark.py, fold.py).
"""

from __future__ import annotations

import textwrap
from importlib import resources
from typing import TYPE_CHECKING, Final

from ioweir.replay import unused_c
from ioweir.replay.fold import Call, Column, Loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.replay.benchmark import Kind
    from ioweir.replay.fold import Node, Number
    from ioweir.replay.model import Recorded

NAMED: Final = frozenset(
    f"MPI_{name}" for name in (
        "BYTE", "CHAR", "SIGNED_CHAR", "UNSIGNED_CHAR", "SHORT", "UNSIGNED_SHORT", "INT", "UNSIGNED", "LONG",
        "UNSIGNED_LONG", "LONG_LONG", "LONG_LONG_INT", "UNSIGNED_LONG_LONG", "FLOAT", "DOUBLE", "LONG_DOUBLE",
        "INT8_T", "INT16_T", "INT32_T", "INT64_T", "UINT8_T", "UINT16_T", "UINT32_T", "UINT64_T",
    )
)  # fmt: skip
_EXPLICIT: Final = ("read_at", "read_at_all", "write_at", "write_at_all", "read_at_all_begin", "write_at_all_begin")
_POINTER: Final = (
    "read", "read_all", "read_shared", "read_ordered", "write", "write_all", "write_shared", "write_ordered",
    "read_all_begin", "write_all_begin", "read_ordered_begin", "write_ordered_begin",
)  # fmt: skip
_STARTED_AT: Final = ("iread_at", "iread_at_all", "iwrite_at", "iwrite_at_all")
_STARTED: Final = ("iread", "iread_all", "iread_shared", "iwrite", "iwrite_all", "iwrite_shared")
_ENDS: Final = tuple(
    f"{kind}_{how}_end" for kind in ("read", "write") for how in ("at_all", "all", "ordered")
)  # fmt: skip
_SIZES: Final = ("set_size", "preallocate")
_ASKS: Final = {"get_size": "MPI_Offset", "get_position": "MPI_Offset", "get_position_shared": "MPI_Offset",
                "get_amode": "int", "get_atomicity": "int", "get_group": "MPI_Group"}  # fmt: skip
_OWN: Final = (
    "open", "close", "set_view", "sync", "seek", "seek_shared", "delete", "get_info", "set_info", "get_byte_offset",
    "get_view", "get_type_extent",
)  # fmt: skip
PLACED: Final = frozenset(
    f"MPI_File_{name}" for name in (*_EXPLICIT, *_STARTED_AT, "seek", "seek_shared", "get_byte_offset")
)
"""Calls whose second number is a place in the file, in elementary types of the view."""
_POSIX: Final = {
    "open": ("fd, file, flags", "D[fd] = open(name(file), flags, 0666)", 3),
    "creat": ("fd, file", "D[fd] = creat(name(file), 0666)", 2),
    "close": ("fd", "close(D[fd])", 1),
    "read": ("fd, n", "(int)read(D[fd], bytes(n * X), n * X)", 2),
    "write": ("fd, n", "(int)write(D[fd], bytes(n * X), n * X)", 2),
    "pread": ("fd, n, at", "(int)pread(D[fd], bytes(n * X), n * X, at * X)", 3),
    "pwrite": ("fd, n, at", "(int)pwrite(D[fd], bytes(n * X), n * X, at * X)", 3),
    "readv": ("fd, n", "(int)readv(D[fd], piece(n * X), 1)", 2),
    "writev": ("fd, n", "(int)writev(D[fd], piece(n * X), 1)", 2),
    "preadv": ("fd, n, at", "(int)preadv(D[fd], piece(n * X), 1, at * X)", 3),
    "pwritev": ("fd, n, at", "(int)pwritev(D[fd], piece(n * X), 1, at * X)", 3),
    "preadv2": ("fd, n, at", "(int)preadv2(D[fd], piece(n * X), 1, at * X, 0)", 3),
    "pwritev2": ("fd, n, at", "(int)pwritev2(D[fd], piece(n * X), 1, at * X, 0)", 3),
    "fallocate": ("fd, at, n", "fallocate(D[fd], 0, at * X, n * X)", 3),
    "posix_fallocate": ("fd, at, n", "(errno = posix_fallocate(D[fd], at * X, n * X)) == 0 ? 0 : -1", 3),
    "fcntl_lock": ("fd, at, n", "lock_part(fd, F_WRLCK, at * X, n * X)", 3),
    "fcntl_unlock": ("fd, at, n", "lock_part(fd, F_UNLCK, at * X, n * X)", 3),
    "flock_lock": ("fd", "flock(D[fd], LOCK_EX)", 1),
    "flock_unlock": ("fd", "flock(D[fd], LOCK_UN)", 1),
    "lseek": ("fd, at", "(int)(lseek(D[fd], at * X, SEEK_SET) < 0 ? -1 : 0)", 2),
    "fsync": ("fd", "fsync(D[fd])", 1),
    "fdatasync": ("fd", "fdatasync(D[fd])", 1),
    "ftruncate": ("fd, size", "ftruncate(D[fd], size * X)", 2),
    "truncate": ("file, size", "truncate(name(file), size * X)", 2),
    "fstat": ("fd", "fstat(D[fd], &status_of)", 1),
    "stat": ("file", "stat(name(file), &status_of)", 1),
    "access": ("file", "access(name(file), F_OK)", 1),
    "unlink": ("file", "unlink(name(file))", 1),
    "remove": ("file", "remove(name(file))", 1),
    "rename": ("file, other", "(strcpy(renamed, name(other)), rename(name(file), renamed))", 2),
    "fopen": ("s, file, mode", "(S[s] = fopen(name(file), modes[mode])) == NULL ? -1 : 0", 3),
    "fclose": ("s", "fclose(S[s])", 1),
    "fread": ("s, n", "fread(bytes(n * X), 1, n * X, S[s]) == (size_t)(n * X) ? 0 : -1", 2),
    "fwrite": ("s, n", "fwrite(bytes(n * X), 1, n * X, S[s]) == (size_t)(n * X) ? 0 : -1", 2),
    "fseek": ("s, at", "fseeko(S[s], at * X, SEEK_SET)", 2),
    "fflush": ("s", "fflush(S[s])", 1),
}  # fmt: skip
KNOWN: Final = frozenset(
    {f"MPI_File_{name}" for name in (*_EXPLICIT, *_POINTER, *_STARTED_AT, *_STARTED, *_ENDS, *_SIZES, *_ASKS, *_OWN)}
    | {"MPI_Wait", "MPI_Waitall", "MPI_Test", *_POSIX}
)
_HELPERS: Final = {
    "type dup": "static void dup_type(int t, int old) { made(t, MPI_Type_dup(T[old], &T[t])); }",
    "type contiguous": (
        "static void contiguous(int t, int old, ll n) { made(t, MPI_Type_contiguous((int)n, T[old], &T[t])); }"
    ),
    "type vector": (
        "static void vector(int t, int old, ll n, ll length, ll step) {\n"
        "    made(t, MPI_Type_vector((int)n, (int)length, (int)step, T[old], &T[t]));\n}"
    ),
    "type hvector": (
        "static void hvector(int t, int old, ll n, ll length, ll step) {\n"
        "    made(t, MPI_Type_create_hvector((int)n, (int)length, (MPI_Aint)(step * X), T[old], &T[t]));\n}"
    ),
    "type indexed": (
        "static void indexed(int t, int old, ll n, const ll* lengths, const ll* at) {\n"
        "    made(t, MPI_Type_indexed((int)n, ints(lengths, n), ints(at, n), T[old], &T[t]));\n}"
    ),
    "type hindexed": (
        "static void hindexed(int t, int old, ll n, const ll* lengths, const ll* at) {\n"
        "    made(t, MPI_Type_create_hindexed((int)n, ints(lengths, n), places(at, n), T[old], &T[t]));\n}"
    ),
    "type indexed_block": (
        "static void indexed_block(int t, int old, ll n, ll length, const ll* at) {\n"
        "    made(t, MPI_Type_create_indexed_block((int)n, (int)length, ints(at, n), T[old], &T[t]));\n}"
    ),
    "type hindexed_block": (
        "static void hindexed_block(int t, int old, ll n, ll length, const ll* at) {\n"
        "    made(t, MPI_Type_create_hindexed_block((int)n, (int)length, places(at, n), T[old], &T[t]));\n}"
    ),
    "type structure": (
        "static void structure(int t, ll n, const ll* lengths, const ll* at, const ll* old) {\n"
        "    MPI_Datatype* types = malloc((size_t)(n + 1) * sizeof *types);\n"
        "    for (ll i = 0; i < n; ++i) types[i] = T[old[i]];\n"
        "    made(t, MPI_Type_create_struct((int)n, ints(lengths, n), places(at, n), types, &T[t]));\n}"
    ),
    "type subarray": (
        "static void subarray(int t, int old, int* v) {\n"
        "    int n = v[0];\n"
        "    made(t, MPI_Type_create_subarray(n, v + 1, v + 1 + n, v + 1 + 2 * n,\n"
        "                                     v[1 + 3 * n] == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, T[old], &T[t]));\n}"
    ),
    "type darray": (
        "static void darray(int t, int old, int* v) {\n"
        "    int n = v[2], *sizes = v + 3, *dealt = sizes + n, *block = dealt + n, *grid = block + n;\n"
        "    for (int i = 0; i < n; ++i) {\n"
        "        dealt[i] = dealt[i] == 0 ? MPI_DISTRIBUTE_NONE : dealt[i] == 1 ? MPI_DISTRIBUTE_BLOCK : "
        "MPI_DISTRIBUTE_CYCLIC;\n"
        "        if (block[i] == -1) block[i] = MPI_DISTRIBUTE_DFLT_DARG;\n    }\n"
        "    made(t, MPI_Type_create_darray(v[0], v[1], n, sizes, dealt, block, grid,\n"
        "                                   grid[n] == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, T[old], &T[t]));\n}"
    ),
    "type resized": (
        "static void resized(int t, int old, ll lower, ll extent) {\n"
        "    made(t, MPI_Type_create_resized(T[old], (MPI_Aint)(lower * X), (MPI_Aint)(extent * X), &T[t]));\n}"
    ),
    "MPI_File_open": (
        "static void file_open(int h, ll file, int mode, int group) {\n"
        "    CHECK(MPI_File_open(C[group], name(file), mode, info, &F[h]));\n}"
    ),
    "MPI_File_close": "static void file_close(int h) { CHECK(MPI_File_close(&F[h])); }",
    "MPI_File_sync": "static void file_sync(int h) { CHECK(MPI_File_sync(F[h])); }",
    "MPI_File_delete": "static void file_delete(ll file) { CHECK(MPI_File_delete(name(file), MPI_INFO_NULL)); }",
    "MPI_File_get_info": (
        "static void file_get_info(int h) {\n    MPI_Info used;\n    CHECK(MPI_File_get_info(F[h], &used));\n}"
    ),
    "MPI_File_set_info": "static void file_set_info(int h) { CHECK(MPI_File_set_info(F[h], info)); }",
    "MPI_File_get_byte_offset": (
        "static void file_get_byte_offset(int h, ll at) {\n    MPI_Offset place;\n"
        "    CHECK(MPI_File_get_byte_offset(F[h], at, &place));\n}"
    ),
    "MPI_File_get_view": (
        "static void file_get_view(int h) {\n    MPI_Offset at;\n    MPI_Datatype element, filetype;\n"
        "    char form[MPI_MAX_DATAREP_STRING];\n"
        "    CHECK(MPI_File_get_view(F[h], &at, &element, &filetype, form));\n}"
    ),
    "MPI_File_get_type_extent": (
        "static void file_get_type_extent(int h) {\n    MPI_Aint extent;\n"
        "    CHECK(MPI_File_get_type_extent(F[h], MPI_BYTE, &extent));\n}"
    ),
    "MPI_File_set_view": (
        "static void file_set_view(int h, ll at, int element, int t, int how) {\n"
        '    char* form = how == 0 ? "native" : how == 1 ? "external32" : "internal";\n'
        "    CHECK(MPI_File_set_view(F[h], at * X, T[element], T[t], form, info));\n}"
    ),
    "before": (
        "/* What other ranks do behind their `after` waits for what this one has done. */\n"
        "static void before(ll n, const ll* others) {\n    MPI_Request sent;\n"
        "    for (ll i = 0; i < n; ++i) {\n"
        "        MPI_Isend(NULL, 0, MPI_BYTE, (int)others[i], 0, MPI_COMM_WORLD, &sent), MPI_Request_free(&sent);\n"
        "    }\n}"
    ),
    "after": (
        "static void after(ll n, const ll* others) {\n    for (ll i = 0; i < n; ++i)\n"
        "        MPI_Recv(NULL, 0, MPI_BYTE, (int)others[i], 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n}"
    ),
    "before all": ("static void before_all(void) { for (ll r = 0; r < ranks; ++r) if (r != rank) before(1, &r); }"),
    "after all": "static void after_all(void) { for (ll r = 0; r < ranks; ++r) if (r != rank) after(1, &r); }",
    "MPI_Wait": (
        "static void wait(ll n, const ll* r) {\n"
        "    for (ll i = 0; i < n; ++i) CHECK(MPI_Wait(&R[r[i]], MPI_STATUS_IGNORE));\n}"
    ),
    "MPI_Waitall": (
        "static void waitall(ll n, const ll* r) {\n"
        "    MPI_Request all[REQUESTS + 1];\n    MPI_Status done[REQUESTS + 1];\n"
        "    for (ll i = 0; i < n; ++i) all[i] = R[r[i]];\n"
        "    CHECK(MPI_Waitall((int)n, all, done));\n}"
    ),
    "MPI_Test": (
        "static void test(ll n, const ll* r) {\n    for (ll i = 0; i < n; ++i)\n"
        "        for (int done = 0; !done;) CHECK(MPI_Test(&R[r[i]], &done, MPI_STATUS_IGNORE));\n}"
    ),
}
"""Functions of benchmark.c, where they are called."""
_PARTS: Final = (
    "static MPI_Comm part_of(int number, int n, const ll* members) {\n"
    "    MPI_Comm part = MPI_COMM_NULL;\n    MPI_Group all, some;\n    int inside = 0;\n"
    "    for (int i = 0; i < n; ++i) inside |= members[i] == rank;\n"
    "    MPI_Comm_group(MPI_COMM_WORLD, &all), MPI_Group_incl(all, n, ints(members, n), &some);\n"
    "    if (inside) MPI_Comm_create_group(MPI_COMM_WORLD, some, number, &part);\n    return part;\n}",
)
_COUNTERS: Final = "ijklmn"
MAKEFILE: Final = """# Needs an MPI compiler and nothing else.
CC = mpicc
CFLAGS = -O2 -std=gnu11
benchmark: benchmark.c
\t$(CC) $(CFLAGS) -o $@ benchmark.c
clean:
\trm -f benchmark
"""
_WIDTH: Final = 150


def _mpi_helper(name: str) -> str | None:
    """A function for an MPI-IO call, by its name without MPI_File_."""
    call = f"MPI_File_{name}"
    if name in _EXPLICIT or name in _STARTED_AT:
        last = "" if name.endswith("_begin") else ", &R[r]" if name in _STARTED_AT else ", MPI_STATUS_IGNORE"
        more = ", int r" if name in _STARTED_AT else ""
        return (
            f"static void file_{name}(int h, ll at, ll n, int t{more}) {{\n"
            f"    CHECK({call}(F[h], at, memory(t, n), (int)n, T[t]{last}));\n}}"
        )
    if name in _POINTER or name in _STARTED:
        last = "" if name.endswith("_begin") else ", &R[r]" if name in _STARTED else ", MPI_STATUS_IGNORE"
        more = ", int r" if name in _STARTED else ""
        return (
            f"static void file_{name}(int h, ll n, int t{more}) {{\n"
            f"    CHECK({call}(F[h], memory(t, n), (int)n, T[t]{last}));\n}}"
        )
    if name in _ENDS:
        return f"static void file_{name}(int h) {{ CHECK({call}(F[h], begun, MPI_STATUS_IGNORE)); }}"
    if name in _SIZES:
        return f"static void file_{name}(int h, ll size) {{ CHECK({call}(F[h], size * X)); }}"
    if name in ("seek", "seek_shared"):
        return f"static void file_{name}(int h, ll at) {{ CHECK({call}(F[h], at, MPI_SEEK_SET)); }}"
    if name in _ASKS:
        return f"static void file_{name}(int h) {{\n    {_ASKS[name]} answer;\n    CHECK({call}(F[h], &answer));\n}}"
    return None


class Program:
    """benchmark.c."""

    def __init__(self, recorded: Recorded, kinds: Sequence[Kind]) -> None:
        self._recorded = recorded
        self._kinds = kinds
        self._count = len(recorded.ranks)
        self._table_lines: list[str] = []
        self._known_tables: dict[tuple[int, ...], str] = {}
        self._used: dict[str, None] = {}

    @property
    def tables(self) -> int:
        """How many there are."""
        return len(self._known_tables)

    def text(self) -> str:
        """The whole program."""
        parts: list[str] = []
        for number, kind in enumerate(self._kinds):
            body = [line for places in zip(*kind.programs, strict=True) for line in self._lines(kind, places, 0)]
            ranks = _ranks_said(kind.ranks)
            parts.append(f"/* {ranks} */\nstatic void part_{number}(void) {{\n" + "\n".join(body) + "\n}\n")
        groups = self._group_lines()
        main = self._main(groups)
        helpers = [*self._helpers(), *_PARTS[: "part_of(" in main]]
        return unused_c.removed("\n".join((self._head(), *helpers, "", *self._table_lines, "", *parts, main)))

    def readme(self, text: str) -> str:
        """README.md."""
        inputs = self._recorded.inputs
        template = _resource("README.md.in")
        return template.format(
            ranks=self._count,
            calls=self._recorded.calls(),
            lines=len(text.splitlines()),
            kinds=len(self._kinds),
            tables=self.tables,
            prepare="\nIt reads files that it finds; make them first: `./benchmark -p -d WHERE`.\n" if inputs else "",
        )

    # ---------------------------------------------------------------------------------------------------- pieces

    def _head(self) -> str:
        calls = self._recorded.ranks
        types = max((self._types(program) for kind in self._kinds for program in kind.programs), default=0)
        numbers = {
            "RANKS": self._count,
            "FILES": max((rank.handles for rank in calls), default=0),
            "DESCRIPTORS": max((rank.descriptors for rank in calls), default=0),
            "STREAMS": max((rank.streams for rank in calls), default=0),
            "REQUESTS": max((rank.requests for rank in calls), default=0),
            "TYPES": types,
            "GROUPS": len(self._recorded.groups),
        }
        defines = "\n".join(f"#define {name} {value}" for name, value in numbers.items())
        return _resource("benchmark.c.in").replace("@NUMBERS@", defines)

    @staticmethod
    def _types(program: Sequence[Node]) -> int:
        from ioweir.replay.fold import unfolded  # noqa: PLC0415

        return sum(1 for name, _, _ in unfolded(program) if name.startswith("type "))

    def _helpers(self) -> list[str]:
        found = []
        for name in self._used:
            if name in _HELPERS:
                found.append(_HELPERS[name])
            elif name.startswith("MPI_File_"):
                helper = _mpi_helper(name.removeprefix("MPI_File_"))
                if helper is not None:
                    found.append(helper)
            elif name in _POSIX:
                names, call, _ = _POSIX[name]
                parameters = ", ".join(f"ll {one}" for one in names.split(", "))
                found.append(f"static void do_{name}({parameters}) {{ MUST({call}); }}")
        return found

    def _group_lines(self) -> list[str]:
        lines = []
        for number, group in enumerate(self._recorded.groups):
            if len(group) == self._count:
                lines.append(f"    C[{number}] = MPI_COMM_WORLD;")
            elif len(group) == 1:
                lines.append(f"    C[{number}] = MPI_COMM_SELF;")
            else:
                lines.append(f"    C[{number}] = part_of({number}, {len(group)}, {self._list([group], [0])});")
        return lines

    def _main(self, groups: Sequence[str]) -> str:
        inputs = "".join(
            f"    make_input({file}, {low}, {high});\n"
            for file in sorted(self._recorded.inputs)
            for low, high in self._recorded.found_parts.get(file) or [(0, 0)]
        )
        if len(self._kinds) == 1:
            run = "    part_0();"
        else:
            of_rank = [0] * self._count
            for number, kind in enumerate(self._kinds):
                for rank in kind.ranks:
                    of_rank[rank] = number
            cases = "\n".join(f"        case {number}: part_{number}(); break;" for number in range(len(self._kinds)))
            run = f"    switch ({self._over_ranks(list(range(self._count)), of_rank)}) {{\n{cases}\n    }}"
        text = _resource("main.c.in")
        return text.replace("@INPUTS@", inputs).replace("@GROUPS@", "\n".join(groups)).replace("@RUN@", run)

    # ---------------------------------------------------------------------------------------------------- calls

    def _lines(self, kind: Kind, nodes: Sequence[Node], depth: int) -> list[str]:
        """Of the same place in the programs of all ranks of a kind."""
        indent = "    " * (depth + 1)
        first = nodes[0]
        if isinstance(first, Loop):
            loops = [node for node in nodes if isinstance(node, Loop)]
            counter = _COUNTERS[depth]
            count = self._over_ranks(kind.ranks, [loop.count for loop in loops])
            inner = [
                line for places in zip(*(loop.body for loop in loops), strict=True)
                for line in self._lines(kind, places, depth + 1)
            ]  # fmt: skip
            return [f"{indent}for (ll {counter} = 0; {counter} < {count}; ++{counter}) {{", *inner, f"{indent}}}"]
        calls = [node for node in nodes if isinstance(node, Call)]
        values = [
            self._number(kind.ranks, [call.numbers[place] for call in calls], depth)
            for place in range(len(first.numbers))
        ]
        lists = [self._list([call.lists[place] for call in calls], kind.ranks) for place in range(len(first.lists))]
        return [f"{indent}{self._statement(first.name, values, lists)};"]

    def _statement(self, name: str, values: list[str], lists: list[str]) -> str:
        if name.startswith("type "):
            self._used[" ".join(name.split()[:2])] = None
            return _type_statement(name.split()[1:], values, lists)
        if name in ("MPI_Wait", "MPI_Waitall", "MPI_Test"):
            self._used[name] = None
            return f"{name.removeprefix('MPI_').lower()}({values[0]}, {lists[0]})"
        if name in _POSIX:
            self._used[name] = None
            return f"do_{name}({', '.join(values)})"
        if name in ("before", "after"):
            self._used[name] = None
            return f"{name}({values[0]}, {lists[0]})"
        if name in ("before all", "after all"):
            self._used[name.split(maxsplit=1)[0]] = None
            self._used[name] = None
            return f"{name.replace(' ', '_')}()"
        in_bytes = name.endswith(" bytes")
        name = name.removesuffix(" bytes")
        self._used[name] = None
        if in_bytes:
            values[1] = values[1] if values[1] == "0" else f"X * ({values[1]})"
        return f"file_{name.removeprefix('MPI_File_')}({', '.join(values)})"

    # -------------------------------------------------------------------------------------------------- numbers

    def _number(self, ranks: list[int], numbers: Sequence[Number], depth: int) -> str:
        terms = []
        for place in range(len(numbers[0])):
            parts = [number[place] for number in numbers]
            columns = [part.values for part in parts if isinstance(part, Column)]
            if columns:
                table = self._list([tuple(values) for values in columns], ranks)
                term = f"{table}[{_COUNTERS[depth - 1]}]"
            else:
                term = self._over_ranks(ranks, [part for part in parts if isinstance(part, int)])
            if term == "0":
                continue
            if place > 0:
                counter = _COUNTERS[depth - place]
                term = counter if term == "1" else f"{term if term.isdigit() else f'({term})'} * {counter}"
            terms.append(term)
        return " + ".join(terms) or "0"

    def _over_ranks(self, ranks: list[int], values: list[int]) -> str:
        """A formula of the rank that gives every value, else a table."""
        if len(set(values)) == 1:
            return str(values[0])
        formula = _affine(ranks, values) or _two_dimensional(ranks, values)
        if formula is not None:
            return formula
        table = [0] * self._count
        for rank, value in zip(ranks, values, strict=True):
            table[rank] = value
        return f"{self._table(table)}[rank]"

    def _list(self, lists: Sequence[Sequence[int]], ranks: list[int]) -> str:
        """A pointer to a list of each rank."""
        first = lists[0]
        if all(tuple(each) == tuple(first) for each in lists):
            return self._table(first)
        steps = [each[1] - each[0] if len(each) > 1 else 0 for each in lists]
        if all(each == tuple(each[0] + at * step for at in range(len(each))) for each, step in zip(
            map(tuple, lists), steps, strict=True
        ) if each) and all(len(each) for each in lists):  # fmt: skip
            words = [self._over_ranks(ranks, values) for values in (
                [len(each) for each in lists], [each[0] for each in lists], steps,
            )]  # fmt: skip
            return f"even({', '.join(words)})"
        starts = [0] * self._count
        flat: list[int] = []
        for rank, each in zip(ranks, lists, strict=True):
            starts[rank] = len(flat)
            flat += list(each)
        return f"({self._table(flat)} + {self._table(starts)}[rank])"

    def _table(self, values: Sequence[int]) -> str:
        key = tuple(values)
        if key not in self._known_tables:
            name = f"N{len(self._known_tables)}"
            self._known_tables[key] = name
            text = textwrap.wrap(", ".join(map(str, values)) or "0", _WIDTH)
            self._table_lines.append(f"static const ll {name}[] = {{" + "\n    ".join(text) + "};")
        return self._known_tables[key]


def _affine(ranks: Sequence[int], values: Sequence[int]) -> str | None:
    step, rest = divmod(values[1] - values[0], ranks[1] - ranks[0])
    base = values[0] - step * ranks[0]
    if rest or any(value != base + step * rank for rank, value in zip(ranks, values, strict=True)):
        return None
    if len(ranks) < 3 and len(ranks) != ranks[-1] + 1:
        return None  # through two points goes every line
    return _sum([(base, ""), (step, "rank")])


def _two_dimensional(ranks: Sequence[int], values: Sequence[int]) -> str | None:
    """base + a * (rank / width) + b * (rank % width), of ranks 0, 1, ..., where that gives every value."""
    if list(ranks) != list(range(len(ranks))) or len(ranks) < 4:
        return None
    for width in range(2, len(ranks)):
        base, column, row = values[0], values[1] - values[0], values[width] - values[0]
        if all(value == base + row * (rank // width) + column * (rank % width) for rank, value in enumerate(values)):
            return _sum([(base, ""), (row, f"(rank / {width})"), (column, f"(rank % {width})")])
    return None


def _sum(terms: Sequence[tuple[int, str]]) -> str:
    words = [
        str(factor) if not what else what if factor == 1 else f"{factor} * {what}" for factor, what in terms if factor
    ]
    return " + ".join(words) or "0"


def _type_statement(words: Sequence[str], values: list[str], lists: Sequence[str]) -> str:
    kind = words[0]
    if kind == "named":
        return f"named({values[0]}, {words[1]}, {values[1]})"
    if kind in ("subarray", "darray"):
        return f"{kind}({values[0]}, {values[1]}, (int[]){{{', '.join(f'(int)({value})' for value in values[2:])}}})"
    return f"{'dup_type' if kind == 'dup' else kind}({', '.join([*values, *lists])})"


def _ranks_said(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"Rank {ranks[0]}."
    if list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"Ranks {ranks[0]} to {ranks[-1]}."
    return f"{len(ranks)} ranks, the first {ranks[0]}."


def _resource(name: str) -> str:
    return resources.files("ioweir.replay").joinpath("templates").joinpath(name).read_text(encoding="utf-8")
