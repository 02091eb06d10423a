"""Ranks that flood others while these wait for something else: every program ends, with the right data, within its
receivers' bound.

What is measured is the growth of each rank's resident memory from outside: its high-water mark (see `harness.memory`)
over what it had when its buffers existed and every pair had exchanged messages. That counts more than
FI_TIDEGATE_RX_MEMORY promises, namely what the MPI and this program take meanwhile, so a tenth is allowed on top.
"""

from __future__ import annotations

import pytest
from conftest import POSTED, posted
from harness import mpi as mpis
from harness import pressure
from harness.pressure import Flood

BOUND_MIB = 16
"""The bound of every endpoint here. Without one, nearly each of these programs makes its receiver grow by more than
that."""
GROWTH_KIB = BOUND_MIB * 1024 * 11 // 10
"""How much a receiver may grow, and a sender whose sends have all been completed."""
SEND_KIB = 1.5
"""What an MPI and the provider may keep for a send that its program has not completed. Measured with 12,000 and 24,000 of
them at each of four ranks: 0.8 (MPICH), 1.1 (Open MPI) and 1.3 KiB (Intel MPI), under any scheme, and 5 to 6 MiB however
many; without a bound these ranks would grow by 48 MiB more."""
INJECTED_BYTES = 64
"""Sends of up to so many bytes are complete for their program at once, also if the receiver has no room: a program may
start any number of them before it receives, and MPIs pass non-blocking sends of this length to libfabric in the same
way as blocking ones."""
PAUSE_MILLISECONDS = 200
"""How long the receiver waits while blocking senders flood it."""

LIMIT_SECONDS = 120
"""How long a flood may take where nothing is refused."""
REFUSAL_SECONDS = 640e-6
"""FI_TIDEGATE_RETRY_TIMER as it is by default: with a single buffer nearly every message is refused and waits that long."""
REFUSING = {parameters["SCHEME"] for parameters in POSTED.values()}

BLOCKING = [Flood("flood", "order", 1, 40000, 1024, "blocking"), Flood("flood", "wildcard", 2, 15000, 2048, "blocking")]
STARTING = [
    Flood("flood", "order", 6, 8000, 1024),
    Flood("flood", "probe", 2, 20000, 1024),
    Flood("before", "order", 1, 40000, 1024),
    Flood("before", "reverse", 1, 10000, 2048),
    Flood("everybody", "order", 4, 8000, 2048),
]
LENGTHS = [Flood("flood", "wildcard", 2, count, length)
           for length, count in ((0, 80000), (40, 80000), (2048, 15000), (3072, 60000), (65536, 2000))]


ONE_OF_EACH = [BLOCKING[0], STARTING[0], STARTING[2], STARTING[4], LENGTHS[0]]


def withstands(jobs, mpi, flood: Flood, **parameters) -> None:
    """Runs a program and judges its end, its data and its memory."""
    refused = flood.senders * flood.count if parameters.get("SCHEME") in REFUSING else 0
    # Twice: other programs of a busy machine delay what waits for a timer.
    limit = LIMIT_SECONDS + round(2 * refused * REFUSAL_SECONDS)
    done = pressure.run(mpi, jobs.fabric, flood, pause_ms=PAUSE_MILLISECONDS, timeout=limit, RX_MEMORY=f"{BOUND_MIB}M", **parameters)
    assert done.result.clean and done.seconds is not None, done.result.explain()
    assert sorted(done.grown) == list(range(flood.ranks)), done.result.explain()
    kept_by_sender = max(flood.starts, flood.count if flood.length <= INJECTED_BYTES else 0)
    too_much = []
    for rank, grown in done.grown.items():
        allowed = GROWTH_KIB + (round(kept_by_sender * SEND_KIB) if flood.sends_at(rank) else 0)
        if grown > allowed:
            too_much.append(f"rank {rank} has grown by {grown} KiB, which is more than {allowed}")
    assert not too_much, "\n".join([*too_much, done.result.explain()])


@pytest.mark.parametrize(("name", "flood"), [
    # Every flood with one MPI; with the others one of each kind, and all in the whole matrix.
    pytest.param(name, flood, id=f"{name}-{flood.name}", marks=[] if name == "mpich" or flood in ONE_OF_EACH else pytest.mark.full)
    for name in mpis.WHEELS for flood in [*BLOCKING, *STARTING, *LENGTHS]
])
def test_a_flood_ends_within_the_bound(jobs, name, flood):
    withstands(jobs, mpis.WHEELS[name](), flood)


@pytest.mark.quick
@pytest.mark.parametrize("scheme", ["none", "static"])
def test_the_bound_holds_under_every_scheme(jobs, scheme):
    withstands(jobs, mpis.mpich(), Flood("flood", "order", 2, 20000, 1024), SCHEME=scheme)


@posted(["rnr-10", "preposted-100", "growing-1", "shared_window-512"])
def test_the_bound_holds_in_posted_buffers(jobs, buffers):
    # 20 MiB, and no more: each message is refused, and tried again, any number of times.
    withstands(jobs, mpis.mpich(), Flood("flood", "order", 2, 10000, 1024), **buffers)


@pytest.mark.full
@posted(name for name in POSTED if name != "shared_window-8-4096")
@pytest.mark.parametrize("flood", [*BLOCKING, *STARTING, *LENGTHS], ids=lambda flood: flood.name)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_flood_ends_within_the_bound_in_posted_buffers(jobs, name, flood, buffers):
    # A pool of up to 4096 buffers takes more than the bound here by itself, and is refused.
    withstands(jobs, mpis.WHEELS[name](), flood, **buffers)


@pytest.mark.full
@pytest.mark.parametrize("length", [0, 40, 1024, 2048, 3072, 65536])
@pytest.mark.parametrize("senders", [1, 2, 6])
@pytest.mark.parametrize("kind, receives, sends", [
    ("flood", "order", "blocking"), ("flood", "wildcard", "blocking"), ("flood", "probe", "blocking"),
    ("flood", "order", "starting"), ("flood", "reverse", "starting"), ("flood", "wildcard", "starting"), ("flood", "probe", "starting"),
    ("before", "order", "starting"), ("before", "reverse", "starting"), ("before", "wildcard", "starting"), ("before", "probe", "starting"),
    ("everybody", "order", "starting"), ("everybody", "reverse", "starting"), ("everybody", "wildcard", "starting"),
    ("everybody", "probe", "starting"),
], ids=lambda value: value)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_every_flood_ends_within_the_bound(jobs, name, kind, receives, sends, senders, length):
    # As many messages as make 64 MiB: at least 20,000 together, so that envelopes count too, and at most 120,000. In
    # reverse, where each message needs a query of its own, at most 20,000.
    together = 2000 if length > 10000 else max(20000, min(120000, (64 << 20) // max(length, 1)))
    together = min(together, 20000) if receives == "reverse" else together
    ranks = max(senders, 2) if kind == "everybody" else senders
    withstands(jobs, mpis.WHEELS[name](), Flood(kind, receives, ranks, together // ranks, length, sends))
