"""Senders of long messages on other hosts take turns, and one that has left MPI holds up nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import PROGRAMS, JobsOverHosts
from harness import hosts as made
from harness import mpi as mpis
from harness import turns
from harness.mpi import Fabric

TURNS = PROGRAMS / "turns.c"
RANKS_PER_HOST = 3

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("only Tidegate has turns")


def holds_up_nobody(hosts: made.Hosts, fabric: Fabric, name: str, folder: Path, **parameters) -> None:
    """The first rank of the second host stops; others of both hosts have sent as well."""
    mpi = mpis.WHEELS[name]()
    program = [mpi.compile(TURNS), *turns.words(folder, RANKS_PER_HOST)]
    turns.judge(JobsOverHosts(fabric, hosts).succeed(mpi, 2 * RANKS_PER_HOST, program, timeout=60, **parameters))


@pytest.mark.parametrize("order", turns.ORDERS)
def test_a_sender_that_leaves_mpi_holds_up_nobody_on_other_hosts(two, fabric, order, tmp_path):
    holds_up_nobody(two, fabric, "mpich", tmp_path, BULK_ORDER=order)


@pytest.mark.full
@pytest.mark.parametrize("name", ["openmpi", "impi"])
@pytest.mark.parametrize("order", turns.ORDERS)
def test_so_it_is_with_other_mpis(two, fabric, name, order, tmp_path):
    holds_up_nobody(two, fabric, name, tmp_path, BULK_ORDER=order)
