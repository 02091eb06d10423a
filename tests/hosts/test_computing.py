"""Ranks that compute, and so call no MPI for a while: whoever wants something of them waits and takes them for alive, and
whoever wants something of others does not wait for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric

COMPUTES = PROGRAMS / "computes.c"
FIRST_SECONDS = 13
"""Longer than the 10 s after which a network other than `tcp` that takes nothing is given up."""
AMID_SECONDS = 4
COMPUTING = 16
SOON_SECONDS = 2.0
"""Ranks that do not compute exchange 40 MiB in far less, also on a machine that is busy; and in less than others compute."""
BACKLOG = "/proc/sys/net/core/somaxconn"

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module")
def two() -> Iterator[made.Hosts]:
    with made.Hosts(2) as hosts:
        yield hosts


@pytest.fixture
def small_backlog(two) -> Iterator[made.Hosts]:
    """Hosts on which no more than one connection waits to be accepted: others are neither taken nor refused."""
    usual = Path(BACKLOG).read_text().strip()
    for host in (0, 1):
        two.shell(host, f"echo 1 > {BACKLOG}")
    yield two
    for host in (0, 1):
        two.shell(host, f"echo {usual} > {BACKLOG}")


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric not in (Fabric.TIDEGATE, Fabric.TCP):
        pytest.skip("only tcp reaches other hosts")


def succeed(hosts: made.Hosts, fabric: Fabric, name: str, ranks_per_host: int, what: str, seconds: float, **parameters: str) -> str:
    mpi = mpis.WHEELS[name]()
    environment = mpi.environment(fabric, **parameters) | {"FI_LOG_LEVEL": "warn"}
    result = made.run(hosts, mpi, ranks_per_host, [mpi.compile(COMPUTES), what, str(seconds)], environment, timeout=90)
    assert result.clean and "computes: all as sent" in result.output, result.explain()
    assert result.seconds > seconds, "nobody has computed"
    assert "peer lost" not in result.output, result.explain()
    return result.output


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["none", "static", "dynamic"])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_whoever_computes_before_the_first_contact_is_waited_for(two, fabric, name, scheme):
    succeed(two, fabric, name, 2, "first", FIRST_SECONDS, SCHEME=scheme)


def test_many_find_a_rank_that_computes_and_no_room_to_wait_in_its_backlog(small_backlog, fabric):
    """17 ranks want something of one that has never been connected: the kernel takes two of their connections, and lets the
    others try."""
    succeed(small_backlog, fabric, "mpich", 1 + COMPUTING // 2, "first", FIRST_SECONDS)


def exchanges_soon(hosts: made.Hosts, fabric: Fabric, name: str, **parameters: str) -> None:
    output = succeed(hosts, fabric, name, 1 + COMPUTING // 2, "amid", AMID_SECONDS, **parameters)
    took = float(re.search(r"computes: exchanged for (\S+) s", output)[1])
    assert took < SOON_SECONDS, f"exchanging took {took} s: until the others had computed"


def test_ranks_that_compute_amid_long_messages_hold_nobody_up(two, fabric):
    exchanges_soon(two, fabric, "mpich")


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["none", "static", "dynamic"])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_many_ranks_that_compute_hold_nobody_up(two, fabric, name, scheme):
    exchanges_soon(two, fabric, name, SCHEME=scheme)


@pytest.mark.parametrize("name", ["mpich", pytest.param("openmpi", marks=pytest.mark.full), pytest.param("impi", marks=pytest.mark.full)])
def test_who_leaves_while_others_compute_loses_nothing(two, fabric, name):
    output = succeed(two, fabric, name, 2, "farewell", 3)
    assert all(f"computes: rank {rank} has all" in output for rank in (1, 2, 3)), output
