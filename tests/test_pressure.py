"""Ranks that flood others while these wait for something else: every program ends, with the right data, within its receivers' bound.

What is measured is the growth of each rank's resident memory from outside: its high-water mark (see `harness.memory`) over what it had
when its buffers existed and every pair had exchanged messages. That counts more than FI_TIDEGATE_RX_MEMORY promises, namely what the
MPI and this program take meanwhile, so a tenth is allowed on top.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness.memory import Residents

PRESSURE = PROGRAMS / "pressure.c"
BOUND_MIB = 16
"""The bound of every endpoint here. Without one, each of these programs makes its receiver grow by more than that."""
GROWTH_KIB = BOUND_MIB * 1024 * 11 // 10
"""How much a receiver may grow."""
SEND_KIB = 2
"""What an MPI and the provider may keep for a send that its program has not completed."""
PAUSE_MILLISECONDS = 200
"""How long blocking senders have to do their worst."""


@dataclass(frozen=True)
class Flood:
    """How `pressure` is called, and what follows from it."""

    pressure: str
    receives: str
    senders: int
    count: int
    length: int
    sends: str = "starting"

    @property
    def ranks(self) -> int:
        extra = {"flood": 2, "before": 1, "everybody": 0}
        return self.senders + extra[self.pressure]

    @property
    def words(self) -> list[str]:
        return [self.pressure, self.receives, str(self.count), str(self.length), self.sends, str(PAUSE_MILLISECONDS)]

    @property
    def name(self) -> str:
        return f"{self.pressure}-{self.receives}-{self.senders}x{self.count}x{self.length}-{self.sends}"

    def allowed_kib(self, rank: int) -> int:
        """How much a rank may grow. Sends that have been completed cost their sender nothing, whoever has not received them yet."""
        uncompleted = self.sends == "starting" and (rank > 0 or self.pressure == "everybody")
        targets = self.senders - 1 if self.pressure == "everybody" else 1
        return GROWTH_KIB + (self.count * targets * SEND_KIB if uncompleted else 0)


BLOCKING = [Flood("flood", "order", 1, 40000, 1024, "blocking"), Flood("flood", "wildcard", 2, 15000, 2048, "blocking")]
STARTING = [
    Flood("flood", "order", 6, 8000, 1024),
    Flood("flood", "probe", 2, 20000, 1024),
    Flood("before", "order", 1, 40000, 1024),
    Flood("before", "reverse", 1, 20000, 1024),
    Flood("everybody", "order", 4, 8000, 2048),
]
LENGTHS = [Flood("flood", "wildcard", 2, count, length)
           for length, count in ((0, 80000), (40, 80000), (2048, 15000), (3072, 60000), (65536, 2000))]


def withstands(jobs, mpi, flood: Flood, **parameters) -> None:
    """Runs a program and judges its end, its data and its memory."""
    residents = Residents("pressure")
    output = jobs.succeed(mpi, flood.ranks, [PRESSURE, *flood.words], observe=residents, RX_MEMORY=f"{BOUND_MIB}M", **parameters)
    assert "all as sent" in output, output
    reported = [[int(word) for word in line.split()[1:]] for line in output.splitlines() if line.startswith("memory ")]
    assert len(reported) == flood.ranks, output
    too_much = []
    for rank, _, before, _ in reported:
        grown = residents.ranks[rank].peak - before
        if grown > flood.allowed_kib(rank):
            too_much.append(f"rank {rank} has grown by {grown} KiB, which is more than {flood.allowed_kib(rank)}")
    assert not too_much, "\n".join([*too_much, output])


@pytest.mark.parametrize("flood", [*BLOCKING, *STARTING, *LENGTHS], ids=lambda flood: flood.name)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_flood_ends_within_the_bound(jobs, name, flood):
    withstands(jobs, mpis.WHEELS[name](), flood)


@pytest.mark.parametrize("scheme", ["none", "static"])
def test_the_bound_holds_under_every_scheme(jobs, scheme):
    withstands(jobs, mpis.mpich(), Flood("flood", "order", 2, 20000, 1024), SCHEME=scheme)


@pytest.mark.full
@pytest.mark.parametrize("length", [0, 40, 1024, 2048, 3072, 65536])
@pytest.mark.parametrize("senders", [1, 2, 6])
@pytest.mark.parametrize("pressure, receives, sends", [
    ("flood", "order", "blocking"), ("flood", "wildcard", "blocking"), ("flood", "probe", "blocking"),
    ("flood", "order", "starting"), ("flood", "reverse", "starting"), ("flood", "wildcard", "starting"), ("flood", "probe", "starting"),
    ("before", "order", "starting"), ("before", "reverse", "starting"), ("before", "wildcard", "starting"), ("before", "probe", "starting"),
    ("everybody", "order", "starting"), ("everybody", "reverse", "starting"), ("everybody", "wildcard", "starting"),
    ("everybody", "probe", "starting"),
], ids=lambda value: value)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_every_flood_ends_within_the_bound(jobs, name, pressure, receives, sends, senders, length):
    # As many as make 64 MiB, at least 20,000 together, so that envelopes count too, and at most 120,000.
    together = 2000 if length > 10000 else max(20000, min(120000, (64 << 20) // max(length, 1)))
    ranks = max(senders, 2) if pressure == "everybody" else senders
    withstands(jobs, mpis.WHEELS[name](), Flood(pressure, receives, ranks, together // ranks, length, sends))
