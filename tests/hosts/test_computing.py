"""Ranks that compute, and so call no MPI for a while: whoever wants something of them waits and takes them for alive, and
whoever wants something of others does not wait for them."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import faults
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
QUEUE_SECONDS = 17
"""Writing begins after two of these; ten more, and a host that answers nothing counts as gone."""
FILL = """import socket, sys, time
tried = [socket.socket() for _ in range(int(sys.argv[3]))]
for one in tried:
    one.setblocking(False)
    one.connect_ex((sys.argv[1], int(sys.argv[2])))
time.sleep(0.5)"""
"""Many connections at a port, which end, and wait there to be accepted all the same."""

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@contextmanager
def backlog(hosts: made.Hosts, connections: int) -> Iterator[made.Hosts]:
    """Hosts on which no more connections, and one, wait to be accepted: others are neither taken nor refused."""
    usual = Path(BACKLOG).read_text().strip()
    for host in (0, 1):
        hosts.shell(host, f"echo {connections} > {BACKLOG}")
    yield hosts
    for host in (0, 1):
        hosts.shell(host, f"echo {usual} > {BACKLOG}")


@pytest.fixture
def small_backlog(two) -> Iterator[made.Hosts]:
    with backlog(two, 1) as hosts:
        yield hosts


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


def queues(hosts: made.Hosts) -> dict[int, tuple[int, int]]:
    """Of each port of the second host at which a rank listens: the connections that wait there, and how many may."""
    listed = subprocess.run(hosts.on(1, ["ss", "-ltnpH"]), capture_output=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines() if f'"{COMPUTES.stem}"' in line]
    return {int(row[3].rsplit(":", 1)[1]): (int(row[1]), int(row[2])) for row in rows}


def outlives(hosts: made.Hosts, ranks_per_host: int, folder: Path, before: Callable[[], None] = lambda: None,
             after: Callable[[], None] = lambda: None) -> bool:
    """All connections are reset while the last rank begins to compute, and something is done before and after that. Others
    want to send to it: nobody takes it for dead, and what they sent arrives. Returns whether its queue was ever full."""
    mpi, was_full = mpis.mpich(), False
    program = mpi.compile(COMPUTES)

    def begin(processes: set[int]) -> None:
        before()
        reset = made.Breaker(hosts, program)
        reset(processes)
        assert reset.count > 0, "no connection was reset"
        after()

    once = faults.Once(folder / "begun", 0.5, begin)

    def observe(processes: set[int]) -> None:
        nonlocal was_full
        once(processes)
        if once.done_at is not None:
            was_full |= any(waiting > most for waiting, most in queues(hosts).values())

    # A thread that goes on with what the reset has left would take the connections though the rank computes.
    environment = mpi.environment(Fabric.TIDEGATE, PROGRESS="calls") | {"FI_LOG_LEVEL": "warn"}
    words = [program, "queue", str(QUEUE_SECONDS), once.file]
    result = made.run(hosts, mpi, ranks_per_host, words, environment, timeout=60, observe=observe)
    assert result.clean and "computes: all as sent" in result.output, result.explain()
    return was_full


@pytest.fixture
def tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("over tcp alone, a job does not survive this")


def test_a_rank_that_computes_outlives_the_senders_that_fill_its_queue(two, tidegate, tmp_path):
    # Three connections wait then; that of the fourth sender finds no place.
    with backlog(two, 2):
        assert outlives(two, 4, tmp_path), "the queue was never full"


def test_a_rank_that_computes_outlives_strangers_that_fill_its_queue(two, tidegate, tmp_path):
    def fill() -> None:
        (port,) = queues(two)
        subprocess.run(two.on(0, ["python3", "-c", FILL, two.addresses[1], str(port), "135"]), check=True)

    with backlog(two, 128):
        assert outlives(two, 1, tmp_path, before=fill), "the queue was never full"


@pytest.mark.full
def test_a_host_that_is_away_for_five_seconds_costs_time_only(two, tidegate, tmp_path):
    def leave_and_come_back() -> None:
        two.shell(1, "ip link set eth0 down")
        time.sleep(5)
        two.shell(1, "ip link set eth0 up")

    outlives(two, 2, tmp_path, after=leave_and_come_back)
