"""`ioweir run` as a process: exit codes, signals, directories, and who gets the preload. Launchers are stand-ins."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from forked import completed
from ioweir.errors import EXIT_SIGNAL_BASE, EXIT_USAGE, EXIT_VERIFY, IoweirError
from ioweir.launch import run as run_module
from ioweir.launch.run import Ended, Options, prepare, program_behind
from ioweir.report import build
from ioweir.report.model import Checked
from ioweir.trace.reader import read

from traces import Builder  # isort: skip

FAKE_LAUNCHER = """#!/bin/sh
# Speaks Open MPI's command line: starts every program once, with what -x gives it.
if [ "$1" = --version ]; then echo "mpirun (Open MPI) 4.1.4"; exit 0; fi
env > {out}/launcher.env
assignments=
while [ $# -gt 0 ]; do
  case "$1" in
    -x) assignments="$assignments $2"; shift 2;;
    -n) shift 2;;
    *) break;;
  esac
done
exec env $assignments "$@"
"""


@pytest.fixture
def library() -> Path:
    """Something that can really be preloaded and does nothing: the C library's own math library."""
    found = next(iter([*sorted(Path("/lib").glob("*/libm.so.6")), Path("/lib64/libm.so.6")]))
    assert found.exists()
    return found


class Place:
    """A scratch directory with a stand-in for Open MPI's launcher in PATH."""

    def __init__(self, root: Path, library: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        libraries = root / "lib"
        libraries.mkdir()
        self.library = Path(shutil.copy(library, libraries / "libioweir_preload.so")).resolve()
        self.script("bin/mpirun", FAKE_LAUNCHER.format(out=root))
        self.environment = {
            **os.environ,
            "IOWEIR_LIBDIR": str(libraries),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }
        self.environment.pop("LD_PRELOAD", None)

    def script(self, name: str, text: str) -> Path:
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "ioweir", *words]

    def ioweir(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), cwd=self.root, env={**self.environment, **environment}, capture_output=True,
            text=True, check=False, timeout=60,
        )  # fmt: skip

    def variables(self, name: str) -> dict[str, str]:
        lines = (self.root / name).read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


@pytest.fixture
def place(tmp_path: Path, library: Path) -> Place:
    return Place(tmp_path, library)


def test_the_programs_exit_code_and_stdout_are_its_own(place: Place) -> None:
    done = place.ioweir("run", "-o", "t", "--quiet", "--", "sh", "-c", "echo out; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    content = json.loads((place.root / "t/run.json").read_text())
    assert content["state"] == "ended"
    assert (content["exit_code"], content["signal"]) == (7, None)
    assert content["command"] == ["sh", "-c", "echo out; exit 7"]
    assert content["ended"] >= content["started"]
    assert content["wall_s"] > 0
    assert not (place.root / "t/shims").exists()


def test_a_signal_gives_128_and_its_number(place: Place) -> None:
    done = place.ioweir("run", "-o", "t", "--quiet", "sh", "-c", "kill -9 $$")
    assert done.returncode == 128 + signal.SIGKILL
    content = json.loads((place.root / "t/run.json").read_text())
    assert (content["exit_code"], content["signal"]) == (None, signal.SIGKILL)


def test_a_trace_that_has_gone_leaves_the_exit_code_alone(place: Place) -> None:
    done = place.ioweir("run", "-o", "t", "--", "sh", "-c", "rm -r t; exit 7")
    assert done.returncode == 7
    assert "is not finished: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_nobody_who_reads_what_ioweir_says_leaves_the_exit_code_alone(place: Place) -> None:
    """Example: ioweir run -- ./job 2>&1 | head -1."""
    words = ("run", "-o", "t", "--", "sh", "-c", "sleep 0.1; exit 7")
    line = f'{shlex.join(place.command(*words))} 2>&1 | true; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", line], cwd=place.root, env=place.environment, check=False, timeout=60)
    assert done.returncode == 7
    assert json.loads((place.root / "t/run.json").read_text())["exit_code"] == 7


def test_what_fails_before_the_program_starts_is_125(place: Place) -> None:
    line = f"ulimit -f 0; {shlex.join(place.command('run', '-o', 't', '--', 'touch', 'ran'))}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=place.root, env=place.environment, check=False, timeout=60, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 125
    assert done.stderr.endswith("File too large; nothing was started\n")
    assert not (place.root / "ran").exists()
    assert not (place.root / "t").exists()


def test_the_run_is_described_before_it_starts(place: Place) -> None:
    done = place.ioweir("run", "-o", "t", "--quiet", "--", "cat", "t/run.json")
    assert json.loads(done.stdout)["state"] == "running"


def test_signals_are_handed_on(place: Place) -> None:
    script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        place.command("run", "-o", "t", "--quiet", "--", "sh", "-c", script),
        cwd=place.root, env=place.environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 9
    process.stdout.close()


def test_nothing_that_starts_threads_is_loaded_before_the_program_runs() -> None:
    """A thread that does not block SIGCHLD may swallow it, and the wait for the program would never end."""
    code = "import sys, ioweir.cli.app, ioweir.launch.run; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_child_has_the_signals_that_python_changes_for_itself(place: Place) -> None:
    done = place.ioweir("run", "-o", "t", "--quiet", "--", "grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status")
    masks = {line.split(":")[0]: int(line.split()[1], 16) for line in done.stdout.splitlines()}
    assert masks["SigBlk"] == 0
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        assert not masks["SigIgn"] & (1 << (number - 1))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nosuchprogram",), 127, "nosuchprogram: not found in PATH"),
        (("./nosuchprogram",), 127, "no such file"),
        (("./plain",), 126, "is not executable"),
        (("./bin",), 126, "is a directory"),
    ],
)
def test_commands_that_cannot_be_started(place: Place, words: tuple[str, ...], code: int, message: str) -> None:
    (place.root / "plain").write_text("text")
    done = place.ioweir("run", "-o", "t", "--", *words)
    assert done.returncode == code
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (place.root / "t").exists()


