"""A headless Chromium, driven by its own protocol over a pair of pipes: what a page draws, says on its console, and asks the
network for."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


def find() -> str | None:
    """The browser, where one is installed (Debian: chromium; `make optional` installs it)."""
    return next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


class Page:
    """A browser with one page. `complaints` are errors and warnings on its console, `requests` all addresses that it asked for."""

    def __init__(self) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="tidegate-browser-")
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._number, self._received, self._session = 0, b"", None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # The browser wants its ends to be 3 and 4: first out of the way of each other.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]

        def give() -> None:
            for number, end in zip((3, 4), high):
                os.dup2(end, number)

        # As root, in containers, Chromium's sandbox cannot be had; it shows files of ours only.
        words = [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
                 "--no-first-run", "--disable-background-networking", f"--user-data-dir={self.profile.name}", "about:blank"]
        self._log = (Path(self.profile.name) / "log").open("wb")
        self.process = subprocess.Popen(words, preexec_fn=give, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
                                        start_new_session=True)
        for end in [theirs_in, theirs_out, *high]:
            os.close(end)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._wait_for_helpers()
        for end in [self._in, self._out]:
            os.close(end)
        self._log.close()
        self.profile.cleanup()

    def _wait_for_helpers(self) -> None:
        """The browser's other processes still write into its folder until they are gone too."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.01)

    def call(self, method: str, **parameters: object) -> dict:
        """Calls a method of the protocol and returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters} | ({"sessionId": self._session} if self._session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _next(self, deadline: float) -> dict:
        while b"\0" not in self._received:
            readable, _, _ = select.select([self._in], [], [], max(0, deadline - time.monotonic()))
            assert readable, "the browser does not answer"
            more = os.read(self._in, 1 << 20)
            assert more, "the browser ended: " + (Path(self.profile.name) / "log").read_text(errors="replace")[-2000:]
            self._received += more
        text, self._received = self._received.split(b"\0", 1)
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, params: dict) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([argument.get("value") for argument in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, file: Path, *, width: int = 1240, height: int = 900, dark: bool = False, script: bool = True) -> float:
        """Shows a file; returns the seconds until it was loaded and drawn, by the page's own clock."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.colours("dark" if dark else "light")
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call("Page.navigate", url=file.resolve().as_uri())
        deadline = time.monotonic() + 60
        while self.value("document.readyState") != "complete":
            assert time.monotonic() < deadline, "the page is never complete"
            time.sleep(0.05)
        return self.value("performance.timing.loadEventEnd - performance.timing.navigationStart") / 1000

    def colours(self, scheme: str, media: str = "") -> None:
        """What the system would prefer: `light` or `dark`; `media`: `print`."""
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def value(self, expression: str) -> object:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Presses a key in what has the focus."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def move(self, x: float, y: float, *, click: bool = False) -> None:
        """Moves the pointer, in pixels of the window, and clicks."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, file: Path, *, selector: str = "html") -> None:
        """Writes a picture (PNG) of the whole of an element."""
        box = self.value(f"(b => [b.x + scrollX, b.y + scrollY, b.width, b.height])(document.querySelector({selector!r}).getBoundingClientRect())")
        clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        file.write_bytes(base64.b64decode(data))

    def print(self, file: Path) -> None:
        """Writes the page as it would be printed (PDF)."""
        file.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))
