"""Where ioweir was not built for the program's MPI library: what the user and the trace hear of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tracing
from ioweir.trace import reader

PROGRAM = """#include <mpi.h>
int main(int argc, char** argv) {
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("mpi", tracing.MPIS, ids=lambda mpi: mpi.name)
def test_the_missing_part_is_named_and_no_path_is_in_the_trace(mpi: tracing.Mpi, tmp_path: Path) -> None:
    folder = tmp_path / "ioweir-alone"
    folder.mkdir()
    preload = shutil.copy(tracing.preload_library(), folder)
    (tmp_path / "program.c").write_text(PROGRAM)
    program = tmp_path / "program"
    tracing.run([mpi.cc, str(tmp_path / "program.c"), "-o", str(program)])
    (tmp_path / "trace").mkdir()
    finished = tracing.run(
        [program, tmp_path / "data"], env={"LD_PRELOAD": str(preload), "IOWEIR_DIR": str(tmp_path / "trace")}
    )
    assert finished.code == 0
    missing = f"cannot load libioweir_{mpi.name}.so (was ioweir built for this MPI library?)"
    assert missing in finished.err
    assert str(folder) in finished.err
    (note,) = [note for note in reader.read(tmp_path / "trace").notes if note.code == "disabled"]
    assert missing in note.text
    assert folder.name not in note.text