def test_a_directory_that_holds_something_is_refused(place: Place) -> None:
    (place.root / "t").mkdir()
    (place.root / "t/precious").write_text("x")
    done = place.ioweir("run", "-o", "t", "--", "touch", "ran")
    assert done.returncode == 125
    assert "-o t: is not empty" in done.stderr
    assert [path.name for path in (place.root / "t").iterdir()] == ["precious"]
    assert not (place.root / "ran").exists()


def test_a_directory_that_cannot_be_made_is_named(place: Place) -> None:
    (place.root / "file").write_text("x")
    done = place.ioweir("run", "-o", "file/inner", "--", "touch", "ran")
    assert done.returncode == 125
    assert "file/inner: cannot be made: Not a directory. Name a writable place with -o" in done.stderr
    assert not (place.root / "ran").exists()


def test_version(place: Place) -> None:
    done = place.ioweir("--version")
    assert (done.returncode, done.stdout) == (0, f"ioweir {metadata.version('ioweir')}\n")


def test_the_default_directory_is_named_by_the_program_behind_everything(place: Place) -> None:
    place.script("solve.sh", "#!/bin/sh\nexit 0\n")
    place.ioweir("run", "--quiet", "--", "env", "A=1", "mpirun", "-n", "2", "./solve.sh")
    (made,) = place.root.glob("ioweir-*")
    assert made.name.startswith("ioweir-solve-20")


def test_wrong_use(place: Place) -> None:
    assert place.ioweir("run", "--verify", "--", "true").returncode == 2
    assert "--plan" in place.ioweir("run", "--verify", "--", "true").stderr
    done = place.ioweir("run", "--plan", "nosuch.toml", "--", "true")
    assert done.returncode == 2
    assert "'nosuch.toml' cannot be read: No such file" in done.stderr
    assert place.ioweir("run").returncode == 2
    assert not list(place.root.glob("ioweir-*"))


def test_without_the_library_nothing_is_started(place: Place) -> None:
    done = place.ioweir("run", "--", "touch", "ran", IOWEIR_LIBDIR=str(place.bin))
    assert done.returncode == 125
    assert "libioweir_preload.so is not in" in done.stderr
    assert not (place.root / "ran").exists()


def test_a_plain_program_gets_the_preload_itself_and_the_users_stays(place: Place, library: Path) -> None:
    place.ioweir("run", "-o", "t", "--quiet", "--", "sh", "-c", "env > plain.env", LD_PRELOAD=str(library))
    variables = place.variables("plain.env")
    assert variables["LD_PRELOAD"] == f"{place.library}:{library}"
    assert variables["IOWEIR_DIR"] == str(place.root / "t")
    assert "IOWEIR_PLAN" not in variables


