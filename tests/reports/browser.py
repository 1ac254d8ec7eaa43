"""A real Chromium, driven over a pipe by its DevTools protocol: no driver, no library, no port.

Chromium reads commands from descriptor 3 and writes answers and events to descriptor 4, each a JSON text and
a NUL.
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
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIMIT_S = 300.0
"""Only what hangs takes longer."""
CONTRAST = "color-contrast"
"""A rule of axe-core."""


def chromium() -> str | None:
    """The browser of the tests, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One Chromium process with pages in it."""

    def __init__(self) -> None:
        self._profile = tempfile.mkdtemp(prefix="mpplan-browser-")
        self._number = 0
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        program = chromium()
        assert program is not None
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
            "--force-device-scale-factor=1", f"--user-data-dir={self._profile}", "about:blank",
        ]  # fmt: skip
        # The shell puts the two descriptors where Chromium looks for them, whatever numbers they have here.
        line = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, "browser", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self.send("Browser.close")
        os.close(self._write)
        try:
            self._process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(LIMIT_S)
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """One command and its result; events that come in between are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + LIMIT_S
        while True:
            answer = self._next(until)
            if answer.get("id") != self._number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has gone")
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def page(self, path: Path, **looks: Any) -> Page:
        """Open a file in a page of its own."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        page.look(**looks)
        page.open(path.as_uri())
        return page


class Page:
    """A page of the browser."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """A command to this page."""
        return self._browser.send(method, self._session, **params)

    def close(self) -> None:
        """Close the page."""
        self._browser.send("Target.closeTarget", targetId=self._target)

    def look(
        self, *, width: int = 1440, height: int = 900, scheme: str = "light", media: str = "", script: bool = True
    ) -> None:
        """Size, colour scheme, medium, and whether scripts run."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.send(
            "Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        self.send("Emulation.setScriptExecutionDisabled", value=not script)

    def open(self, address: str) -> None:
        """Load an address and wait until it is there."""
        self.send("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + LIMIT_S
        while not self.run(condition):
            if time.monotonic() > until:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def run(self, expression: str) -> Any:
        """The value of an expression, promises awaited."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def requests(self) -> list[str]:
        """Addresses that this page has asked for, its own file aside."""
        seen = [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("method") == "Network.requestWillBeSent" and event.get("sessionId") == self._session
        ]
        return [address for address in seen if not address.startswith(("file:", "data:", "blob:", "about:"))]

    def complaints(self) -> list[str]:
        """Errors of the console: exceptions, refused scripts and styles."""
        errors = []
        for event in self._browser.events:
            if event.get("sessionId") == self._session:
                if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                    errors.append(event["params"]["entry"]["text"])
                if event.get("method") == "Runtime.exceptionThrown":
                    errors.append(json.dumps(event["params"]["exceptionDetails"])[:500])
        return errors

    def axe(self, *, colours: bool | None = None) -> list[str]:
        """What axe-core finds wrong, WCAG 2.2 A and AA and best practice, one line per rule and place.

        `colours`: only the contrast of colours, which takes three quarters of the time, or all but that.
        """
        self.run(AXE.read_text(encoding="utf-8") + "; true")
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        options: dict[str, Any] = {"resultTypes": ["violations"], "runOnly": tags}
        if colours:
            options["runOnly"] = {"type": "rule", "values": [CONTRAST]}
        elif colours is False:
            options["rules"] = {CONTRAST: {"enabled": False}}
        violations = self.run(f"axe.run(document, {json.dumps(options)}).then((r) => r.violations)")
        return [
            f"{violation['id']}: {node['target']} {node['failureSummary'][:300]}"
            for violation in violations
            for node in violation["nodes"]
        ]

    def picture(self, path: Path) -> None:
        """What is on the screen, as PNG."""
        shot = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        """The page as it prints on A4."""
        done = self.send(
            "Page.printToPDF", printBackground=True, preferCSSPageSize=True, paperWidth=8.27, paperHeight=11.69
        )
        return base64.b64decode(done["data"])
