"""Every rule, in the order of the reference page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.findings.rules.files import independent_shared_file, metadata, reading_again, stdio_data, sync_and_close
from ioweir.findings.rules.hdf5 import fill_values, metadata_scattered
from ioweir.findings.rules.requests import (
    collective_scattered,
    data_sieving,
    misaligned_requests,
    noncontiguous_memory,
    random_access,
    small_requests,
)
from ioweir.findings.rules.storage import aggregators, targets
from ioweir.findings.rules.waiting import late_rank, locks, phases, serialised_writes, uneven_ranks

if TYPE_CHECKING:
    from ioweir.findings.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    small_requests.RULE,
    random_access.RULE,
    misaligned_requests.RULE,
    collective_scattered.RULE,
    data_sieving.SIEVING,
    data_sieving.MODIFYING,
    noncontiguous_memory.RULE,
    independent_shared_file.RULE,
    metadata.OWN,
    metadata.STORM,
    sync_and_close.SYNC,
    sync_and_close.CLOSE,
    sync_and_close.EXTENSION,
    reading_again.AGAIN,
    reading_again.BY_ALL,
    stdio_data.RULE,
    locks.WAIT,
    locks.HANDOVER,
    serialised_writes.RULE,
    uneven_ranks.ONE,
    uneven_ranks.UNBALANCED,
    uneven_ranks.SLOW,
    late_rank.RULE,
    phases.EXCHANGE,
    phases.OVERLAP,
    phases.CHECKPOINT,
    aggregators.COUNT,
    aggregators.IMBALANCE,
    targets.SLOW,
    targets.CONTENTION,
    metadata_scattered.METADATA,
    metadata_scattered.CHUNKS,
    fill_values.RULE,
)
BY_CODE: Final = {rule.code: rule for rule in RULES}
