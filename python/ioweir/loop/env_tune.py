"""`ioweir env --tune TRACE`: a batch job under the plan that an earlier job's trace gives.

Lives here: where that plan goes, and what is said of it. Not here: how it is chosen (predict/tune.py), what a batch
script needs (launch/batch.py).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ioweir import errors
from ioweir.base import plain_text
from ioweir.base.guarded_files import read_named
from ioweir.errors import IoweirError
from ioweir.launch import batch
from ioweir.launch.run import make_directory
from ioweir.loop import measure
from ioweir.predict import tune

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ioweir.launch.tracing_options import Tracing

_ENDING = ".plan.toml"


def prepare(
    trace: Path, output: Path, machine: str | None, verify: bool, tracing: Tracing, environment: Mapping[str, str]
) -> batch.BatchVariables:
    """The variables of a script whose ranks run under the plan that helps the run of `trace`; without one if none does.

    The plan is kept as OUTPUT.plan.toml. Where `trace` is not there, the job is the first of its kind: it is traced
    alone. So one script serves the first job and all later ones. No job fails because no plan can be made.
    `machine`: as of `ioweir tune`.
    """
    if not trace.exists():
        _say(f"--tune {trace}: is not there yet, so this job is traced without a plan")
        return batch.prepare(output, None, False, tracing, environment)
    if tracing.anonymise_key is not None:
        _say("--tune: a plan names files, and this trace is to be anonymised, so this job is traced without a plan")
        return batch.prepare(output, None, False, tracing, environment)
    make_directory(output, "env", time.time())
    plan = Path(f"{output}{_ENDING}")
    try:
        result = _planned(trace, plan, machine)
    except (IoweirError, OSError) as error:
        _say(f"--tune {trace}: no plan can be made, so this job is traced without one: {errors.text(error)}")
        return batch.prepare(output, None, False, tracing, environment)
    for line in tune.to_text(result):
        _say(line)
    if result["output"] is None:
        _say("nothing that was simulated is faster: this job is traced without a plan")
        return batch.prepare(output, None, False, tracing, environment)
    return batch.prepare(output, plan, verify, tracing, environment)


def _planned(trace: Path, plan: Path, machine: str | None) -> dict[str, Any]:
    storage = measure.storage_if_known(trace) if machine is None else None
    return tune.tune(tune.Options(plan, machine, trace, storage=storage, force=_is_of_tune(plan)))


def _is_of_tune(plan: Path) -> bool:
    """An earlier job's, which is replaced; nobody else's is."""
    if not plan.exists():
        return False
    if read_named(plan).startswith(tune.MADE_BY.encode()):
        return True
    raise IoweirError(f"{plan} is there, and `ioweir tune` has not made it; move it, or name another --output")


def _say(text: str) -> None:
    plain_text.say(f"ioweir: {text}")
