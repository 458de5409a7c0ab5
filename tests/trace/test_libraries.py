"""HDF5, PnetCDF and netCDF hooks without those libraries: every wrapper passes everything on, and calls reach the
library that they would have reached without ioweir, whatever was loaded how.

The libraries here are stand-ins, made for the purpose; the real ones are in test_library_programs.py.
"""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

import library_cases
import pytest
from tracing import BUILD, PROGRAMS, TIMEOUT_S, Recorded, Traced, preloaded, run, totals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HANDLES: Final = {"mpich": "int", "openmpi": "void*"}
"""What MPI handles are in the two families."""


def compiled(name: str, text: str, *flags: str) -> Path:
    """A program or library from C text, once for each text and flags."""
    key = hashlib.sha256("\0".join([text, *flags]).encode()).hexdigest()[:16]
    directory = BUILD / key
    target = directory / name
    if not target.exists():
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "text.c").write_text(text)
        finished = subprocess.run(
            ["gcc", *flags[:1], "-w", "-g", "-o", f"{target}.new", str(directory / "text.c"), *flags[1:]],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr
        target.with_name(f"{name}.new").rename(target)
    return target


# ------------------------------------------------------------------------------------------------------- every wrapper


@pytest.fixture(params=sorted(HANDLES))
def stand_in(request: pytest.FixtureRequest) -> Path:
    """The program that calls every function, linked against the library that remembers."""
    handle = f"-DHANDLE={HANDLES[request.param]}"
    library = compiled("libstandin.so", library_cases.library_text(), "-O0", handle, "-shared", "-fPIC",
                       "-Wl,-soname,libstandin.so")  # fmt: skip
    return compiled(
        "calls-all", library_cases.program_text(), "-O0", handle, str(library), f"-Wl,-rpath,{library.parent}"
    )


@pytest.mark.one_of(6)
@pytest.mark.parametrize("fails", [0, 1])
@pytest.mark.parametrize("careful", [0, 1])
def test_every_function_gets_its_arguments_through_a_hook_that_only_forwards(
    stand_in: Path, tmp_path: Path, careful: int, fails: int
) -> None:
    command = [str(stand_in), str(careful), str(fails)]
    assert run(command).expect().out == ""
    assert preloaded(tmp_path, command, env={"IOWEIR_DISABLE": "1"}).expect().out == ""
    assert preloaded(tmp_path, command, env={"IOWEIR_LAYERS": "posix,mpiio,stdio"}).expect().out == ""


@pytest.mark.parametrize("fails", [0, 1])
def test_every_function_gets_its_arguments_and_is_recorded_once(stand_in: Path, tmp_path: Path, fails: int) -> None:
    traced = preloaded(tmp_path, [str(stand_in), "1", str(fails)])
    assert traced.expect().out == ""
    expected: Counter[str] = Counter()
    for function in library_cases.functions():
        # An id that no file is known of is released without an event; H5close has none.
        if function.body not in {"release", "forget"}:
            expected[function.events[0].name] += 1
    library_layers = {"HDF5", "PnetCDF", "netCDF"}
    events = [event for event in traced.trace.events if event.layer in library_layers]
    assert Counter(event.name for event in events) == expected
    assert all(event.failed == bool(fails) for event in events)
    assert traced.trace.is_whole()
    codes = {
        number: function for number, function in enumerate(library_cases.functions())
        if function.body not in {"release", "forget"}
    }  # fmt: skip
    if fails:
        assert [event.error for event in sorted(events, key=lambda e: e.seq)] == [-1 - number for number in codes]


@pytest.mark.parametrize("layer", ["hdf5", "pnetcdf", "netcdf"])
def test_one_layer_alone(stand_in: Path, tmp_path: Path, layer: str) -> None:
    traced = preloaded(tmp_path, [str(stand_in), "1", "0"], env={"IOWEIR_LAYERS": layer})
    traced.expect()
    recorded = [f for f in library_cases.functions() if f.body not in {"release", "forget"} and f.api == layer]
    assert len(traced.trace.events) == len(recorded) > 0
    assert len({event.layer for event in traced.trace.events}) == 1


def test_a_function_that_nobody_defines_fails_and_does_not_call_itself(tmp_path: Path) -> None:
    text = """#include <stdint.h>
    #include <stdio.h>
    #pragma weak nc_sync
    #pragma weak H5Fopen
    int nc_sync(int id);
    int64_t H5Fopen(const char* name, unsigned flags, int64_t list);
    int main(void) { printf("%d %lld\\n", nc_sync ? nc_sync(1) : -1, H5Fopen ? (long long)H5Fopen("x", 0, 0) : -1); }"""
    program = compiled("weak", text, "-O1")
    assert run([program]).out == "-1 -1\n"
    assert preloaded(tmp_path, [program]).expect().out == "-1 -1\n"


# --------------------------------------------------------------------------------------------- which library is meant


def provider(which: int, *flags: str) -> Path:
    """A library that defines the functions itself; its H5Dopen1 adds 100 * which."""
    text = (PROGRAMS / "library_provider.c").read_text()
    return compiled(f"libprovider{which}.so", text, "-O2", "-shared", "-fPIC", f"-DWHICH={which}",
                    f"-Wl,-soname,libprovider{which}.so", *flags)  # fmt: skip


def above(which: int, *needs: Path, flags: Sequence[str] = ()) -> Path:
    """A library that calls them, and needs the libraries given."""
    text = (PROGRAMS / "library_provider.c").read_text()
    paths = [f"-Wl,-rpath,{path.parent}" for path in needs]
    return compiled(f"libabove{which}.so", text, "-O2", "-shared", "-fPIC", f"-DCALLS={which}", "-Wl,--no-as-needed",
                    f"-Wl,-soname,libabove{which}.so", *map(str, needs), *paths, *flags)  # fmt: skip


def far(which: int) -> Path:
    """A library that reaches the provider through a function that ends in the call: the return address is here."""
    text = (PROGRAMS / "library_provider.c").read_text()
    needed = above(which, provider(which))
    return compiled(f"libfar{which}.so", text, "-O2", "-shared", "-fPIC", f"-DTHROUGH={which}", str(needed),
                    f"-Wl,-soname,libfar{which}.so", f"-Wl,-rpath,{needed.parent}")  # fmt: skip


def versioned(tmp_path: Path, which: int) -> Path:
    """A provider whose symbols have a version of its own, as Debian's libraries do."""
    script = tmp_path / f"provider{which}.map"
    script.write_text(f"PROVIDER_{which} {{ global: *; }};\n")
    return provider(which, f"-Wl,--version-script={script}")


def same_as_without(tmp_path: Path, words: Sequence[str | Path], events: int | None = None) -> Traced:
    """The user program prints the same with the hooks as without, and its HDF5 calls are recorded."""
    program = compiled("library-user", (PROGRAMS / "library_user.c").read_text(), "-O1", "-ldl")
    command = [program, *words]
    alone = run(command).expect()
    traced = preloaded(tmp_path / "trace", command)
    assert traced.expect().out == alone.out
    if events is not None:
        assert sum(event.name == "H5Dopen1" for event in traced.trace.events) == events
    return traced


@pytest.fixture
def trace_directory(tmp_path: Path) -> Path:
    """Where same_as_without() traces."""
    (tmp_path / "trace").mkdir()
    return tmp_path


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2])))
@pytest.mark.parametrize("openings", [("", ""), ("!", ""), ("", "!"), ("!", "!")])
def test_two_libraries_and_a_caller_of_each(
    trace_directory: Path, order: tuple[int, int], openings: tuple[str, str]
) -> None:
    words: list[str] = []
    for which, opening in zip(order, openings, strict=True):
        words += [f"{above(which, provider(which))}{opening}", f"reach_{which}"]
        words += [f"{far(which)}{opening}", f"far_{which}"]
    first = above(order[0], provider(order[0]))
    same_as_without(trace_directory, [*words, str(first), f"reach_{order[0]}"], events=5)


