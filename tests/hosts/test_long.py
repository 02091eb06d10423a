"""Long messages between hosts, which the receiver reads out of the sender's memory: every byte arrives, whatever the
network does; who is killed amid one is named."""

from __future__ import annotations

import shutil

import pytest
from conftest import PROGRAMS
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric

LONG = PROGRAMS / "long.c"
KILLED_SECONDS = 60
"""Longer than MPICH takes to end when it gets an error."""

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("only Tidegate reads memory of other hosts")


def succeed(hosts: made.Hosts, fabric: Fabric, name: str, ranks_per_host: int, rounds: int, *, extra: dict[str, str] | None = None, **parameters) -> str:
    mpi = mpis.WHEELS[name]()
    environment = mpi.environment(fabric, **parameters) | (extra or {})
    result = made.run(hosts, mpi, ranks_per_host, [mpi.compile(LONG), str(rounds)], environment, timeout=120)
    assert result.clean and "all as sent" in result.output, result.explain()
    return result.output


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_long_messages_arrive_from_any_address_and_in_pieces(two, fabric, name):
    output = succeed(two, fabric, name, 1, 3, extra={"FI_LOG_LEVEL": "info"})
    assert "which reads their memory" in output


@pytest.mark.parametrize("scheme", ["none", "static", "dynamic"])
def test_long_messages_arrive_by_shared_memory_and_network_at_once(two, fabric, scheme):
    succeed(two, fabric, "mpich", 2, 2, SCHEME=scheme)


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_where_no_memory_is_read_they_go_packet_by_packet(two, fabric, name):
    output = succeed(two, fabric, name, 1, 1, extra={"FI_LOG_LEVEL": "info"}, BULK="mailbox")
    assert "which reads their memory" not in output


@pytest.mark.parametrize("name", ["mpich", "impi"])
def test_who_is_killed_amid_a_long_message_is_named(two, fabric, name):
    mpi = mpis.WHEELS[name]()
    options = ["-disable-auto-cleanup"] if name == "mpich" else []
    environment = mpi.environment(fabric) | {"FI_LOG_LEVEL": "warn"}
    # MPICH's launcher ends with the abort of rank 0, and at times before it has passed on what that said.
    for _ in range(3):
        result = made.run(two, mpi, 1, [mpi.compile(LONG), "1", "killed"], environment, *options, timeout=KILLED_SECONDS)
        assert result.status != 0 and not result.timed_out, result.explain()
        if "rank 1 (pid " in result.output:
            break
    if name == "mpich":
        assert "rank 1 (pid " in result.output and "of host h2" in result.output, result.explain()
    succeed(two, fabric, name, 1, 1)


@pytest.mark.skipif(not shutil.which("ss"), reason="ss ends connections (Debian: iproute2)")
@pytest.mark.parametrize("scheme", [pytest.param("none", marks=pytest.mark.full), "dynamic"])
def test_connections_that_break_amid_long_messages_lose_nothing(two, fabric, scheme):
    mpi = mpis.mpich()
    program = mpi.compile(LONG)
    breaker = made.Breaker(two, program)
    result = made.run(two, mpi, 2, [program, "12"], mpi.environment(fabric, SCHEME=scheme), timeout=120, observe=breaker)
    assert result.clean and "all as sent" in result.output, result.explain()
    if not breaker.count:
        pytest.skip("no connection could be ended: this kernel does not let ss -K do it")
