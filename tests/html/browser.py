"""A headless Chromium, driven over a pipe in its own protocol (Chrome DevTools Protocol), for tests and screenshots.

Lives here: starting it, opening a page, asking it, pressing keys, taking pictures. Not here: what pages have to show.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_KEYS: Final = {
    "+": ("Equal", 187), "-": ("Minus", 189), "0": ("Digit0", 48), "Tab": ("Tab", 9), "Enter": ("Enter", 13),
    "ArrowRight": ("ArrowRight", 39), "ArrowLeft": ("ArrowLeft", 37),
}  # fmt: skip
_LONG_TASKS: Final = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longTasks.push([task.startTime, task.duration]);
}).observe({ type: "longtask", buffered: true });
"""


def installed() -> str | None:
    """The browser's program; None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass(frozen=True)
class Task:
    """A piece of work of a page's main thread, in which it answers nobody."""

    start_ms: float
    elapsed_ms: float
    processor_ms: float
    """Of the thread: what it would take where nothing else runs."""


@dataclass
class Page:
    """An open page."""

    send: Callable[..., dict[str, Any]]
    errors: list[str] = field(default_factory=list)
    """Messages of the console above information, exceptions, and violations of the policy."""
    requests: list[str] = field(default_factory=list)
    """Addresses that were asked for, data: and blob: excepted."""
    heard: set[str] = field(default_factory=set)
    """Kinds of messages that came."""
    traced: list[dict[str, Any]] = field(default_factory=list)
    """What the browser noted since begin_tracing()."""

    def open(self, path: Path, wait_s: float = 60.0) -> None:
        """Load a file and wait until it says that every part of it is there."""
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.until("document.documentElement?.dataset.ready === 'yes'", wait_s)

    def ask(self, expression: str) -> Any:
        """What a JavaScript expression comes to, promises awaited."""
        reply = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise AssertionError(f"{expression}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def until(self, condition: str, wait_s: float = 20.0) -> None:
        """Wait for a condition."""
        end = time.monotonic() + wait_s
        while not self.ask(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise AssertionError(f"not within {wait_s} s: {condition}; errors: {self.errors}")
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """A key, as from a keyboard."""
        code, number = _KEYS[key]
        text = {"text": key} if len(key) == 1 else {}
        common = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        self.send("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def prefer(self, scheme: str) -> None:
        """The system's colours: "dark" or "light"."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def size(self, width: int, height: int) -> None:
        """Of the window, in CSS pixels."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, selector: str | None = None) -> bytes:
        """A PNG of the first element that a selector finds, or of the window."""
        more: dict[str, Any] = {}
        if selector is not None:
            box = self.ask(
                f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); "
                "return {x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height}; })()"
            )
            more = {"clip": {**box, "scale": 1}, "captureBeyondViewport": True}
        return base64.b64decode(self.send("Page.captureScreenshot", format="png", **more)["data"])

    def draw_all(self) -> None:
        """Scroll through the page, so that every plot is drawn, and back."""
        height = self.ask("document.documentElement.scrollHeight")
        for top in range(0, int(height) + 1, 500):
            self.ask(f"scrollTo(0, {top})")
            self.settle()
        self.ask("scrollTo(0, 0)")
        self.settle()

    def settle(self) -> None:
        """Wait until two frames were shown and all that is in the window is drawn."""
        frame = "new Promise((r) => requestAnimationFrame(() => setTimeout(r, 0)))"
        for _ in range(2):
            self.ask(frame)
        self.until(
            "[...document.querySelectorAll('.canvas')].every((c) => { const b = c.getBoundingClientRect(); "
            "return c.offsetParent === null || b.bottom < 0 || b.top > innerHeight || c.dataset.drawn === 'yes'; })"
        )

    def begin_tracing(self) -> None:
        """From here on the browser notes its tasks."""
        self.traced.clear()
        categories = (
            "toplevel,devtools.timeline,disabled-by-default-devtools.timeline,__metadata,blink.user_timing,loading"
        )
        self.send("Tracing.start", categories=categories, transferMode="ReportEvents")

    def end_tracing(self) -> list[Task]:
        """The tasks of the page's main thread since then, longest first, as the processor's time says."""
        self.send("Tracing.end")
        while "Tracing.tracingComplete" not in self.heard:
            self.ask("0")
        self.heard.discard("Tracing.tracingComplete")
        mains = {
            (event["pid"], event["tid"])
            for event in self.traced
            if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
        }
        found = [
            Task(event["ts"] / 1e3, event["dur"] / 1e3, event.get("tdur", event["dur"]) / 1e3)
            for event in self.traced
            if (event["pid"], event["tid"]) in mains and event["name"].endswith("RunTask") and "dur" in event
        ]
        return sorted(found, key=lambda task: -task.processor_ms)

    def loaded_ms(self) -> float:
        """When, on the clock of tasks, the page's load event had ended."""
        ends = [event["ts"] / 1e3 for event in self.traced if event["name"] == "loadEventEnd"]
        return max(ends, default=0.0)

    def long_tasks(self) -> list[tuple[float, float]]:
        """Start and duration, in ms, of tasks of 50 ms and more."""
        return [(start, wide) for start, wide in self.ask("window.longTasks")]


class _Pipe:
    """Messages to the browser and back, each ended by a zero byte."""

    def __init__(self, write_fd: int, read_fd: int, heard: Callable[[dict[str, Any]], None]) -> None:
        self._write, self._read, self._heard = write_fd, read_fd, heard
        self._number = 0
        self._rest = b""
        self.session = ""

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask and wait for the answer; what else is said meanwhile is heard."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise AssertionError(f"{method}: {reply['error']}")
                result: dict[str, Any] = reply["result"]
                return result
            self._heard(reply)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], 120)[0]:
                raise AssertionError("the browser does not answer")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise AssertionError("the browser has ended")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextlib.contextmanager
