"""The packages that programs import: the names that docs/reference/python-trace.md promises, loaded when asked for."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest
from ioweir import report, trace
from ioweir.base import json_text
from ioweir.report import figures, model
from ioweir.trace import reader


@pytest.mark.parametrize(
    ("package", "modules"), [(trace, [reader]), (report, [figures, model, json_text])], ids=["trace", "report"]
)
def test_a_package_has_the_names_of_its_modules(package: ModuleType, modules: list[ModuleType]) -> None:
    for name in package.__all__:
        assert any(getattr(package, name) is getattr(module, name, None) for module in modules)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_the_names_of_the_reference_are_there() -> None:
    assert {"read", "load", "Process", "Thread", "Function", "Datatype", "View", "Access"} <= set(trace.__all__)
    assert {"build", "to_dict"} <= set(report.__all__)


def test_a_package_loads_its_module_when_it_is_asked_for() -> None:
    code = (
        "import sys, ioweir.trace, ioweir.report\n"
        "assert not {'ioweir.trace.reader', 'ioweir.report.figures'} & set(sys.modules)\n"
        "assert ioweir.trace.load is ioweir.trace.read\n"
        "assert callable(ioweir.report.build)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_a_launcher_waits_for_loads_no_command() -> None:
    code = (
        "import sys, ioweir.launch.shim\n"
        "loaded = {name for name in sys.modules if name.startswith('ioweir.')}\n"
        "assert not [name for name in loaded if name.split('.')[1] in ('cli', 'trace', 'report', 'plan')], loaded\n"
        "assert 'typer' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