def test_one_scope_with_two_libraries_means_the_first_of_it(trace_directory: Path) -> None:
    # Both are needed by the object that is opened: everything loaded with it means the one that comes first in breadth.
    inner = above(2, provider(2))
    outer = above(1, provider(1), inner)
    same_as_without(trace_directory, [str(outer), "reach_1", "reach_2"], events=2)


def test_versions_decide_in_one_scope(trace_directory: Path) -> None:
    # What Debian's netCDF (serial HDF5) and a program's own parallel HDF5 are like.
    first, second = versioned(trace_directory, 1), versioned(trace_directory, 2)
    inner = above(2, second)
    outer = above(1, first, inner)
    traced = same_as_without(trace_directory, [f"{outer}!", "reach_1", "reach_2"], events=2)
    assert traced.out.split() == ["1101", "1201"]


def test_objects_with_the_old_hash_table_only(trace_directory: Path) -> None:
    words: list[str] = []
    for which in (1, 2):
        old = above(which, provider(which, "-Wl,--hash-style=sysv"), flags=["-Wl,--hash-style=sysv"])
        words += [str(old), f"reach_{which}"]
    traced = same_as_without(trace_directory, words, events=2)
    assert traced.out.split() == ["1101", "1201"]


def test_an_object_that_leaves_its_needs_to_whoever_loads_it(trace_directory: Path) -> None:
    other = above(3, provider(3))
    bare = above(2)
    outer = above(1, bare, provider(1))
    same_as_without(trace_directory, [str(other), "reach_3", str(outer), "reach_1", "reach_2"], events=3)


