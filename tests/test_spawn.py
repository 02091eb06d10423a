"""Many processes that are spawned at once: more peers than an endpoint was planned for."""

from __future__ import annotations

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis

MANY_SPAWNED = PROGRAMS / "many_spawned.c"


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_more_children_than_peers_that_were_planned_for_simply_run(jobs, name):
    """So large a mailbox for each is planned for 17 peers of a job of one rank (64 by default). The children stay until the
    parent has heard of all of them, and send more than a newcomer's window holds."""
    output = jobs.succeed(mpis.WHEELS[name](), 1, [MANY_SPAWNED, "20"], SLOTS=1024)
    assert "many_spawned: 20 children, all as sent" in output