def test_ranks_get_the_preload_and_the_launcher_does_not(place: Place) -> None:
    place.script("rank.sh", "#!/bin/sh\nenv > rank.env\n")
    for prefix in ((), ("timeout", "60"), ("env", "B=2")):
        shutil.rmtree(place.root / "t", ignore_errors=True)
        done = place.ioweir("run", "-o", "t", "--quiet", "--", *prefix, "mpirun", "-n", "1", "./rank.sh")
        assert done.returncode == 0
        assert place.variables("rank.env")["LD_PRELOAD"] == str(place.library)
        assert place.variables("rank.env")["IOWEIR_DIR"] == str(place.root / "t")
        launcher = place.variables("launcher.env")
        assert "LD_PRELOAD" not in launcher
        assert "IOWEIR_DIR" not in launcher


def test_launchers_inside_of_scripts_are_not_preloaded_either(place: Place, library: Path) -> None:
    place.script("rank.sh", "#!/bin/sh\nenv > rank.env\n")
    place.script("job.sh", "#!/bin/sh\nenv > job.env\nmpirun -n 1 ./rank.sh 'two words'\nexit 5\n")
    done = place.ioweir("run", "-o", "t", "--quiet", "--", "./job.sh", LD_PRELOAD=str(library))
    assert done.returncode == 5
    assert place.variables("job.env")["LD_PRELOAD"] == f"{place.library}:{library}"
    launcher, rank = place.variables("launcher.env"), place.variables("rank.env")
    assert launcher["LD_PRELOAD"] == str(library)
    assert rank["LD_PRELOAD"] == f"{place.library}:{library}"
    assert rank["IOWEIR_DIR"] == str(place.root / "t")
    assert str(place.root / "t/shims") in place.variables("job.env")["PATH"]
    assert str(place.root / "t/shims") not in launcher["PATH"]
    assert json.loads((place.root / "t/run.json").read_text())["shims"][0] == "mpirun"


def test_python_leaves_no_locale_behind(place: Place) -> None:
    """In the C locale Python sets LC_CTYPE, for what it starts as well."""
    place.script("rank.sh", "#!/bin/sh\nenv > rank.env\n")
    place.script("job.sh", "#!/bin/sh\nmpirun -n 1 ./rank.sh\n")
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        place.environment.pop(name, None)
    for given in (None, "C", "C.UTF-8"):
        for command in ("./rank.sh", "./job.sh"):
            shutil.rmtree(place.root / "t", ignore_errors=True)
            variables = {} if given is None else {"LC_CTYPE": given}
            assert place.ioweir("run", "-o", "t", "--quiet", "--", command, **variables).returncode == 0
            assert place.variables("rank.env").get("LC_CTYPE") == given, command


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="no /bin/bash")
def test_ranks_get_the_functions_that_bash_exports(place: Place) -> None:
    """As environment modules do with `module`. Debian's sh drops them, and a stand-in is a script."""
    place.script("rank.sh", "#!/bin/bash\nmodule > rank.out\n")
    place.script("job.sh", "#!/bin/bash\nmodule() { echo loaded; }; export -f module\nmpirun -n 1 ./rank.sh\n")
    place.script("bin/mpirun", FAKE_LAUNCHER.format(out=place.root).replace("#!/bin/sh", "#!/bin/bash -p", 1))
    place.script("startup", "echo read >> startup.out\n")
    startup = {"BASH_ENV": str(place.root / "startup")}
    assert place.ioweir("run", "-o", "t", "--quiet", "--", "./job.sh", **startup).returncode == 0
    assert (place.root / "rank.out").read_text() == "loaded\n"
    assert (place.root / "startup.out").read_text() == "read\n" * 2, "by job.sh and rank.sh, not by the stand-in"


