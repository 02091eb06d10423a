"""What fi_tidegate(7) says of libfabric's `tcp` and strangers is what it does, with the libfabric of MPICH: shown by the program
that goes with our report to its developers. If a test here fails because a stranger can do less, the page has to say so."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import BUILD, ROOT

SOURCE = ROOT / "docs" / "upstream" / "tcp_strangers.c"
HEADERS = Path("/usr/include/rdma/fabric.h")
MODES = ("ack", "truncate", "replace", "hold")


@pytest.fixture(scope="module")
def program(fabric: Fabric) -> Path:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about libfabric's tcp")
    if not HEADERS.exists():
        pytest.skip("libfabric's headers are missing (Debian: libfabric-dev)")
    target = BUILD / "programs" / "tcp_strangers"
    target.parent.mkdir(parents=True, exist_ok=True)
    made = process.run(["cc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-o", target, SOURCE, "-lfabric"], timeout=60)
    assert made.status == 0, made.explain()
    return target


@pytest.fixture(scope="module")
def said(program: Path) -> dict[str, str]:
    """What the program printed, by what the stranger did. All at once, because most of the time is waiting."""
    environment = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(mpis.mpich().prefix / "lib" / "mpich")}
    with ThreadPoolExecutor() as threads:
        results = list(threads.map(lambda mode: process.run([program, mode], environment, timeout=20), MODES))
    for result in results:
        assert result.clean and "provider tcp" in result.output, result.explain()
    return {mode: result.output for mode, result in zip(MODES, results, strict=True)}


def test_a_stranger_ends_a_process_by_an_acknowledgement(said):
    # fi_tidegate(7): "A stranger ends the process by 16 bytes: an acknowledgement of a message that was never sent is a SIGSEGV."
    assert "the server was ended by signal 11" in said["ack"]


def test_a_stranger_fills_memory_by_a_message_that_is_too_long(said):
    # fi_tidegate(7): "A stranger makes the process allocate as much memory as it sends in one message that is longer than the
    # buffers."
    taken = re.search(r"the server has taken (\d+) MiB more", said["truncate"])
    assert taken and int(taken[1]) >= 48


def test_a_stranger_takes_over_the_connection_of_a_peer(said):
    # fi_tidegate(7): "A stranger on the host of a peer takes over that peer's connection, by naming the port at which the peer
    # listens: it gets what the process sends to the peer next, and what it sends comes in the name of the peer's address."
    assert 'stranger: got what was for the peer: "a secret for the peer"' in said["replace"]


def test_a_stranger_stops_an_endpoint_by_beginnings(said):
    # fi_tidegate(7): "A stranger stops the endpoint from receiving by beginnings of messages on as many connections as there are
    # buffers, for as long as it holds them."
    output = said["hold"]
    assert output.count("stranger: was accepted") == 8 and "server: received 0 in the last second" in output, output
