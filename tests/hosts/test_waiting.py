"""Who waits for another host sleeps, and is woken; who closes waits until what it has sent has been taken; who has too few
descriptors is told so; ranks that others have started find them on all hosts."""

from __future__ import annotations

import re

import pytest
from conftest import PROGRAMS, SMALLEST
from harness import apart
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric

TRAFFIC, SPAWNS, STARVED, QUIET = (PROGRAMS / name for name in ("traffic.c", "spawns.c", "starved.c", "quiet.c"))
LATE_SECONDS = 0.1
"""So much later than a message was sent its receiver may wake, on a machine that is busy. A nap is twice as long."""
SLEPT_SECONDS = 2
USED_SECONDS = 0.1
"""So much processor time may a process take that sleeps so long."""
FEW_DESCRIPTORS = [14, 16]
"""Enough for MPICH to start, too few for a network."""
ENOUGH_DESCRIPTORS = 64

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))
needs_headers = pytest.mark.skipif(apart.why_not() is not None, reason=str(apart.why_not()))


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("this is about Tidegate")


def sleeps(hosts: made.Hosts, library: str, folder) -> None:
    result = apart.run(hosts, library, folder, "sleep", SLEPT_SECONDS)
    assert result.clean, result.explain()
    late, used = map(float, re.search(r"woke (\S+) s late, took (\S+) s", result.output).groups())
    assert late < LATE_SECONDS, f"woke {late} s late"
    assert used < USED_SECONDS, f"took {used} s of processor time while it slept {SLEPT_SECONDS} s"


@needs_headers
@pytest.mark.parametrize("library", ["system", "impi"])
def test_who_waits_for_another_host_sleeps_and_is_woken(two, tmp_path, library):
    sleeps(two, library, tmp_path)


@needs_headers
def test_the_utility_that_makes_datagrams_of_tcp_can_be_named(two, tmp_path):
    """libfabric 1.17. The utility asks for its lower provider as if it were the application, so FI_PROVIDER must let it."""
    (tmp_path / "1").mkdir()
    result = apart.run(two, "system", tmp_path / "1", "close", 0, 8, network="tcp;ofi_rxm")
    assert result.status != 0 and "FI_PROVIDER=tidegate,tcp,ofi_rxm" in result.output, result.explain()
    (tmp_path / "2").mkdir()
    result = apart.run(two, "system", tmp_path / "2", "close", 0, 8, network="tcp;ofi_rxm", providers="tidegate,tcp,ofi_rxm")
    assert result.clean, result.explain()


@needs_headers
@pytest.mark.parametrize(("library", "count"), [("impi", 8), pytest.param("impi", 200, marks=pytest.mark.full),
                                                pytest.param("system", 8, marks=pytest.mark.full), pytest.param("system", 200, marks=pytest.mark.full)])
def test_who_closes_loses_nothing_though_the_other_host_computes(two, tmp_path, library, count):
    result = apart.run(two, library, tmp_path, "close", 3, count)
    assert result.clean and f"{count} of {count} messages arrived" in result.output, result.explain()


def few_descriptors(hosts: made.Hosts, count: int):
    mpi = mpis.mpich()
    program = ["sh", "-c", f"ulimit -n {count}; exec {mpi.compile(TRAFFIC)} 1 5 5000 1"]
    # With two ranks per host MPICH itself runs out of descriptors before the network does.
    return made.run(hosts, mpi, 1, program, mpi.environment(Fabric.TIDEGATE), timeout=30)


@pytest.mark.parametrize("count", FEW_DESCRIPTORS)
def test_too_few_descriptors_are_an_error_that_says_so(two, count):
    result = few_descriptors(two, count)
    assert result.status != 0 and not result.timed_out, result.explain()
    assert "Too many open files" in result.output, result.explain()


@pytest.mark.full
@pytest.mark.parametrize("name", ["openmpi", "impi"])
def test_too_few_descriptors_at_the_first_contact_are_an_error_that_says_so(two, name):
    # For a minute they might become free again.
    mpi = mpis.WHEELS[name]()
    result = made.run(two, mpi, 1, [mpi.compile(STARVED)], mpi.environment(Fabric.TIDEGATE), timeout=90)
    assert result.status != 0 and not result.timed_out, result.explain()
    assert "ulimit -n" in result.output, result.explain()


def test_enough_descriptors_are_enough(two):
    result = few_descriptors(two, ENOUGH_DESCRIPTORS)
    assert result.clean, result.explain()


@pytest.mark.parametrize(("count", "length", "slots"), [(6, 1, SMALLEST), (50, 64, {})])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_what_was_sent_has_left_before_its_sender_falls_silent(two, name, count, length, slots, tmp_path):
    mpi = mpis.WHEELS[name]()
    words = [mpi.compile(QUIET), str(tmp_path / "round"), str(count), str(length)]
    result = made.run(two, mpi, 1, words, mpi.environment(Fabric.TIDEGATE, **slots), timeout=60)
    assert result.clean, result.explain()


def spawned_on(hosts: made.Hosts, name: str, *words: str | int) -> list[str]:
    """The hosts of the ranks that two ranks, one on each host, have started."""
    mpi = mpis.WHEELS[name]()
    result = made.run(hosts, mpi, 1, [mpi.compile(SPAWNS), *map(str, words)], mpi.environment(Fabric.TIDEGATE), timeout=60)
    assert result.clean, result.explain()
    found = re.search(r"spawns: \d+ children, all as sent, on (.*)", result.output)
    assert found, result.explain()
    return found[1].split()


@pytest.mark.parametrize("name", ["mpich", pytest.param("impi", marks=pytest.mark.full)])
def test_spawned_ranks_reach_all_hosts_from_all_hosts(two, name):
    assert spawned_on(two, name, 4) == ["h1", "h2", "h1", "h2"]


@pytest.mark.parametrize("name", ["mpich", pytest.param("impi", marks=pytest.mark.full)])
def test_a_spawned_rank_that_is_alone_reaches_other_hosts_too(two, name):
    """Its launcher says that its job has no ranks on other hosts."""
    assert spawned_on(two, name, 1) == ["h1"]


def test_ranks_spawned_by_open_mpi_reach_all_hosts(two):
    """Rank 0 of the spawned writes to the other, which is on the other host, and then waits for it without calling MPI: what it
    has written must have left by then. (Open MPI's launcher says that something is wrong with its own messages; over
    libfabric's `tcp` alone the job ends all the same. Of what is wrong it dies of a signal in every other run: mostly when the
    ranks are through, before that in one run of 60.)"""
    mpi = mpis.openmpi()
    result = made.run(two, mpi, 1, [mpi.compile(SPAWNS), "2", "map_by", "node"], mpi.environment(Fabric.TIDEGATE), timeout=30)
    all_sent = "spawns: 2 children, all as sent, on h1 h2" in result.output
    if not all_sent and result.status < 0 and not result.timed_out:
        pytest.skip("Open MPI's launcher has died of what it says: " + result.explain(3))
    assert all_sent and not result.timed_out, result.explain()
