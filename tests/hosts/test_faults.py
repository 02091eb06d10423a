"""What a network does to a job over two hosts: packets are lost, connections are reset, the line is slow, or cut for good. All
that arrives is as it was sent; where nothing can arrive any more, everybody gets an error within the time that fi_tidegate(7)
states, and nothing is left.

Faults are counted where they are made: a test in which nothing happened to the network fails.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import counted, faults, process
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric

TRAFFIC, LONG, SILENCE = PROGRAMS / "traffic.c", PROGRAMS / "long.c", PROGRAMS / "silence.c"
SCHEMES = ["none", "static", "dynamic"]
KILLED_SECONDS = 2.0
"""So soon an error names a killed rank of another host, where somebody waits for it (fi_tidegate(7), Peers that are gone). What is tested is
twice that: other tests have the processors too, and what would notice it otherwise takes eight seconds and more."""
RETRIES = 3
"""`tcp_retries2` of hosts that are cut off: TCP gives up after 3 s, and not after 15 minutes."""
CUT_SECONDS = 10 + 6 + 10 + 10
"""A network that is cut is noticed by then: a question comes every 10 s, TCP gives up, nothing can be sent for 10 s; and the
rest is for a machine that is busy."""

pytestmark = [
    pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not())),
    pytest.mark.skipif(made.why_not() is None and faults.why_no_packets() is not None, reason="packets cannot be dropped: nftables is missing, or its numgen"),
]


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("over tcp alone, a job does not survive this")


def arrives(hosts: made.Hosts, fault: faults.Packets, name: str, program: list, **parameters: str) -> counted.Job:
    """A job during which the fault goes on, and which must end as if it did not."""
    mpi = mpis.WHEELS[name]()
    with fault:
        job = counted.run(hosts, mpi, 2, faults.in_range(hosts, [mpi.compile(program[0]), *program[1:]]), **parameters)
        happened = fault.count
    assert job.result.clean and "all as sent" in job.result.output, job.result.explain()
    assert len(job.ranks) == 4, "the counters of a rank are missing"
    assert happened > 0, "nothing happened to any packet"
    return job


@pytest.mark.parametrize("scheme", ["none", "dynamic"])
def test_one_packet_in_a_hundred_is_lost(two, scheme):
    """TCP makes up for it: nothing is sent again by us, which would be twice."""
    job = arrives(two, faults.lost(two, 1), "mpich", [TRAFFIC, 60, 10, 65537, 1], SCHEME=scheme)
    assert job.sum("batches_resent") == 0, "TCP had lost nothing"


@pytest.mark.full
@pytest.mark.parametrize("percent", [1, 5])
@pytest.mark.parametrize("program", [[TRAFFIC, 100, 10, 200003, 2], [LONG, 6]], ids=["traffic", "long"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_many_packets_are_lost(two, name, scheme, program, percent):
    arrives(two, faults.lost(two, percent), name, program, SCHEME=scheme)


@pytest.mark.parametrize("scheme", [pytest.param("none", marks=pytest.mark.full), "dynamic"])
def test_connections_that_are_reset_lose_repeat_and_reorder_nothing(two, scheme):
    job = arrives(two, faults.reset(two, 300), "mpich", [TRAFFIC, 50, 10, 65537, 1], SCHEME=scheme)
    assert job.sum("batches_resent") > 0, "no batch was lost with its connection"


@pytest.mark.full
@pytest.mark.parametrize("one_in", [200, 500])
@pytest.mark.parametrize("program", [[TRAFFIC, 100, 10, 200003, 2], [LONG, 6]], ids=["traffic", "long"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_many_connections_are_reset(two, name, scheme, program, one_in):
    arrives(two, faults.reset(two, one_in), name, program, SCHEME=scheme)


@pytest.mark.skipif(faults.why_no_rate() is not None, reason=str(faults.why_no_rate()))
@pytest.mark.parametrize("scheme", [pytest.param("none", marks=pytest.mark.full), pytest.param("static", marks=pytest.mark.full), "dynamic"])
def test_a_slow_network_changes_nothing_but_the_time(two, scheme):
    mpi = mpis.mpich()
    with faults.Rate(two, "100mbit"):
        job = counted.run(two, mpi, 1, [mpi.compile(LONG), 1], SCHEME=scheme)
    assert job.result.clean and "all as sent" in job.result.output, job.result.explain()
    # The second host's rank has sent half of all that was read.
    read = job.sum("bytes_read") / 2
    assert read > 10e6 and job.result.seconds > read * 8 / 100e6, "the network was not slow"


@dataclass
class Ended:
    """A job of `silence` to which something happened."""

    result: process.Result
    after: dict[int, float]
    """By process of a rank: how long after that it was gone, in seconds."""


def silent(hosts: made.Hosts, name: str, ranks_per_host: int, folder: Path, action: Callable[[set[int]], None], *words: str,
           options: tuple[str, ...] = (), delay: float = 0.5) -> Ended:
    """A job to which something happens while its ranks wait for each other, and which has to end."""
    mpi, after = mpis.WHEELS[name](), dict[int, float]()
    once, ranks = faults.Once(folder / "begun", delay, action), set[int]()

    def observe(processes: set[int]) -> None:
        ranks.update(pid for pid in processes if faults.runs(pid, SILENCE))
        once(processes)
        if once.done_at is not None:
            after.update({pid: time.monotonic() - once.done_at for pid in ranks - processes if pid not in after})

    said = folder / "said"
    program = faults.in_range(hosts, [mpi.compile(SILENCE), once.file, *words], said)
    environment = mpi.environment(Fabric.TIDEGATE) | {"FI_LOG_LEVEL": "warn"}
    result = made.run(hosts, mpi, ranks_per_host, program, environment, *options, timeout=2 * CUT_SECONDS, observe=observe)
    result.output += said.read_text() if said.exists() else ""
    assert once.done_at is not None, result.explain()
    assert result.status != 0 and not result.timed_out and not result.leftovers, result.explain()
    after.update({pid: time.monotonic() - once.done_at for pid in ranks if pid not in after})
    assert len(after) == 2 * ranks_per_host, result.explain()
    return Ended(result, after)


def next_job_succeeds(hosts: made.Hosts, name: str) -> None:
    """It is not hindered by what was left, and removes it."""
    mpi = mpis.WHEELS[name]()
    result = made.run(hosts, mpi, 2, [mpi.compile(TRAFFIC), "2", "5", "5000", "1"], mpi.environment(Fabric.TIDEGATE), timeout=60)
    assert result.clean, result.explain()


@pytest.mark.parametrize(("words", "delay"), [([], 0.5), (["talking"], 0.5), (["computing"], 8.5)], ids=["silent", "talking", "computing"])
def test_a_rank_killed_on_another_host_is_named_within_two_seconds(two, tmp_path, words, delay):
    killed = []

    def kill(processes: set[int]) -> None:
        killed.append(max(pid for pid in processes if faults.runs(pid, SILENCE) and two.has(1, pid)))
        two.end(killed[0])

    # Else the launcher ends rank 0 before it can say anything. MPICH ends a rank with its error.
    ended = silent(two, "mpich", 1, tmp_path, kill, *words, options=("-disable-auto-cleanup",), delay=delay)
    assert f"peer lost: rank 1 (pid {killed[0]} of host h2)" in ended.result.output, ended.result.explain()
    noticed = max(ended.after.values())
    # It takes less than the two seconds; 6.2 were seen where others took the processors. Without the notice it would be minutes.
    assert noticed < 6 * KILLED_SECONDS, f"noticed after {noticed:.1f} s\n{ended.result.explain()}"
    next_job_succeeds(two, "mpich")


@pytest.fixture
def impatient(two) -> Iterator[made.Hosts]:
    """Hosts whose TCP gives up soon, as `sysctl net.ipv4.tcp_retries2` lets it."""
    sysctl = "/proc/sys/net/ipv4/tcp_retries2"
    usual = Path(sysctl).read_text().strip()
    for host in (0, 1):
        two.shell(host, f"echo {RETRIES} > {sysctl}")
    yield two
    for host in (0, 1):
        two.shell(host, f"echo {usual} > {sysctl}")


def noticed(ended: Ended, hosts: str) -> None:
    """A rank of one of these hosts was named as lost, and all ranks of both hosts were gone in time."""
    assert re.search(rf"rank \d+ \(pid \d+ of host h[{hosts}]\)", ended.result.output), ended.result.explain()
    took = max(ended.after.values())
    assert took < CUT_SECONDS, f"took {took:.1f} s\n{ended.result.explain()}"


def cut_off(hosts: made.Hosts, name: str, folder: Path, *words: str) -> None:
    """The ranks' network is cut for good, while that of the launcher stays: it has to end the ranks on both hosts once one of
    them has said that it is at its end."""
    cut = faults.cut(hosts)
    try:
        ended = silent(hosts, name, 2, folder, lambda _: cut.begin(), *words)
        assert cut.count > 0, "nothing came to the cut"
    finally:
        cut.end()
    noticed(ended, "12")
    next_job_succeeds(hosts, name)


def test_a_network_cut_for_good_after_all_was_acknowledged_is_an_error(impatient, tmp_path):
    cut_off(impatient, "mpich", tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("words", [[], ["talking"]], ids=["silent", "talking"])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_network_cut_for_good_is_an_error_and_nothing_is_left(impatient, tmp_path, name, words):
    cut_off(impatient, name, tmp_path, *words)


@pytest.mark.full
@pytest.mark.parametrize("words", [[], ["talking"]], ids=["silent", "talking"])
def test_a_host_whose_interface_is_down_for_good_is_an_error_on_both(impatient, tmp_path, words):
    """Here the launcher too loses sight of the other host."""
    try:
        ended = silent(impatient, "mpich", 2, tmp_path, lambda _: impatient.shell(1, "ip link set eth0 down"), *words)
    finally:
        impatient.shell(1, "ip link set eth0 up")
    noticed(ended, "2")
    next_job_succeeds(impatient, "mpich")
