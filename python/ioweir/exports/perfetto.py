"""Events as a Perfetto trace (protobuf): a process a rank, a track a thread, a slice a call.

Written by hand: seven messages of perfetto's trace_packet.proto, track_event.proto and interned_data.proto, whose field
numbers stand in the names below. Calls of a thread that overlap without lying in each other (aio, io_uring) go to
tracks of their own below the thread's, since slices of one track must nest. Memory holds one batch, the calls that are
open, and each file name once.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from ioweir.base.progress import watched
from ioweir.trace import attribute
from ioweir.trace.merge import ORIGINS, replacing
from ioweir.trace.reader import FLAG_FAILED

if TYPE_CHECKING:
    from pathlib import Path

    from ioweir.trace.reader import Events, Trace

_SEQUENCE: Final = 1
_FLUSH: Final = 1 << 20
_BATCH: Final = 1 << 17
_ANNOTATIONS: Final = {"file": 1, "offset": 2, "bytes": 3, "error": 4, "origin": 5}


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def _block(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _named(field: int, iid: int, name: str) -> bytes:
    """An entry of InternedData: iid = 1, name or str = 2."""
    return _block(field, _number(1, iid) + _block(2, name.encode("utf-8", "surrogateescape")))


def write(trace: Trace, output: Path, progress: IO[str] | None = None) -> None:
    """Write a trace's events."""
    with replacing(output) as file:
        writer = _Writer(trace, file)
        watched(writer.run, writer, trace.event_count, "writing the trace's events", progress)


class _Writer:
    def __init__(self, trace: Trace, file: IO[bytes]) -> None:
        self._trace, self._file = trace, file
        self._out = bytearray()
        self.done = 0
        self._stopped = False
        self._files: dict[int, int] = {}
        self._open: dict[int, list[int]] = {}
        """By track: ends of the calls that are open, innermost last."""
        self._lanes: dict[int, int] = {}
        """By thread: how many tracks it has besides its own."""
        self._last_track = len(trace.processes) + len(trace.threads)
        layers = list(dict.fromkeys(function.layer for function in trace.functions))
        self._layers = {name: number for number, name in enumerate(layers, 1)}
        self._names = [b""] * (max((function.id for function in trace.functions), default=0) + 1)
        for function in trace.functions:
            # TrackEvent: category_iids = 3, name_iid = 10.
            self._names[function.id] = _number(3, self._layers[function.layer]) + _number(10, function.id + 1)

    def stop(self) -> None:
        """End after the batch that is being worked on."""
        self._stopped = True

    def run(self) -> None:
        """Write everything."""
        self._begin()
        for events in self._trace.batches(_BATCH):
            if self._stopped:
                return
            self._calls(events)
            self.done += len(events)
        for track in self._open:
            self._close(track, None)
        self._file.write(self._out)

    def _packet(self, content: bytes, flags: int = 2) -> None:
        # TracePacket: trusted_packet_sequence_id = 10, sequence_flags = 13 (2: needs what was interned before).
        self._out += _block(1, content + _number(10, _SEQUENCE) + _number(13, flags))
        if len(self._out) > _FLUSH:
            self._file.write(self._out)
            self._out.clear()

    def _begin(self) -> None:
        """Names of functions, layers and annotations, then the tracks."""
        # InternedData: event_categories = 1, event_names = 2, debug_annotation_names = 3, its string values = 29.
        interned = b"".join(_named(1, number, layer) for layer, number in self._layers.items())
        interned += b"".join(_named(2, function.id + 1, function.name) for function in self._trace.functions)
        interned += b"".join(_named(3, number, name) for name, number in _ANNOTATIONS.items())
        interned += b"".join(_named(29, number, name) for number, name in enumerate(ORIGINS, 1))
        self._packet(_block(12, interned), flags=1)
        who = attribute.attribute_processes(self._trace.processes)
        for number, (process, unit) in enumerate(zip(self._trace.processes, who.units, strict=True), 1):
            rank = f"rank {who.unit_names[unit]}, " if who.has_ranks and unit >= 0 else ""
            name = f"{rank}{process.host}, process {process.pid}"
            # TrackDescriptor = 60: uuid = 1, process = 3 (pid = 1, process_name = 6).
            described = _number(1, number) + _block(3, _number(1, number) + _block(6, name.encode("utf-8", "replace")))
            self._packet(_block(60, described))
        first = len(self._trace.processes) + 1
        for number, thread in enumerate(self._trace.threads, first):
            # TrackDescriptor: parent_uuid = 5, thread = 4 (pid = 1, tid = 2, thread_name = 5).
            name = f"thread {thread.kernel_id}"
            about = _number(1, thread.process + 1) + _number(2, number) + _block(5, name.encode())
            self._packet(_block(60, _number(1, number) + _block(4, about)))

    def _calls(self, events: Events) -> None:
        first = len(self._trace.processes) + 1
        columns = (
            events.thread,
            events.function,
            events.path,
            events.start_ns,
            events.duration_ns,
            events.offset,
            events.bytes,
            events.error,
            events.flags,
            events.origin,
        )
        for thread, function, path, start, length, offset, moved, error, flags, origin in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            begin, end = max(start, 0), max(start, 0) + max(length, 0)
            track = self._track(thread + first, begin, end)
            notes = self._note(2, offset) if offset >= 0 else b""
            notes += self._note(3, moved)
            if flags & FLAG_FAILED:
                notes += self._note(4, error)
            # DebugAnnotation: name_iid = 1, string_value_iid = 17.
            notes += _block(4, _number(1, 5) + _number(17, min(origin, len(ORIGINS) - 1) + 1))
            interned = b""
            if path:
                if path not in self._files:
                    self._files[path] = len(self._files) + len(ORIGINS) + 1
                    interned = _block(12, _named(29, self._files[path], self._trace.paths[path]))
                notes += _block(4, _number(1, 1) + _number(17, self._files[path]))
            # TracePacket: timestamp = 8, track_event = 11; TrackEvent: type = 9 (1: begin), track_uuid = 11.
            event = _number(9, 1) + _number(11, track) + self._names[function] + notes
            self._packet(_number(8, begin) + interned + _block(11, event))
            self._open.setdefault(track, []).append(end)

    @staticmethod
    def _note(name: int, value: int) -> bytes:
        # TrackEvent: debug_annotations = 4; DebugAnnotation: name_iid = 1, int_value = 4.
        return _block(4, _number(1, name) + _number(4, value))

    def _track(self, thread: int, begin: int, end: int) -> int:
        """The thread's track if the call lies in what is open there, else one beside it."""
        lane = 0
        while True:
            track = thread if not lane else self._lane(thread, lane)
            self._close(track, begin)
            stack = self._open.get(track)
            if not stack or stack[-1] >= end:
                return track
            lane += 1

    def _lane(self, thread: int, lane: int) -> int:
        key = thread << 32 | lane
        if key not in self._lanes:
            self._last_track += 1
            self._lanes[key] = self._last_track
            name = f"overlapping calls {lane}".encode()
            # TrackDescriptor: uuid = 1, name = 2, parent_uuid = 5.
            self._packet(_block(60, _number(1, self._last_track) + _block(2, name) + _number(5, thread)))
        return self._lanes[key]

    def _close(self, track: int, until: int | None) -> None:
        stack = self._open.get(track)
        while stack and (until is None or stack[-1] <= until):
            # TrackEvent: type = 9 (2: end).
            self._packet(_number(8, stack.pop()) + _block(11, _number(9, 2) + _number(11, track)))