def test_a_library_that_comes_again_is_found_anew(trace_directory: Path) -> None:
    first, second = above(1, provider(1)), above(2, provider(2))
    words = [str(first), "reach_1", f"-{first}", str(second), "reach_2", f"-{second}", str(first), "reach_1"]
    traced = same_as_without(trace_directory, words, events=3)
    assert traced.out.split() == ["1101", "1201", "1101"]


def test_functions_looked_up_by_handle(trace_directory: Path) -> None:
    # As ctypes does it: the caller of such a function is nobody that needs the library.
    traced = same_as_without(trace_directory, [str(provider(1)), "H5Dopen1", "H5Dopen1"], events=2)
    assert traced.out.split() == ["1100", "1100"]


def test_functions_looked_up_by_handle_in_two_libraries(trace_directory: Path) -> None:
    words = [str(provider(1)), "H5Dopen1", str(provider(2)), "H5Dopen1", str(provider(1)), "H5Dopen1"]
    traced = same_as_without(trace_directory, words, events=2)
    assert traced.out.split() == ["1100", "1200", "1100"]
    notes = [note["text"] for note in traced.trace.notes]
    assert any("calls to the second one through dlsym are not traced" in text for text in notes)


def test_a_name_that_no_library_has_is_not_found_by_handle(trace_directory: Path) -> None:
    same_as_without(trace_directory, [str(provider(1)), "H5Dopen2", "nc_open", "MPI_File_open", "MPI_Send"], events=0)


def test_the_programs_own_handle_has_only_what_is_loaded(tmp_path: Path) -> None:
    # A program that asks whether there is an HDF5 in it must not find ours.
    script = tmp_path / "asks.py"
    script.write_text(
        "import ctypes, sys\n"
        "def asks():\n"
        "    try: return ctypes.CDLL(None).H5Dopen1(1000, b'x')\n"
        "    except AttributeError as error: return 'undefined symbol' in str(error)\n"
        "print(asks())\n"
        "ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)\n"
        "print(asks())\n"
    )
    command: list[str | Path] = [sys.executable, script, provider(1)]
    assert run(command).expect().out == "True\n1100\n"
    traced = preloaded(tmp_path, command)
    assert traced.expect().out == "True\n1100\n"
    assert [event.name for event in traced.trace.events if event.layer == "HDF5"] == ["H5Dopen1"]