@pytest.mark.parametrize("waits", ["-W", "--wait"])
def test_a_job_that_is_only_queued_is_refused(place: Place, waits: str) -> None:
    place.script("bin/sbatch", "#!/bin/sh\nexit 0\n")
    done = place.ioweir("run", "-o", "t", "--quiet", "--", "sbatch", "-N2", "job.sh")
    assert done.returncode == EXIT_USAGE
    assert "sbatch: only queues the job" in done.stderr
    assert 'eval "$(ioweir env -o DIR)"' in done.stderr
    assert not (place.root / "t").exists()
    assert place.ioweir("run", "-o", "t", "--quiet", "--", "sbatch", waits, "job.sh").returncode == 0


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "nc_driver=mpiio"),
        ("cb_nodes=4;nc_header_align_size=1024", "cb_nodes=4;nc_header_align_size=1024;nc_driver=mpiio"),
        ("nc_driver=gio;cb_nodes=4", "nc_driver=gio;cb_nodes=4"),
        (" ; ", "nc_driver=mpiio"),
    ],
)
def test_under_a_plan_pnetcdf_is_asked_to_use_mpi_io(place: Place, before: str | None, after: str) -> None:
    (place.root / "plan.toml").write_text('[[file]]\nmatch = "*"\n')
    place.script("rank.sh", "#!/bin/sh\nenv > rank.env\n")
    place.script("job.sh", "#!/bin/sh\nmpirun -n 1 ./rank.sh\n")
    given = {} if before is None else {"PNETCDF_HINTS": before}
    for command in (("mpirun", "-n", "1", "./rank.sh"), ("./job.sh",), ("./rank.sh",)):
        shutil.rmtree(place.root / "t", ignore_errors=True)
        done = place.ioweir("run", "-o", "t", "--quiet", "--plan", "plan.toml", "--", *command, **given)
        assert (done.returncode, done.stderr) == (0, "")
        assert place.variables("rank.env")["PNETCDF_HINTS"] == after
    shutil.rmtree(place.root / "t")
    place.ioweir("run", "-o", "t", "--quiet", "--", "./rank.sh", **given)
    assert place.variables("rank.env").get("PNETCDF_HINTS") == before


def test_an_outer_runs_variables_do_not_leak(place: Place) -> None:
    place.ioweir(
        "run", "-o", "t", "--quiet", "--", "sh", "-c", "env > plain.env",
        IOWEIR_PLAN="/old.toml", IOWEIR_VERIFY="1", IOWEIR_DIR="/old", IOWEIR_DISABLE="1",
    )  # fmt: skip
    variables = place.variables("plain.env")
    assert variables["IOWEIR_DIR"] == str(place.root / "t")
    assert not {"IOWEIR_PLAN", "IOWEIR_VERIFY"} & set(variables)
    assert variables["IOWEIR_DISABLE"] == "1"


def test_a_script_without_an_interpreter_line_is_run_as_shells_do(place: Place) -> None:
    place.script("bare", "echo bare $1\n")
    done = place.ioweir("run", "-o", "t", "--quiet", "--", "./bare", "x")
    assert (done.returncode, done.stdout) == (0, "bare x\n")


def test_the_report_goes_to_stderr(place: Place) -> None:
    done = place.ioweir("run", "-o", "t", "--", "echo", "hello")
    assert done.stdout == "hello\n"
    assert f"trace in {place.root / 't'}" in done.stderr
    assert done.stderr.startswith("echo: ")


def test_the_command_that_shows_the_report_again_can_be_copied(place: Place) -> None:
    done = place.ioweir("run", "-o", "my trace", "--", "echo", "hello")
    assert f"`ioweir report '{place.root / 'my trace'}'`" in done.stderr


SHELLS = [shell for shell in (("sh", "sh"), ("bash", "sh"), ("dash", "sh"), ("tcsh", "csh")) if shutil.which(shell[0])]


@pytest.mark.parametrize(("shell", "syntax"), SHELLS)
def test_env_prints_what_a_shell_accepts(place: Place, library: Path, shell: str, syntax: str) -> None:
    for at, before in enumerate(("", str(library))):
        name = f"my trace! it's no. {at} for {shell}"
        done = place.ioweir("env", "-o", name, "--rank", "--shell", syntax)
        assert done.returncode == 0, done.stderr
        (place.root / "lines").write_text(done.stdout)
        environment = {"PATH": os.environ["PATH"]} | ({"LD_PRELOAD": before} if before else {})
        source = "source" if syntax == "csh" else "."
        shown = subprocess.run(
            [shell, "-c", f"{source} ./lines; env"], env=environment, capture_output=True, text=True, check=True,
            cwd=place.root,
        ).stdout  # fmt: skip
        wanted = f"{place.library}:{before}" if before else str(place.library)
        assert re.search(rf"^LD_PRELOAD={re.escape(wanted)}:?$", shown, re.MULTILINE), shown
        assert f"IOWEIR_DIR={place.root / name}\n" in shown
        assert (place.root / name).is_dir()


