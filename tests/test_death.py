"""A rank is killed in the middle of a flood: the job ends soon, nothing hangs, and the next job finds nothing in its way."""

from __future__ import annotations

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import process

FLOOD = PROGRAMS / "flood.c"
END_SECONDS = 20
"""A job with a dead rank must have ended by then; most of it is the launcher's own time."""


@pytest.mark.parametrize("scheme", ["none", "static", "dynamic"])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_killed_rank_ends_the_job_and_the_next_one_runs(jobs, name, scheme):
    mpi = mpis.WHEELS[name]()
    before = process.segments()
    killed = jobs.run(mpi, 4, [FLOOD, "200", "2", "50"], timeout=END_SECONDS, SCHEME=scheme)
    assert not killed.timed_out and killed.status != 0, killed.explain()
    assert "flood: rank 2 dies" in killed.output, killed.explain()
    # Launchers end the other ranks by SIGKILL too: what those could not remove, the next job does.
    after = jobs.run(mpi, 4, [FLOOD, "20", "-1"], SCHEME=scheme)
    assert after.clean and "flood: 20 rounds" in after.output, after.explain()
    assert not process.orphans(before, killed.processes), "segments of the killed job were left"
