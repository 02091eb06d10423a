"""What a short message costs the processor at both ends together, in instructions: counted by callgrind, so nearly the same
on every machine of the kind, however loaded. What is above a limit is counted again: a busy machine can add some empty
calls to a run (123 instead of 108 instructions once in many runs), and takes nothing away.

A limit is what was counted when it was set and a tenth more. Who makes messages cheaper lowers it; who makes one dearer
finds it here. `pytest tests/test_instructions.py -s` prints the counts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from harness import process
from harness.paths import LIBRARY_FOLDER, PROGRAMS, ROOT

SOURCE = ROOT / "tests" / "programs" / "instructions.c"
FEW, MANY = 1000, 11000
LIMITS = {("none", 8): 2150, ("static", 8): 2260, ("dynamic", 8): 2220, ("dynamic", 64): 3400, ("dynamic", 512): 4480, ("dynamic", 2048): 7790}
"""By scheme and length in bytes."""
SHARE_MOST = 160
"""What flow control may add to a message of 8 bytes: 108 alone, but beside another busy test 144 was counted three times in
a row (it is a difference of four runs, whose start takes more or less)."""


@cache
def program() -> Path:
    """The program, compiled against the libfabric of the system."""
    target = PROGRAMS / "instructions"
    target.parent.mkdir(parents=True, exist_ok=True)
    made = process.run(["gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", target, SOURCE, "-lfabric"], timeout=120)
    assert made.status == 0, made.explain()
    return target


def count(scheme: str, length: int, messages: int) -> int:
    """Instructions of a run."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "FI_PROVIDER": "tidegate",
        "FI_PROVIDER_PATH": str(LIBRARY_FOLDER),
        "FI_TIDEGATE_SCHEME": scheme,
        # So many empty calls come before the processor is given away, more than there are; with some more yet, the first
        # of them would wait a little for an answer. Neither is what is counted.
        "FI_TIDEGATE_SPIN": "1999",
    }
    command = [shutil.which("valgrind") or "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program(), str(length), str(messages)]
    done = process.run(command, environment, timeout=120)
    found = re.search(r"Collected : (\d+)", done.output)
    assert done.status == 0 and found, done.explain()
    return int(found[1])


counted: dict[tuple[str, int, int], int] = {}
"""The least count of each run."""


def per_message(scheme: str, length: int, again: bool) -> float:
    """Instructions of a message, both ends."""
    for messages in (FEW, MANY):
        run = (scheme, length, messages)
        if again or run not in counted:
            counted[run] = min(count(*run), counted.get(run, sys.maxsize))
    each = (counted[scheme, length, MANY] - counted[scheme, length, FEW]) / (MANY - FEW)
    print(f"{scheme}, {length} bytes: {each:.0f} instructions per message")
    return each


def least(instructions: Callable[[bool], float], most: float) -> float:
    """The instructions, counted up to five times where they are too many."""
    found = instructions(False)
    for _ in range(4):
        if found > most:
            found = instructions(True)
    return found


def is_there(name: str) -> bool:
    """Whether the C compiler finds this header."""
    return subprocess.run(["gcc", "-E", "-include", name, "-x", "c", "/dev/null"], capture_output=True).returncode == 0


needs_valgrind = pytest.mark.skipif(
    not shutil.which("valgrind") or not is_there("rdma/fabric.h"),
    reason="needs valgrind and libfabric's headers (Debian: valgrind, libfabric-dev; as root, `make system` installs them)",
)


@needs_valgrind
@pytest.mark.parametrize(("scheme", "length"), LIMITS)
def test_a_message_costs_no_more_than_it_did(scheme: str, length: int) -> None:
    each = least(lambda again: per_message(scheme, length, again), LIMITS[scheme, length])
    assert each <= LIMITS[scheme, length], f"{each:.0f} instructions per message of {length} bytes with {scheme}"


@needs_valgrind
@pytest.mark.parametrize("scheme", ["static", "dynamic"])
def test_flow_control_is_a_small_part_of_it(scheme: str) -> None:
    share = least(lambda again: per_message(scheme, 8, again) - per_message("none", 8, again), SHARE_MOST)
    assert share <= SHARE_MOST, f"{share:.0f} instructions per message of 8 bytes"