def test_a_hooked_function_that_ends_in_a_call_of_another(trace_directory: Path) -> None:
    # nc_sync of each library jumps into its own H5Dopen1: back it would come to ioweir's hook, not to the library.
    words = [str(above(2, provider(2))), "reach_2", str(provider(1)), "nc_sync"]
    traced = same_as_without(trace_directory, words, events=2)
    assert traced.out.split() == ["1201", "1100"]


def test_events_of_a_call_inside_another_name_it_as_their_parent(trace_directory: Path) -> None:
    traced = same_as_without(trace_directory, [f"{provider(1)}", "nc_sync"], events=1)
    recorded: Recorded = traced.trace
    (inner,) = [event for event in recorded.events if event.name == "H5Dopen1"]
    outer = recorded.parent_of(inner)
    assert outer is not None
    assert outer.name == "nc_sync"
    assert outer.failed  # a result other than 0


def test_hdf5_older_than_1_10_is_passed_on(trace_directory: Path) -> None:
    # Its ids have 32 bits: what the other half of a register holds is nothing that tables may hold.
    traced = same_as_without(trace_directory, [str(above(1, provider(1, "-DOLD"))), "reach_1"], events=0)
    assert traced.out.split() == ["1101"]
    assert any("older than 1.10" in note["text"] for note in traced.trace.notes)


THREADS: Final = """#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int64_t reach_1(void);
static volatile int stop;
static void* calls(void* unused) {
    long count = 0;
    while (!stop || count < 1000) {
        if (reach_1() != 1101) abort();
        ++count;
    }
    return unused;
}
int main(int argc, char** argv) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], 0, calls, 0);
    for (int round = 0; round < 200; ++round)
        for (int i = 1; i < argc; ++i) {
            void* library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
            if (library == 0) return 1;
            dlclose(library);
        }
    stop = 1;
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], 0);
    puts("done");
}
"""


def test_threads_call_while_libraries_that_call_too_come_and_go(trace_directory: Path) -> None:
    # The dynamic linker holds a lock while it runs what a library does when it is loaded; nobody may wait for that.
    needed = above(1, provider(1))
    passing = above(2, provider(2), flags=["-DWHEN_LOADED"])
    paths = [f"-Wl,-rpath,{needed.parent}", f"-Wl,-rpath,{provider(1).parent}"]
    program = compiled("threads", THREADS, "-O1", "-pthread", str(needed), *paths, "-ldl")
    command = [program, passing]
    assert run(command).expect().out == "done\n"
    traced = preloaded(trace_directory / "trace", command)
    assert traced.expect().out == "done\n"
    assert traced.trace.is_whole()
    counts = sorted(calls for calls, _ in totals(traced.trace.events, "thread").values())
    assert len(counts) == 5
    assert 200 * 100 in counts
    assert counts[0] >= 1000


TOOL: Final = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
int64_t H5Dopen1(int64_t location, const char* name) {
    int64_t (*next)(int64_t, const char*) = (int64_t (*)(int64_t, const char*))dlsym(RTLD_NEXT, "H5Dopen1");
    return next != 0 ? next(location, name) + 1000000 : -1;
}
"""


@pytest.mark.parametrize("place", ["before", "after"])
def test_another_tool_that_stands_in_for_the_same_function(trace_directory: Path, place: str) -> None:
    tool = compiled("libtool.so", TOOL, "-O2", "-shared", "-fPIC", "-ldl")
    needed = above(1, provider(1))
    text = """#include <stdint.h>
    #include <stdio.h>
    int64_t reach_1(void);
    int main(void) { printf("%lld\\n", (long long)reach_1()); }"""
    program = compiled(
        "reaches", text, "-O1", str(needed), f"-Wl,-rpath,{needed.parent}", f"-Wl,-rpath,{provider(1).parent}"
    )
    alone = run([program], env={"LD_PRELOAD": str(tool)}).expect()
    assert alone.out == "1001101\n"
    libraries = {place: tool}
    traced = preloaded(
        trace_directory / "trace", [program], before=libraries.get("before"), after=libraries.get("after")
    )
    assert traced.expect().out == alone.out
    assert [event.name for event in traced.trace.events] == ["H5Dopen1"]
