"""Ranks are killed, in the middle of a flood and at random moments: the job ends soon, nothing hangs, no rank gets a
message that was not meant for it, and the next job is not hindered by what was left."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import process

FLOOD = PROGRAMS / "flood.c"
END_SECONDS = 20
"""A job with a dead rank must have ended by then; most of it is the launcher's own time."""


@pytest.mark.quick
@pytest.mark.parametrize("scheme", ["none", "static", "dynamic"])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_killed_rank_ends_the_job_and_the_next_one_runs(jobs, name, scheme):
    mpi = mpis.WHEELS[name]()
    before = process.segments()
    killed = jobs.run(mpi, 4, [FLOOD, "200", "2", "50"], timeout=END_SECONDS, SCHEME=scheme)
    assert not killed.timed_out and killed.status != 0, killed.explain()
    assert "flood: rank 2 dies" in killed.output, killed.explain()
    # Launchers end the other ranks by SIGKILL too. The next job removes what these could not.
    after = jobs.run(mpi, 4, [FLOOD, "20", "-1"], SCHEME=scheme)
    assert after.clean and "flood: 20 rounds" in after.output, after.explain()
    assert not process.orphans(before, killed.processes), "segments of the killed job were left"


KILLS = PROGRAMS / "kills.c"
RANKS = 4
INSTANTS_SECONDS = 1.5
"""A rank of `kills` is killed at some instant of this time after the first rank was seen: in MPI_Init, or while they
communicate."""
WAITS_FOR_EVER_IN_INIT = {"impi"}
"""MPIs whose launcher does not notice that a rank died in MPI_Init, over any fabric: the others wait for it in a read
from the launcher. Intel MPI 2021.18: 29 of 29 jobs over tcp, 12 of 12 over Tidegate. Their ranks are killed once all
have begun."""


class Killer:
    """Kills a rank of a job, any, some time after the first rank was seen, or after a file has appeared."""

    def __init__(self, program: Path, chance: random.Random, start: Path | None = None) -> None:
        self.program, self.chance, self.start = program, chance, start
        self.delay = chance.uniform(0, INSTANTS_SECONDS)
        self.at: float | None = None
        self.victim: int | None = None

    def __call__(self, processes: set[int]) -> None:
        """Called again and again with the ids of the job's processes."""
        ranks = sorted(pid for pid in processes if self._is_rank(pid))
        if not ranks or self.victim is not None or (self.start and not self.start.exists()):
            return
        if self.at is None:
            self.at = time.monotonic() + self.delay
        # Calls come only every WATCH_SECONDS; the rest is slept here, so that any instant is possible.
        remaining = self.at - time.monotonic()
        if remaining > process.WATCH_SECONDS:
            return
        time.sleep(max(remaining, 0))
        self.victim = self.chance.choice(ranks)
        try:
            os.kill(self.victim, signal.SIGKILL)
        except ProcessLookupError:
            self.victim = None

    def _is_rank(self, pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/exe").readlink() == self.program
        except OSError:
            return False


def kill_at_random(jobs, folder: Path, name: str, count: int, seed: int) -> None:
    """Kills `count` jobs one after the other; each has to tidy up after the one before."""
    mpi, chance = mpis.WHEELS[name](), random.Random(seed)
    program, earlier = mpi.compile(KILLS), set[int]()
    before = process.segments()
    for number in range(count):
        scheme = chance.choice(["none", "static", "dynamic"])
        begun = folder / f"begun-{number}"
        killer = Killer(program, chance, begun if name in WAITS_FOR_EVER_IN_INIT else None)
        said = f"job {number} of seed {seed}, {scheme}, killed after {killer.delay:.3f} s"
        killed = jobs.run(mpi, RANKS, [program, "15", begun], timeout=END_SECONDS, observe=killer, SCHEME=scheme)
        assert killer.victim is not None, f"{said}: found no rank to kill\n{killed.explain()}"
        assert not killed.timed_out and killed.status != 0, f"{said}\n{killed.explain()}"
        assert "WRONG" not in killed.output, f"{said}\n{killed.explain()}"
        # Only a job whose ranks opened their endpoints removes what earlier jobs left.
        if begun.exists():
            left = process.orphans(before, earlier)
            assert not left, f"{said}: left by jobs before: {left}"
        earlier |= killed.processes
    after = jobs.run(mpi, RANKS, [FLOOD, "20", "-1"])
    assert after.clean, after.explain()
    assert not process.orphans(before, earlier), "segments of killed jobs were left"


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_ranks_killed_at_random_instants(jobs, tmp_path, name):
    kill_at_random(jobs, tmp_path, name, 3, random.randrange(1 << 32))


@pytest.mark.full
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_many_ranks_killed_at_random_instants(jobs, tmp_path, name):
    kill_at_random(jobs, tmp_path, name, 334, random.randrange(1 << 32))


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_rank_forks_a_child_that_finalizes_and_loses_nothing(jobs, name):
    """fi_tidegate(7): "However a child was made, what it does with these copies does not affect the parent." """
    mpi = mpis.WHEELS[name]()
    result = jobs.run(mpi, 2, [mpi.python, PROGRAMS / "forks.py"], timeout=60)
    assert result.status == 0 and not result.timed_out, result.explain()
    assert all(f"rank {rank} has its messages" in result.output for rank in (0, 1)), result.explain()
    # MPICH closes what it has opened, and nothing else: that succeeds in the child, too.
    assert name != "mpich" or "Abort" not in result.output, result.explain()
