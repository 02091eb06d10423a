"""Jobs over several hosts, made of namespaces (`harness.hosts`): everything arrives as it was sent, by shared memory and by
the network at once; who is killed on another host is named; an interface that is down for a while costs time only."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest
from conftest import PROGRAMS, posted
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric

TRAFFIC, FLOOD, LONG, GREETS = (PROGRAMS / name for name in ("traffic.c", "flood.c", "long.c", "greets.c"))
SCHEMES = ["none", "static", "dynamic"]
KILLED_SECONDS = 60
"""Longer than MPICH takes to end when it gets an error."""

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module")
def four() -> Iterator[made.Hosts]:
    with made.Hosts(4) as hosts:
        yield hosts


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric not in (Fabric.TIDEGATE, Fabric.TCP):
        pytest.skip("only tcp reaches other hosts")


def succeed(hosts: made.Hosts, fabric: Fabric, name: str, ranks_per_host: int, program: list, *, extra: dict[str, str] | None = None, **parameters) -> str:
    mpi = mpis.WHEELS[name]()
    words = [mpi.compile(program[0]), *program[1:]]
    environment = mpi.environment(fabric, **parameters) | (extra or {})
    result = made.run(hosts, mpi, ranks_per_host, words, environment, timeout=120)
    assert result.clean, result.explain()
    return result.output


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_two_hosts_with_two_ranks_each(two, fabric, name, scheme):
    output = succeed(two, fabric, name, 2, [TRAFFIC, "3", "10", "200003", "1"], SCHEME=scheme)
    assert "from each of 4 ranks to each, all as sent" in output


@pytest.mark.parametrize("beside", [{"PROGRESS": "thread"}, {"RENDEZVOUS": "single"}, {"CHUNK_SIZE": "4k", "CHUNKS_MOST": 1}], ids=["thread", "single", "chunks"])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_two_hosts_however_long_messages_are_taken(two, fabric, name, beside):
    output = succeed(two, fabric, name, 2, [TRAFFIC, "3", "10", "200003", "1"], **beside)
    assert "from each of 4 ranks to each, all as sent" in output


@posted(["rnr-10", "preposted-10", "growing-1", "shared_window-8-4096"])
def test_two_hosts_with_two_ranks_each_in_posted_buffers(two, fabric, buffers):
    output = succeed(two, fabric, "mpich", 2, [TRAFFIC, "3", "10", "200003", "1"], **buffers)
    assert "from each of 4 ranks to each, all as sent" in output


@pytest.mark.parametrize("length", ["2000", "30000"])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_whoever_sends_before_it_receives_has_sent_at_the_first_contact(two, fabric, name, length):
    """Eager messages, and carried ones, complete though their receiver sends, too, and receives nothing yet."""
    assert "greets: all as sent" in succeed(two, fabric, name, 1, [GREETS, length])


@pytest.mark.full
@posted()
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_two_hosts_with_any_posted_buffers(two, fabric, name, buffers):
    output = succeed(two, fabric, name, 2, [TRAFFIC, "3", "10", "70000", "1"], **buffers)
    assert "from each of 4 ranks to each, all as sent" in output


@pytest.mark.full
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_four_hosts_with_four_ranks_each(four, fabric, name, scheme):
    output = succeed(four, fabric, name, 4, [TRAFFIC, "2", "5", "65537", "2"], SCHEME=scheme)
    assert "from each of 16 ranks to each, all as sent" in output


@pytest.mark.full
@pytest.mark.skipif(mpis.debian_openmpi() is None, reason="the system has no Open MPI with a compiler: scripts/setup.py optional")
@pytest.mark.parametrize("program", [[LONG, "1"], [FLOOD], [TRAFFIC, "3", "10", "200003", "1", "posted-ssend"]], ids=["long", "flood", "traffic"])
def test_the_open_mpi_and_the_libfabric_of_the_system(two, fabric, program):
    """Open MPI 4.1 with libfabric 1.17, whose provider for TCP is called `net`."""
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("its tcp has no reliable datagrams")
    mpi = mpis.debian_openmpi()
    environment = mpi.environment(fabric) | {"FI_LOG_LEVEL": "info"}
    result = made.run(two, mpi, 2, [mpi.compile(program[0]), *program[1:]], environment, timeout=60)
    assert result.clean and "other hosts are reached by net/eth0" in result.output, result.explain()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_smallest_mailbox_is_enough(two, fabric, scheme):
    succeed(two, fabric, "mpich", 2, [TRAFFIC, "2", "5", "65537", "3"], SCHEME=scheme, SLOTS=2, CREDIT_SLOTS=1)


def test_the_log_says_what_reaches_other_hosts_and_a_job_on_one_host_opens_nothing(two, fabric, jobs):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("only Tidegate says so")
    said, extra = "other hosts are reached by tcp/eth0", {"FI_LOG_LEVEL": "info"}
    assert said in succeed(two, fabric, "mpich", 1, [TRAFFIC, "1", "1", "8", "1"], extra=extra)
    assert "other hosts are reached" not in jobs.succeed(mpis.mpich(), 2, [TRAFFIC, "1", "1", "8", "1"], extra=extra)


@pytest.mark.parametrize("told", [["PALS_LOCAL_SIZE=2"], []], ids=["pals", "nothing"])
def test_a_job_spans_hosts_however_little_its_launcher_tells_of_them(two, fabric, told):
    """PALS tells how many ranks are here by a variable of its own, and others tell only how many there are."""
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about what Tidegate reads")
    mpi = mpis.mpich()
    program = ["env", "-u", "MPI_LOCALNRANKS", "-u", "MPI_LOCALRANKID", *told, mpi.compile(TRAFFIC), "3", "10", "3000", "1"]
    result = made.run(two, mpi, 2, program, mpi.environment(fabric), timeout=60)
    assert result.clean and "from each of 4 ranks to each, all as sent" in result.output, result.explain()


@pytest.mark.parametrize(("value", "said"), [("none", "FI_TIDEGATE_FABRIC"), ("moon", "it does by:"), ("tcp/moon0", "there are: eth0")])
def test_without_a_network_the_job_ends_with_a_reason(two, fabric, value, said):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("these are Tidegate's parameters")
    mpi = mpis.mpich()
    words = [mpi.compile(TRAFFIC), "1", "1", "8", "1"]
    result = made.run(two, mpi, 1, words, mpi.environment(fabric, FABRIC=value), timeout=60)
    assert result.status != 0 and not result.timed_out, result.explain()
    assert said in result.output, result.explain()


def test_who_is_killed_on_another_host_is_named_with_the_host(two, fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("only Tidegate names ranks")
    mpi = mpis.mpich()
    words = [mpi.compile(FLOOD), "100000", "1", "20"]
    environment = mpi.environment(fabric) | {"FI_LOG_LEVEL": "warn"}
    # Else the launcher ends the others before they can say anything.
    result = made.run(two, mpi, 1, words, environment, "-disable-auto-cleanup", timeout=KILLED_SECONDS)
    assert result.status != 0 and not result.timed_out, result.explain()
    assert "peer lost: rank 1 (pid " in result.output and "of host h2" in result.output, result.explain()
    # The next job is not hindered by what was left.
    succeed(two, fabric, "mpich", 1, [FLOOD, "5", "-1"])


class Interruption:
    """Takes the interface of a host down once, some time after the first rank was seen."""

    def __init__(self, hosts: made.Hosts, after: float, seconds: float) -> None:
        self.hosts, self.after, self.seconds = hosts, after, seconds
        self.begun: float | None = None
        self.is_over = False

    def __call__(self, processes: set[int]) -> None:
        now = time.monotonic()
        if self.begun is None and processes:
            self.begun = now
        if self.begun is not None and not self.is_over and now >= self.begun + self.after:
            self.is_over = True
            self.hosts.shell(1, "ip link set eth0 down")
            time.sleep(self.seconds)
            self.hosts.shell(1, "ip link set eth0 up")


@pytest.mark.full
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_interface_that_is_down_for_five_seconds_costs_time_only(two, fabric, scheme):
    mpi = mpis.mpich()
    words = [mpi.compile(TRAFFIC), "400", "10", "65537", "1"]
    interruption = Interruption(two, 1, 5)
    result = made.run(two, mpi, 2, words, mpi.environment(fabric, SCHEME=scheme), timeout=240, observe=interruption)
    assert result.clean and "all as sent" in result.output, result.explain()
    assert interruption.is_over, "the job was over before"


@pytest.mark.skipif(not shutil.which("ss"), reason="ss ends connections (Debian: iproute2)")
@pytest.mark.parametrize("scheme", [pytest.param("none", marks=pytest.mark.full), "dynamic"])
def test_connections_that_break_lose_nothing(two, fabric, scheme):
    """The kernel ends all TCP connections of a host again and again; ours go on where they were. (Those of libfabric's `tcp`
    itself do not.)"""
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("over tcp alone, a job does not survive this")
    mpi = mpis.mpich()
    words = [mpi.compile(TRAFFIC), "100", "10", "65537", "1"]
    breaker = made.Breaker(two, words[0])
    result = made.run(two, mpi, 2, words, mpi.environment(fabric, SCHEME=scheme), timeout=120, observe=breaker)
    assert result.clean and "all as sent" in result.output, result.explain()
    if not breaker.count:
        pytest.skip("no connection could be ended: this kernel does not let ss -K do it")


@pytest.mark.full
def test_a_slow_network_changes_nothing_but_the_time(two, fabric):
    two.shell(1, "tc qdisc add dev eth0 root tbf rate 100mbit burst 32kb latency 50ms")
    try:
        succeed(two, fabric, "mpich", 2, [TRAFFIC, "3", "10", "200003", "4"])
    finally:
        two.shell(1, "tc qdisc del dev eth0 root")
