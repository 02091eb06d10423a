"""Programs on a terminal that nobody sees: tmux keeps it, takes keys, and tells what it shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path


def why_not() -> str | None:
    """Why terminals cannot be had here."""
    return None if shutil.which("tmux") else "tmux is not installed"


class Terminal:
    """A program on a terminal of a given size. On leaving, all of it is ended."""

    def __init__(self, command: list[str | Path], environment: dict[str, str], *, width: int = 80, height: int = 24) -> None:
        # A server of its own, with no settings of the user.
        self._tmux = ["tmux", "-L", f"tidegate-{uuid.uuid4().hex}", "-f", os.devnull]
        words = [str(word) for word in command]
        before = ["start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";"]
        session = ["new-session", "-d", "-x", str(width), "-y", str(height), *words]
        started = subprocess.run([*self._tmux, *before, *session], env=environment | {"TERM": "xterm-256color"}, capture_output=True, text=True)
        if started.returncode != 0:
            raise RuntimeError(f"tmux: {started.stderr}")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._ask("kill-server")

    def _ask(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True).stdout

    def press(self, *keys: str) -> None:
        """Presses keys, by tmux's names for them."""
        self._ask("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        """Gives the terminal another size."""
        self._ask("resize-window", "-x", str(width), "-y", str(height))

    def lines(self) -> list[str]:
        """What it shows, from top to bottom."""
        return self._ask("capture-pane", "-p").splitlines()

    def has_ended(self) -> int | None:
        """The exit status of the program, if it has ended."""
        dead, _, status = self._ask("list-panes", "-F", "#{pane_dead} #{pane_dead_status}").strip().partition(" ")
        return int(status or 0) if dead == "1" else None

    def wait_for(self, is_right: Callable[[list[str]], bool], *, timeout: float = 20.0) -> list[str]:
        """Waits until what it shows is right; `timeout` in seconds."""
        deadline = time.monotonic() + timeout
        while True:
            lines = self.lines()
            if is_right(lines):
                return lines
            assert time.monotonic() < deadline, "the terminal shows\n" + "\n".join(lines)
            time.sleep(0.05)

    def wait_for_text(self, *texts: str, timeout: float = 20.0) -> list[str]:
        """Waits until it shows all of these."""
        return self.wait_for(lambda lines: all(text in "\n".join(lines) for text in texts), timeout=timeout)

    def wait_for_end(self, *, timeout: float = 10.0) -> int:
        """Waits until the program has ended; returns its exit status."""
        deadline = time.monotonic() + timeout
        while (status := self.has_ended()) is None:
            assert time.monotonic() < deadline, "it goes on:\n" + "\n".join(self.lines())
            time.sleep(0.05)
        return status
