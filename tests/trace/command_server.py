"""Forks processes that are ioweir's command line, from one that has imported it. Run by forked.py, which says why.

Each request is a message with words, environment, folder, umask and script (none: `python -m`), and three descriptors:
standard output, standard error, and a pipe that is told the process's number at once and its exit code at its end.
Between this process and the command stands one that waits for it. The end of the channel ends this process, not the
commands.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

MESSAGE: Final = 1 << 20
NOT_IMPORTED: Final = ("ioweir.__main__", "ioweir.launch.shim", "ioweir.imports.darshan_child")
"""What is run, not imported."""


def serve(channel: socket.socket) -> dict[str, Any] | None:
    """The request to be carried out, in a process of its own; nothing in the server itself, at its end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, MESSAGE, 3)
        if not message:
            return None
        if os.fork() == 0:
            channel.close()
            return in_child(json.loads(message), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def in_child(request: dict[str, Any], out: int, err: int, status: int) -> dict[str, Any]:
    """Forks once more: the first process waits for the second, which goes on as the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if command:
        os.close(out)
        os.close(err)
        os.write(status, f"{command}\n".encode())
        _, code = os.waitpid(command, 0)
        os.write(status, f"{os.waitstatus_to_exitcode(code)}\n".encode())
        os._exit(0)
    os.close(status)
    os.setsid()
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    return request


def main() -> None:
    """Serves until the channel ends; in a forked process, becomes the command."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    # The folder of this file; Python puts another one there for a command.
    here = str(Path(__file__).resolve().parent)
    is_there = sys.path[0] == here
    if is_there:
        del sys.path[0]
    ioweir = importlib.import_module("ioweir")
    for module in pkgutil.walk_packages(ioweir.__path__, "ioweir."):
        if module.name not in NOT_IMPORTED:
            importlib.import_module(module.name)
    gc.freeze()
    # Those that wait for commands are waited for by nobody.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    request = serve(channel)
    if request is None:
        return
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    script = request["script"]
    if is_there:
        sys.path.insert(0, str(Path(script).parent) if script else request["folder"])
    sys.argv[1:] = request["words"]
    if script:
        runpy.run_path(script, run_name="__main__")
    else:
        runpy.run_module("ioweir", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
