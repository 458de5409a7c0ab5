"""The layer checker, on small checkouts made for the purpose and on this one."""

from pathlib import Path, PurePosixPath
from typing import Any

import check_layers
import pytest

TABLE: dict[str, Any] = {
    "modules": {
        "base": {"path": "src/base", "uses": []},
        "mpi": {"path": "src/mpi", "uses": ["base"], "mpi": True},
        "layout/core": {"path": "src/layout/core", "uses": ["base"]},
        "layout/mpi": {"path": "src/layout/mpi", "uses": ["base", "layout/core", "mpi"]},
        "tracer": {"path": "src/tracer", "uses": ["base", "mpi"]},
        "engine": {"path": "src/engine", "uses": ["base", "layout/core", "layout/mpi", "mpi"]},
        "include": {"path": "include", "uses": []},
    },
    "generated": {"mpi_file_calls.hpp": "mpi"},
    "packages": {
        "tool": {"path": "python/tool/__init__.py", "uses": []},
        "_core": {"path": "python/tool/_core", "uses": []},
        "errors": {"path": "python/tool/errors.py", "uses": []},
        "base": {"path": "python/tool/base", "uses": ["errors", "_core"]},
        "trace": {"path": "python/tool/trace", "uses": ["errors", "base"]},
        "report": {"path": "python/tool/report", "uses": ["errors", "base", "trace"]},
    },
}
MODULES = {
    "python/tool/__init__.py": "",
    "python/tool/errors.py": "",
    "python/tool/base/__init__.py": "",
    "python/tool/base/units.py": "",
    "python/tool/trace/__init__.py": "def load(): ...\n",
    "python/tool/trace/reader.py": "",
    "python/tool/report/__init__.py": "",
    "python/tool/report/figures.py": "",
}