@pytest.mark.parametrize(("shell", "syntax"), SHELLS)
def test_env_puts_stand_ins_before_the_launchers_of_a_batch_script(place: Place, shell: str, syntax: str) -> None:
    place.script("rank.sh", "#!/bin/sh\nenv > rank.env\n")
    given = f"{sys.executable} -m ioweir env -o t-{shell} --layers mpiio,posix --callsites --shell {syntax}"
    evaluate = f"eval `{given}`" if syntax == "csh" else f'eval "$({given})"'
    done = subprocess.run(
        [shell, "-c", f"{evaluate}; env > job.env; mpirun -n 1 ./rank.sh"],
        cwd=place.root, env=place.environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "LD_PRELOAD" not in place.variables("job.env")
    assert "LD_PRELOAD" not in place.variables("launcher.env")
    rank = place.variables("rank.env")
    assert rank["LD_PRELOAD"] == str(place.library)
    assert rank["IOWEIR_DIR"] == str(place.root / f"t-{shell}")
    assert rank["IOWEIR_LAYERS"] == "mpiio,posix"
    assert rank["IOWEIR_CALLSITES"] == "1"
    assert json.loads((place.root / f"t-{shell}/run.json").read_text())["tracing"]["layers"] == ["MPI-IO", "POSIX"]


def test_env_says_its_variables_as_json(place: Place) -> None:
    done = place.ioweir("env", "-o", "t", "--buffer", "4 MiB", "--json")
    content = json.loads(done.stdout)
    assert content["ranks"]["LD_PRELOAD"] == str(place.library)
    assert content["ranks"]["IOWEIR_BUFFER"] == str(4 * 2**20)
    assert "LD_PRELOAD" not in content["script"]
    assert content["script"]["PATH"].startswith(f"{place.root / 't/shims'}:")
    assert "mpirun" in content["launchers"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("run", "--layers", "posxi", "--", "touch", "ran"), "posix"),
        (("run", "--buffer", "8mib", "--", "touch", "ran"), "MiB"),
        (("env", "-o", "t", "--layers", "netcfd"), "netcdf"),
        (("env", "-o", "t", "--shell", "tcsh"), "csh"),
        (("run", "--callsite", "--", "touch", "ran"), "--callsites"),
    ],
)
def test_a_typo_names_what_was_meant(place: Place, words: tuple[str, ...], meant: str) -> None:
    done = place.ioweir(*words)
    assert done.returncode == 2
    assert re.search(rf"did you mean '{meant}'|Possible options: {meant}", done.stderr), done.stderr
    assert not (place.root / "ran").exists()


def test_the_first_run_in_a_directory_of_ones_own_choosing_leaves_no_names(place: Place) -> None:
    place.script("secret.sh", "#!/bin/sh\nexit 0\n")
    done = place.ioweir("run", "--quiet", "--anonymise", "--", "./secret.sh", "argument")
    assert done.returncode == 0
    (made,) = place.root.glob("ioweir-*")
    assert made.name.startswith("ioweir-run-20")
    text = (made / "run.json").read_text()
    assert "secret" not in text
    assert "argument" not in text
    assert str(place.root) not in text


def test_two_runs_in_one_second_get_two_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    now = time.time()
    first = run_module.make_directory(None, "lmp", now)
    second = run_module.make_directory(None, "lmp", now)
    assert second.name == f"{first.name}-2"


