"""Ranks that flood others, from the same host and from another: every program ends, with the right data, and its receivers
grow by no more than their bound and what the network takes."""

from __future__ import annotations


import pytest
from conftest import POOLED, POSTED, posted
from harness import hosts as made
from harness import mpi as mpis
from harness import pressure
from harness.mpi import Fabric
from harness.pressure import Flood

BOUND_MIB = 16
GROWTH_KIB = BOUND_MIB * 1024 * 11 // 10
"""How much a receiver may grow on behalf of its senders; a tenth is the MPI's."""
NETWORK_KIB = 4 * 1024
"""What the network takes beside it with at most 8 ranks: some 700 KiB of ours (fi_tidegate(7), Memory), and what libfabric's
tcp takes for 64 buffers and for its connections."""
SEND_KIB = 1
"""What an MPI and the provider may keep for a send that its program has not completed."""

FLOODS = [
    Flood("flood", "order", 6, 4000, 1024),
    Flood("flood", "wildcard", 2, 8000, 2048, "blocking"),
    Flood("flood", "probe", 2, 5000, 1024),
    Flood("before", "order", 1, 10000, 1024),
    Flood("everybody", "wildcard", 4, 2000, 2048),
]

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


def withstands(hosts: made.Hosts, fabric: Fabric, name: str, flood: Flood, **parameters) -> None:
    mpi = mpis.WHEELS[name]()
    done = pressure.run(mpi, fabric, flood, pause_ms=200, timeout=120, hosts=hosts, RX_MEMORY=f"{BOUND_MIB}M", **parameters)
    assert done.result.clean and done.seconds is not None, done.result.explain()
    assert sorted(done.grown) == list(range(flood.ranks)), done.result.explain()
    for rank, grown in done.grown.items():
        allowed = GROWTH_KIB + NETWORK_KIB + (flood.starts * SEND_KIB if flood.sends_at(rank) else 0)
        assert grown <= allowed, f"rank {rank} has grown by {grown} KiB, more than {allowed}\n{done.result.explain()}"


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.name)
def test_a_flood_from_two_hosts_ends_within_the_bound(two, fabric, flood):
    withstands(two, fabric, "mpich", flood)


@posted(["rnr-10", "shared_window-512"])
def test_a_flood_into_posted_buffers_from_two_hosts_ends_within_the_bound(two, fabric, buffers):
    withstands(two, fabric, "mpich", FLOODS[0], **buffers)


POOLS = [
    # With few slots many senders ask in turns, for a second of processor time for each megabyte: part of the whole matrix only.
    *(pytest.param("speculative-16", flood, marks=[pytest.mark.full] if flood.ranks > 2 else []) for flood in FLOODS),
    *(("speculative-4096", flood) for flood in (FLOODS[0], FLOODS[-1])),
]


@pytest.mark.parametrize(("pool", "flood"), POOLS, ids=lambda value: getattr(value, "name", value))
def test_a_flood_into_pools_of_slots_from_two_hosts_ends_within_the_bound(two, fabric, pool, flood):
    withstands(two, fabric, "mpich", flood, **POOLED[pool])


@pytest.mark.full
@posted(name for name in POSTED if name != "shared_window-8-4096")
@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.name)
def test_every_flood_into_posted_buffers_from_two_hosts_ends_within_the_bound(two, fabric, flood, buffers):
    withstands(two, fabric, "mpich", flood, **buffers)


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["none", "static", "dynamic"])
@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.name)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_every_flood_from_two_hosts_ends_within_the_bound(two, fabric, name, flood, scheme):
    withstands(two, fabric, name, flood, SCHEME=scheme)
