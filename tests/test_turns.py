"""Senders of long messages take turns, and one that has left MPI holds up nobody: a transfer that is waited for cannot starve."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness.mpi import Fabric

TURNS = PROGRAMS / "turns.c"
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


@pytest.mark.parametrize("bulk", ["auto", pytest.param("bounced", marks=pytest.mark.full)])
@pytest.mark.parametrize("order", ORDERS)
def test_a_sender_that_leaves_mpi_holds_up_nobody(jobs, fabric, order, bulk, tmp_path):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("only Tidegate has turns")
    judge(jobs.succeed(mpis.mpich(), 4, [TURNS, *words(tmp_path, 1)], timeout=60, BULK_ORDER=order, BULK=bulk))


@pytest.mark.full
@pytest.mark.parametrize("name", ["openmpi", "impi"])
@pytest.mark.parametrize("order", ORDERS)
def test_so_it_is_with_other_mpis(jobs, fabric, name, order, tmp_path):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("only Tidegate has turns")
    judge(jobs.succeed(mpis.WHEELS[name](), 4, [TURNS, *words(tmp_path, 1)], timeout=60, BULK_ORDER=order))
