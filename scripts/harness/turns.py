"""`tests/programs/turns.c`: what it is told, and how it is judged, within a host and between hosts."""

from __future__ import annotations

import os
import re
from pathlib import Path

ORDERS = ["round_robin", "one_sender", "booking"]
STOPPED_SECONDS = 4.0
"""So long the first sender sleeps."""
OTHERS_SECONDS = 2.0
"""The others' messages are there earlier, also on a machine that is busy."""


def words(folder: Path, stopping: int) -> list[str]:
    """What the program is told: who stops, for how long, and what it waits for then."""
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    return [str(stopping), str(STOPPED_SECONDS), str(fifo)]


def judge(output: str) -> None:
    """All came as sent, and nobody waited for the one that had stopped."""
    took = [float(seconds) for seconds in re.findall(r"round \d: the others took (\S+) s", output)]
    assert len(took) == 2 and "turns: all as sent" in output, output
    assert max(took) < OTHERS_SECONDS, f"the others took {took} s\n{output}"