def browser(program: str) -> Iterator[Page]:
    """A browser with one empty page, without a network, ended with the `with`."""
    folder = tempfile.mkdtemp(prefix="ioweir-chromium.")
    theirs_read, ours_write = os.pipe()
    ours_read, theirs_write = os.pipe()
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
        "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank",
    ]  # fmt: skip

    # The browser speaks at descriptors 3 and 4.
    shell = f'exec 3<&{theirs_read} 4>&{theirs_write}; exec "$@"'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *command], pass_fds=(theirs_read, theirs_write), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs_read)
    os.close(theirs_write)
    page: Page | None = None

    def heard(message: dict[str, Any]) -> None:
        if page is not None:
            _note(page, message)

    try:
        pipe = _Pipe(ours_write, ours_read, heard)
        page = Page(pipe.send)
        targets = pipe.send("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        pipe.session = pipe.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            pipe.send(f"{domain}.enable")
        pipe.send(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1
        )
        pipe.send("Page.addScriptToEvaluateOnNewDocument", source=_LONG_TASKS)
        page.size(1280, 900)
        yield page
    finally:
        with contextlib.suppress(AssertionError, OSError):
            pipe.session = ""
            pipe.send("Browser.close")
        os.close(ours_write)
        os.close(ours_read)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _note(page: Page, message: dict[str, Any]) -> None:
    method, params = message.get("method"), message.get("params", {})
    page.heard.add(str(method))
    if method == "Tracing.dataCollected":
        page.traced.extend(params["value"])
    if method == "Runtime.exceptionThrown":
        details = params["exceptionDetails"]
        page.errors.append(str(details.get("exception", {}).get("description") or details.get("text")))
    elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
        page.errors.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in params["args"]))
    elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
        page.errors.append(params["entry"]["text"])
    elif method == "Network.requestWillBeSent":
        url = params["request"]["url"]
        if not url.startswith(("data:", "blob:")):
            page.requests.append(url)
