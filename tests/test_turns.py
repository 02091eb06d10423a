"""Senders of long messages take turns, and one that has left MPI holds up nobody: a transfer that is waited for cannot starve."""

from __future__ import annotations

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import turns
from harness.mpi import Fabric

TURNS = PROGRAMS / "turns.c"


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("only Tidegate has turns")


@pytest.mark.parametrize("bulk", ["auto", pytest.param("bounced", marks=pytest.mark.full)])
@pytest.mark.parametrize("order", turns.ORDERS)
def test_a_sender_that_leaves_mpi_holds_up_nobody(jobs, order, bulk, tmp_path):
    turns.judge(jobs.succeed(mpis.mpich(), 4, [TURNS, *turns.words(tmp_path, 1)], timeout=60, BULK_ORDER=order, BULK=bulk))


@pytest.mark.full
@pytest.mark.parametrize("name", ["openmpi", "impi"])
@pytest.mark.parametrize("order", turns.ORDERS)
def test_so_it_is_with_other_mpis(jobs, name, order, tmp_path):
    turns.judge(jobs.succeed(mpis.WHEELS[name](), 4, [TURNS, *turns.words(tmp_path, 1)], timeout=60, BULK_ORDER=order))
