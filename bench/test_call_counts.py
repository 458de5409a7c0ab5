"""What is read from callgrind's and strace's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import call_counts
import pytest

if TYPE_CHECKING:
    from pathlib import Path

PART = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
desc: Trigger: Client Request: write_at of 8 pieces,512
positions: line
events: Ir

ob=/usr/lib/libioweir_openmpi.so
fl=???
fn=ioweir_hook
0 300
cob=/usr/lib/libmpi.so.40
cfi=???
cfn=PMPI_Allreduce
calls=3 0
0 9000

fn=planned'2
0 100
0 20
cfn=mca_pml_ob1_send
calls=7 0
0 50

ob=/usr/lib/openmpi/mca_pml_ob1.so
fl=???
fn=mca_pml_ob1_isend
0 60
cfn=mca_pml_ob1_isend
calls=4 0
0 60
totals: 480
"""


def test_a_part_of_callgrind_gives_instructions_whose_they_are_and_messages(tmp_path: Path) -> None:
    path = tmp_path / "callgrind.7.1"
    path.write_text(PART)
    assert call_counts.part_of(path) == ("write_at of 8 pieces", 512)
    network, calls = call_counts.Counts(), call_counts.Counts()
    call_counts.add_part(network, path, call_counts.SENDS, 10)
    call_counts.add_part(calls, path, call_counts.COMMUNICATES, 10)
    assert network.instructions == pytest.approx(48)
    assert network.own == pytest.approx(42)
    assert network.messages == pytest.approx(0.4)  # a function of that name in another library does not count
    assert calls.messages == pytest.approx(0.3)
    assert call_counts.sum_by_name(network.functions) == pytest.approx(
        {
            "ioweir_hook (libioweir_openmpi.so)": 30,
            "planned'2 (libioweir_openmpi.so)": 12,
            "mca_pml_ob1_isend (mca_pml_ob1.so)": 6,
        }
    )


def test_what_lies_outside_of_loops_is_no_part(tmp_path: Path) -> None:
    path = tmp_path / "callgrind.7"
    path.write_text(PART.replace("Client Request: write_at of 8 pieces,512", "Program termination"))
    assert call_counts.part_of(path) is None


def test_system_calls_count_between_marks_of_all_threads(tmp_path: Path) -> None:
    log = tmp_path / "strace.7"
    log.write_text(
        '7  openat(AT_FDCWD, "a", O_RDONLY) = 3\n'
        '7  prctl(PR_SET_NAME, "begin")     = 0\n'
        '7  pwrite64(3, "y", 1, 0 <unfinished ...>\n'
        "8  futex(0x1, FUTEX_WAKE, 1)         = 1\n"
        "7  <... pwrite64 resumed>)           = 1\n"
        '7  prctl(PR_SET_NAME, "end")       = 0\n'
        "7  fsync(3)                          = 0\n"
        '7  prctl(PR_SET_NAME, "begin")     = 0\n'
        '7  prctl(PR_SET_NAME, "end")       = 0\n'
    )
    assert list(call_counts.between_marks(log)) == [{"pwrite64": 1, "futex": 1}, {}]


def test_a_function_has_its_name_alone() -> None:
    name = "ioweir::engine::(anonymous namespace)::Hook<&ioweir::A<int>::b, 3>::call(ompi_file_t*, long)"
    assert call_counts.short(name) == "ioweir::engine::Hook::call"
    assert call_counts.short("pwrite") == "pwrite"


def test_a_cell_has_sizes_together() -> None:
    small = call_counts.Counts(1000, 400, 0, {"pwrite64": 1})
    large = call_counts.Counts(1500, 410, 2.5, {"pwrite64": 1, "futex": 0.2})
    assert call_counts.cell([small]) == "1,000 (400); 1 pwrite64"
    assert call_counts.cell([small, large]) == "1,000 to 1,500 (400); 0 to 0.2 futex; 1 pwrite64; 0.0 to 2.5 sent"
    assert call_counts.cell([call_counts.Counts(10, 5)]) == "10 (5); no system call"