@pytest.mark.parametrize(
    ("code", "result", "expected"),
    [
        (0, "mismatch", EXIT_VERIFY),
        (3, "mismatch", 3),
        (0, "ok", 0),
        (3, "ok", 3),
        (0, "nothing verified", EXIT_VERIFY),
        (3, "nothing verified", 3),
        (0, "incomplete", EXIT_VERIFY),
    ],
)
def test_a_failed_verification_is_an_error(
    code: int, result: str, expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    report = build(Builder().trace())
    report.plan.verify.result, report.plan.verify.mismatch = result, [Checked("/d/x", "", 1)]
    options = Options(verify=True, plan=Path("p.toml"))
    assert run_module._conclude(Path("t"), Ended(1.0, exit_code=code), options, report) == expected
    said = capsys.readouterr().err
    assert ("FAILED: /d/x" in said) == (result == "mismatch")
    assert ("nothing was verified" in said) == (result == "nothing verified")


@pytest.mark.parametrize("named", [False, True], ids=["new", "named"])
@pytest.mark.parametrize(
    ("ending", "code"), [("", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", EXIT_SIGNAL_BASE + 9)]
)
def test_a_trace_is_discarded_only_where_the_run_ended_well(
    ending: str, code: int, named: bool, tmp_path: Path
) -> None:
    program = f"import os, sys\nopen('data', 'w').write('x')\n{ending}"
    output = tmp_path / "named"
    output.mkdir()
    options = ["-o", str(output)] if named else []
    done = completed(
        [sys.executable, "-m", "ioweir", "run", "-q", "--discard", *options, "--", sys.executable, "-c", program],
        cwd=tmp_path,
    )
    assert done.returncode == code
    assert (tmp_path / "data").read_text() == "x"
    left = [place for place in (output, *tmp_path.glob("ioweir-*")) if any(place.iterdir())]
    assert output.is_dir()
    if code == 0:
        assert not left
        assert not list(tmp_path.glob("ioweir-*"))
        assert not done.stderr
    else:
        (kept,) = left
        assert read(kept).events.function.size > 0
        assert f"kept for a look at what went wrong: `ioweir report {kept.name}`" in done.stderr


def test_discarding_a_trace_leaves_what_the_program_wrote_beside_it(tmp_path: Path) -> None:
    program = "import os\nopen('data', 'w').write('x')\nos.mkdir('folder')\nopen('folder/run.json', 'w').write('y')"
    done = completed(
        [sys.executable, "-m", "ioweir", "run", "-q", "--discard", "-o", ".", "--", sys.executable, "-c", program],
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "data", "folder", "folder/run.json",
    ]  # fmt: skip


def test_prepare_starts_nothing_and_says_what_it_will_do(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", place.environment["PATH"])
    variables = {"LD_PRELOAD": str(place.library), "IOWEIR_DIR": "/t"}
    prepared = prepare(["mpirun", "-n", "2", "lmp"], variables, place.environment)
    assert prepared.launcher == str(place.bin / "mpirun")
    assert prepared.words[:5] == ("mpirun", "-x", f"LD_PRELOAD={place.library}", "-x", "IOWEIR_DIR=/t")
    assert "LD_PRELOAD" not in prepared.environment
    assert program_behind(["mpirun", "-n", "2", "env", "A=1", "lmp", "-in", "x"]) == ("lmp", "-in", "x")
    with pytest.raises(IoweirError):
        prepare(["nosuchprogram"], variables, place.environment)


def test_a_launcher_of_unknown_kind_is_warned_about(place: Place) -> None:
    place.script("bin/mpiexec", '#!/bin/sh\n[ "$1" = --version ] && { echo PALS; exit; }\nshift 2\nexec "$@"\n')
    done = place.ioweir("run", "-o", "t", "--quiet", "--", "mpiexec", "-n", "1", "sh", "-c", "env > rank.env")
    assert "none of Open MPI, Hydra and Slurm" in done.stderr
    assert place.variables("rank.env")["LD_PRELOAD"] == str(place.library)


def test_errors_name_the_directory(place: Place) -> None:
    for words, message in (
        (("report", "nowhere"), "'nowhere' does not exist"),
        (("report", "bin/mpirun"), "'bin/mpirun' is not a directory"),
        (("report", "bin"), "'bin' is no trace"),
        (("compare", "bin", "bin"), "'bin' is no trace"),
    ):
        done = place.ioweir(*words)
        assert done.returncode == 1
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_help_documents_every_exit_code(place: Place) -> None:
    shown: Any = place.ioweir("--help").stdout
    for code in ("0", "1", "2", "3", "74", "125", "126", "127", "128+N"):
        assert f"\n    {code} " in shown
