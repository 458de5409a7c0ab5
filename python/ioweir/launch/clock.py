"""The clock of a run: answers the nodes that ask what time it is, so that the times of their events can be compared.

A UDP server in `ioweir run`, and beside a launcher that a batch script starts (shim.py). The preload asks it at
MPI_Init and at MPI_Finalize (src/tracer/ring/align.cpp) and copes with no answer. Nothing is stored here.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import socket
import struct
import time
from pathlib import Path
from typing import Final

VARIABLE: Final = "IOWEIR_CLOCK"
SEPARATOR: Final = "+"  # means nothing to Open MPI's lists (;), to Slurm's (,) or to a shell
MOST_ADDRESSES: Final = 8
_REQUEST: Final = struct.Struct("<QQ")
_REPLY: Final = struct.Struct("<QQQQ")
_SIOCGIFADDR: Final = 0x8915
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def addresses() -> list[str]:
    """The IPv4 addresses by which other nodes may reach this one; the loopback address only if there is no other."""
    found: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(query.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # it has none
            found.append(socket.inet_ntoa(answer[20:24]))
    reachable = [address for address in found if not address.startswith("127.")]
    return (reachable or ["127.0.0.1"])[:MOST_ADDRESSES]


class ClockServer:
    """Tells the time to whoever knows the token: CLOCK_REALTIME at first, then by the steps of CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        self._token = secrets.randbits(64)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("0.0.0.0", 0))  # nodes ask from outside; without the token there is no answer
        self._end = secrets.token_bytes(_REQUEST.size + 1)
        self._origin = time.time_ns() - time.monotonic_ns()

    def variable(self) -> str:
        """The value of IOWEIR_CLOCK: token, machine, port, addresses."""
        try:
            machine = _BOOT_ID.read_text(encoding="ascii").strip()
        except OSError:
            machine = "unknown"
        port = self._socket.getsockname()[1]
        return SEPARATOR.join([f"{self._token:016x}", machine, str(port), *addresses()])

    def now_ns(self) -> int:
        """The run's time, nanoseconds since 1970."""
        return self._origin + time.monotonic_ns()

    def serve(self, parent: int | None = None) -> None:
        """Answer until stop(), or until `parent` is not this process's parent any more."""
        if parent is not None:
            self._socket.settimeout(1.0)
        while True:
            try:
                request, sender = self._socket.recvfrom(64)
            except TimeoutError:
                if os.getppid() != parent:
                    return
                continue
            except OSError:
                return
            received = self.now_ns()
            if request == self._end:
                return
            if len(request) != _REQUEST.size:
                continue
            token, sequence = _REQUEST.unpack(request)
            if token != self._token:
                continue
            try:
                self._socket.sendto(_REPLY.pack(token, sequence, received, self.now_ns()), sender)
            except OSError:
                continue  # the asker has gone

    def stop(self) -> None:
        """Make serve() return, in whatever thread it runs."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.sendto(self._end, ("127.0.0.1", self._socket.getsockname()[1]))

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()

    def serve_beside_launcher(self) -> None:
        """Serve in a child process, which ends some time after this process (or what it becomes by exec) has ended."""
        parent = os.getpid()
        if os.fork() != 0:
            self._socket.close()
            return
        try:
            # Nobody may wait for the end of a pipe or terminal because of this process.
            os.setsid()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(nowhere, descriptor)
            mine = self._socket.fileno()
            os.closerange(3, mine)
            os.closerange(mine + 1, 1024)
            self.serve(parent)
        finally:
            os._exit(0)


def start() -> ClockServer | None:
    """A server, or None where there is no network at all: the nodes' own clocks have to do then."""
    try:
        return ClockServer()
    except OSError:
        return None
