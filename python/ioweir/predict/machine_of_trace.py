"""On which machine `ioweir tune` simulates a trace: the one that was named, one kept of this node, or one fitted.

Lives here: which. Not here: the fit (calibrate.py), what is kept (kept.py), machine files (machine.py).
"""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ioweir.base import units
from ioweir.errors import IoweirError
from ioweir.predict import kept, kinds, measured, workload
from ioweir.predict import machine as machines

if TYPE_CHECKING:
    from ioweir.predict.machine import Machine
    from ioweir.predict.tune import Options

_CALIBRATION_REPEATS: Final = 2


def machine_of(options: Options) -> tuple[Machine, list[str]]:
    """The one that was named, else the one kept of this node, else one fitted to the trace; and remarks."""
    machine, remarks = _found(options)
    return _home_first(machine, options), remarks


def _found(options: Options) -> tuple[Machine, list[str]]:
    if options.machine is not None:
        return machines.read(options.machine), []
    assert options.trace is not None
    if (known := _kept_machine(options)) is not None:
        return known
    from ioweir.predict import calibrate  # noqa: PLC0415 (loads an optimiser)

    try:
        fitted = calibrate.fit_machine(calibrate.of_trace(options.trace), f"fitted to {options.trace}")
    except IoweirError as error:
        storage = options.storage or _storage_at_hand(options)
        if storage is not None:
            measured = calibrate.fit_machine(calibrate.of_storage(storage, _CALIBRATION_REPEATS), "measured")
            return machines.parse(measured["machine"], "the machine measured on the spot"), [
                f"the machine is measured at {storage}, held-out error {measured['held_out']['median']:.0%} "
                f"(median); to the trace none can be fitted: {error}"
            ]
        raise IoweirError(
            f"no machine can be fitted to {options.trace}: {error}. Or name one: --machine "
            f"{'|'.join(machines.names())}, or what `ioweir calibrate --targets PATH` makes",
            error.exit_code,
        ) from error
    held = fitted["held_out"]
    said = f", held-out error {held['median']:.0%} (median)" if held["cases"] else ""
    return machines.parse(fitted["machine"], "the machine fitted to the trace"), [
        f"the machine is fitted to the trace's own calls{said}: it knows one node and one target"
    ]


def _home_first(machine: Machine, options: Options) -> Machine:
    """Of targets that are folders, the first is simulated as the one on which the program's files lie."""
    if not machine.figures.get("targets.folders") or options.trace is None:
        return machine
    folder = options.storage or _storage_at_hand(options)
    try:
        places = [] if folder is None else measured.directories(folder)
    except IoweirError:
        return machine
    inside = (
        number for number, place in enumerate(places) if folder and folder.resolve().is_relative_to(place.resolve())
    )
    home = next(inside, 0)
    slow = {{0: home, home: 0}.get(number, number): factor for number, factor in machine.slow_targets.items()}
    return replace(machine, slow_targets=slow)


def _kept_machine(options: Options) -> tuple[Machine, list[str]] | None:
    """What `ioweir calibrate --kernels` keeps of this node, if the trace is of it and its files lie on no targets."""
    assert options.trace is not None
    trace = workload.loaded_whole(options.trace)
    libraries = {process.mpi_library for process in trace.processes if process.mpi_library}
    folder = options.storage or _storage_at_hand(options)
    elsewhere = set(trace.hosts) != {platform.node()} or not {"imported", "simulated"}.isdisjoint(trace.run)
    if elsewhere or len(libraries) != 1 or folder is None:
        return None
    found = kept.find(folder, "openmpi" if "Open MPI" in libraries.pop() else "mpich")
    if found is None or measured.directories(folder) != [folder]:
        return None
    age = f"{found.days} {units.plural('day', found.days)} ago" if found.days else "today"
    return found.machine, [
        f"the machine is {found.path}, which `ioweir calibrate --kernels` made {age} of this node and its {found.kind}"
    ]


def _storage_at_hand(options: Options) -> Path | None:
    """Where the recorded file with most time was, if that is on this machine and files may be made there."""
    assert options.trace is not None
    loaded = workload.loaded_whole(options.trace)
    found, _ = kinds.of_trace(loaded, loaded.requests(), options.trace, options.file)
    folder = Path(found[0].path).parent
    return folder if folder.is_dir() and os.access(folder, os.W_OK) else None
