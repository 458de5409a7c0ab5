"""Files that an MPI runtime makes or looks for itself: shared memory, its session directory, its settings, its probes.

They are no I/O of the program, so that the report lists them apart. The patterns are narrow on purpose: programs (and
tests) put files of their own into /dev/shm and /tmp.
"""

from __future__ import annotations

import re
from typing import Final

_PATTERNS: Final = (
    r"/dev/shm/(vader_segment|sm_segment|osc_rdma|osc_sm|hwloc|mpich_shar_tmp|psm2?_shm|ucx_shm_posix|Intel_MPI_)[^/]*",
    # Open MPI's and PRRTE's session directories, and PMIx's stores: ompi.HOST.UID/..., prte.HOST.UID/..., pmix-...
    r".*/(ompi|prte|openmpi-sessions)[.-][^/]+\.\d+(_\d+)?(/.*)?",
    r".*/pmix(_dstor_|-|\.)[^/]*(/.*)?",
    # The folder that Slurm's plugin for PMIx makes for each step: UID_JOB.STEP, or a digest and a number.
    r".*/spmix_appdir_[^/]+\.\d+(/.*)?",
    # The user's settings of Open MPI, PMIx and PRRTE, which need not be there.
    r".*/\.(openmpi|pmix|prte)(/.*)?",
    r".*/(openmpi|pmix|prte)-mca-params(-override)?\.conf",
    # OMPIO tries whether locks work beside every file that it opens (common/ompio).
    r".*\.locktest\.\d+",
    # Its shared file pointer beside each file, with ranks on several nodes: FILE-JOB-PROCESS.lock, the job
    # a number of 32 bits (sharedfp/lockedfile).
    r".*-\d{6,10}-\d+\.lock",
)
_RUNTIME: Final = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS))


def is_runtime_file(path: str) -> bool:
    """Whether this file is an MPI runtime's own. Example: /dev/shm/vader_segment.host.0.6d32.1 -> True."""
    return _RUNTIME.fullmatch(path) is not None
