"""Senders of long messages on other hosts take turns, and one that has left MPI holds up nobody."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric

TURNS = PROGRAMS / "turns.c"
ORDERS = ["round_robin", "one_sender", "booking"]
STOPPED_SECONDS = 4.0
"""So long the first sender sleeps."""
OTHERS_SECONDS = 2.0
"""The others' messages are there earlier, also on a machine that is busy."""
RANKS_PER_HOST = 3

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module")
def two() -> Iterator[made.Hosts]:
    with made.Hosts(2) as hosts:
        yield hosts


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("only Tidegate has turns")


def holds_up_nobody(hosts: made.Hosts, fabric: Fabric, name: str, folder: Path, **parameters) -> None:
    """The first rank of the second host stops; others of both hosts have sent as well."""
    mpi = mpis.WHEELS[name]()
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    words = [mpi.compile(TURNS), str(RANKS_PER_HOST), str(STOPPED_SECONDS), str(fifo)]
    result = made.run(hosts, mpi, RANKS_PER_HOST, words, mpi.environment(fabric, **parameters), timeout=60)
    assert result.clean and "turns: all as sent" in result.output, result.explain()
    took = [float(seconds) for seconds in re.findall(r"round \d: the others took (\S+) s", result.output)]
    assert len(took) == 2 and max(took) < OTHERS_SECONDS, result.explain()


@pytest.mark.parametrize("order", ORDERS)
def test_a_sender_that_leaves_mpi_holds_up_nobody_on_other_hosts(two, fabric, order, tmp_path):
    holds_up_nobody(two, fabric, "mpich", tmp_path, BULK_ORDER=order)


@pytest.mark.full
@pytest.mark.parametrize("name", ["openmpi", "impi"])
@pytest.mark.parametrize("order", ORDERS)
def test_so_it_is_with_other_mpis(two, fabric, name, order, tmp_path):
    holds_up_nobody(two, fabric, name, tmp_path, BULK_ORDER=order)