def make(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def offences(root: Path, files: dict[str, str]) -> list[tuple[str, int, str]]:
    make(root, files)
    table = check_layers.parse_table(TABLE)
    return [
        (str(offence.path), offence.line, offence.rule)
        for path in check_layers.sources(table, root)
        for offence in check_layers.check_file(table, root, path)
    ]


def test_allowed_includes_pass(tmp_path: Path) -> None:
    found = offences(
        tmp_path,
        {
            "src/base/a.hpp": "#include <vector>\n",
            "src/mpi/mpi.hpp": "#include <mpi.h>\n",
            "src/layout/core/x.cpp": '#include "x.hpp"\n#include "base/a.hpp"\n',
            "src/layout/core/x.hpp": "",
            "src/layout/mpi/v.cpp": '#include "mpi/mpi.hpp"\n#include "layout/core/x.hpp"\n'
            '#include "ioweir_generated/mpi_file_calls.hpp"\n',
        },
    )
    assert found == []


@pytest.mark.parametrize(
    ("name", "line", "pair"),
    [
        ("src/engine/e.cpp", '#include "tracer/t.hpp"', "engine -> tracer"),
        ("src/tracer/t2.cpp", '#include "engine/e.hpp"', "tracer -> engine"),
        ("src/base/b.cpp", '#include "layout/core/x.hpp"', "base -> layout/core"),
        ("src/layout/core/y.cpp", '#include "../mpi/v.hpp"', "layout/core -> layout/mpi"),
        ("src/layout/core/y.cpp", "#  include <layout/mpi/v.hpp>", "layout/core -> layout/mpi"),
        ("include/ioweir/ioweir.h", '#include "base/a.hpp"', "include -> base"),
        ("src/base/b.cpp", '#include "ioweir_generated/mpi_file_calls.hpp"', "base -> mpi"),
        ("src/layout/core/y.cpp", "#include <mpi.h>", "must not include mpi.h"),
        ("src/engine/e.cpp", "#include <mpi.h>", "must not include mpi.h"),
        ("src/engine/e.cpp", '#include "base/mispelt.hpp"', "does not exist in module 'base'"),
        ("src/base/b.cpp", '#include "ioweir_generated/other.hpp"', "has no module"),
    ],
)
def test_each_breach_is_reported_with_file_and_line(tmp_path: Path, name: str, line: str, pair: str) -> None:
    common = {
        "src/base/a.hpp": "",
        "src/layout/core/x.hpp": "",
        "src/layout/mpi/v.hpp": "",
        "src/tracer/t.hpp": "",
        "src/engine/e.hpp": "",
    }
    found = offences(tmp_path, {**common, name: f"// first line\n\n{line}\n"})
    assert [(path, number) for path, number, _ in found] == [(name, 3)]
    assert pair in found[0][2]


def test_comments_are_not_includes(tmp_path: Path) -> None:
    text = '// #include "engine/e.hpp"\n/* a comment\n#include "engine/e.hpp"\n*/ int x;\n/* one line */\n'
    assert offences(tmp_path, {"src/tracer/t.cpp": text, "src/engine/e.hpp": ""}) == []


def test_a_directory_without_a_module_is_reported(tmp_path: Path) -> None:
    found = offences(tmp_path, {"src/attic/a.cpp": "int x;\n"})
    assert [(path, line) for path, line, _ in found] == [("src/attic/a.cpp", 1)]


def import_offences(root: Path, files: dict[str, str]) -> list[tuple[str, int, str]]:
    make(root, MODULES | files)
    table = check_layers.parse_table(TABLE)
    return [
        (str(offence.path), offence.line, offence.rule)
        for path in check_layers.modules(table, root)
        for offence in check_layers.check_module(table, root, path)
    ]


def test_allowed_imports_pass(tmp_path: Path) -> None:
    found = import_offences(
        tmp_path,
        {
            "python/tool/base/compiled.py": 'import importlib\nimportlib.import_module("tool._core")\n',
            "python/tool/report/text.py": "import os.path\nimport numpy as np\nimport tool.trace.reader\n"
            "from tool import errors\nfrom tool.trace import load, reader\nfrom tool.report import figures\n"
            "from . import figures as same\nfrom .figures import nothing\nfrom ..trace.reader import read\n",
        },
    )
    assert found == []


@pytest.mark.parametrize(
    ("name", "line", "rule"),
    [
        ("trace/late.py", "from tool.report.figures import build", "trace -> report"),
        ("trace/late.py", "from tool.report import figures", "trace -> report"),
        ("trace/late.py", "from tool import report", "trace -> report"),
        ("trace/late.py", "import tool.base.units, tool.report", "trace -> report"),
        ("trace/late.py", "from ..report import figures", "trace -> report"),
        ("trace/late.py", "from .. import report", "trace -> report"),
        ("trace/__init__.py", "from ..report import figures", "trace -> report"),
        ("trace/late.py", "def f():\n    from tool.report import figures", "trace -> report"),
        ("trace/late.py", "if TYPE_CHECKING:\n    from tool.report import Report", "trace -> report"),
        ("trace/late.py", 'module = importlib.import_module("tool.report.figures")', "trace -> report"),
        ("trace/late.py", 'find_spec("tool._core")', "trace -> _core"),
        ("errors.py", "from tool.base import units", "errors -> base"),
        ("base/late.py", "import tool", "base -> tool"),
        ("base/late.py", "from tool import nothing", "base -> tool"),
        ("base/late.py", "from tool.unit import size", "there is no module tool.unit"),
    ],
)
def test_each_import_beyond_its_package_is_reported(tmp_path: Path, name: str, line: str, rule: str) -> None:
    path = f"python/tool/{name}"
    found = import_offences(tmp_path, {path: f'"""A module."""\n\n{line}\n'})
    assert [(place, number) for place, number, _ in found] == [(path, 3 + line.count("\n"))]
    assert rule in found[0][2]


def test_text_and_comments_are_not_imports(tmp_path: Path) -> None:
    text = '"""import tool.report"""\n# from tool.report import figures\nCODE = "from tool.report import figures"\n'
    assert import_offences(tmp_path, {"python/tool/trace/late.py": text}) == []


def test_a_module_without_a_package_is_reported(tmp_path: Path) -> None:
    found = import_offences(tmp_path, {"python/tool/attic.py": "", "python/tool/base/b.py": "import tool.attic\n"})
    assert [(path, line) for path, line, _ in found] == [("python/tool/attic.py", 1), ("python/tool/base/b.py", 1)]
    assert all("lies in no package" in rule for _, _, rule in found)


def test_table_refuses_cycles_and_unknown_modules() -> None:
    circle = {"modules": {"a": {"path": "src/a", "uses": ["b"]}, "b": {"path": "src/b", "uses": ["a"]}}}
    with pytest.raises(check_layers.TableError, match="a -> b -> a"):
        check_layers.parse_table(circle)
    with pytest.raises(check_layers.TableError, match="unknown modules: nowhere"):
        check_layers.parse_table({"modules": {"a": {"path": "src/a", "uses": ["nowhere"]}}})
    with pytest.raises(check_layers.TableError, match="packages use each other in a circle: a -> b -> a"):
        check_layers.parse_table({"modules": {}, "packages": circle["modules"]})
    with pytest.raises(check_layers.TableError, match="package 'a' uses unknown packages: nowhere"):
        check_layers.parse_table({"modules": {}, "packages": {"a": {"path": "python/a", "uses": ["nowhere"]}}})


def test_exit_code_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(
        tmp_path,
        {
            "tools/layers.toml": '[modules.a]\npath = "src/a"\nuses = []\n[modules.b]\npath = "src/b"\nuses = ["a"]\n',
            "src/a/a.hpp": "",
            "src/b/b.cpp": '#include "a/a.hpp"\n',
        },
    )
    assert check_layers.main(["--root", str(tmp_path)]) == 0
    (tmp_path / "src/a/a.hpp").write_text('#include "b/b.hpp"\n')
    (tmp_path / "src/b/b.hpp").write_text("")
    assert check_layers.main(["--root", str(tmp_path)]) == 1
    assert "src/a/a.hpp:1" in capsys.readouterr().err


def test_exit_code_tells_of_imports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = '[modules.a]\npath = "src/a"\nuses = []\n[packages.a]\npath = "python/tool/a"\nuses = []\n'
    table += '[packages.b]\npath = "python/tool/b"\nuses = ["a"]\n'
    make(tmp_path, {"tools/layers.toml": table, "src/a/a.hpp": ""})
    assert check_layers.main(["--root", str(tmp_path)]) == 1, "packages without a module"
    make(tmp_path, {"python/tool/a/one.py": "", "python/tool/b/two.py": "import tool.a.one\n"})
    assert check_layers.main(["--root", str(tmp_path)]) == 0
    make(tmp_path, {"python/tool/a/one.py": "import tool.b.two\n"})
    assert check_layers.main(["--root", str(tmp_path)]) == 1
    assert "python/tool/a/one.py:1" in capsys.readouterr().err


def test_this_checkout_names_the_rules_of_the_design() -> None:
    """Rules 1 and 2 of docs/explanation/architecture.md, read back from the table in use."""
    tools = Path(check_layers.__file__).parent
    table = check_layers.load_table(tools / "layers.toml")
    for module in ("base", "format", "layout/core", "planner", "storage"):
        assert "mpi" not in table.modules[module].uses
        assert not table.modules[module].mpi
    assert "engine" not in table.modules["tracer"].uses
    assert "tracer" not in table.modules["engine"].uses
    assert table.modules["include"].uses == frozenset()
    assert table.module_of(PurePosixPath("src/layout/core/extent.hpp")) == table.modules["layout/core"]


def test_this_checkout_names_the_packages_of_the_design() -> None:
    """Each package imports those before it; what reads traces knows of no report, only the command line knows all."""
    tools = Path(check_layers.__file__).parent
    packages = check_layers.load_table(tools / "layers.toml").packages
    assert [name for name, package in packages.items() if "_core" in package.uses] == ["base"]
    assert not {"report", "plan", "launch"} & packages["trace"].uses
    assert not {"launch", "cli"} & (packages["report"].uses | packages["plan"].uses)
    assert [name for name, package in packages.items() if "cli" in package.uses] == ["__main__"]
    folders = {path.name for path in (tools.parent / "python/ioweir").iterdir() if (path / "__init__.py").is_file()}
    assert folders <= packages.keys()
